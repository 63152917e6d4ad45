package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// deliverer marks claims whose rows have reached their worker, one write per claim, off the path. A claim that
// is not marked when it lapses costs no attempt: its server died before the worker had it. The next claim of
// such rows is made as a marked one, so that a row which kills server and worker alike cannot do so for ever.
//
// Most claims are reported within markAfter, and then need no mark.
type deliverer struct {
	s *Server

	mu     sync.Mutex
	claims map[string]*delivered // by nonce
}

type delivered struct {
	shard int
	rows  int // that this server has not seen reported
	young bool
}

// markAfter is how long a claim is left alone: far below any lease, far above what a quick handler takes.
const markAfter = 100 * time.Millisecond

// add notes a row that is handed to a worker.
func (d *deliverer) add(shard int, nonce string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.claims[nonce]
	if c == nil {
		c = &delivered{shard: shard, young: true}
		d.claims[nonce] = c
	}
	c.rows++
}

// done notes a row that was reported.
func (d *deliverer) done(nonce string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.claims[nonce]; c != nil {
		if c.rows--; c.rows <= 0 {
			delete(d.claims, nonce)
		}
	}
}

// due takes the claims that are to be marked, by shard.
func (d *deliverer) due() map[int][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[int][]string{}
	for nonce, c := range d.claims {
		if c.young {
			c.young = false
			continue
		}
		out[c.shard] = append(out[c.shard], nonce)
		delete(d.claims, nonce)
	}
	return out
}

// maxDeliver bounds the claims of one script.
const maxDeliver = 500

func (d *deliverer) run(ctx context.Context) {
	tick := time.NewTicker(markAfter)
	defer tick.Stop()
	unmarked := trouble{log: d.s.log, what: "claims are not marked as delivered; should they lapse now, they cost no attempt"}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		batch := d.due()
		for _, shard := range slices.Sorted(maps.Keys(batch)) {
			for part := range slices.Chunk(batch[shard], maxDeliver) {
				if err := d.s.rows.Delivered(ctx, shard, part); ctx.Err() == nil {
					unmarked.met(err)
				}
			}
		}
	}
}

// claimed is a row as a worker gets it. An error leaves out the last failure only.
func (s *Server) claimed(h outbox.Held) (umbel.ClaimedRow, error) {
	q := h.Run.Routes[h.Route]
	row := umbel.ClaimedRow{
		Row:        umbel.Row{Ordinal: h.Ordinal, Key: h.Key, Type: q.Type, Attempt: h.Tries + 1, Input: h.Input},
		WorkflowID: h.Run.WorkflowID, RunID: h.Run.ID, Namespace: h.Run.Namespace, TaskQueue: q.TaskQueue, Node: q.Node,
		Token: tokenOf(h), Lease: s.Lease(), StartToClose: h.Run.Policy(q.Type).StartToClose,
	}
	if h.LastError == "" {
		return row, nil
	}
	var err error
	row.LastFailure, err = history.DecodeFailure(h.LastError)
	return row, err
}
