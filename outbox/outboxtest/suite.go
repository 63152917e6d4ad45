package outboxtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// suite is one case under way: the backend, and its calls with the errors checked.
type suite struct {
	*testing.T
	Backend
}

// span is how long the suite has a store wait for something. On a real clock it must outlast a round trip on
// a busy machine, and it is waited for.
const span = 40 * time.Millisecond

func (s *suite) now() time.Time { return s.Now(s.T) }

// shard is where a workflow of the default namespace lives.
func (s *suite) shard(id umbel.WorkflowID) int {
	if s.Shard == nil {
		return 0
	}
	return s.Shard(umbel.DefaultNamespace, id)
}

// sameShard returns n workflow IDs of the default namespace that live on one shard.
func (s *suite) sameShard(n int) []umbel.WorkflowID {
	s.Helper()
	want := s.shard("w0")
	var ids []umbel.WorkflowID
	for i := 0; len(ids) < n; i++ {
		if i == 1_000_000 {
			s.Fatalf("found %d of %d workflow IDs of shard %d", len(ids), n, want)
		}
		if id := umbel.WorkflowID("w" + strconv.Itoa(i)); s.shard(id) == want {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *suite) invariant() {
	s.Helper()
	if s.Invariant != nil {
		if err := s.Invariant(s.T); err != nil {
			s.Errorf("invariant: %v", err)
		}
	}
}

// ok fails the test if err is an error.
func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

// refused checks that err is an *umbel.Error of the kind of one of the sentinels.
func (s *suite) refused(what string, err error, as ...error) {
	s.Helper()
	if _, ok := errors.AsType[*umbel.Error](err); !ok {
		s.Errorf("%s: %v, want an *umbel.Error", what, err)
		return
	}
	if !slices.ContainsFunc(as, func(target error) bool { return errors.Is(err, target) }) {
		s.Errorf("%s: %v, want one of %v", what, err, as)
	}
}

// unchanged checks that f leaves what is stored as it was.
func (s *suite) unchanged(what string, f func()) {
	s.Helper()
	before := s.dump()
	f()
	if after := s.dump(); after != before {
		s.Errorf("%s changed what is stored:\n%s", what, gocmp.Diff(strings.Split(before, "\n"), strings.Split(after, "\n")))
	}
}

func (s *suite) dump() string {
	s.Helper()
	if s.Dump == nil {
		return ""
	}
	return s.Dump(s.T)
}

func (s *suite) append(rows ...outbox.Row) {
	s.Helper()
	s.ok(s.Store.Append(s.Context(), rows))
}

func (s *suite) claim(limit int) []outbox.Row {
	s.Helper()
	rows, err := s.Store.Claim(s.Context(), limit)
	s.ok(err)
	return rows
}

func (s *suite) claimScoped(scope outbox.Scope, limit int) []outbox.Row {
	s.Helper()
	rows, err := s.Store.ClaimScoped(s.Context(), scope, limit)
	s.ok(err)
	return rows
}

// drain claims until nothing is due.
func (s *suite) drain(limit int) []outbox.Row {
	s.Helper()
	var all []outbox.Row
	for {
		rows := s.claim(limit)
		if len(rows) == 0 {
			return all
		}
		all = append(all, rows...)
	}
}

func (s *suite) get(key outbox.Key) outbox.Row {
	s.Helper()
	r, err := s.Store.Get(s.Context(), key)
	s.ok(err)
	return r
}

func (s *suite) scan(namespace string, id umbel.WorkflowID) []outbox.Row {
	s.Helper()
	var rows []outbox.Row
	for r, err := range s.Store.Scan(s.Context(), namespace, id) {
		s.ok(err)
		rows = append(rows, r)
	}
	return rows
}

// row is a row of the default route.
func row(id umbel.WorkflowID, ordinal int64) outbox.Row {
	return outbox.Row{
		WorkflowID: id, Ordinal: ordinal, ActivityType: "act",
		Input: umbel.Payload{ContentType: "text/plain", Data: []byte(fmt.Sprintf("%s/%d", id, ordinal))},
	}
}

// fanOut is the rows 0 to n-1 of a workflow.
func fanOut(id umbel.WorkflowID, n int) []outbox.Row {
	rows := make([]outbox.Row, n)
	for i := range rows {
		rows[i] = row(id, int64(i))
	}
	return rows
}

func key(id umbel.WorkflowID, ordinal int64) outbox.Key {
	return outbox.Key{Namespace: umbel.DefaultNamespace, WorkflowID: id, Ordinal: ordinal}
}

func keysOf(rows []outbox.Row) []string {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = nameOf(r)
	}
	return keys
}

// nameOf names a row over all namespaces.
func nameOf(r outbox.Row) string {
	return strconv.Quote(cmp.Or(r.Namespace, umbel.DefaultNamespace)) + " " + strconv.Quote(r.Key().Dispatch())
}

func (s *suite) wantKeys(what string, got, want []outbox.Row) {
	s.Helper()
	if d := gocmp.Diff(keysOf(want), keysOf(got)); d != "" {
		s.Fatalf("%s: rows differ (-want +got):\n%s", what, d)
	}
}

// wantSet is wantKeys without the order.
func (s *suite) wantSet(what string, got, want []outbox.Row) {
	s.Helper()
	g, w := keysOf(got), keysOf(want)
	slices.Sort(g)
	slices.Sort(w)
	if d := gocmp.Diff(w, g); d != "" {
		s.Fatalf("%s: rows differ (-want +got):\n%s", what, d)
	}
}

// wantRow compares two rows as readers see them.
func (s *suite) wantRow(what string, got, want outbox.Row) {
	s.Helper()
	if d := diff(want, got); d != "" {
		s.Fatalf("%s: row differs (-want +got):\n%s", what, d)
	}
}

// diff compares rows as Get and Scan show them. Only a pending row waits: when another was due is not part of
// the contract there.
func diff(want, got outbox.Row) string {
	if want.Status != outbox.Pending {
		want.VisibleAfter, got.VisibleAfter = time.Time{}, time.Time{}
	}
	return diffAll(want, got)
}

// diffAll compares rows as a claim returns them.
func diffAll(want, got outbox.Row) string {
	if same(want, got) {
		return ""
	}
	return gocmp.Diff(want, got, cmpopts.EquateEmpty())
}

// same is what diffAll looks for, at a speed for a hundred thousand rows.
func same(a, b outbox.Row) bool {
	if !a.VisibleAfter.Equal(b.VisibleAfter) || !a.ClaimedAt.Equal(b.ClaimedAt) || !samePayload(a.Input, b.Input) {
		return false
	}
	return a.Namespace == b.Namespace && a.WorkflowID == b.WorkflowID && a.Ordinal == b.Ordinal && a.RunID == b.RunID &&
		a.TaskQueue == b.TaskQueue && a.Node == b.Node && a.ActivityType == b.ActivityType &&
		a.Status == b.Status && a.Attempt == b.Attempt
}

// within checks that at is an instant that the store's clock showed between two readings, in whole
// milliseconds.
func within(at, before, after time.Time) error {
	if at.Before(before.Truncate(time.Millisecond)) || at.After(after) || !at.Equal(at.Truncate(time.Millisecond)) {
		return fmt.Errorf("%v is no whole millisecond from %v to %v", at, before, after)
	}
	return nil
}

func render(w io.Writer, r outbox.Row) {
	data := r.Input.Data
	if len(data) > 64 {
		data = slices.Concat(data[:64], fmt.Appendf(nil, "… %d bytes", len(data)))
	}
	_, _ = fmt.Fprintf(w, "%q %q %d run %q on %q %q %q: %q %q, %s, attempt %d, visible %d, claimed %v\n",
		r.Namespace, r.WorkflowID, r.Ordinal, r.RunID, r.TaskQueue, r.Node, r.ActivityType,
		r.Input.ContentType, data, r.Status, r.Attempt, r.VisibleAfter.UnixMilli(), r.ClaimedAt)
}

func samePayload(a, b umbel.Payload) bool {
	return a.ContentType == b.ContentType && bytes.Equal(a.Data, b.Data)
}
