package process

import (
	"context"
	"errors"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// findDamaged ends a subjob that was found in a damaged run directory. It waits for a living supervisor to notice that its processes have
// ended and to release the lock.
func (e *Executor) findDamaged(ctx context.Context, r *run, why error) (*executor.Found, error) {
	e.o.Logger.Error("a run directory is damaged: its subjob is ended", "subjob", r.token.String(), "err", why)
	r.after.Damage, r.lease.Token = why.Error(), r.token
	l := &r.lease
	r.start = e.startOf(l)
	res, err := job.Result{}, r.after.EndRest(r.after.Noted())
	for until := time.Now().Add(aftermath.Patience); err == nil; time.Sleep(10 * time.Millisecond) {
		if res, err = r.after.Ended(); !shim.Held(err) || time.Now().After(until) || ctx.Err() != nil {
			break
		}
		err = nil
	}
	f := &executor.Found{Found: protocol.Found{Token: r.token, Job: l.Job, Slice: e.o.Present(l.Slice)}, Witness: l.Witness}
	var remain aftermath.Remain
	switch {
	case err == nil:
		r.result, f.Result, f.Started = &res, &res, res.Start
	case errors.As(err, &remain):
		r.remains(remain)
		fallthrough
	case shim.Held(err):
		f.Stuck = true
		e.tasks.Go(r.conclude)
	default:
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs[r.token] = r
	return f, nil
}
