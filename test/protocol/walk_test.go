package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testredis"
	"github.com/umbelhq/umbel/server"
	"github.com/umbelhq/umbel/test/witness"
)

const document = "../../docs/protocol.md"

// command is a block of commands and the JSON that the document says they print, if it says so.
type command struct{ shell, reply string }

var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// commands lists what the document has a reader type.
func commands(t *testing.T) []command {
	t.Helper()
	var all []command
	for _, m := range block.FindAllStringSubmatch(read(t), -1) {
		switch lang, body := m[1], m[2]; {
		case lang == "sh":
			all = append(all, command{shell: body})
		case lang == "json" && len(all) > 0 && all[len(all)-1].reply == "":
			all[len(all)-1].reply = body
		default:
			t.Fatalf("a %s block that answers no command:\n%s", lang, body)
		}
	}
	if len(all) < 10 {
		t.Fatalf("saw %d commands only; is the pattern right?", len(all))
	}
	return all
}

// The commands run in one shell, one after the other, and each prints what the document says.
func TestMustShow5CurlAlone(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(testing.TB) *testredis.Redis{"mini": testredis.Mini, "real": testredis.Shared} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			walk(t, "http://"+witness.Serve(t, open(t), server.Config{}))
		})
	}
}

// walk runs all commands against a server. A line of its own ends what each of them prints.
func walk(t *testing.T, url string) {
	t.Helper()
	const end = "\x1e"
	witness.Program(t, "curl")
	all := commands(t)
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	for _, c := range all {
		fmt.Fprintf(&script, "%sprintf '%s'\n", c.shell, end)
	}
	cmd := exec.CommandContext(t.Context(), witness.Program(t, "bash"), "-c", script.String())
	cmd.Env = append(os.Environ(), "UMBEL_URL="+url, "no_proxy=*", "NO_PROXY=*")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("the commands ended with %v and said %q", err, stderr.String())
	}
	replies := strings.Split(string(out), end)
	stands := map[string]string{}
	for i, c := range all {
		if i >= len(replies) {
			t.Fatalf("nothing came of\n%s", c.shell)
		}
		if c.reply == "" && strings.TrimSpace(replies[i]) == "" {
			continue
		}
		if problem := sameJSON(stands, replies[i], c.reply); problem != "" {
			t.Fatalf("%s\n%s\nprinted\n%s\nwant\n%s", problem, c.shell, replies[i], c.reply)
		}
	}
}

// sameJSON says how got differs from want, in which a text in angle brackets stands for any text: the same one
// wherever it comes again, but for <time>.
func sameJSON(stands map[string]string, got, want string) string {
	var g, w any
	if err := cmp.Or(json.Unmarshal([]byte(got), &g), json.Unmarshal([]byte(want), &w)); err != nil {
		return err.Error()
	}
	return differs(stands, "", g, w)
}

func differs(stands map[string]string, at string, got, want any) string {
	problem := fmt.Sprintf("%s is %v, want %v", cmp.Or(at, "it"), got, want)
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return problem
		}
		for name := range w {
			if _, there := g[name]; !there {
				return problem
			}
			if p := differs(stands, at+"."+name, g[name], w[name]); p != "" {
				return p
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return problem
		}
		for i := range w {
			if p := differs(stands, fmt.Sprintf("%s[%d]", at, i), g[i], w[i]); p != "" {
				return p
			}
		}
	case string:
		g, ok := got.(string)
		if !ok {
			return problem
		}
		if !strings.HasPrefix(w, "<") {
			stands[w] = w
		}
		if known, seen := stands[w]; g == "" || seen && known != g {
			return problem
		}
		if w != "<time>" {
			stands[w] = g
		}
	default:
		if got != want {
			return problem
		}
	}
	return ""
}
