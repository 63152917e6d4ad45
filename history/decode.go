package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel"
)

var errDamaged = errors.New("entry of history is cut off or damaged")

// decoder reads fields in order and keeps the first error.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) int() int64 {
	var v uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		c := d.rest[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			if int64(v) < 0 {
				d.err = errDamaged
			}
			return int64(v)
		}
	}
	d.fail()
	return 0
}

func (d *decoder) fail() { d.err, d.rest = errDamaged, "" }

func (d *decoder) byte() byte {
	if d.rest == "" {
		d.fail()
		return 0
	}
	c := d.rest[0]
	d.rest = d.rest[1:]
	return c
}

func (d *decoder) text() string {
	n := d.int()
	if d.err != nil || n > int64(len(d.rest)) {
		d.fail()
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) payload() umbel.Payload {
	var p umbel.Payload
	switch t := d.byte(); {
	case t == otherContentType:
		p.ContentType = d.text()
	case int(t) < len(contentTypes):
		p.ContentType = contentTypes[t]
	default:
		d.fail()
	}
	if s := d.text(); s != "" {
		p.Data = []byte(s)
	}
	return p
}

func (d *decoder) failure(depth int) *umbel.Failure {
	flags := d.byte()
	if depth > umbel.MaxErrorCauses {
		d.fail()
	}
	f := &umbel.Failure{NonRetryable: flags&nonRetryable != 0}
	f.Attempt = int(d.int())
	f.Type, f.Message = d.text(), d.text()
	if flags&hasStack != 0 {
		f.Stack = d.text()
	}
	if flags&hasCause != 0 {
		f.Cause = d.failure(depth + 1)
	}
	return f
}

// actor is who ran the attempts of the events being read.
type actor struct {
	worker    string
	claimedAt time.Time
}

// event reads the next event; a preamble before it changes who.
func (d *decoder) event(at time.Time, who *actor) umbel.Event {
	e := umbel.Event{At: at}
	k := kind(d.byte())
	for k == kindPreamble && d.err == nil {
		who.worker = d.text()
		who.claimedAt = time.Time{}
		if ms := d.int(); ms > 0 {
			who.claimedAt = time.UnixMilli(ms).UTC()
		}
		k = kind(d.byte())
	}
	switch k {
	case kindStarted:
		e.Type, e.RunID, e.Scheduled = umbel.WorkflowStarted, umbel.RunID(d.text()), d.int()
	case kindScheduled:
		e.Type, e.Ordinal = umbel.ActivityScheduled, d.int()
		e.Row.Type, e.TaskQueue, e.Node, e.Key = d.text(), d.text(), d.text(), d.text()
		e.Input = d.payload()
	case kindActivityStarted:
		e.Type, e.Ordinal, e.Attempt = umbel.ActivityStarted, d.int(), int(d.int())
	case kindAttemptFailed:
		e.Type, e.Ordinal, e.Attempt = umbel.ActivityAttemptFailed, d.int(), int(d.int())
		switch next := d.int(); {
		case next >= firstInstant:
			e.NextVisible = time.UnixMilli(next).UTC()
		case next > 0:
			e.NextVisible = at.Add(time.Duration(next) * time.Millisecond)
		}
		e.Failure = d.failure(0)
	case kindCompleted:
		e.Type, e.Ordinal, e.Attempt = umbel.ActivityCompleted, d.int(), int(d.int())
		e.Result = d.payload()
	case kindFailed:
		e.Type, e.Ordinal, e.Attempt = umbel.ActivityFailed, d.int(), int(d.int())
		e.Failure = d.failure(0)
	case kindCancelled:
		e.Type, e.Ordinal = umbel.ActivityCancelled, d.int()
	case kindCancelRequested:
		e.Type, e.Reason = umbel.CancelRequested, d.text()
	case kindDecided:
		e.Type, e.Status = umbel.FanOutDecided, umbel.Status(d.text())
	case kindClosed:
		e.Type, e.Status = umbel.WorkflowClosed, umbel.Status(d.text())
	default:
		if d.err == nil {
			d.err = fmt.Errorf("event of kind %d is unknown to this version, or the entry is damaged", k)
		}
	}
	switch e.Type {
	case umbel.ActivityAttemptFailed, umbel.ActivityCompleted, umbel.ActivityFailed:
		e.Worker, e.ClaimedAt = who.worker, who.claimedAt
	default: // nobody ran it
	}
	return e
}
