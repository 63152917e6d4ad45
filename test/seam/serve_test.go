package seam

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
)

// A server that stops ends what waits with how things stand, refuses polls, and returns nil.
func TestServeDrains(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		e := dial(w.T, transport(&w.net, h2), address)
		w.start(e, "w", 1)
		p, err := e.Poll(w.Context(), pollRequest(time.Second))
		w.ok(err)
		ended := make(chan error, 4)
		go func() {
			_, err := e.Poll(w.Context(), pollRequest(umbel.MaxPollWait))
			if errors.Is(err, umbel.ErrUnavailable) && umbel.SafeToRetry(err) {
				err = nil // the worker moves on
			}
			ended <- err
		}()
		go func() {
			d, err := e.Describe(w.Context(), umbel.DescribeRequest{Namespace: ns, WorkflowID: "w", Wait: umbel.MaxPollWait})
			if err == nil && d.Counts.Claimed != 1 {
				err = errors.New("another state")
			}
			ended <- err
		}()
		go func() {
			_, err := e.Results(w.Context(), umbel.ResultsRequest{Namespace: ns, WorkflowID: "w", Wait: umbel.MaxPollWait})
			ended <- err
		}()
		go func() {
			_, err := e.History(w.Context(), umbel.HistoryRequest{Namespace: ns, WorkflowID: "w", From: 10, Wait: umbel.MaxPollWait})
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		w.node.stop()
		for range 4 {
			if err := <-ended; err != nil {
				w.Errorf("a wait ended with %v", err)
			}
		}
		<-w.node.done
		if w.node.err != nil || time.Since(began) > time.Second {
			w.Errorf("Serve returned %v after %v", w.node.err, time.Since(began))
		}
		_, err = e.Begin(w.Context(), umbel.BeginRequest{Namespace: ns, WorkflowID: "x"})
		if !errors.Is(err, umbel.ErrUnavailable) || !umbel.SafeToRetry(err) {
			w.Errorf("a call to a server that has stopped: %v", err)
		}
		if len(p.Rows) != 1 {
			w.Fatalf("%+v", p)
		}
		_, err = w.node.Report(w.Context(), umbel.ReportRequest{ // in process it still serves, until it is closed
			Namespace: ns, Worker: "w", Items: []umbel.ReportItem{{Token: p.Rows[0].Token, Outcome: umbel.OutcomeReleased}},
		})
		w.ok(err)
	})
}

// What does not end in time is cut off, and Serve says so: here a poll's reply that nobody reads.
func TestServeCutsOffWhatDoesNotEnd(t *testing.T) {
	inWorld(t, func(w *world, h2 bool) {
		l := newLines(&w.net)
		polled := w.halfway(w.Context(), dial(w.T, l.transport(w.T, h2), address), l)
		began := time.Now()
		w.node.stop()
		<-w.node.done
		if took := time.Since(began); w.node.err == nil || took < 10*time.Second || took > 11*time.Second {
			w.Errorf("Serve returned %v after %v", w.node.err, took)
		}
		l.cut()
		<-polled
		synctest.Wait()
		if !h2 { // where the row may count as delivered, and come back with its lease
			w.counts(w.node, "w", umbel.Counts{Scheduled: 1, Pending: 1}, 3)
		}
	})
}

// broken is a listener that fails.
type broken struct {
	net.Listener

	err error
}

func (b broken) Accept() (net.Conn, error) { return nil, b.err }

// If the listener fails Serve returns why, and has closed it.
func TestServeReturnsTheListenersError(t *testing.T) {
	inWorld(t, func(w *world, _ bool) {
		l, err := w.net.Listen("broken:1")
		w.ok(err)
		why := errors.New("out of order")
		if err := w.node.Serve(w.Context(), broken{l, why}); !errors.Is(err, why) {
			w.Errorf("Serve returned %v", err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			w.Errorf("the listener was left open: %v", err)
		}
		ended, cancel := context.WithCancel(w.Context())
		cancel()
		l, err = w.net.Listen("late:1")
		w.ok(err)
		if err := w.node.Serve(ended, l); err != nil {
			w.Errorf("with an ended context: %v", err)
		}
	})
}
