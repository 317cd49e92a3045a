package stream

import (
	"errors"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/edge/authority"
)

// removedMark is in the trailer of an answer to a machine that was removed: a code says no more than that it may not call.
const removedMark = "Sluice-Removed"

// MarkRemoved has the caller know that the answer is authority.ErrRemoved, if it is.
func MarkRemoved(e *connect.Error) *connect.Error {
	if errors.Is(e, authority.ErrRemoved) {
		e.Meta().Set(removedMark, "1")
	}
	return e
}

// SaysRemoved reports whether a head has answered that this machine was removed.
func SaysRemoved(err error) bool {
	var e *connect.Error
	return errors.As(err, &e) && connect.IsWireError(e) && e.Meta().Get(removedMark) != ""
}
