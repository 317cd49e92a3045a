package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/core/errkind"
)

// codes are the RPC codes that say what an error kind says: what a program should do about it.
var codes = [...]connect.Code{
	errkind.Unknown: connect.CodeInternal, errkind.Invalid: connect.CodeInvalidArgument, errkind.NotFound: connect.CodeNotFound,
	errkind.Exists: connect.CodeAlreadyExists, errkind.Conflict: connect.CodeAborted, errkind.Denied: connect.CodePermissionDenied,
	errkind.Exhausted: connect.CodeResourceExhausted, errkind.Unavailable: connect.CodeUnavailable,
	errkind.Unsupported: connect.CodeUnimplemented, errkind.Corrupt: connect.CodeDataLoss,
}

// Code is the RPC code of an error kind.
func Code(k errkind.Kind) connect.Code {
	if int(k) < len(codes) {
		return codes[k]
	}
	return connect.CodeInternal
}

// Kind is the error kind behind the code that a client received: Unknown for CodeInternal, and for codes that stand for no kind.
func Kind(err error) errkind.Kind {
	switch code := connect.CodeOf(err); code {
	case connect.CodeOutOfRange:
		return errkind.Invalid
	case connect.CodeFailedPrecondition:
		return errkind.Conflict
	case connect.CodeUnauthenticated:
		return errkind.Denied
	case connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return errkind.Unavailable
	default:
		return errkind.Kind(max(0, slices.Index(codes[:], code)))
	}
}

// wire turns an error of the service into the one that is sent: its whole message under the code of its kind.
func wire(err error) error {
	var sent *connect.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sent):
		return err
	case errkind.Of(err) != errkind.Unknown:
		return connect.NewError(Code(errkind.Of(err)), err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	default:
		return connect.NewError(connect.CodeInternal, err)
	}
}

// logging logs calls that failed for a reason of the daemon's own. Callers' mistakes are reported to the caller.
type logging struct{ log *slog.Logger }

// WrapUnary is part of connect.Interceptor.
func (l logging) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		resp, err := next(ctx, req)
		return resp, l.note(ctx, req.Spec().Procedure, err)
	}
}

// WrapStreamingClient is part of connect.Interceptor; the server has none.
func (l logging) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is part of connect.Interceptor.
func (l logging) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return l.note(ctx, conn.Spec().Procedure, next(ctx, conn))
	}
}

// note logs err if it is ours, says Unavailable for a call that ended because the daemon stops, and Unauthenticated for one whose token has
// come to an end.
func (l logging) note(ctx context.Context, procedure string, err error) error {
	if err == nil {
		return nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStopping):
		return connect.NewError(connect.CodeUnavailable, errStopping)
	case errkind.Of(cause) == errkind.Denied: // the caller's token is good no more
		return connect.NewError(connect.CodeUnauthenticated, cause)
	}
	switch connect.CodeOf(err) {
	case connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss:
		l.log.Error("call failed", "procedure", procedure, "error", err)
	default:
	}
	return err
}

// recovered keeps the daemon alive when a call panics: the state it serves is owned elsewhere.
func recovered(log *slog.Logger) func(context.Context, connect.Spec, http.Header, any) error {
	return func(_ context.Context, spec connect.Spec, _ http.Header, what any) error {
		log.Error("call panicked", "procedure", spec.Procedure, "panic", what)
		return connect.NewError(connect.CodeInternal, fmt.Errorf("internal error in %s, which is a bug; the daemon's log says more",
			spec.Procedure))
	}
}

// errStopping ends long calls when the daemon stops.
var errStopping = errkind.Errorf(errkind.Unavailable, "the daemon is stopping: ask again when it is back")
