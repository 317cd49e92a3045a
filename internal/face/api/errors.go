package api

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/core/errkind"
)

// Code is the RPC code that says what an error kind says: what a program should do about it.
func Code(k errkind.Kind) connect.Code {
	switch k {
	case errkind.Invalid:
		return connect.CodeInvalidArgument
	case errkind.NotFound:
		return connect.CodeNotFound
	case errkind.Exists:
		return connect.CodeAlreadyExists
	case errkind.Conflict:
		return connect.CodeAborted
	case errkind.Denied:
		return connect.CodePermissionDenied
	case errkind.Exhausted:
		return connect.CodeResourceExhausted
	case errkind.Unavailable:
		return connect.CodeUnavailable
	case errkind.Unsupported:
		return connect.CodeUnimplemented
	case errkind.Corrupt:
		return connect.CodeDataLoss
	default:
		return connect.CodeInternal
	}
}

// Kind is the error kind of what a client got; Unknown for a code that this daemon never sends for a reason of its own.
func Kind(err error) errkind.Kind {
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		return errkind.Invalid
	case connect.CodeNotFound:
		return errkind.NotFound
	case connect.CodeAlreadyExists:
		return errkind.Exists
	case connect.CodeAborted, connect.CodeFailedPrecondition:
		return errkind.Conflict
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		return errkind.Denied
	case connect.CodeResourceExhausted:
		return errkind.Exhausted
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled:
		return errkind.Unavailable
	case connect.CodeUnimplemented:
		return errkind.Unsupported
	case connect.CodeDataLoss:
		return errkind.Corrupt
	default:
		return errkind.Unknown
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
