package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel"
)

// How events are kept. An entry of the stream has the first sequence number and the number of its events in
// its ID, one field with the events and a field t with the instant of Redis's clock. The field's name says how
// its value is to be read:
//
//	e  events, one after the other, each a kind, then its fields
//	d  "first count run": the dispatch of consecutive ordinals, two events each
//	x  "run": the cancel of every ordinal that the run's bitmap of the rest names
//
// Numbers are unsigned varints, texts and bytes their length and themselves. A kind keeps its number and its
// fields for ever; a new need is a new kind.
type kind byte

const (
	kindPreamble        kind = 1  // worker, claimed at: of the events that follow in the entry
	kindStarted         kind = 2  // run, rows
	kindScheduled       kind = 3  // ordinal, type, queue, node, key, input
	kindActivityStarted kind = 4  // ordinal, attempt
	kindAttemptFailed   kind = 5  // ordinal, attempt, ms until the next is due, failure
	kindCompleted       kind = 6  // ordinal, attempt, payload
	kindFailed          kind = 7  // ordinal, attempt, failure
	kindCancelled       kind = 8  // ordinal
	kindCancelRequested kind = 9  // reason
	kindDecided         kind = 10 // status
	kindClosed          kind = 11 // status
)

// Content types that are kept as a number; any other follows number 255 as a text.
var contentTypes = []string{"", umbel.ContentTypeJSON, "text/plain", "application/octet-stream", "application/x-protobuf"}

const otherContentType = 255

func appendText[S string | []byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendInt(b []byte, n int64) []byte { return binary.AppendUvarint(b, uint64(n)) } //nolint:gosec // never negative

func appendPayload(b []byte, p umbel.Payload) []byte {
	for i, t := range contentTypes {
		if p.ContentType == t {
			return appendText(append(b, byte(i)), p.Data)
		}
	}
	return appendText(appendText(append(b, otherContentType), p.ContentType), p.Data)
}

// Flags of a failure.
const (
	nonRetryable byte = 1 << iota
	hasStack
	hasCause
)

// EncodeFailure encodes f, cut to its limits, as it is kept with rows and events.
func EncodeFailure(f *umbel.Failure) []byte { return appendFailure(nil, f.Clip()) }

func appendFailure(b []byte, f *umbel.Failure) []byte {
	var flags byte
	if f.NonRetryable {
		flags |= nonRetryable
	}
	if f.Stack != "" {
		flags |= hasStack
	}
	if f.Cause != nil {
		flags |= hasCause
	}
	b = append(b, flags)
	b = appendInt(b, int64(f.Attempt))
	b = appendText(appendText(b, f.Type), f.Message)
	if f.Stack != "" {
		b = appendText(b, f.Stack)
	}
	if f.Cause != nil {
		b = appendFailure(b, f.Cause)
	}
	return b
}

// DecodeFailure undoes [EncodeFailure].
func DecodeFailure(s string) (*umbel.Failure, error) {
	d := decoder{rest: s}
	f := d.failure(0)
	if d.err == nil && d.rest != "" {
		d.err = errDamaged
	}
	return f, d.err
}

// encodePreamble says who ran the attempts of the events behind it.
func encodePreamble(worker string, claimedAt time.Time) []byte {
	b := appendText([]byte{byte(kindPreamble)}, worker)
	return appendInt(b, max(claimedAt.UnixMilli(), 0))
}

// encodeEvent appends e. What its type does not use is left out.
func encodeEvent(b []byte, e umbel.Event) ([]byte, error) {
	if e.Ordinal < 0 || e.Attempt < 0 || e.Scheduled < 0 {
		return nil, umbel.Invalid("event", string(e.Type), "has a negative number")
	}
	switch e.Type {
	case umbel.WorkflowStarted:
		return appendInt(appendText(append(b, byte(kindStarted)), string(e.RunID)), e.Scheduled), nil
	case umbel.ActivityScheduled:
		b = appendInt(append(b, byte(kindScheduled)), e.Ordinal)
		b = appendText(appendText(appendText(appendText(b, e.Row.Type), e.TaskQueue), e.Node), e.Key)
		return appendPayload(b, e.Input), nil
	case umbel.ActivityStarted:
		return appendInt(appendInt(append(b, byte(kindActivityStarted)), e.Ordinal), int64(e.Attempt)), nil
	case umbel.ActivityAttemptFailed:
		b = appendInt(appendInt(append(b, byte(kindAttemptFailed)), e.Ordinal), int64(e.Attempt))
		b = appendInt(b, max(e.NextVisible.Sub(e.At).Milliseconds(), 0))
		return appendFailure(b, failureOf(e).Clip()), nil
	case umbel.ActivityCompleted:
		return appendPayload(appendInt(appendInt(append(b, byte(kindCompleted)), e.Ordinal), int64(e.Attempt)), e.Result), nil
	case umbel.ActivityFailed:
		b = appendInt(appendInt(append(b, byte(kindFailed)), e.Ordinal), int64(e.Attempt))
		return appendFailure(b, failureOf(e).Clip()), nil
	case umbel.ActivityCancelled:
		return appendInt(append(b, byte(kindCancelled)), e.Ordinal), nil
	case umbel.CancelRequested:
		return appendText(append(b, byte(kindCancelRequested)), e.Reason), nil
	case umbel.FanOutDecided:
		return appendText(append(b, byte(kindDecided)), string(e.Status)), nil
	case umbel.WorkflowClosed:
		return appendText(append(b, byte(kindClosed)), string(e.Status)), nil
	}
	return nil, umbel.Invalid("event type", string(e.Type), "is not one that history keeps")
}

func failureOf(e umbel.Event) *umbel.Failure {
	if e.Failure == nil {
		return &umbel.Failure{}
	}
	return e.Failure
}

// closing are the two events that close a run.
func closing(s umbel.Status) []byte {
	b := appendText([]byte{byte(kindDecided)}, string(s))
	return appendText(append(b, byte(kindClosed)), string(s))
}

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
			if int64(v) < 0 { //nolint:gosec // that is what is checked
				d.err = errDamaged
			}
			return int64(v) //nolint:gosec // checked
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
	if d.err != nil || depth > umbel.MaxErrorCauses {
		d.fail()
		return nil
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
		e.NextVisible = at.Add(time.Duration(d.int()) * time.Millisecond)
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
	}
	return e
}
