package outbox

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel"
)

// place is where a run stands in the lists of its namespace. Two runs that were written from outside may have one ID, on
// two shards. The zero place is before all others.
type place struct {
	started int64 // ms
	run     umbel.RunID
	shard   int
}

// listLetters begin the members of a list, by the status that its runs have. See [keys.Shard.Runs].
var listLetters = map[umbel.Status]byte{
	"": 'a', umbel.StatusRunning: 'r', umbel.StatusCompleted: 'c', umbel.StatusFailed: 'f', umbel.StatusCancelled: 'x',
}

// startDigits are the digits of the start in a member.
const startDigits = 15

func parsePlace(shard int, member string) (place, error) {
	if len(member) > 1+startDigits {
		if ms, ok := digits(member[1 : 1+startDigits]); ok {
			return place{started: ms, run: umbel.RunID(member[1+startDigits:]), shard: shard}, nil
		}
	}
	return place{}, fmt.Errorf("member of a list of runs %.60q is damaged", member)
}

// after is the range of a shard's members that follow a place.
func (l List) after(shard int, at place) redis.ZRangeBy {
	letter := listLetters[l.Status]
	by := redis.ZRangeBy{Min: "[" + string(letter), Max: "(" + string(letter+1)}
	if at == (place{}) {
		return by
	}
	by.Max = fmt.Sprintf("(%c%0*d%s", letter, startDigits, at.started, at.run)
	if shard > at.shard { // its run of that very place comes later
		by.Max = "[" + by.Max[1:]
	}
	return by
}

// cursor is 1.START.SHARD.RUN.CHECK: a version, a place, and a checksum of it and of the list that it is of. It is empty for
// the place before all others.
func (l List) cursor(at place) umbel.Cursor {
	if at == (place{}) {
		return ""
	}
	s := fmt.Sprintf("1.%d.%d.%s", at.started, at.shard, at.run)
	return umbel.Cursor(fmt.Sprintf("%s.%08x", s, l.check(s)))
}

func (l List) check(s string) uint32 {
	return crc32.ChecksumIEEE([]byte(strings.Join([]string{l.Namespace, string(l.Status), l.Type, l.Prefix, s}, "\x00")))
}

// parse reads a cursor of this list; none is the place before all others.
func (l List) parse(c umbel.Cursor) (place, error) {
	if c == "" {
		return place{}, nil
	}
	bad := umbel.Invalid("cursor", string(c), "is not one that this list came with")
	p := strings.SplitN(string(c), ".", 4)
	if len(p) != 4 || p[0] != "1" {
		return place{}, bad
	}
	dot := strings.LastIndexByte(p[3], '.') // an ID may have dots
	if dot < 1 {
		return place{}, bad
	}
	started, ok := digits(p[1])
	shard, err := strconv.ParseUint(p[2], 10, 16)
	at := place{started: started, shard: int(shard), run: umbel.RunID(p[3][:dot])}
	if !ok || err != nil || l.cursor(at) != c {
		return place{}, bad
	}
	return at, nil
}
