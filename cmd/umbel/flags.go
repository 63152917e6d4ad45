package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/umbelhq/umbel"
)

// The values of flags check themselves, so that what is wrong is refused with the flag's name, before anything
// is done.

// duration is a duration within bounds.
type duration struct {
	d           *time.Duration
	least, most time.Duration
}

func durationVar(cmd *cobra.Command, d *time.Duration, flag string, value, least, most time.Duration, usage string) {
	*d = value
	cmd.Flags().Var(&duration{d, least, most}, flag, usage)
}

func (f *duration) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("must be a duration such as 1h30m, 45s or 250ms")
	}
	if err := reason(umbel.ValidateDuration("", d, f.least, f.most)); err != nil {
		return err
	}
	*f.d = d
	return nil
}

func (f *duration) Type() string { return "duration" }

func (f *duration) String() string {
	if f.d == nil || *f.d == 0 {
		return "" // no default to show
	}
	return f.d.String()
}

// number is a whole number within bounds.
type number struct {
	n           *int
	least, most int
}

func numberVar(cmd *cobra.Command, n *int, flag, short string, value, least, most int, usage string) {
	*n = value
	cmd.Flags().VarP(&number{n, least, most}, flag, short, usage)
}

func (f *number) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < f.least || n > f.most {
		return fmt.Errorf("must be a whole number from %d to %d", f.least, f.most)
	}
	*f.n = n
	return nil
}

func (f *number) Type() string { return "number" }

func (f *number) String() string {
	if f.n == nil || *f.n == 0 {
		return ""
	}
	return strconv.Itoa(*f.n)
}

// numbers is a list of whole numbers within bounds, separated by commas or given one by one.
type numbers[N int | int64] struct {
	list        *[]N
	least, most N
}

func (f *numbers[N]) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || n < int64(f.least) || n > int64(f.most) {
			return fmt.Errorf("must be whole numbers from %d to %d, separated by commas", f.least, f.most)
		}
		*f.list = append(*f.list, N(n))
	}
	return nil
}

func (f *numbers[N]) Type() string   { return "numbers" }
func (f *numbers[N]) String() string { return "" }

// name is what names a namespace, a task queue, a node, an activity or a workflow. An empty one is no name.
type name struct {
	s     *string
	field string
}

func (f *name) Set(s string) error {
	*f.s = s
	return reason(umbel.ValidateName(f.field, s))
}

func (f *name) Type() string { return "name" }

func (f *name) String() string {
	if f.s == nil {
		return ""
	}
	return *f.s
}

// place says where something is. An empty one, from a variable that is not set, would pass for one that was left out,
// and what was to be kept would not be.
type place struct{ s *string }

func (f *place) Set(s string) error {
	if s == "" {
		return errors.New("must not be empty")
	}
	*f.s = s
	return nil
}

func (f *place) Type() string   { return "place" }
func (f *place) String() string { return "" }

// placeVar is a place that may be left out.
func placeVar(cmd *cobra.Command, s *string, flag, usage string) {
	cmd.Flags().Var(&place{s}, flag, usage)
}

// nameVar is a name that may be left out.
func nameVar(cmd *cobra.Command, s *string, flag, field, value, usage string) {
	*s = value
	cmd.Flags().Var(&name{s, field}, flag, usage)
}

// choice is one of a few words.
type choice struct {
	s     *string
	words []string
}

func choiceVar(cmd *cobra.Command, s *string, flag, usage string, words ...string) {
	cmd.Flags().Var(&choice{s, words}, flag, usage+strings.Join(words, ", "))
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // it was just added
}

func (f *choice) Set(s string) error {
	if !slices.Contains(f.words, s) {
		return fmt.Errorf("must be %s or %s", strings.Join(f.words[:len(f.words)-1], ", "), f.words[len(f.words)-1])
	}
	*f.s = s
	return nil
}

func (f *choice) Type() string { return "word" }

func (f *choice) String() string {
	if f.s == nil {
		return ""
	}
	return *f.s
}

// reason is the rule that a value breaks, since the flag's own message names flag and value.
func reason(err error) error {
	if e, ok := errors.AsType[*umbel.Error](err); ok {
		return errors.New(e.Reason)
	}
	return err
}
