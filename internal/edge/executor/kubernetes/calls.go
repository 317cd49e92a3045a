//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// call makes a call to the API server when it has a turn, and counts it.
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

const (
	// storeCalls bounds concurrent calls to the store: after a restart there may be tens of thousands of subjobs to examine.
	storeCalls = 64
	// tidying bounds a turn for names and places of one subjob; lengthy bounds one that reads all it left (5 GiB at 3 MiB/s) or removes
	// all names of a job. A call that hangs thus gives its turn back.
	tidying = time.Minute
	lengthy = 30 * time.Minute
)

// atStore calls the store when it has a turn, and cancels the call after most. Within a turn do must not take another one, nor wait for
// the API server: turns would deadlock. The wait for the turn is bounded by ctx alone.
func (e *Executor) atStore(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	select {
	case e.shelves <- struct{}{}:
	case <-ctx.Done():
		return errkind.Errorf(errkind.Unavailable, "waiting for a turn at the store: %w", ctx.Err())
	}
	defer func() { <-e.shelves }()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return do(ctx)
}

// patience is how long a cluster may refuse a subjob for something that an administrator may fix.
const patience = 30 * time.Second

// refused is refusal, and after patience includes what an administrator may fix (mends), since the slice could serve other jobs. An
// uncounted quota is always retried.
func (r *run) refused(err error, now quantity.Instant) (why string, kind errkind.Kind) {
	if why, kind = refusal(err); why != "" || !apierrors.IsForbidden(err) || !mends(err.Error()) {
		return why, kind
	}
	if r.denied == 0 {
		r.denied = now
	}
	if now < r.denied.Add(patience) {
		return "", errkind.Unknown
	}
	return fmt.Sprintf("the cluster has not let it in for %v: %v", patience, err), errkind.Exhausted
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
