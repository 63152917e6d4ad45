package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/umbelhq/umbel"
)

// isTerminal reports whether a person looks at f.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// progress is a bar on a terminal, and nothing anywhere else.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer) *progress {
	const often, width = 65 * time.Millisecond, 30
	if !isTerminal(w) {
		return &progress{}
	}
	return &progress{bar: progressbar.NewOptions64(1,
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"),
		progressbar.OptionThrottle(often), progressbar.OptionSetWidth(width), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
	)}
}

// show draws how a run stands.
func (p *progress) show(c umbel.Counts) {
	if p.bar == nil || c.Scheduled == 0 {
		return
	}
	p.bar.ChangeMax64(c.Scheduled)
	_ = p.bar.Set64(c.Resolved()) // a terminal that went away shows nothing
}

// clear removes the bar, so that something else can be written.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

func (p *progress) visible() bool { return p.bar != nil }
