package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/internal/wire"
)

// ended is the error of a call whose context ended.
func ended(ctx context.Context, op string, notApplied bool) *umbel.Error {
	return &umbel.Error{Code: umbel.CodeUnavailable, Op: op, Err: context.Cause(ctx), NotApplied: notApplied}
}

// translate turns what a call returned into the seam's error: the server's own word where it gave one, else what the
// transport, or something in between, has to say.
func translate(ctx context.Context, op, url string, wait time.Duration, m proto.Message, err error) *umbel.Error {
	if ce, ok := errors.AsType[*connect.Error](err); ok {
		if e, ok := wire.ToError(ce); ok && (e.Code != umbel.CodeUnavailable || ctx.Err() == nil) {
			return e
		}
	}
	if ctx.Err() != nil {
		return ended(ctx, op, false)
	}
	e := &umbel.Error{Code: umbel.CodeUnavailable, Op: op, Reason: "the server at " + url + " is not available", Err: plain(err)}
	if errors.Is(err, errSilent) {
		e.Reason = fmt.Sprintf("the server at %s did not answer within %v", url, wait+patience)
		return e
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		e.NotApplied = true
		return e
	}
	switch code := connect.CodeOf(err); code {
	case connect.CodeUnimplemented:
		e.Code = umbel.CodeUnsupported
		e.Reason = "the server at " + url + " does not know this call: it is no Umbel server, or one of an older version"
	case connect.CodeUnknown:
		unknown(e, url)
	case connect.CodeInvalidArgument:
		e.Code, e.Reason = umbel.CodeInvalid, "the server at "+url+" cannot read the request"
	case connect.CodeResourceExhausted, connect.CodeOutOfRange:
		e.Code, e.Reason = umbel.CodeLimit, "the request, or the reply, is larger than a call may be"
	case connect.CodeUnauthenticated, connect.CodePermissionDenied:
		e.Code, e.Reason = umbel.CodeUnsupported, "the server at "+url+", or a proxy before it, refuses the caller"
	case connect.CodeInternal:
		if bad := wire.InvalidText(m); bad != nil && !connect.IsWireError(err) {
			bad.Op = op
			return bad
		}
		if connect.IsWireError(err) {
			e.Code, e.Reason = umbel.CodeInternal, "the server at "+url+" failed"
		}
	default: // Unavailable, a deadline of the server: whether it was applied is unknown
	}
	return e
}

// unknown tells apart what Connect has one code for. It only says in words what the peer did.
func unknown(e *umbel.Error, url string) {
	switch text := e.Err.Error(); {
	case strings.HasPrefix(text, "invalid content-type"):
		e.Code, e.Reason = umbel.CodeUnsupported, "what answers at "+url+" is no Umbel server"
	case strings.HasPrefix(text, "413"):
		e.Code, e.Reason = umbel.CodeLimit, "a proxy before "+url+" refuses a request of this size: let it pass 16 MiB"
	}
}

// plain is what err says, without Connect's code, which ours replaces.
func plain(err error) error {
	if ce, ok := errors.AsType[*connect.Error](err); ok {
		return errors.New(ce.Message())
	}
	return err
}
