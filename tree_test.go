package umbel_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines bounds a Go file: one that nobody can hold in mind, nobody reviews.
const maxLines = 500

// vagueNames say nothing about what is inside.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}

// personal matches what holds on one machine only: home directories, and the
// hosts of package registries, which belong into the reader's own settings.
var personal = regexp.MustCompile(`/(?:home|Users)/[a-z][\w.-]*/|/ro{2}t/|\b(?:proxy\.golang|goproxy|registry\.npmjs|pypi|pythonhosted)\.(?:org|io|cn)\b`)

func TestFilesHaveANoun(t *testing.T) {
	t.Parallel()
	for _, file := range treeFiles(t) {
		for part := range strings.SplitSeq(strings.TrimSuffix(file, path.Ext(file)), "/") {
			if slices.Contains(vagueNames, strings.TrimSuffix(part, "_test")) {
				t.Errorf("%s: %q names no thing; say what is inside", file, part)
			}
		}
	}
}

func TestGoFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range treeFiles(t) {
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/gen/") {
			continue
		}
		if n := bytes.Count(readFile(t, file), []byte("\n")); n >= maxLines {
			t.Errorf("%s has %d lines; below %d a reader can hold it", file, n, maxLines)
		}
	}
}

func TestNothingOfOneMachine(t *testing.T) {
	t.Parallel()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// The checkout's own place, unless it is one that many documents name.
	places := []string{root + "/"}
	if parent := filepath.Dir(root); parent != "/" && parent != filepath.Clean(os.TempDir()) {
		places = append(places, parent+"/")
	}
	for _, file := range treeFiles(t) {
		content := readFile(t, file)
		if bytes.IndexByte(content, 0) >= 0 {
			continue // no text
		}
		for i, line := range strings.Split(string(content), "\n") {
			found := personal.FindString(line)
			for _, place := range places {
				if strings.Contains(line, place) {
					found = place
				}
			}
			if found != "" {
				t.Errorf("%s:%d names %q, which exists on one machine only", file, i+1, found)
			}
		}
	}
}

func TestPersonal(t *testing.T) {
	t.Parallel()
	dot := "." // so that this file passes its own test
	for text, want := range map[string]bool{
		"see /ho" + "me/ann/umbel":                     true,
		"/Us" + "ers/ann/go":                           true,
		"dir /ro" + "ot/go":                            true,
		"https://proxy" + dot + "golang" + dot + "org": true,
		"https://pkg.go.dev/net/http":                  false,
		"docs/home.md":                                 false,
		"GET /users/7":                                 false,
		"--data /tmp/umbel":                            false,
	} {
		if got := personal.MatchString(text); got != want {
			t.Errorf("%q is personal: %t, want %t", text, got, want)
		}
	}
}

// treeFiles returns the files under version control; in an unpacked archive
// without history, all files.
func treeFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	// The tree may belong to another user, as in a container that mounts it.
	out, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached").Output()
	if err == nil {
		files = strings.Split(strings.Trim(string(out), "\x00"), "\x00")
	} else {
		files = walkFiles(t)
	}
	// What another change has removed from disk is on its way out.
	files = slices.DeleteFunc(files, func(f string) bool {
		info, err := os.Lstat(f)
		return err != nil || !info.Mode().IsRegular()
	})
	for _, known := range []string{"go.mod", "engine.go", "internal/memredis/server.go"} {
		if !slices.Contains(files, known) {
			t.Fatalf("the list of files lacks %s: %d files", known, len(files))
		}
	}
	return files
}

func walkFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".tmp"):
			return fs.SkipDir
		case !d.IsDir():
			files = append(files, filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}
