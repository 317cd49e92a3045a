package head

import (
	"context"
	"errors"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
)

// errnoTable has what the operating system of the head may say that callers look for with errors.Is. Names travel, as numbers differ from
// system to system.
var errnoTable = []struct {
	name string
	err  error
}{
	{"ENOSPC", unix.ENOSPC}, {"EDQUOT", unix.EDQUOT}, {"EACCES", unix.EACCES}, {"EPERM", unix.EPERM}, {"EROFS", unix.EROFS},
	{"EIO", unix.EIO}, {"ESTALE", unix.ESTALE}, {"ENOTCONN", unix.ENOTCONN}, {"EHOSTDOWN", unix.EHOSTDOWN}, {"ETIMEDOUT", unix.ETIMEDOUT},
	{"EMFILE", unix.EMFILE}, {"ENFILE", unix.ENFILE}, {"ENOMEM", unix.ENOMEM},
}

// codeOf is for those that look at calls from outside; the other side goes by the StoreFault.
var codeOf = map[errkind.Kind]connect.Code{
	errkind.Invalid: connect.CodeInvalidArgument, errkind.NotFound: connect.CodeNotFound, errkind.Exists: connect.CodeAlreadyExists,
	errkind.Conflict: connect.CodeAborted, errkind.Denied: connect.CodePermissionDenied, errkind.Exhausted: connect.CodeResourceExhausted,
	errkind.Unavailable: connect.CodeUnavailable, errkind.Unsupported: connect.CodeFailedPrecondition,
	errkind.Corrupt: connect.CodeDataLoss,
}

// mostText bounds the text of an error on the wire, in bytes: it is a header there.
const mostText = 4 << 10

// verdict is an error of the store as the caller gets it: calling again would get the same.
func verdict(err error) error {
	code, ok := codeOf[errkind.Of(err)]
	if !ok {
		code = connect.CodeUnknown
	}
	text := err.Error()
	answer := connect.NewError(code, errors.New(strings.ToValidUTF8(text[:min(len(text), mostText)], "")))
	fault := &pb.StoreFault{Kind: uint32(errkind.Of(err))}
	for _, e := range errnoTable {
		if errors.Is(err, e.err) {
			fault.Errno = e.name
			break
		}
	}
	if detail, failed := connect.NewErrorDetail(fault); failed == nil { // it is of a known type, so it does not fail
		answer.AddDetail(detail)
	}
	return answer
}

// passing is an error of the connection as the caller gets it: it calls again.
func passing(err error) error { return connect.NewError(connect.CodeUnavailable, err) }

// told is an error of the head's store on this side.
type told struct {
	text  string
	cause error // of errnoTable, nil if it is none of them
}

// Error implements error.
func (t *told) Error() string { return t.text }

// Unwrap implements what errors.Is asks.
func (t *told) Unwrap() error { return t.cause }

// heard is an error of a call with its kind. again: the connection failed, not the store, and the call may be repeated.
func heard(ctx context.Context, what string, err error) (_ error, again bool) {
	if ctx.Err() != nil {
		return errkind.Errorf(errkind.Unavailable, "%s: given up: %w", what, ctx.Err()), false
	}
	var answer *connect.Error
	if !errors.As(err, &answer) {
		return errkind.Errorf(errkind.Unavailable, "%s: %w: see that the head runs and can be reached", what, err), true
	}
	for _, d := range answer.Details() {
		if v, failed := d.Value(); failed == nil {
			if fault, ok := v.(*pb.StoreFault); ok {
				return ofFault(what, answer.Message(), fault), false
			}
		}
	}
	switch answer.Code() {
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		return errkind.Errorf(errkind.Denied, "%s: %w: see that this machine is still one of the cluster", what, err), false
	case connect.CodeUnimplemented:
		return errkind.Errorf(errkind.Unsupported, "%s: %w: the head has no store for machines: upgrade it", what, err), false
	case connect.CodeInvalidArgument, connect.CodeResourceExhausted:
		return errkind.Errorf(errkind.Unsupported, "%s: %w: the head does not take this call: upgrade the older side", what, err), false
	default:
		return errkind.Errorf(errkind.Unavailable, "%s: %w: see that the head runs and can be reached", what, err), true
	}
}

// ofFault is an error of the store with the kind that it had at the head. One of a later version is Unknown.
func ofFault(what, text string, fault *pb.StoreFault) error {
	t := &told{text: text}
	if i := slices.IndexFunc(errnoTable, func(e struct {
		name string
		err  error
	}) bool {
		return e.name == fault.GetErrno()
	}); i >= 0 {
		t.cause = errnoTable[i].err
	}
	kind := errkind.Unknown
	if k := fault.GetKind(); k <= uint32(errkind.Corrupt) {
		kind = errkind.Kind(k)
	}
	return errkind.Errorf(kind, "%s: at the head: %w", what, t)
}
