package lua

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// While Redis is away a round trip of many calls is given up as soon as one of a single call is: whoever waits behind
// it must not wait for each of them in turn.
func TestCallsShareTheirPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:1", DisableIdentity: true, MaxRetries: -1,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
			},
		})
		defer func() {
			_ = rdb.Close()
			time.Sleep(2 * time.Second) // its pool looks once a second whether it is closed
		}()
		s := New(rdb)
		begun := time.Now()
		calls := make([]Call, 32)
		for i := range calls {
			calls[i] = Sweep{Sweep: "sweep", Claims: "claims", Leases: "leases"}.Call()
		}
		_, errs := s.RunAll(t.Context(), calls)
		for i, err := range errs {
			if !Away(err) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if took := time.Since(begun); took < Patience/2 || took > 3*Patience/2 {
			t.Errorf("%d calls were given up after %v, want about %v", len(calls), took, Patience)
		}
	})
}
