package seam

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/api/gen/umbel/v1/umbelv1connect"
	"github.com/umbelhq/umbel/internal/memnet"
	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
)

const (
	ns   = umbel.DefaultNamespace
	pool = umbel.DefaultTaskQueue
	task = "task"
)

// world is what a test of the seam in virtual time has: a Redis, a network, and a server at [address].
type world struct {
	*testing.T

	redis *testredis.Redis
	net   memnet.Network
	node  *node
}

// inWorld runs test in a bubble for HTTP/1.1 and for HTTP/2; afterwards the stored state must be sound.
func inWorld(t *testing.T, test func(w *world, h2 bool)) {
	t.Helper()
	for name, h2 := range map[string]bool{"http1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{T: t, redis: testredis.Mini(t)}
				w.node = serve(t, w.redis, &w.net, address, slog.New(slog.DiscardHandler))
				test(w, h2)
				w.node.end()
				check(t, w.redis)
			})
		})
	}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start starts a run of n rows that are tried once.
func (w *world) start(e umbel.Engine, id umbel.WorkflowID, n int) {
	w.Helper()
	rows := make([]umbel.StagedRow, n)
	for i := range rows {
		rows[i] = umbel.StagedRow{Type: task}
	}
	_, err := e.Commit(w.Context(), umbel.CommitRequest{
		Namespace: ns, WorkflowID: id, Rows: rows, Scheduled: int64(n),
		Types: []umbel.TypePolicy{{Type: task, Retry: umbel.RetryPolicy{MaxAttempts: 1}}},
	})
	w.ok(err)
}

func pollRequest(wait time.Duration) umbel.PollRequest {
	return umbel.PollRequest{Namespace: ns, TaskQueue: pool, Types: []string{task}, Worker: "w", MaxRows: 10, Wait: wait}
}

// finish polls for one row, which must be there at once on its first attempt, and completes it.
func (w *world) finish(e umbel.Engine) {
	w.Helper()
	p, err := e.Poll(w.Context(), pollRequest(time.Second))
	w.ok(err)
	if len(p.Rows) != 1 || p.Rows[0].Attempt != 1 {
		w.Fatalf("claimed %+v, want one row on its first attempt", p.Rows)
	}
	r, err := e.Report(w.Context(), umbel.ReportRequest{
		Namespace: ns, Worker: "w", Items: []umbel.ReportItem{{Token: p.Rows[0].Token, Outcome: umbel.OutcomeCompleted}},
	})
	w.ok(err)
	if r.Verdicts[0].Code != umbel.Recorded {
		w.Fatalf("%+v", r.Verdicts[0])
	}
}

// counts wants the counts of a run, and head as the number of its events.
func (w *world) counts(e umbel.Engine, id umbel.WorkflowID, want umbel.Counts, head int64) {
	w.Helper()
	d, err := e.Describe(w.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: id})
	w.ok(err)
	h, err := e.History(w.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: id})
	w.ok(err)
	if d.Counts != want || h.Head != head {
		w.Errorf("%+v and %d events, want %+v and %d", d.Counts, h.Head, want, head)
	}
}

// halfway polls over lines that go deaf, so that a row is claimed and its reply stays half written.
func (w *world) halfway(ctx context.Context, e umbel.Engine, l *lines) (polled chan error) {
	w.Helper()
	polled = make(chan error, 1)
	go func() {
		p, err := e.Poll(ctx, pollRequest(umbel.MaxPollWait))
		if err == nil {
			err = errors.New("the poll was answered")
			w.Logf("%+v", p)
		}
		polled <- err
	}()
	synctest.Wait() // the poll waits
	l.stopListening()
	w.start(w.node, "w", 1)
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	w.counts(w.node, "w", umbel.Counts{Scheduled: 1, Claimed: 1}, 3)
	return polled
}

// A poll whose connection breaks before its reply is written gives its rows back: the next poll has them at once, on the
// same attempt, and history knows nothing of it.
func TestBrokenPollGivesItsRowsBack(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		l := newLines(&w.net)
		ctx, giveUp := context.WithCancel(w.Context())
		defer giveUp()
		polled := w.halfway(ctx, dial(w.T, l.transport(w.T, h2), address), l)
		if h2 {
			giveUp() // the stream breaks: of a connection that does Go's server says no more than that
		} else {
			l.cut()
		}
		<-polled
		synctest.Wait()
		w.counts(w.node, "w", umbel.Counts{Scheduled: 1, Pending: 1}, 3)
		w.finish(dial(w.T, transport(&w.net, h2), address))
		if h2 {
			l.cut()
		}
	})
}

// One that its client gives up while it waits leaves no claim either.
func TestCancelledPollLeavesNoClaim(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		e := dial(w.T, transport(&w.net, h2), address)
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := e.Poll(ctx, pollRequest(umbel.MaxPollWait))
			ended <- err
		}()
		synctest.Wait()
		stop()
		if err := <-ended; !errors.Is(err, umbel.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			w.Errorf("the poll ended with %v", err)
		}
		synctest.Wait()
		w.start(w.node, "w", 1)
		time.Sleep(time.Second)
		w.counts(w.node, "w", umbel.Counts{Scheduled: 1, Pending: 1}, 3)
		w.finish(e)
	})
}

// Case 59 over the network: the server dies between a claim and its reply, attempts limited to 1: the row runs.
func TestCase59ServerDiesBeforeItsReply(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		rdb := w.redis.NewClient(w.T)
		dying, err := server.Open(w.Context(), rdb, server.Config{Prefix: w.redis.Prefix, Logger: slog.New(slog.DiscardHandler)})
		w.ok(err)
		listener, err := w.net.Listen("dying:1")
		w.ok(err)
		dead := serveOn(w.T, dying, listener)
		time.Sleep(time.Second) // swept before: no gap
		l := newLines(&w.net)
		polled := w.halfway(w.Context(), dial(w.T, l.transport(w.T, h2), "dying:1"), l)
		w.ok(rdb.Close()) // nothing of it reaches Redis any more
		l.cut()
		<-polled
		dead.end()
		time.Sleep(2 * umbel.DefaultLease)
		w.counts(w.node, "w", umbel.Counts{Scheduled: 1, Pending: 1}, 3)
		w.finish(dial(w.T, transport(&w.net, h2), address))
	})
}

// A row that has reached its worker is marked as delivered: if that dies, the attempt is spent.
func TestDeliveredRowsAreMarked(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		e := dial(w.T, transport(&w.net, h2), address)
		time.Sleep(time.Second) // swept before: no gap
		w.start(e, "w", 1)
		p, err := e.Poll(w.Context(), pollRequest(time.Second))
		w.ok(err)
		if len(p.Rows) != 1 {
			w.Fatalf("%+v", p)
		}
		time.Sleep(2 * umbel.DefaultLease)
		w.counts(e, "w", umbel.Counts{Scheduled: 1, Failed: 1}, 6)
	})
}

// A client that closes its connection with the last byte of the reply has its rows: they are not given to another too.
func TestClientThatClosesAtOnceHasItsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, redis: testredis.Mini(t)}
		w.node = serve(t, w.redis, &w.net, address, slog.New(slog.DiscardHandler))
		for i := range 20 {
			id := umbel.WorkflowID('a' + rune(i))
			_, err := w.node.Commit(t.Context(), umbel.CommitRequest{
				Namespace: ns, WorkflowID: id, Scheduled: 1,
				Rows: []umbel.StagedRow{{Type: task, Input: umbel.Payload{Data: make([]byte, 100<<10)}}},
			})
			w.ok(err)
			conn, err := w.net.DialContext(t.Context(), "", address)
			w.ok(err)
			const body = `{"types":["task"],"worker":"curl","wait":"1s"}`
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				umbelv1connect.WorkerServicePollProcedure, len(body), body)
			w.ok(err)
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			w.ok(err)
			_, err = io.Copy(io.Discard, r.Body)
			w.ok(err)
			_ = r.Body.Close()
			_ = conn.Close()
			synctest.Wait()
			w.counts(w.node, id, umbel.Counts{Scheduled: 1, Claimed: 1}, 3)
		}
		w.node.end()
	})
}
