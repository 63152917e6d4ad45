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

// progress is a bar on a terminal, and nothing anywhere else. The zero progress is nothing.
type progress struct {
	w   io.Writer // nil if nothing is to be seen
	bar *progressbar.ProgressBar
}

func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		return &progress{}
	}
	return &progress{w: w}
}

func (p *progress) visible() bool { return p.w != nil }

// show draws how a run stands.
func (p *progress) show(c umbel.Counts) {
	const often, width = 65 * time.Millisecond, 30
	if p.w == nil || c.Scheduled == 0 {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(c.Scheduled,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"),
			progressbar.OptionThrottle(often), progressbar.OptionSetWidth(width), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetRenderBlankState(true),
		)
	}
	_ = p.bar.Set64(c.Resolved()) // a terminal that went away shows nothing
}

// clear removes the bar, so that something else can be written.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
