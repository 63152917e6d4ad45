package client

// ordinalSet is a set of ordinals, a bit each: at most 2 MiB.
type ordinalSet struct{ words []uint64 }

// add reports whether o, from 0 to [umbel.MaxOrdinal], is new.
func (s *ordinalSet) add(o int64) bool {
	w, bit := int(o/64), uint64(1)<<(o%64)
	if w >= len(s.words) {
		s.words = append(s.words, make([]uint64, w+1-len(s.words))...)
	}
	if s.words[w]&bit != 0 {
		return false
	}
	s.words[w] |= bit
	return true
}
