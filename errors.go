package umbel

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Code says what kind of thing went wrong. It crosses the wire as it is; the text beside it is for people.
type Code string

// The codes. Match them with errors.Is against the sentinel of the same name.
const (
	// CodeInvalid: a value breaks a rule; the error names both. Nothing was written.
	CodeInvalid Code = "invalid_argument"
	// CodeNotFound: no such workflow, run or row.
	CodeNotFound Code = "not_found"
	// CodeAlreadyExists: the workflow ID has a run with other inputs, or [Reject] was asked for.
	CodeAlreadyExists Code = "already_exists"
	// CodeLimit: a limit of limits.go is exceeded; the error names it. Nothing became visible.
	CodeLimit Code = "limit_exceeded"
	// CodeConflict: an append expected another head. Nothing was written.
	CodeConflict Code = "conflict"
	// CodeFenced: the write token has been taken over by somebody else. Nothing was written.
	CodeFenced Code = "fenced"
	// CodeGap: rows were appended beyond the run's end. Nothing was written.
	CodeGap Code = "gap"
	// CodeStagingLost: staged inputs expired, or a chunk is missing. Start again.
	CodeStagingLost Code = "staging_lost"
	// CodeCursorLost: Redis was taken back to before the cursor. Read again from the start.
	CodeCursorLost Code = "cursor_lost"
	// CodeOverloaded: Redis is too full to take more work. What runs goes on; try again later.
	CodeOverloaded Code = "overloaded"
	// CodeUnavailable: the server or Redis could not be reached, or is closed. Whether the call was
	// applied is unknown unless [SafeToRetry] says so; every call may be repeated without fear.
	CodeUnavailable Code = "unavailable"
	// CodeUnsupported: what Redis holds, or what was asked, is newer than this binary.
	CodeUnsupported Code = "unsupported"
	// CodeInternal: a bug, or data in Redis that no version wrote.
	CodeInternal Code = "internal"
)

// Sentinels: errors.Is(err, umbel.ErrNotFound) is true for every [*Error] with that code.
var (
	ErrInvalid       error = &Error{Code: CodeInvalid}
	ErrNotFound      error = &Error{Code: CodeNotFound}
	ErrAlreadyExists error = &Error{Code: CodeAlreadyExists}
	ErrLimit         error = &Error{Code: CodeLimit}
	ErrConflict      error = &Error{Code: CodeConflict}
	ErrFenced        error = &Error{Code: CodeFenced}
	ErrGap           error = &Error{Code: CodeGap}
	ErrStagingLost   error = &Error{Code: CodeStagingLost}
	ErrCursorLost    error = &Error{Code: CodeCursorLost}
	ErrOverloaded    error = &Error{Code: CodeOverloaded}
	ErrUnavailable   error = &Error{Code: CodeUnavailable}
	ErrUnsupported   error = &Error{Code: CodeUnsupported}
	ErrInternal      error = &Error{Code: CodeInternal}
)

// Error is the one error type of the API. Match its kind with errors.Is and a sentinel; read its details with
// errors.AsType[*umbel.Error].
type Error struct {
	Code       Code
	Op         string     // the call, for people: "start", "report"
	WorkflowID WorkflowID // whose, where known
	RunID      RunID      // the run that is meant; for CodeAlreadyExists the one that exists
	Field      string     // which value is wrong
	Value      string     // the value, shortened to 64 bytes and quoted
	Reason     string     // the rule that it breaks, or what happened and what to do
	NotApplied bool       // the call surely changed nothing, see SafeToRetry
	Err        error      // the cause
}

// Error says what was wrong with which value.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("umbel")
	if e.Op != "" {
		b.WriteString(": " + e.Op)
	}
	if e.WorkflowID != "" {
		b.WriteString(" " + strconv.Quote(string(e.WorkflowID)))
	}
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + " " + e.Value + " ")
	}
	switch {
	case e.Reason != "":
		b.WriteString(e.Reason)
	case e.Err == nil:
		b.WriteString(strings.ReplaceAll(string(e.Code), "_", " "))
	}
	if e.RunID != "" {
		b.WriteString(" (run " + string(e.RunID) + ")")
	}
	if e.Err != nil {
		if e.Reason != "" || e.RunID != "" {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of e's code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Op == "" && t.Field == "" && t.Err == nil
}

// CodeOf returns the code of the first [*Error] in err's chain, or "" if there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// SafeToRetry reports whether the call that returned err surely changed nothing. An error that it does not
// vouch for leaves the outcome unknown; since every call is idempotent, repeating it is right then too.
func SafeToRetry(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case CodeInvalid, CodeNotFound, CodeAlreadyExists, CodeLimit, CodeConflict, CodeFenced, CodeGap, CodeStagingLost,
		CodeCursorLost, CodeOverloaded, CodeUnsupported:
		return true
	case CodeUnavailable, CodeInternal:
	}
	return e.NotApplied // also of a code that a later version has
}

// Invalid returns a [CodeInvalid] error: the value of field breaks rule.
func Invalid(field, value, rule string) *Error {
	return &Error{Code: CodeInvalid, Field: field, Value: quote(value), Reason: rule, NotApplied: true}
}

// Limit returns a [CodeLimit] error: field has got of what, and limit is the most.
func Limit(field string, got int64, what string, limit int64) *Error {
	return &Error{
		Code: CodeLimit, Field: field, Value: strconv.FormatInt(got, 10),
		Reason: fmt.Sprintf("exceeds the limit of %d %s", limit, what), NotApplied: true,
	}
}

// ValidateDuration reports why d cannot be what field says: outside least to most, or no whole number of
// milliseconds, which is what Redis's clock is read in. The error has [CodeInvalid].
func ValidateDuration(field string, d, least, most time.Duration) error {
	switch {
	case d < least || d > most:
		return Invalid(field, d.String(), fmt.Sprintf("must be from %v to %v", least, most))
	case d%time.Millisecond != 0:
		return Invalid(field, d.String(), "must be a whole number of milliseconds")
	}
	return nil
}

func quote(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
