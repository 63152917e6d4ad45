package lua

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// dump reads keys, whatever they are, to be compared.
func (w *world) dump(names ...string) map[string]any {
	w.t.Helper()
	out := map[string]any{}
	for _, name := range names {
		kind := must(w.rdb.Type(w.ctx(), name).Result())(w.t)
		switch kind {
		case "none":
		case "string":
			out[name] = must(w.rdb.Get(w.ctx(), name).Result())(w.t)
		case "hash":
			out[name] = must(w.rdb.HGetAll(w.ctx(), name).Result())(w.t)
		case "zset":
			var members []string
			for _, z := range w.members(name) {
				members = append(members, fmt.Sprintf("%s@%f", z.Member, z.Score))
			}
			out[name] = members
		case "stream":
			out[name] = must(w.rdb.XRange(w.ctx(), name, "-", "+").Result())(w.t)
		default:
			w.t.Fatalf("%s is a %s", name, kind)
		}
	}
	return out
}

// dumpAll reads all that belongs to a run, its workflow and its shard.
func (f *fan) dumpAll() map[string]any {
	f.t.Helper()
	k := f.keys
	names := []string{
		k.Record(), k.Inputs(), k.Rows(), k.Resolved(), k.Failed(), k.Cancelled(), k.Rest(), k.Muted(), k.Attempts(),
		f.wfKeys.Record, f.wfKeys.History,
		f.shard.Ready(), f.shard.Backlog(), f.shard.Claims(), f.shard.Leases(), f.shard.Sweep(), f.shard.Runs(namespace),
	}
	for i, r := range f.routes {
		names = append(names, k.Due(i), f.shard.Route(r))
	}
	return f.dump(names...)
}

// millis is an instant as Redis's clock gives it, in every notation but the scientific one.
var millis = regexp.MustCompile(`^[12]\d{12}$`)

// history reads the entries as 'id field value', without the time.
func (f *fan) history() []string {
	f.t.Helper()
	var out []string
	for _, e := range must(f.rdb.XRange(f.ctx(), f.wfKeys.History, "-", "+").Result())(f.t) {
		if t, _ := e.Values["t"].(string); !millis.MatchString(t) {
			f.t.Errorf("entry %s has the time %q", e.ID, t)
		}
		delete(e.Values, "t")
		var parts []string
		for k, v := range e.Values {
			parts = append(parts, fmt.Sprintf("%s %s", k, v))
		}
		slices.Sort(parts)
		out = append(out, e.ID+" "+strings.Join(parts, " "))
	}
	return out
}
