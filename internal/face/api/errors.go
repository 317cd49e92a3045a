package api

import (
	"context"
	"errors"
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

// Kind is the error kind of what a client got; Unknown for a code that this daemon never sends for a reason of its own.
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
