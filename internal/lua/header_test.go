package lua

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// all is every script. TestEveryFileIsAScript keeps it so.
var all = []*script{
	stage, commit, dispatch, appendEvents, claim, renew, deliver, sweep, settle, cancel,
}

// maxCode bounds the lines of code of a script: what runs as one step must be read as one.
const maxCode = 80

// longer are the scripts that may be longer, and why.
var longer = map[string]struct {
	lines int
	why   string
}{
	"settle": {215, "dedup, move, verdict and close of a report are one step: promises 6 and 10 leave no place to cut"},
	"claim":  {180, "taking, claiming and reading of rows are one step: in two, a crash between them would cost an attempt"},
}

// adds are the scripts that a full Redis must refuse. Their first write is one that it refuses; the others'
// is one that it never refuses, so that it drains.
var adds = []string{"stage", "commit", "dispatch", "append"}

func TestEveryFileIsAScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.lua")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*script{}
	for _, s := range all {
		byName[s.name] = s
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".lua")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name == "shared" {
			continue
		}
		s := byName[name]
		if s == nil {
			t.Errorf("%s belongs to no script", file)
			continue
		}
		if s.source != shared+string(text) {
			t.Errorf("script %s is not shared.lua and %s", name, file)
		}
		delete(byName, name)
	}
	for name := range byName {
		t.Errorf("script %s has no file", name)
	}
}

// parts are a script's header and its code, both without what stands in front.
func parts(s *script) (header, code string) {
	body := strings.TrimPrefix(s.source, shared)
	lines := strings.SplitAfter(body, "\n")
	i := 0
	for i < len(lines) && strings.HasPrefix(lines[i], "--") && lines[i] != "-- WRITES\n" {
		i++
	}
	return strings.Join(lines[:i], ""), strings.Join(lines[i:], "")
}

var comment = regexp.MustCompile(`(?m)--.*$`)

func bare(code string) string { return comment.ReplaceAllString(code, "") }

func tokens(re *regexp.Regexp, s string) []string {
	var out []string
	for _, m := range re.FindAllStringSubmatch(s, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var (
	declaredToken   = regexp.MustCompile(`(?m)^-- ((?:KEYS|ARGV)\[[^\]]+\])`)
	usedToken       = regexp.MustCompile(`((?:KEYS|ARGV)\[(?:[^\[\]]|\[[^\]]*\])+\])`)
	declaredOutcome = regexp.MustCompile(`(?m)^--   (\w+) +\{'`)
	namedOutcome    = regexp.MustCompile(`\{'(\w+)'[,} ]`)
	returnedOutcome = regexp.MustCompile(`(?:return |local reply = |local reply, [^=]*= )\{'(\w+)'`)
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			header, code := parts(s)
			if !strings.HasPrefix(header, "-- "+s.name+": ") {
				t.Errorf("the header begins with %.40q, not with the script's name", header)
			}
			if declared, used := tokens(declaredToken, header), tokens(usedToken, bare(code)); !slices.Equal(declared, used) {
				t.Errorf("keys and arguments\ndeclared %v\nused     %v", declared, used)
			}
			_, returns, ok := strings.Cut(header, "-- RETURNS\n")
			if !ok {
				t.Fatal("the header has no RETURNS")
			}
			declared, used := tokens(declaredOutcome, returns), tokens(returnedOutcome, code)
			if !slices.Equal(declared, used) {
				t.Errorf("outcomes declared %v, used %v", declared, used)
			}
			if named := tokens(namedOutcome, returns); !slices.Equal(declared, named) {
				t.Errorf("outcomes in the first column %v, in braces %v", declared, named)
			}
		})
	}
}

func TestScriptsAreShort(t *testing.T) {
	t.Parallel()
	for _, s := range all {
		_, code := parts(s)
		n := 0
		for line := range strings.Lines(bare(code)) {
			if strings.TrimSpace(line) != "" {
				n++
			}
		}
		limit := maxCode
		if l, ok := longer[s.name]; ok {
			limit = l.lines
			if n <= maxCode {
				t.Errorf("%s has %d lines of code: it needs no exception", s.name, n)
			}
		}
		if n > limit {
			t.Errorf("%s has %d lines of code, at most %d are allowed", s.name, n, limit)
		}
	}
}
