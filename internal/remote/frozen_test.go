package remote_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/memnet"
	"github.com/umbelhq/umbel/internal/remote"
)

// A server that is frozen, or whose machine vanished, answers nothing and refuses nothing. A caller who gives it up
// before the engine would reaches the other one when it tries again: the renewals of a short lease depend on it.
func TestFrozenServerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		for _, at := range []string{"a:1", "b:1"} {
			l, err := n.Listen(at) // accepts nothing
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		tr := &http.Transport{DialContext: n.DialContext}
		defer tr.CloseIdleConnections()
		e := remote.New([]string{"http://a:1", "http://b:1"}, &http.Client{Transport: tr})
		first := e.Servers()
		renew := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if _, err := e.Renew(ctx, umbel.RenewRequest{Namespace: "default", Worker: "w"}); umbel.CodeOf(err) != umbel.CodeUnavailable {
				t.Error(err)
			}
		}
		renew(time.Second)
		if e.Servers() == first {
			t.Error("the next renewal asks the frozen server again")
		}
		first = e.Servers()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // of a poll of a minute: nobody was silent
		defer cancel()
		_, _ = e.Poll(ctx, umbel.PollRequest{Namespace: "default", Worker: "w", Types: []string{"x"}, MaxRows: 1, Wait: umbel.MaxPollWait})
		if e.Servers() != first {
			t.Error("a poll that was cut short left its server")
		}
	})
}
