package server

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/history"
	"github.com/umbelhq/umbel/outbox"
)

// deliverer marks claims whose rows have reached their worker, one write per claim, off the path. A claim that
// is not marked when it lapses costs no attempt: its server died before the worker had it.
type deliverer struct {
	s    *Server
	kick chan struct{}

	mu     sync.Mutex
	nonces map[int][]string // by shard
}

func (d *deliverer) add(shard int, nonce string) {
	d.mu.Lock()
	d.nonces[shard] = append(d.nonces[shard], nonce)
	d.mu.Unlock()
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// maxDeliver bounds the claims of one script.
const maxDeliver = 500

func (d *deliverer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.kick:
		}
		d.mu.Lock()
		batch := d.nonces
		d.nonces = map[int][]string{}
		d.mu.Unlock()
		for _, shard := range slices.Sorted(maps.Keys(batch)) {
			for part := range slices.Chunk(batch[shard], maxDeliver) {
				if err := d.s.rows.Delivered(ctx, shard, part); err != nil && ctx.Err() == nil {
					d.s.log.Warn("claims are not marked as delivered; should they lapse now, they cost no attempt", "err", err)
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
