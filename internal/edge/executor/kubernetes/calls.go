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

const (
	// storeCalls is how many calls to the store are under way at once: an operator that comes back may find tens of thousands of subjobs.
	storeCalls = 64
	// tidying bounds a turn for the names and places of one subjob; lengthy one in which all that it has left is read (5 GiB at 3 MiB a second), or all names of a job. A call
	// that hangs so gives its turn back to those behind it.
	tidying = time.Minute
	lengthy = 30 * time.Minute
)

// atStore does something with the store, in its turn, and gives it up once it takes longer than most. Whoever is at it waits for nothing else, the API server least of all, and takes no
// second turn. The wait for the turn is the caller's to bound, by ctx.
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

// patience is how long a cluster may refuse a subjob for what somebody may be mending.
const patience = 30 * time.Second

// refused is refusal, and after patience also what may pass and is not the subjob's: its slice is of more use to jobs that are let in.
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

// passes says whether a refusal is none of the subjob's: what somebody may be mending, or a quota that has not been counted yet.
func passes(text string) bool {
	return mends(text) || strings.Contains(text, "status unknown for quota")
}

// mends says whether a refusal is of what the operator and the cluster lack, and somebody may be about to give: the operator's own rights, the class of all subjobs' Pods, or a
// namespace's default account, which its controller makes a moment after the namespace.
func mends(text string) bool {
	return strings.Contains(text, "User \"") && strings.Contains(text, " cannot ") ||
		strings.Contains(text, "no PriorityClass with name ") || strings.Contains(text, "error looking up service account ")
}
