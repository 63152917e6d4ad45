package main

import (
	"io/fs"
	"iter"
	"os"
	"strings"
)

// files yields the regular files under dir under the names that `find dir -type f` gives them. It reads a
// directory when it comes to it, always in the same order: the order is part of what a start is recognised by.
// A directory that cannot be read ends it with an error, since sums of a part would look like sums of all.
func files(dir string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		info, err := os.Lstat(dir)
		if err != nil {
			yield("", err)
			return
		}
		walk(dir, fs.FileInfoToDirEntry(info), yield)
	}
}

// walk reports whether to go on.
func walk(path string, e fs.DirEntry, yield func(string, error) bool) bool {
	switch {
	case e.Type().IsRegular():
		return yield(path, nil)
	case !e.IsDir():
		return true // find does not follow links either
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		yield("", err)
		return false
	}
	if !strings.HasSuffix(path, "/") {
		path += "/" // not filepath.Join, which would tidy up the name that was given
	}
	for _, e := range entries {
		if !walk(path+e.Name(), e, yield) {
			return false
		}
	}
	return true
}
