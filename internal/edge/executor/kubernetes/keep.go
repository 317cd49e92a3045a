//go:build kubernetes

package kubernetes

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// storeAndReport stores what a subjob left under its name, and then reports its end.
func (r *run) storeAndReport(*view) (time.Duration, error) {
	quiet := executor.Every(r.e.o.Report, func() { r.report(true) })
	err := r.e.shelf.stow(r.e.ctx, r.rec, r.said)
	quiet()
	switch errkind.Of(err) {
	case errkind.NotFound, errkind.Invalid: // not what its Pod said it left: no retry will help
		res := &r.said.Result
		res.Outcome, res.Progress, res.Checkpoint = job.NodeFailed, r.rec.Range.From, false
		res.Detail = "what it has left is not in the store, and does not count: " + err.Error() + "; " + res.Detail
		*r.said = pod.Said{Result: *res}
		err = nil
	default:
	}
	if err != nil { // the report keeps its home waiting until the next try
		r.report(true)
		return r.e.o.Report, err
	}
	r.told.Began(r.said.Result.Start)
	r.told.Ended(&r.said.Result)
	return 0, nil
}

// clear finishes a settled subjob: names what was committed, drops the rest, and removes the Pod with what it owns. Every step is
// idempotent.
func (r *run) clear(v *view) error {
	m := v.want.settle
	s := m.Body.(*protocol.Settlement)
	if !r.stranger() {
		if err := r.e.shelf.settle(r.e.ctx, r.rec, s, func(t job.Token) bool { return r.e.needed(t, r) }); err != nil {
			return err
		}
	}
	if (r.pod.tried || v.pod != nil) && !v.gone {
		if err := r.pod.dismiss(v); err != nil {
			return err
		}
	}
	r.e.forget(r)
	if !r.stranger() {
		r.e.box.Post(protocol.Message{Kind: protocol.Settled, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
	}
	return nil
}

// purge removes all names of a job's lives before a generation; 0: of all lives.
func (e *Executor) purge(m protocol.Message) {
	left := func(r *run) bool {
		return r.rec.Job == m.Job && !r.stranger() && (m.Generation == 0 || r.rec.Generation.Number() < m.Generation.Number())
	}
	for e.unsettled(left) { // a name set while the names are listed would stay for good
		if executor.Pause(e.ctx.Done(), firstPause) {
			return
		}
	}
	for pause := firstPause; e.ctx.Err() == nil; pause = min(2*pause, lastPause) {
		err := e.shelf.at(e.ctx, lengthy, func(ctx context.Context) error { return e.shelf.forget(ctx, m.Job, m.Generation) })
		if err == nil {
			err = e.keys.drop(e.ctx, e.o.namespace(&record{Job: m.Job}))
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) { // the store's part is done, and no retry gives rights
			e.o.Log.Warn("the keys of a namespace without subjobs are left there", "secret", e.o.keysName(), "err", err)
			err = nil
		}
		if err == nil {
			e.box.Post(protocol.Message{Kind: protocol.Purged, From: m.To, To: m.From, Job: m.Job, Generation: m.Generation})
			return
		}
		e.o.Log.Warn("removing what is stored of a job; trying again", "job", string(m.Job), "err", err)
		executor.Pause(e.ctx.Done(), pause)
	}
}
