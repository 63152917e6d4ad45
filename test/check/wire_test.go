package check

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// wire is a connection that may be killed: it then fails as one does that its peer has reset. A pipe that is closed at this
// end has an error of its own, which no real connection has.
type wire struct{ net.Conn }

func (w wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	return n, reset("read", err)
}

func (w wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	return n, reset("write", err)
}

func reset(op string, err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return &net.OpError{Op: op, Net: "memory", Err: syscall.ECONNRESET}
	}
	return err
}

func (w wire) SetDeadline(t time.Time) error      { return reset("set", w.Conn.SetDeadline(t)) }
func (w wire) SetReadDeadline(t time.Time) error  { return reset("set", w.Conn.SetReadDeadline(t)) }
func (w wire) SetWriteDeadline(t time.Time) error { return reset("set", w.Conn.SetWriteDeadline(t)) }
