package main

import (
	"cmp"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/client"
)

const (
	defaultAddr = "127.0.0.1:7890"
	addrVar     = "UMBEL_ADDR"
)

// app is what the commands share: the flags that several of them have, and how the process ends.
type app struct {
	signals *signals
	started bool // the command line was understood

	addr      string
	namespace string
	format    string
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "umbel",
		Short: "Durable fan-out on Redis",
		Long: `Umbel hands many inputs to one activity, runs them on any number of workers, and
gives the results back exactly once each, whatever crashes on the way.

  seq 3 | umbel run -- expr {} + 1       durable xargs, all in this process
  umbel dev                              a server to try things on

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found or unreachable,
130 interrupted.`,
		Version:       version(),
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("umbel {{.Version}}\n")
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupLook, Title: "Start, look, stop:"},
	)
	for _, cmd := range []*cobra.Command{
		a.runCommand(), a.devCommand(), a.serverCommand(), a.workerCommand(),
	} {
		cmd.GroupID = groupRun
		root.AddCommand(cmd)
	}
	for _, cmd := range []*cobra.Command{
		a.startCommand(), a.listCommand(), a.showCommand(), a.watchCommand(),
		a.resultsCommand(), a.historyCommand(), a.cancelCommand(),
	} {
		cmd.GroupID = groupLook
		root.AddCommand(cmd)
	}
	for _, cmd := range root.Commands() {
		do := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.started = true
			return do(cmd, args)
		}
	}
	return root
}

// version is what this binary was built from, as far as it knows, and by which Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + " " + info.GoVersion
}

const (
	groupRun  = "run"
	groupLook = "look"
)

func (a *app) addrFlag(cmd *cobra.Command) {
	placeVar(cmd, &a.addr, "addr",
		"`addresses` of servers, separated by commas (default: $"+addrVar+", else "+defaultAddr+")")
}

func (a *app) namespaceFlag(cmd *cobra.Command) {
	a.namespace = umbel.DefaultNamespace
	cmd.Flags().Var(&name{&a.namespace, "namespace"}, "namespace", "`name` of the namespace")
}

func (a *app) formatFlag(cmd *cobra.Command, formats ...string) {
	a.format = formatTable
	choiceVar(cmd, &a.format, "format", "how to print: ", append([]string{formatTable, formatJSON}, formats...)...)
}

// addresses is --addr, else the environment's, else the default; given says whether it is one of the first two.
func (a *app) addresses() (addrs string, given bool) {
	addrs = cmp.Or(a.addr, os.Getenv(addrVar))
	return cmp.Or(addrs, defaultAddr), addrs != ""
}

// admin returns an Admin on e.
func (a *app) admin(e client.Engine, log *slog.Logger) (*client.Admin, error) {
	return client.NewAdmin(e, client.Config{Namespace: a.namespace, Logger: log})
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasParent() {
		return unknown(cmd, args[0])
	}
	return usagef("unexpected argument %q (see %s --help)", args[0], cmd.CommandPath())
}

// unknown says that there is no such command, and which ones are spelt like it.
func unknown(root *cobra.Command, name string) error {
	const typos = 2
	root.SuggestionsMinimumDistance = typos
	if like := root.SuggestionsFor(name); len(like) > 0 {
		return usagef("unknown command %q: did you mean %s? (see umbel --help)", name, strings.Join(like, " or "))
	}
	return usagef("unknown command %q (see umbel --help)", name)
}

// oneID is for commands that take a workflow ID.
func oneID(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("which workflow? give its ID (umbel list shows them)")
	case len(args) > 1:
		return usagef("unexpected argument %q: %s takes one workflow ID", args[1], cmd.CommandPath())
	}
	if err := umbel.ValidateName("workflow ID", args[0]); err != nil {
		return &usageError{err: err}
	}
	return nil
}

// program is what stands after "--" and where it was found.
func program(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0:
		return usagef("which command? put it after --, as in: %s -- sha256sum {}", cmd.CommandPath())
	case dash < 0:
		return usagef("put -- before the command: %s -- %s", cmd.CommandPath(), args[0])
	case dash > 0:
		return usagef("unexpected argument %q before --", args[0])
	case args[0] == "":
		return usagef("the command after -- is empty")
	}
	return nil
}
