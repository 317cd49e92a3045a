//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/errkind"
)

// call asks the API server for something, in its turn, and counts that.
func call[T any](e *Executor, name string, do func() (T, error)) (T, error) {
	select {
	case e.turns <- struct{}{}:
	case <-e.ctx.Done():
		var none T
		return none, e.ctx.Err()
	}
	defer func() { <-e.turns }()
	e.calls.add(name)
	return do()
}

// refusal is why a cluster will not have what it was asked for, however often; empty: it may the next time. Exhausted: it is nobody's fault but that of a quota.
func refusal(err error) (why string, kind errkind.Kind) {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", errkind.Unknown
	case errkind.Of(err) == errkind.Invalid, errkind.Of(err) == errkind.NotFound: // our own
		return err.Error(), errkind.Of(err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return "the namespace's quota has no room for it: " + err.Error(), errkind.Exhausted
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err) && passes(err.Error()):
		return "", errkind.Unknown
	case apierrors.IsNotFound(err):
		return "the cluster lacks what it needs: " + err.Error(), errkind.NotFound
	case apierrors.IsForbidden(err):
		return "the cluster does not let it in: " + err.Error(), errkind.Denied
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return "the cluster refuses it: " + err.Error(), errkind.Invalid
	}
	return "", errkind.Unknown
}

// passes says whether a refusal is none of the subjob's: the operator's own rights, which somebody is changing, or a quota that has not been counted yet.
func passes(text string) bool {
	return strings.Contains(text, "User \"") && strings.Contains(text, " cannot ") || strings.Contains(text, "status unknown for quota")
}
