package lua

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// banned is what no script may have, with the outage behind each.
var banned = []struct{ pattern, why string }{
	{`cjson`, "user bytes pass unparsed, and {} and [] are one to it"},
	{`cmsgpack|struct\.|\bbit\.|\bos\.|\bio\.`, "miniredis lacks it"},
	{`\bgoto\b|::\w+::`, "Lua 5.1 has none; miniredis accepts it all the same"},
	{`redis\.(breakpoint|debug|replicate_commands|set_repl|setresp|log|register_function)`, "not for production"},
	{`redis\.call\('KEYS'`, "it reads the whole database"},
	{`redis\.call\('S?SCAN'`, "only the doctor scans"},
	{`\bBITFIELD\b|\bFUNCTION\b|\bFCALL\b`, "miniredis lacks it"},
	{`error\(`, "miniredis loses the code of an error that a script throws"},
	{`loadstring|dofile|setmetatable|_G\b`, "nothing here needs it"},
	{`\bmath\.random`, "what a script needs at random is drawn by its caller"},
	{`redis\.call\('PUBLISH'`, "an ACL may forbid it: redis.pcall"},
	{`\.\. *KEYS\[|KEYS\[[^\]]+\] *\.\.`, "a key that is built from another is not declared"},
	{`[^\w)\]] *-tonumber`, "the negative of 0 is '-0', which Redis refuses as an integer: 0 - tonumber"},
	{`(?m)^#!`, "Redis 6.2 has no shebang"},
}

// pcalls are the commands that may fail unnoticed.
var pcalls = []string{"PUBLISH"}

// keyless are the commands whose first argument is no key.
var keyless = []string{"PUBLISH", "BITOP"}

var (
	target = regexp.MustCompile(`redis\.p?call\('(\w+)', ([^,)]+)`)
	// declaredKey is a key as scripts have it, or as they hand it to a function.
	declaredKey = regexp.MustCompile(`^(KEYS\[.+\]|ready|set|backlog|key)$`)
)

func TestRules(t *testing.T) {
	t.Parallel()
	for _, s := range append([]*script{{name: "shared", source: shared + shared}}, all...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			_, code := parts(s)
			code = bare(code)
			for _, b := range banned {
				if m := regexp.MustCompile(b.pattern).FindString(code); m != "" {
					t.Errorf("%q: %s", m, b.why)
				}
			}
			for _, m := range regexp.MustCompile(`redis\.pcall\('(\w+)'`).FindAllStringSubmatch(code, -1) {
				if !slices.Contains(pcalls, m[1]) {
					t.Errorf("%s by pcall hides its error", m[1])
				}
			}
			// A page of a hash that is not written meanwhile, instead of all of it in memory: dispatch moves inputs.
			if strings.Contains(code, "'HSCAN'") && s.name != "dispatch" {
				t.Error("only dispatch scans a hash")
			}
			for _, m := range target.FindAllStringSubmatch(code, -1) {
				if !slices.Contains(keyless, m[1]) && !declaredKey.MatchString(m[2]) {
					t.Errorf("%s of %s: no key that is declared", m[1], m[2])
				}
			}
			for _, m := range misread(code) {
				t.Errorf("%q: miniredis reads a variable after it was set", m)
			}
		})
	}
}

var assignment = regexp.MustCompile(`(?m)(?:^|then |do |\) ) *([\w.\[\]#+*]+(?:, [\w.\[\]#+*]+)+) = (.+)$`)

// misread finds 'a, b = b, a' and 't[i], n = n, n + 1': gopher-lua, and with it miniredis, gives the right side
// the new value of a bare local that the left side sets.
func misread(code string) []string {
	var out []string
	for _, m := range assignment.FindAllStringSubmatch(code, -1) {
		targets := strings.Split(m[1], ", ")
		for v := range strings.SplitSeq(m[2], ", ") {
			if slices.Contains(targets, strings.TrimSpace(v)) {
				out = append(out, strings.TrimSpace(m[0]))
			}
		}
	}
	return out
}

func TestMisread(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"  got[n], o = o, o + 1\n": 1, "a, b = b, a\n": 2, "  p, at = p + 2 + count, at + 3\n": 0,
	} {
		if got := misread(code); len(got) != want {
			t.Errorf("%q: %q", code, got)
		}
	}
}

var (
	call        = regexp.MustCompile(`redis\.p?call\('(\w+)'`)
	earlyReturn = regexp.MustCompile(`(?m)^(?: *| *if .*)return \{.*$`)
)

// writes are the commands that scripts use and that change something.
var writes = []string{
	"HSET", "HDEL", "HINCRBY", "ZADD", "ZREM", "XADD", "PERSIST", "PEXPIRE", "RENAME", "UNLINK", "SETBIT", "SETRANGE", "BITOP",
	"ZUNIONSTORE", "PUBLISH",
}

// reads are those that change nothing.
var reads = []string{
	"HGET", "HMGET", "HEXISTS", "HSTRLEN", "HSCAN", "ZSCORE", "ZRANGE", "ZRANGEBYSCORE", "GETBIT", "GETRANGE", "BITPOS", "EXISTS",
	"XRANGE", "TIME",
}

// Everything is checked before the first write: there is no rollback.
func TestWritesComeLast(t *testing.T) {
	t.Parallel()
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			_, code := parts(s)
			before, after, ok := strings.Cut(code, "-- WRITES\n")
			if !ok {
				t.Fatal("no line says where the writes begin")
			}
			before, after = bare(before), bare(after)
			for _, m := range call.FindAllStringSubmatch(before+after, -1) {
				if !slices.Contains(writes, m[1]) && !slices.Contains(reads, m[1]) {
					t.Errorf("%s is in no list of this test", m[1])
				}
			}
			for _, m := range call.FindAllStringSubmatch(before, -1) {
				// A lapse of a claim whose run is closed removes it and does nothing else.
				if slices.Contains(writes, m[1]) && s.name != "settle" {
					t.Errorf("%s stands above the line", m[1])
				}
			}
			if _, last, ok := strings.Cut(after, "redis.pcall('PUBLISH'"); ok && call.MatchString(last) {
				t.Error("PUBLISH is not the last call: an error of a later one would leave what was announced undone")
			}
			after = strings.TrimRight(after, "\n")
			if i := strings.LastIndex(after, "\n"); i >= 0 {
				if m := earlyReturn.FindString(after[:i]); m != "" {
					t.Errorf("%q stands below the line", strings.TrimSpace(m))
				}
			}
			want := []string{"ZREM", "HDEL", "UNLINK"}
			if slices.Contains(adds, s.name) {
				want = []string{"HSET", "XADD"}
			}
			for _, m := range call.FindAllStringSubmatch(after, -1) {
				if !slices.Contains(writes, m[1]) {
					continue
				}
				if !slices.Contains(want, m[1]) {
					t.Errorf("the first write is %s, want one of %v", m[1], want)
				}
				break
			}
		})
	}
}
