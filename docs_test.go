package umbel_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// What the documents say of the tree must be so: links lead somewhere, tests that are named exist, and code of README
// is code that compiles or runs.

var (
	fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// provenBy is `dir:TestName`, with the cases of its suite that may follow in brackets.
	provenBy = regexp.MustCompile("`([\\w./]+):(Test\\w+)`(?: \\((\\w+(?:, \\w+)*)\\))?")
	bareTest = regexp.MustCompile("`(Test[A-Z]\\w+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

func TestDocsLinks(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, doc := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(read(t, doc), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			seen++
			file := doc
			if target != "" {
				file = path.Join(path.Dir(doc), target)
			}
			if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
				t.Errorf("%s: link %s leads nowhere", doc, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", doc, file, anchor)
			}
		}
	}
	if seen < 30 {
		t.Errorf("saw %d links only; is the pattern right?", seen)
	}
}

func TestDocsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	inDir := map[string][]string{} // names of tests by directory
	var everywhere []string
	source := map[string]string{} // all Go text by top directory
	for _, file := range treeFiles(t) {
		if path.Ext(file) != ".go" {
			continue
		}
		text := read(t, file)
		top, _, _ := strings.Cut(file, "/")
		source[top] += text
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			inDir[path.Dir(file)] = append(inDir[path.Dir(file)], m[1])
			everywhere = append(everywhere, m[1])
		}
	}
	seen := 0
	for _, doc := range documents(t) {
		text := read(t, doc)
		for _, m := range provenBy.FindAllStringSubmatch(text, -1) {
			seen++
			dir, name := m[1], m[2]
			if !slices.Contains(inDir[dir], name) {
				t.Errorf("%s: there is no %s in %s", doc, name, dir)
			}
			top, _, _ := strings.Cut(dir, "/")
			for c := range strings.SplitSeq(m[3], ", ") {
				if c != "" && !strings.Contains(source[top], `"`+c+`"`) {
					t.Errorf("%s: %s of %s has no case %s", doc, name, dir, c)
				}
			}
		}
		for _, m := range bareTest.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(everywhere, m[1]) {
				t.Errorf("%s: there is no test %s", doc, m[1])
			}
		}
	}
	if seen < 40 {
		t.Errorf("saw %d names of tests only; is the pattern right?", seen)
	}
}

// The table of keys in docs/design.md is that of package keys.
func TestDocsListEveryKey(t *testing.T) {
	t.Parallel()
	keys := regexp.MustCompile(`(?m)^(?://\t|\| \x60)(P:\{T\}:[\w:]+)\x60? +(?:\| )?(\w+)`)
	list := func(file string) (found []string) {
		for _, m := range keys.FindAllStringSubmatch(read(t, file), -1) {
			found = append(found, m[1]+" "+m[2])
		}
		return found
	}
	want, got := list("internal/keys/keys.go"), list("docs/design.md")
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("docs/design.md lists\n%s\nand package keys\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A Go block of README is a complete program, which is compiled, or a quotation of an example, which runs.
func TestReadmeCodeIsReal(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob("example*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	programs, quotations := 0, 0
	for _, m := range fence.FindAllStringSubmatch(read(t, "README.md"), -1) {
		lang, code := m[1], m[2]
		switch {
		case lang != "go":
		case strings.HasPrefix(code, "package "):
			programs++
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "go", "vet", file).CombinedOutput(); err != nil {
				t.Errorf("a program does not compile: %v\n%s\n%s", err, out, code)
			}
		default:
			quotations++
			if !slices.ContainsFunc(examples, func(f string) bool { return strings.Contains(read(t, f), code) }) {
				t.Errorf("none of %v has this, word for word:\n%s", examples, code)
			}
		}
	}
	if programs == 0 || quotations == 0 {
		t.Errorf("%d programs and %d quotations; is the pattern right?", programs, quotations)
	}
}

// documents lists the Markdown files.
func documents(t *testing.T) []string {
	t.Helper()
	docs := slices.DeleteFunc(treeFiles(t), func(f string) bool { return path.Ext(f) != ".md" })
	for _, known := range []string{"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/design.md"} {
		if !slices.Contains(docs, known) {
			t.Fatalf("the list of documents lacks %s: %v", known, docs)
		}
	}
	return docs
}

func read(t *testing.T, name string) string {
	t.Helper()
	return string(readFile(t, name))
}

// anchors lists what links may name in a document: its headings, as hosts of Markdown make them into anchors.
func anchors(text string) []string {
	var all []string
	for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
		heading := strings.TrimLeft(line, "#")
		if heading == line {
			continue
		}
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, strings.TrimSpace(heading)))
	}
	return all
}
