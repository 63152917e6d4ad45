// Package keys names everything that Umbel keeps in Redis. No other package builds a key.
//
// P is the prefix, T the tag of the shard in braces, R a run's ID, N the namespace, W the namespace and workflow ID.
//
//	P:{T}:meta         hash    format, shards, lease; in shard 0 only
//	P:{T}:ready        zset    routes that have due or future rows, by the instant to look at them
//	P:{T}:route:ROUTE  zset    runs that wait on a route, by the instant to look at them
//	P:{T}:backlog      hash    pending rows per route
//	P:{T}:claims       zset    claims by the deadline of their lease
//	P:{T}:leases       hash    a record and the number of rows left of each claim
//	P:{T}:sweep        hash    when the shard was swept, and its last gap
//	P:{T}:runs:N       zset    runs of a namespace by status and start, see [Shard.Runs]
//	P:{T}:wf:W         hash    current run, head of the history, write token
//	P:{T}:history:W    stream  the history, many events an entry
//	P:{T}:run:R        hash    what a run is and its counts
//	P:{T}:inputs:R     hash    inputs, a chunk of consecutive ordinals a field
//	P:{T}:rows:R       hash    a record of each row that is neither fresh nor resolved
//	P:{T}:due:R:I      zset    due rows of the run's route number I, spans and singles
//	P:{T}:resolved:R   bitmap  ordinals that are resolved
//	P:{T}:failed:R     bitmap  of them, those that failed
//	P:{T}:cancelled:R  bitmap  of them, those that were cancelled one by one
//	P:{T}:rest:R       bitmap  of them, those that the run's cancel found open
//	P:{T}:muted:R      bitmap  of them, those that have no terminal in history
//	P:{T}:attempts:R   hash    the attempt that was recorded, where it is not 1
//	P:{T}:index:R      string  where in history each ordinal's terminal is
//	P:wake             channel wake-ups, see [Space.Channel]
package keys

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// DefaultPrefix begins every key unless the operator chose another.
const DefaultPrefix = "umbel"

// Space names the keys of one installation.
type Space struct {
	prefix string
	shards int
}

// New returns the space of a prefix with a number of shards, a power of two up to [MaxShards].
func New(prefix string, shards int) Space { return Space{prefix: prefix, shards: shards} }

// Prefix returns what every key begins with.
func (s Space) Prefix() string { return s.prefix }

// Shards returns the number of shards.
func (s Space) Shards() int { return s.shards }

// Meta names the hash that describes the installation.
func Meta(prefix string) string { return prefix + ":{" + tags[0] + "}:meta" }

// Channel names the pub/sub channel of wake-ups.
func (s Space) Channel() string { return s.prefix + ":wake" }

// ShardOf returns the shard that a workflow lives on: FNV-1a over namespace, a zero byte and ID, its halves
// folded. It is frozen by golden values.
func (s Space) ShardOf(namespace, workflow string) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(workflow))
	sum := h.Sum64()
	return int((sum ^ sum>>32) % uint64(s.shards))
}

// Shard names what a shard holds besides workflows and runs.
type Shard struct {
	Index  int
	prefix string // "P:{T}:"
}

// Shard returns shard i.
func (s Space) Shard(i int) Shard {
	return Shard{Index: i, prefix: s.prefix + ":{" + tags[i] + "}:"}
}

// Ready, Backlog, Claims, Leases and Sweep name the shard's own keys.
func (s Shard) Ready() string   { return s.prefix + "ready" }
func (s Shard) Backlog() string { return s.prefix + "backlog" }
func (s Shard) Claims() string  { return s.prefix + "claims" }
func (s Shard) Leases() string  { return s.prefix + "leases" }
func (s Shard) Sweep() string   { return s.prefix + "sweep" }

// Route names the set of runs that wait on a route.
func (s Shard) Route(route string) string { return s.prefix + "route:" + route }

// Runs names the list of a namespace's runs. A member is a letter that says which list it is in (a of all runs, r of running,
// c of completed, f of failed, x of cancelled ones), the start in ms in fifteen digits, and the run's ID. Its score is 0, so that
// members come in the order of their bytes. Each run is there twice: among all, and by its status.
func (s Shard) Runs(namespace string) string { return s.prefix + "runs:" + Escape(namespace) }

// Workflow names a workflow's keys.
type Workflow struct {
	Record  string
	History string
}

// Workflow returns the keys of a workflow of this shard.
func (s Shard) Workflow(namespace, id string) Workflow {
	w := Escape(namespace) + ":" + Escape(id)
	return Workflow{Record: s.prefix + "wf:" + w, History: s.prefix + "history:" + w}
}

// Run names a run's keys. IDs that Umbel draws need no escaping; those that come from outside may.
type Run struct {
	id     string
	prefix string
}

// Run returns the keys of a run of this shard.
func (s Shard) Run(id string) Run { return Run{id: Escape(id), prefix: s.prefix} }

func (r Run) Record() string    { return r.prefix + "run:" + r.id }
func (r Run) Inputs() string    { return r.prefix + "inputs:" + r.id }
func (r Run) Rows() string      { return r.prefix + "rows:" + r.id }
func (r Run) Resolved() string  { return r.prefix + "resolved:" + r.id }
func (r Run) Failed() string    { return r.prefix + "failed:" + r.id }
func (r Run) Cancelled() string { return r.prefix + "cancelled:" + r.id }
func (r Run) Rest() string      { return r.prefix + "rest:" + r.id }
func (r Run) Muted() string     { return r.prefix + "muted:" + r.id }
func (r Run) Attempts() string  { return r.prefix + "attempts:" + r.id }
func (r Run) Index() string     { return r.prefix + "index:" + r.id }

// Due names the due set of the run's route number i.
func (r Run) Due(i int) string { return r.prefix + "due:" + r.id + ":" + strconv.Itoa(i) }

// Escape makes a name safe between colons: ':' and '%' are written %3A and %25, so two names never meet.
func Escape(name string) string {
	if !strings.ContainsAny(name, ":%") {
		return name
	}
	return escaper.Replace(name)
}

var (
	escaper   = strings.NewReplacer("%", "%25", ":", "%3A")
	unescaper = strings.NewReplacer("%25", "%", "%3A", ":")
)

// Unescape undoes [Escape].
func Unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	return unescaper.Replace(s)
}
