package keys

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// awkward names, as promise 17 allows them.
var awkward = []string{
	"", "a", "{x}", "}{", "{}", "a:b", "a::b", ":", "%", "%3A", "%3a", "%253A", "%25", "a%", "*", "a b", "🌱", "ä:ö", "\xff\xfe",
}

func name() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(awkward), rapid.StringMatching(`[a:%3A25{}]{0,6}`), rapid.String())
}

func TestEscape(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := name().Draw(t, "a"), name().Draw(t, "b")
		if (a == b) != (Escape(a) == Escape(b)) {
			t.Errorf("%q and %q are escaped as %q and %q", a, b, Escape(a), Escape(b))
		}
		if got := Unescape(Escape(a)); got != a {
			t.Errorf("%q comes back as %q", a, got)
		}
		if strings.Contains(Escape(a), ":") {
			t.Errorf("%q keeps a colon: %q", a, Escape(a))
		}
	})
}

func route() *rapid.Generator[Route] {
	return rapid.Custom(func(t *rapid.T) Route {
		return Route{
			Namespace: name().Draw(t, "namespace"), TaskQueue: name().Draw(t, "queue"), Node: name().Draw(t, "node"),
			Type: name().Draw(t, "type"), Priority: rapid.IntRange(1, 5).Draw(t, "priority"),
		}
	})
}

func TestRoute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := route().Draw(t, "a"), route().Draw(t, "b")
		if got, ok := ParseRoute(a.String()); !ok || got != a {
			t.Errorf("%+v comes back as %+v, %v", a, got, ok)
		}
		if (a == b) != (a.String() == b.String()) {
			t.Errorf("%+v and %+v are %q and %q", a, b, a, b)
		}
	})
}

func TestParseRouteRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "a", "a:b:c:d", "a:b:c:d:", "a:b:c:d:x", "a:b:c:d:3:4", "a:b:c:d:+3", "a:b:c:d:03", "a%:b:c:d:3", "%3a:b:c:d:3",
	} {
		if r, ok := ParseRoute(s); ok {
			t.Errorf("%q is read as %+v", s, r)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[a:%3A25+0]{0,12}`).Draw(t, "s")
		if r, ok := ParseRoute(s); ok && r.String() != s {
			t.Errorf("%q is read as %+v, which is written %q", s, r, r)
		}
	})
}

// strs returns what the string methods without arguments and the string fields of v say.
func strs(v any) map[string]string {
	out := map[string]string{}
	rv := reflect.ValueOf(v)
	for i := range rv.NumMethod() {
		if m := rv.Method(i); m.Type().NumIn() == 0 && m.Type().NumOut() == 1 && m.Type().Out(0).Kind() == reflect.String {
			out[rv.Type().Method(i).Name] = m.Call(nil)[0].String()
		}
	}
	for i := range rv.NumField() {
		if f := rv.Type().Field(i); f.IsExported() && f.Type.Kind() == reflect.String {
			out[f.Name] = rv.Field(i).String()
		}
	}
	return out
}

// Every key of a shard has the shard's tag as its hash tag, whatever the names are, and no two are the same.
func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	const shard = 5
	sh := New("P", 16).Shard(shard)
	seen := map[string]string{}
	add := func(what, key string) {
		t.Helper()
		if before, ok := seen[key]; ok {
			t.Errorf("%s and %s share %q", before, what, key)
		}
		seen[key] = what
		if want := "P:{" + tags[shard] + "}:"; !strings.HasPrefix(key, want) {
			t.Errorf("%s is %q, want it to begin with %q", what, key, want)
		}
	}
	for name, key := range strs(sh) {
		add(name, key)
	}
	for _, a := range awkward {
		add("route "+a, sh.Route(Route{Namespace: "n", TaskQueue: a, Type: "t", Priority: 3}.String()))
		add("runs of "+a, sh.Runs(a))
		for name, key := range strs(sh.Run("run" + a)) {
			add("run "+a+" "+name, key)
		}
		for _, i := range []int{0, 1, 10, 63} {
			add("due "+a, sh.Run("run"+a).Due(i))
		}
		for _, b := range awkward {
			for name, key := range strs(sh.Workflow(a, b)) {
				add("workflow "+a+" "+b+" "+name, key)
			}
		}
	}
}

func TestMetaIsInShardZero(t *testing.T) {
	t.Parallel()
	if got, want := Meta("P"), "P:{"+tags[0]+"}:meta"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if space := New("P", 16); space.Shards() != 16 || space.Channel() != "P:wake" {
		t.Errorf("%d shards, channel %q", space.Shards(), space.Channel())
	}
}
