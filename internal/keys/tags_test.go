package keys

import (
	"slices"
	"strconv"
	"testing"
)

const slots = 16384

// slot is Redis Cluster's: CRC16 (XMODEM) of the hash tag.
func slot(tag string) int {
	var crc uint16
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

func TestSlot(t *testing.T) {
	t.Parallel()
	// From the specification of Redis Cluster, and as CLUSTER KEYSLOT says.
	for tag, want := range map[string]int{"123456789": 0x31c3, "foo": 12182} {
		if got := slot(tag); got != want {
			t.Errorf("slot of %q is %d, want %d", tag, got, want)
		}
	}
}

// The slots of any number of shards lie as far apart as they can, give or take what short tags cost.
func TestTagsLieEvenly(t *testing.T) {
	t.Parallel()
	const slack = 30 // slots
	for n := 1; n <= MaxShards; n *= 2 {
		got := make([]int, n)
		for i := range n {
			got[i] = slot(tags[i])
		}
		slices.Sort(got)
		width := slots / n
		for i, s := range got {
			// each in its own equal part of the slots, at about the same place of it
			if s/width != i {
				t.Errorf("%d shards: slot %d is not in part %d", n, s, i)
			}
			if gap := (got[(i+1)%n] - s + slots) % slots; n > 1 && (gap < width-slack || gap > width+slack) {
				t.Errorf("%d shards: slots %d and the next are %d apart, want about %d", n, s, gap, width)
			}
		}
	}
}

func TestTagsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, tag := range tags {
		if seen[tag] {
			t.Errorf("tag %s is there twice", tag)
		}
		if _, err := strconv.Atoi(tag); err != nil {
			t.Errorf("tag %q is no number: %v", tag, err)
		}
		seen[tag] = true
	}
}

// CASE 18: 64 workflows of 16 shards on three masters with equal shares of the slots.
func TestMastersHoldEqualShares(t *testing.T) {
	t.Parallel()
	space := New(DefaultPrefix, 16)
	held := [3]int{}
	for i := range 64 {
		sh := space.ShardOf("default", "workflow-"+strconv.Itoa(i))
		held[slot(tags[sh])*3/slots]++
	}
	for master, n := range held {
		if n*100 <= 64*20 {
			t.Errorf("master %d holds %d of 64 workflows: %v", master, n, held)
		}
	}
}

// The names of data in Redis: no version may change one of these.
func TestShardOfIsFrozen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		namespace, workflow string
		of16, of256         int
	}{
		{"default", "thumbs-2026-11-30", 12, 156},
		{"default", "a", 13, 77},
		{"default", "", 15, 223},
		{"", "default", 13, 13},
		{"tenant:1", "{x}", 6, 22},
		{"ns", "🌱 umbel", 3, 211},
		{"a", "b\x00c", 3, 83},
	} {
		of16, of256 := New("p", 16).ShardOf(c.namespace, c.workflow), New("q", 256).ShardOf(c.namespace, c.workflow)
		if of16 != c.of16 || of256 != c.of256 {
			t.Errorf("{%q, %q, %d, %d},", c.namespace, c.workflow, of16, of256)
		}
		if one := New("p", 1).ShardOf(c.namespace, c.workflow); one != 0 {
			t.Errorf("the only shard is 0, not %d", one)
		}
	}
}
