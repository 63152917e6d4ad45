package server_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

// ended commits four rows and completes them with results of the given sizes, in order.
func ended(t *testing.T, s *server.Server, id umbel.WorkflowID, sizes []int) {
	t.Helper()
	const ns = umbel.DefaultNamespace
	_, err := s.Commit(t.Context(), umbel.CommitRequest{
		Namespace: ns, WorkflowID: id, Scheduled: int64(len(sizes)), Rows: make4(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for done := 0; done < len(sizes); {
		reply, err := s.Poll(t.Context(), umbel.PollRequest{
			Namespace: ns, TaskQueue: umbel.DefaultTaskQueue, Types: []string{"a"}, Worker: "w", MaxRows: 1, Wait: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range reply.Rows {
			rep, err := s.Report(t.Context(), umbel.ReportRequest{Namespace: ns, Worker: "w", Items: []umbel.ReportItem{{
				Token: row.Token, Outcome: umbel.OutcomeCompleted, Result: umbel.Payload{Data: make([]byte, sizes[row.Ordinal])},
			}}})
			if err != nil || rep.Verdicts[0].Code != umbel.Recorded {
				t.Fatal(rep, err)
			}
			done++
		}
	}
}

func make4() []umbel.StagedRow {
	return []umbel.StagedRow{{Type: "a"}, {Type: "a"}, {Type: "a"}, {Type: "a"}}
}

// A page holds MaxPageBytes, and not one more; a larger item travels alone.
func TestMaxPageBytes(t *testing.T) {
	t.Parallel()
	const ns, overhead, quarter = umbel.DefaultNamespace, 64, umbel.MaxPageBytes / 4
	s := serve(t, testredis.Shared(t))
	fits := quarter - overhead
	for name, c := range map[string]struct {
		sizes []int
		want  int
	}{
		"at the limit": {[]int{fits, fits, fits, fits}, 4},
		"one past":     {[]int{fits, fits, fits, fits + 1}, 3},
		"large ones":   {[]int{umbel.MaxPayloadBytes, umbel.MaxPayloadBytes, umbel.MaxPayloadBytes, 0}, 1},
	} {
		id := umbel.WorkflowID(name)
		ended(t, s, id, c.sizes)
		for _, ordered := range []bool{false, true} {
			page, err := s.Results(t.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: id, Ordered: ordered})
			if err != nil || len(page.Results) != c.want || page.Done != (c.want == 4) {
				t.Errorf("%s: results (ordered %t): %d, done %t, %v; want %d", name, ordered, len(page.Results), page.Done, err, c.want)
			}
		}
		// after WorkflowStarted and two events for each row come the four terminals
		events, err := s.History(t.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: id, From: 10, Limit: 4})
		if err != nil || len(events.Events) != c.want {
			t.Errorf("%s: history: %d events, %v; want %d", name, len(events.Events), err, c.want)
		}
	}
}
