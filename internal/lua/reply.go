package lua

import (
	"fmt"
	"strconv"
)

// Reply is what a script returned: a word, and what its header says comes with it.
type Reply struct {
	Outcome string
	script  string
	vals    []any
}

// unexpected is the error for an outcome that the caller does not know: the script is newer than the binary.
func (r Reply) unexpected() error {
	return fmt.Errorf("lua: %s: outcome %q is unknown to this version", r.script, r.Outcome)
}

// reader reads values in order and remembers the first that has the wrong shape, in it or in a list within.
type reader struct {
	script string
	vals   []any
	at     int
	err    error
	within *reader // the list that this one is in
}

func (r Reply) read() *reader { return &reader{script: r.script, vals: r.vals, at: 1} }

func (r *reader) more() bool { return r.err == nil && r.at < len(r.vals) }

func (r *reader) next() any {
	if r.at >= len(r.vals) {
		r.fail("is too short")
		return nil
	}
	v := r.vals[r.at]
	r.at++
	return v
}

func (r *reader) fail(what string) {
	err := fmt.Errorf("lua: %s: reply %s at %d of %d", r.script, what, r.at, len(r.vals))
	for ; r != nil; r = r.within {
		if r.err == nil {
			r.err = err
		}
	}
}

func (r *reader) int() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			r.fail("has no integer")
		}
		return n
	default:
		r.fail("has no integer")
		return 0
	}
}

func (r *reader) string() string {
	switch v := r.next().(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case nil:
		return ""
	default:
		r.fail("has no string")
		return ""
	}
}

func (r *reader) list() *reader {
	v, ok := r.next().([]any)
	if !ok {
		r.fail("has no list")
	}
	return &reader{script: r.script, vals: v, err: r.err, within: r}
}
