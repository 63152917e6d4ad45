//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func cliDoc(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// The examples of docs/cli.md, one after the other in a shell, all succeed.
func TestDocExamples(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(cliDoc(t), -1) {
		script.WriteString(m[1])
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	cmd := exec.CommandContext(t.Context(), "bash", "-euxo", "pipefail")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "UMBEL_ADDR="+addr)
	// What waits in the background must not outlive a script that fails.
	cmd.Stdin = strings.NewReader("trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + script.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// docs/cli.md has every command and every flag.
func TestDocIsComplete(t *testing.T) {
	t.Parallel()
	doc := cliDoc(t)
	for _, cmd := range new(app).root().Commands() {
		checkDocumented(t, doc, cmd)
	}
}

func checkDocumented(t *testing.T, doc string, cmd *cobra.Command) {
	t.Helper()
	if !strings.Contains(doc, cmd.Name()) {
		t.Errorf("docs/cli.md lacks umbel %s", cmd.Name())
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(doc, "--"+f.Name) {
			t.Errorf("docs/cli.md lacks --%s of umbel %s", f.Name, cmd.Name())
		}
	})
}
