package outbox

import (
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// record is what is kept of a row that is neither fresh nor resolved. It is stored as a letter, two digits of
// tries, two digits of route, 26 characters of nonce, and the last attempt's error.
type record struct {
	claimed bool
	tries   int
	route   int
	nonce   string
	err     string
}

const recordHead = 1 + 2 + 2 + 26

func parseRecord(s string) (record, error) {
	if len(s) < recordHead || s[0] != 'C' && s[0] != 'P' {
		return record{}, fmt.Errorf("row record %.40q is damaged", s)
	}
	tries, ok1 := digits(s[1:3])
	route, ok2 := digits(s[3:5])
	if !ok1 || !ok2 {
		return record{}, fmt.Errorf("row record %.40q is damaged", s)
	}
	r := record{claimed: s[0] == 'C', tries: int(tries), route: int(route), err: s[recordHead:]}
	if r.claimed {
		r.nonce = s[5:recordHead]
	}
	return r, nil
}

// Lease is the record of a claim: who holds which rows of a run, since when and for how long.
type Lease struct {
	Nonce     string
	Delivered bool // the rows have reached their worker
	Lease     time.Duration
	ClaimedAt time.Time
	Route     int
	Worker    string
	RunID     string
	Ordinals  []int64 // as claimed; some may be gone since
	raw       string
}

// parseLease reads a claim's record: a digit, nine digits of lease, thirteen of claimed_at, two of route, then
// worker, run and ordinals, a line each.
func parseLease(nonce, s string) (Lease, error) {
	const head = 1 + 9 + 13 + 2
	l := Lease{Nonce: nonce, raw: s}
	if len(s) < head {
		return l, fmt.Errorf("record of claim %s is damaged: %.60q", nonce, s)
	}
	ms, ok1 := digits(s[1:10])
	at, ok2 := digits(s[10:23])
	route, ok3 := digits(s[23:head])
	lines := strings.Split(s[head:], "\n")
	if !ok1 || !ok2 || !ok3 || len(lines) != 3 {
		return l, fmt.Errorf("record of claim %s is damaged: %.60q", nonce, s)
	}
	l.Delivered = s[0] == '1'
	l.Lease = time.Duration(ms) * time.Millisecond
	l.ClaimedAt = time.UnixMilli(at).UTC()
	l.Route, l.Worker, l.RunID = int(route), lines[0], lines[1]
	var err error
	l.Ordinals, err = parseSpans(lines[2])
	return l, err
}

// maxLeaseRows bounds the rows of a claim: the script takes no more.
const maxLeaseRows = 1000

// parseSpans expands 'a-b,c-d'.
func parseSpans(s string) ([]int64, error) {
	var out []int64
	for span := range strings.SplitSeq(s, ",") {
		a, b, ok := strings.Cut(span, "-")
		first, ok1 := digits(a)
		last, ok2 := digits(b)
		if !ok || !ok1 || !ok2 || last < first || last > umbel.MaxOrdinal || last-first >= int64(maxLeaseRows-len(out)) {
			return nil, fmt.Errorf("list of ordinals %.60q is damaged", s)
		}
		for o := first; o <= last; o++ {
			out = append(out, o)
		}
	}
	return out, nil
}

// digits reads a number of decimal digits and nothing else.
func digits(s string) (int64, bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// member is an entry of a due set: a span of fresh rows, or one row that has a record.
type member struct {
	first, last int64
	fresh       bool
	score       float64
	raw         string
}

func parseMember(s string, score float64) (member, error) {
	m := member{score: score, raw: s}
	bad := fmt.Errorf("member of a due set %.40q is damaged", s)
	if len(s) < 9 {
		return m, bad
	}
	first, ok := digits(s[:8])
	if !ok || first > umbel.MaxOrdinal {
		return m, bad
	}
	m.first, m.last = first, first
	switch {
	case s[8] == 'r' && len(s) == 9:
		return m, nil
	case s[8] == 'f' && len(s) == 17:
		m.fresh = true
		if m.last, ok = digits(s[9:]); !ok || m.last < m.first || m.last > umbel.MaxOrdinal {
			return m, bad
		}
		return m, nil
	}
	return m, bad
}

func (m member) visible() time.Time { return time.UnixMilli(int64(m.score)).UTC() }
