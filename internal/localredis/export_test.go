package localredis

// Abandon gives the directory up while Redis runs, as a process does that is killed where the kernel does not
// end its children.
func (s *Server) Abandon() { _ = s.lock.Close() }
