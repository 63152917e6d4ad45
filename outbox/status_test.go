package outbox_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/outbox"
)

func TestParseStatus(t *testing.T) {
	t.Parallel()
	terminal := map[outbox.Status]bool{
		outbox.Pending: false, outbox.Claimed: false,
		outbox.Done: true, outbox.Failed: true, outbox.Cancelled: true,
	}
	for _, token := range []string{"pending", "claimed", "done", "failed", "cancelled"} {
		s, err := outbox.ParseStatus(token)
		if err != nil || string(s) != token {
			t.Errorf("ParseStatus(%q) = %q, %v", token, s, err)
		}
		want, ok := terminal[s]
		if !ok || s.Terminal() != want {
			t.Errorf("%q.Terminal() = %v, want %v", s, s.Terminal(), want)
		}
	}
}

// A token that is none comes from a newer version or from damage: whoever reads the error must see it whole.
func TestParseStatusQuotesWhatItRefuses(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "Pending", "PENDING", " pending", "pending\n", "canceled", "completed", "1", "läuft", "\x00", "\xff"} {
		s, err := outbox.ParseStatus(token)
		if err == nil {
			t.Errorf("ParseStatus(%q) = %q, want an error", token, s)
			continue
		}
		if s != "" {
			t.Errorf("ParseStatus(%q) returned %q beside its error", token, s)
		}
		if quoted := strconv.Quote(token); !strings.Contains(err.Error(), quoted) {
			t.Errorf("ParseStatus(%q): %q does not quote the token as %s", token, err, quoted)
		}
	}
}

func TestStatusOfNothingIsNotTerminal(t *testing.T) {
	t.Parallel()
	for _, s := range []outbox.Status{"", "Done", "completed"} {
		if s.Terminal() {
			t.Errorf("%q is terminal", s)
		}
	}
}
