//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/errkind"
)

// api makes calls to the API server. Invariant: at most Options.Parallel at once, and each is counted by its kind.
type api struct {
	o     *Options
	ctx   context.Context // ends with the executor
	turns chan struct{}

	mu    sync.Mutex
	calls map[string]int64
}

// call makes a call when it has a turn.
func call[T any](a *api, name string, do func() (T, error)) (T, error) {
	select {
	case a.turns <- struct{}{}:
	case <-a.ctx.Done():
		var none T
		return none, a.ctx.Err()
	}
	defer func() { <-a.turns }()
	a.count(name)
	return do()
}

func (a *api) count(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[name]++
}

// refusal is why a cluster will refuse a request however often it is made; empty: a retry may succeed. Exhausted: for a quota, which is
// not the job's fault.
func refusal(err error) (why string, kind errkind.Kind) {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "", errkind.Unknown
	case errkind.Of(err) == errkind.Invalid, errkind.Of(err) == errkind.NotFound: // found by the executor itself
		return err.Error(), errkind.Of(err)
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return "the namespace's quota has no room for it: " + err.Error(), errkind.Exhausted
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err) && passes(err.Error()):
		return "", errkind.Unknown
	case apierrors.IsNotFound(err):
		return "the cluster lacks what it needs: " + err.Error(), errkind.NotFound
	case apierrors.IsForbidden(err):
		return "the cluster does not let it in: " + err.Error(), errkind.Denied
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsMethodNotSupported(err):
		return "the cluster refuses it: " + err.Error(), errkind.Invalid
	}
	return "", errkind.Unknown
}

// passes reports whether a refusal is not the subjob's: something to be fixed, or a quota whose usage is not counted yet.
func passes(text string) bool {
	return mends(text) || strings.Contains(text, "status unknown for quota")
}

// mends reports whether a refusal is for something the installation lacks and an administrator or controller may be about to add: the
// operator's rights, the PriorityClass, or a namespace's default account, which comes a moment after the namespace.
func mends(text string) bool {
	return strings.Contains(text, "User \"") && strings.Contains(text, " cannot ") ||
		strings.Contains(text, "no PriorityClass with name ") || strings.Contains(text, "error looking up service account ")
}
