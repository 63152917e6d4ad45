package server

import (
	"cmp"
	"context"
	"strconv"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/outbox"
)

// List implements umbel.Operator.
func (s *Server) List(ctx context.Context, r umbel.ListRequest) (umbel.ListReply, error) {
	return prompt(ctx, "list", r, s.list)
}

func (s *Server) list(ctx context.Context, r umbel.ListRequest) (umbel.ListReply, error) {
	if err := s.open(ctx, "list"); err != nil {
		return umbel.ListReply{}, err
	}
	if err := checkList(r); err != nil {
		return umbel.ListReply{}, named("list", "", err)
	}
	page, err := s.rows.List(ctx, outbox.List{
		Namespace: r.Namespace, Status: r.Status, Type: r.Type, Prefix: r.Prefix, Cursor: r.Cursor,
		Limit: cmp.Or(r.Limit, umbel.MaxListItems),
	})
	if err != nil {
		return umbel.ListReply{}, named("list", "", err)
	}
	reply := umbel.ListReply{Next: page.Next, Done: page.Done}
	for _, l := range page.Runs {
		reply.Runs = append(reply.Runs, infoOf(l.Run, l.Standing))
	}
	return reply, nil
}

func checkList(r umbel.ListRequest) error {
	switch r.Status {
	case "", umbel.StatusRunning, umbel.StatusCompleted, umbel.StatusFailed, umbel.StatusCancelled:
	default:
		return umbel.Invalid("status", string(r.Status), "must be running, completed, failed or cancelled, or empty for any")
	}
	if r.Limit < 0 || r.Limit > umbel.MaxListItems {
		return umbel.Invalid("limit", strconv.Itoa(r.Limit), "must be from 1 to "+strconv.Itoa(umbel.MaxListItems)+", or 0 for that many")
	}
	return cmp.Or(
		umbel.ValidateName("namespace", r.Namespace),
		umbel.ValidateLabel("activity type", r.Type),
		umbel.ValidateLabel("prefix", r.Prefix),
	)
}
