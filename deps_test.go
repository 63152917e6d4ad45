package umbel_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/umbelhq/umbel"

// layers says which packages of this module each package may import outside its
// tests. An entry holds for the packages below it too, unless one of them has
// its own; a package may always import those below itself. "." is the root.
var layers = map[string][]string{
	".":                   {},
	"codec":               {"."},
	"internal/keys":       {"."},
	"internal/lua":        {".", "internal/keys"},
	"outbox":              {".", "internal/keys", "internal/lua"},
	"outbox/outboxtest":   {".", "outbox"},
	"history":             {".", "internal/keys", "internal/lua", "outbox"},
	"history/historytest": {".", "history", "outbox", "outbox/outboxtest"},
	"internal/wire":       {".", "api"},
	"internal/remote":     {".", "api", "internal/wire"},
	"internal/lifecycle":  {"."},
	"internal/attempt":    {"."},
	"api":                 {},
	"server":              {".", "api", "history", "internal/keys", "internal/lifecycle", "internal/lua", "internal/wire", "outbox"},
	"worker":              {".", "internal/attempt", "internal/lifecycle"},
	"client":              {".", "internal/lifecycle", "internal/remote"},
	"internal/memnet":     {},
	"internal/memredis":   {},
	"internal/process":    {},
	"internal/localredis": {"internal/process"},
	"internal/testredis":  {"internal/memredis"},
	"internal/enginetest": {"."},
	"internal/faultconn":  {},
	"internal/floor":      {},
	"umbeltest":           {".", "client", "internal/attempt", "internal/faultconn", "internal/memredis", "server", "worker"},
	"cmd":                 {".", "client", "internal/floor", "internal/localredis", "internal/memredis", "internal/process", "server", "worker"},
	"examples":            {".", "client", "codec", "internal/localredis", "internal/memredis", "server", "umbeltest", "worker"},
}

// outside says who may import, outside tests, what is not part of this module.
// A path stands for the packages below it too.
var outside = []struct {
	path  string
	users []string
}{
	{"github.com/redis/go-redis", []string{
		"cmd", "examples", "history", "internal/floor", "internal/localredis", "internal/lua", "internal/memredis",
		"internal/testredis", "outbox", "server", "umbeltest",
	}},
	{"github.com/alicebob/miniredis", []string{"internal/memredis", "internal/testredis"}},
	{"connectrpc.com/connect", []string{"api", "internal/remote", "internal/wire", "server"}},
	{"google.golang.org/protobuf", []string{"api", "internal/remote", "internal/wire"}},
	{"testing", testPackages},
	{"pgregory.net/rapid", testPackages},
	{"github.com/google/go-cmp", testPackages},
}

var testPackages = []string{
	"history/historytest", "internal/enginetest", "internal/testredis", "outbox/outboxtest", "umbeltest",
}

// never says what must not come in over any number of steps.
var never = map[string][]string{
	"client": {"github.com/redis/go-redis", "github.com/alicebob/miniredis", module + "/server", module + "/worker", "testing"},
	"worker": {"github.com/redis/go-redis", "github.com/alicebob/miniredis", module + "/server", module + "/client", "testing"},
	"server": {"github.com/alicebob/miniredis", module + "/client", module + "/worker", "testing"},
	"cmd":    {"testing"},
}

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string
	Doc        string
	Standard   bool
	GoFiles    []string
	Imports    []string
}

// rel is the path inside the module, "." for the root; ok is false outside it.
func rel(importPath string) (_ string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// within says whether pkg is dir or below it.
func within(pkg, dir string) bool {
	return pkg == dir || strings.HasPrefix(pkg, dir+"/")
}

func withinAny(pkg string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(pkg, dir) })
}

// layerOf returns the longest entry of layers that pkg belongs to.
func layerOf(pkg string) (string, bool) {
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if _, ok := layers[dir]; ok {
			return dir, true
		}
	}
	return ".", pkg == "."
}

// importProblem says what is wrong with pkg, a path inside the module,
// importing target; it is empty if nothing is.
func importProblem(pkg, target string) string {
	for _, o := range outside {
		if within(target, o.path) && !withinAny(pkg, o.users) {
			return fmt.Sprintf("%s imports %s, which only tests and %v may", pkg, target, o.users)
		}
	}
	to, ours := rel(target)
	from, known := layerOf(pkg)
	switch {
	case !known:
		return fmt.Sprintf("%s stands in no layer: add it to layers in deps_test.go", pkg)
	case !ours || within(to, pkg) && pkg != ".":
		return ""
	}
	toLayer, _ := layerOf(to)
	if toLayer == from || slices.Contains(layers[from], toLayer) {
		return ""
	}
	return fmt.Sprintf("%s imports %s against the direction of the layers; it may import %v", pkg, to, layers[from])
}

func TestImportDirection(t *testing.T) {
	t.Parallel()
	packages := listPackages(t)

	edges := 0
	for _, p := range packages {
		pkg, ours := rel(p.ImportPath)
		if !ours {
			continue
		}
		if _, known := layerOf(pkg); !known && !within(pkg, "test") {
			t.Error(importProblem(pkg, ""))
			continue
		}
		for _, target := range p.Imports {
			edges++
			if within(pkg, "test") { // test/ proves the whole and may use all of it
				continue
			}
			if problem := importProblem(pkg, target); problem != "" {
				t.Error(problem)
			}
			if pkg == "." && !packages[target].Standard {
				t.Errorf("the root package imports %s; it is limited to the standard library", target)
			}
		}
	}
	if edges < 50 {
		t.Errorf("saw %d imports only; the list is not what it should be", edges)
	}

	for _, p := range packages {
		pkg, ours := rel(p.ImportPath)
		if !ours {
			continue
		}
		for dir, targets := range never {
			if !within(pkg, dir) {
				continue
			}
			for _, chain := range reach(packages, p.ImportPath, targets) {
				t.Errorf("%s must not reach %s, but does: %s", pkg, chain[len(chain)-1], strings.Join(chain, " → "))
			}
		}
	}
}

// A package that exists must have been seen, or the rules above say nothing.
func TestListSeesEveryPackage(t *testing.T) {
	t.Parallel()
	packages := listPackages(t)
	for dir := range layers {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
		if _, seen := packages[path.Join(module, dir)]; len(files) > 0 && !seen {
			t.Errorf("%s has Go files and go list does not see it", dir)
		}
	}
	for from, to := range map[string]string{ // edges that are known to exist
		module:                         "context",
		module + "/internal/memredis":  "github.com/alicebob/miniredis/v2",
		module + "/internal/testredis": "testing",
	} {
		if !slices.Contains(packages[from].Imports, to) {
			t.Errorf("go list does not see that %s imports %s", from, to)
		}
	}
}

// The rules themselves: each of these must be refused, or allowed.
func TestImportProblem(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pkg, target string
		refused     bool
	}{
		{"client", module + "/worker", true},
		{"worker", module + "/client", true},
		{"worker", module + "/server", true},
		{"client", "github.com/redis/go-redis/v9", true},
		{".", module + "/history", true},
		{"outbox", module + "/history", true},
		{"internal/keys", module + "/internal/lua", true},
		{"server", module + "/internal/memredis", true},
		{"server", module + "/client", true},
		{"server", "testing", true},
		{"history", "pgregory.net/rapid", true},
		{"cmd/umbel", "github.com/alicebob/miniredis/v2", true},
		{"internal/unheard", "fmt", true},

		{"client", module, false},
		{"client", module + "/client/internal/cursor", false},
		{"client", "testingx", false},
		{"server", module + "/history", false},
		{"history", module + "/outbox", false},
		{"cmd/umbel", module + "/internal/memredis", false},
		{"examples/hello", module + "/worker", false},
		{"outbox/outboxtest", "testing", false},
		{"outbox", "github.com/redis/go-redis/v9", false},
	} {
		if got := importProblem(tc.pkg, tc.target); (got != "") != tc.refused {
			t.Errorf("%s importing %s: refused is %t (%q), want %t", tc.pkg, tc.target, got != "", got, tc.refused)
		}
	}
}

func TestEveryPackageHasADoc(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		pkg, ours := rel(p.ImportPath)
		if !ours || len(p.GoFiles) == 0 || within(pkg, "api/gen") { // its documentation is in api/umbel/v1
			continue
		}
		if p.Doc == "" {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// reach returns for each target one chain of imports that leads to it.
func reach(packages map[string]goPackage, from string, targets []string) [][]string {
	var found [][]string
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at != from && withinAny(at, targets) {
			var chain []string
			for step := at; step != ""; step = before[step] {
				chain = append(chain, step)
			}
			slices.Reverse(chain)
			found = append(found, chain)
			continue
		}
		for _, next := range packages[at].Imports {
			if _, seen := before[next]; !seen {
				before[next] = at
				queue = append(queue, next)
			}
		}
	}
	return found
}

// listPackages returns every package of the module and what they need, by
// import path.
func listPackages(t *testing.T) map[string]goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Doc,Standard,GoFiles,Imports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	packages := map[string]goPackage{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
	if _, err := os.Stat("go.mod"); errors.Is(err, fs.ErrNotExist) || packages[module].ImportPath == "" {
		t.Fatalf("go list did not see %s: is this its root?", module)
	}
	return packages
}
