package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

// logging is how a command that runs for long says what happens, on standard error.
type logging struct {
	level  slog.Level
	format string
}

func logFlags(cmd *cobra.Command, level slog.Level) *logging {
	l := &logging{level: level, format: "text"}
	cmd.Flags().TextVar(&l.level, "log-level", level, "least `level` that is logged, on standard error: debug, info, warn, error")
	choiceVar(cmd, &l.format, "log-format", "how to log: ", "text", formatJSON)
	return l
}

func (l *logging) logger(w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: l.level}
	if l.format == formatJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
