package outbox

import (
	"fmt"
	"strconv"
)

// Status is where a row stands. Done, failed and cancelled are terminal: nothing re-arms, claims or changes
// such a row.
type Status string

// The statuses: exactly these tokens.
const (
	Pending   Status = "pending"
	Claimed   Status = "claimed"
	Done      Status = "done"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Terminal reports whether a row with status s is resolved.
func (s Status) Terminal() bool { return s == Done || s == Failed || s == Cancelled }

// ParseStatus returns the status that token stands for, or an error that quotes it.
func ParseStatus(token string) (Status, error) {
	switch s := Status(token); s {
	case Pending, Claimed, Done, Failed, Cancelled:
		return s, nil
	}
	return "", fmt.Errorf("outbox: no row status is written %s", strconv.Quote(token))
}
