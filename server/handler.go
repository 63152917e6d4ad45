package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"

	"connectrpc.com/connect"

	"github.com/umbelhq/umbel"
	"github.com/umbelhq/umbel/api/gen/umbel/v1/umbelv1connect"
	"github.com/umbelhq/umbel/internal/wire"
)

// Bounds of a request's bytes, after decompression: the limits of the seam, room for names, and a third more for
// JSON's base64. What is larger is refused before it is decoded.
const (
	maxRowsBytes   = 16 << 20 // Stage, Commit: 1 MiB of inputs and 10,000 rows' names, or a row of 2 MiB
	maxReportBytes = 8 << 20  // Report: 4 MiB
	maxCallBytes   = 2 << 20  // all others: lists of names and tokens
)

// minCompressBytes is the least reply that is compressed for those who ask for it.
const minCompressBytes = 16 << 10

// NewHandler serves an engine over HTTP: the protocol of api/umbel/v1 as Connect (plain JSON over POST included), gRPC
// and gRPC-Web, and GET /healthz, which answers 200. Mount it at the root of a server that speaks HTTP/1.1, HTTP/2
// or both; [Server.Serve] is such a server. It is safe for concurrent use. A request's context ends the call. A call
// that panics is answered with [umbel.CodeInternal] and logged with its stack, by the Server's logger, or by
// slog.Default() for another engine.
func NewHandler(e umbel.Engine) http.Handler {
	log := slog.Default()
	if s, ok := e.(*Server); ok {
		log = s.log
	}
	opts := []connect.HandlerOption{
		connect.WithCompressMinBytes(minCompressBytes),
		connect.WithConditionalHandlerOptions(limits),
		connect.WithRecover(recovered(log)),
	}
	for _, c := range wire.Codecs() {
		opts = append(opts, connect.WithCodec(c))
	}
	services := http.NewServeMux()
	services.Handle(umbelv1connect.NewWorkflowServiceHandler(workflowService{e}, opts...))
	services.Handle(umbelv1connect.NewWorkerServiceHandler(workerService{e}, opts...))
	mux := http.NewServeMux()
	for _, path := range wire.Calls() { // of any other Connect would say in plain text that there is none
		mux.Handle(path, services)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, connect.CodeUnimplemented, fmt.Sprintf("no such call %q; calls are POST /umbel.v1.WorkflowService/… and /umbel.v1.WorkerService/…", r.URL.Path))
	})
	return handOver(checkForm(mux))
}

func limits(spec connect.Spec) []connect.HandlerOption {
	most := maxCallBytes
	switch spec.Procedure {
	case umbelv1connect.WorkflowServiceStageProcedure, umbelv1connect.WorkflowServiceCommitProcedure:
		most = maxRowsBytes
	case umbelv1connect.WorkerServiceReportProcedure:
		most = maxReportBytes
	}
	return []connect.HandlerOption{connect.WithReadMaxBytes(most)}
}

// recovered answers a call that panicked: a bug, which must not end the server.
func recovered(log *slog.Logger) func(context.Context, connect.Spec, http.Header, any) error {
	return func(ctx context.Context, spec connect.Spec, _ http.Header, p any) error {
		log.ErrorContext(ctx, "a call panicked", "procedure", spec.Procedure, "err", fmt.Sprint(p), "stack", string(debug.Stack()))
		return wire.Error(&umbel.Error{Code: umbel.CodeInternal, Op: spec.Procedure, Reason: "the call panicked; the server's log says more"})
	}
}

// checkForm explains what Connect refuses without a word: a call that is no POST, or one whose content type is none of
// its own.
func checkForm(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasPrefix(r.URL.Path, "/umbel."):
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			refuse(w, http.StatusMethodNotAllowed, connect.CodeInvalidArgument, fmt.Sprintf("%s %s: calls are made with POST", r.Method, r.URL.Path))
			return
		default:
			if t := r.Header.Get("Content-Type"); !known(t) {
				refuse(w, http.StatusUnsupportedMediaType, connect.CodeInvalidArgument,
					fmt.Sprintf("Content-Type %q must be application/json or application/proto", t))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// known reports whether Connect takes a content type.
func known(contentType string) bool {
	t, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch t {
	case "application/json":
		return len(params) == 0 || len(params) == 1 && strings.EqualFold(params["charset"], "utf-8")
	case "application/proto", "application/grpc", "application/grpc+proto", "application/grpc+json",
		"application/grpc-web", "application/grpc-web+proto", "application/grpc-web+json":
		return len(params) == 0
	}
	return false
}

// refuse answers what never becomes a call, in the form of Connect's errors.
func refuse(w http.ResponseWriter, status int, code connect.Code, message string) {
	body, err := json.Marshal(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{code.String(), message})
	if err != nil {
		body = []byte(`{"code":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// answer decodes a request, makes the call, and encodes its reply.
func answer[Req, Rep, MReq, MRep any](
	ctx context.Context, m MReq, decode func(MReq) (Req, error), call func(context.Context, Req) (Rep, error), encode func(Rep) MRep,
) (MRep, error) {
	var none MRep
	r, err := decode(m)
	if err != nil {
		return none, wire.Error(err)
	}
	reply, err := call(ctx, r)
	if err != nil {
		return none, wire.Error(err)
	}
	return encode(reply), nil
}
