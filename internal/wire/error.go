package wire

import (
	"errors"

	"connectrpc.com/connect"

	"github.com/umbelhq/umbel"
	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

// codes says which of Connect's codes, and so which HTTP status, each of ours travels under. Ours are more: the
// detail has them.
var codes = map[umbel.Code]connect.Code{
	umbel.CodeInvalid:       connect.CodeInvalidArgument,
	umbel.CodeNotFound:      connect.CodeNotFound,
	umbel.CodeAlreadyExists: connect.CodeAlreadyExists,
	umbel.CodeLimit:         connect.CodeOutOfRange, // not ResourceExhausted: to send it again does not help
	umbel.CodeConflict:      connect.CodeAborted,
	umbel.CodeFenced:        connect.CodeFailedPrecondition,
	umbel.CodeGap:           connect.CodeFailedPrecondition,
	umbel.CodeStagingLost:   connect.CodeFailedPrecondition,
	umbel.CodeCursorLost:    connect.CodeFailedPrecondition,
	umbel.CodeOverloaded:    connect.CodeResourceExhausted,
	umbel.CodeUnavailable:   connect.CodeUnavailable,
	umbel.CodeUnsupported:   connect.CodeUnimplemented,
	umbel.CodeInternal:      connect.CodeInternal,
}

// Error encodes err for the wire; nil stays nil. What is no *umbel.Error is internal.
func Error(err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*umbel.Error](err)
	if !ok {
		e = &umbel.Error{Code: umbel.CodeInternal, Err: err}
	}
	code, ok := codes[e.Code]
	if !ok {
		code = connect.CodeUnknown
	}
	out := connect.NewError(code, errors.New(valid(e.Error())))
	if d, err := connect.NewErrorDetail(detail(e)); err == nil {
		out.AddDetail(d)
	}
	return out
}

// maxNested bounds how many errors may wrap one another.
const maxNested = 8

func detail(e *umbel.Error) *v1.Error { return nested(e, maxNested) }

func nested(e *umbel.Error, depth int) *v1.Error {
	if e == nil {
		return nil
	}
	m := &v1.Error{
		Code: string(e.Code), Op: valid(e.Op), WorkflowId: valid(string(e.WorkflowID)), RunId: valid(string(e.RunID)),
		Field: valid(e.Field), Value: valid(e.Value), Reason: valid(e.Reason), NotApplied: e.NotApplied,
	}
	if e.Err == nil {
		return m
	}
	if cause, ok := e.Err.(*umbel.Error); ok && depth > 0 { //nolint:errorlint // walked link by link
		m.Cause = nested(cause, depth-1)
	} else {
		m.CauseText = valid(e.Err.Error())
	}
	return m
}

// toError decodes a detail; nil stays nil.
func toError(m *v1.Error) *umbel.Error {
	if m == nil {
		return nil
	}
	return unnested(m, maxNested)
}

func unnested(m *v1.Error, depth int) *umbel.Error {
	e := &umbel.Error{
		Code: umbel.Code(m.Code), Op: m.Op, WorkflowID: umbel.WorkflowID(m.WorkflowId), RunID: umbel.RunID(m.RunId),
		Field: m.Field, Value: m.Value, Reason: m.Reason, NotApplied: m.NotApplied,
	}
	switch {
	case m.Cause != nil && depth > 0:
		e.Err = unnested(m.Cause, depth-1)
	case m.CauseText != "":
		e.Err = errors.New(m.CauseText)
	}
	return e
}

// ToError decodes an error that a server answered with. ok is false if it carries no detail of ours: then it comes
// from something in between, or from no server of ours.
func ToError(err *connect.Error) (_ *umbel.Error, ok bool) {
	for _, d := range err.Details() {
		v, bad := d.Value()
		if bad != nil {
			continue
		}
		if m, isOurs := v.(*v1.Error); isOurs && m.Code != "" {
			return toError(m), true
		}
	}
	return nil, false
}
