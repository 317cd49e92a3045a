//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// keep puts what a subjob has left under its name in the store, and then tells how it ended.
func (r *run) keep(*view) (time.Duration, error) {
	quiet := r.saysStoring()
	err := r.stow(r.e.ctx)
	quiet()
	switch errkind.Of(err) {
	case errkind.NotFound, errkind.Invalid: // not what its Pod has said: it will be no better the next time
		res := &r.said.Result
		res.Outcome, res.Progress, res.Checkpoint = job.NodeFailed, r.rec.Range.From, false
		res.Detail = "what it has left is not in the store, and does not count: " + err.Error() + "; " + res.Detail
		*r.said = pod.Said{Result: *res}
		err = nil
	default:
	}
	if err != nil { // its home waits for as long as this is said
		r.report(true)
		return r.e.o.Report, err
	}
	r.tell(&r.said.Result)
	return 0, nil
}

// saysStoring tells the home that what is left is being stored, every Report until what it returns is called: with a store that is slow, or that many wait for, it may be long.
func (r *run) saysStoring() (quiet func()) {
	done := make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		again := time.NewTicker(r.e.o.Report)
		defer again.Stop()
		for {
			select {
			case <-again.C:
				r.report(true)
			case <-done:
				return
			}
		}
	})
	return func() { close(done); saying.Wait() }
}

// stow makes objects of what lies at the subjob's places, and names them. It may be repeated. Whoever has left nothing waits for no store.
func (r *run) stow(ctx context.Context) error {
	if r.said.Output == nil && r.said.Checkpoint == nil || r.stranger() {
		return nil
	}
	return r.e.atStore(ctx, lengthy, r.adopt)
}

func (r *run) adopt(ctx context.Context) error {
	name := r.resultName()
	all := map[string]*pod.Left{outputRole: r.said.Output, checkpointRole: r.said.Checkpoint}
	there, err := r.e.o.Store.ReadName(ctx, name)
	for role, d := range there.Refs {
		if left := all[role]; err == nil && (left == nil || left.Digest != d) {
			return errkind.Errorf(errkind.Invalid, "%s is in the store already, and names %s %s, which its Pod has not left", name, role, d)
		}
	}
	if k := errkind.Of(err); err == nil || k != errkind.NotFound && k != errkind.Corrupt {
		return unavailable(err)
	}
	refs := store.Refs{}
	for role, left := range all {
		if left == nil {
			continue
		}
		if _, err := r.e.lender.Adopt(ctx, r.place(role), left.Digest); err != nil {
			return err
		}
		refs[role] = left.Digest
	}
	return unavailable(store.Name(ctx, r.e.o.Store, name, refs))
}

// unavailable marks an error of the store that says nothing of what is to be stored.
func unavailable(err error) error {
	if k := errkind.Of(err); err != nil && (k == errkind.NotFound || k == errkind.Invalid) {
		return errkind.Errorf(errkind.Unavailable, "%w", err)
	}
	return err
}

// clear puts a subjob away: what counts to its place, the rest nowhere, and the Pod with all that goes with it. Every step may be done again.
func (r *run) clear(v *view) error {
	m := v.want.settle
	s := m.Body.(*protocol.Settlement)
	if r.stranger() {
		if err := r.dismissed(v); err != nil {
			return err
		}
		r.e.forget(r, v.result)
		return nil
	}
	err := r.e.atStore(r.e.ctx, tidying, func(ctx context.Context) (err error) {
		if s.Committed && !s.Range.Empty() {
			err = r.publish(ctx, s.Range)
		} else {
			err = r.e.o.Store.Unname(ctx, r.resultName())
		}
		for _, role := range []string{outputRole, checkpointRole, progressPlace} {
			if err == nil {
				err = r.e.lender.Drop(ctx, r.place(role))
			}
		}
		return err
	})
	if err == nil {
		err = r.dismissed(v)
	}
	if err != nil {
		return err
	}
	r.e.forget(r, v.result)
	r.e.box.Post(protocol.Message{Kind: protocol.Settled, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
	return nil
}

// dismissed sees to it that there is no Pod any more.
func (r *run) dismissed(v *view) error {
	if (r.tried || v.pod != nil) && !v.gone {
		return r.dismiss(v)
	}
	return nil
}

// dismiss has the Pod go: nobody needs it any more. What it owns goes with it. The deletion comes first, for then it is the patch that removes it: the other way round
// there would be a write and an event more.
func (r *run) dismiss(v *view) error {
	if v.pod == nil || v.pod.DeletionTimestamp == nil || !spoken(v.pod) { // of a deleted Pod that is over its kubelet does that
		if err := r.remove(v, 0); err != nil {
			return err
		}
	}
	return r.release(v)
}

// release takes the finalizer off the Pod. It is a JSON patch, since a strategic one costs the API server three times as much of its time; so it says which finalizer it
// found where, and is made anew where that is no longer so.
func (r *run) release(v *view) error {
	p := v.pod
	if p == nil {
		p = r.made
	}
	if p == nil {
		return nil
	}
	at := slices.Index(p.Finalizers, cluster.Finalizer)
	if at < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": p.UID}, {"op": "test", "path": path, "value": cluster.Finalizer}, {"op": "remove", "path": path},
		{"op": "replace", "path": "/metadata/managedFields", "value": []any{map[string]any{}}}, // who wrote what nobody has to work out of a Pod that goes
	})
	if err != nil {
		return err
	}
	return r.alter(v, types.JSONPatchType, data)
}

// publish gives what was committed the name of its range. The checkpoint keeps its own until a later one is committed.
func (r *run) publish(ctx context.Context, committed job.Range) error {
	e, name := r.e, r.resultName()
	n, err := e.o.Store.ReadName(ctx, name)
	if errkind.Of(err) == errkind.NotFound {
		return nil // it left nothing, or this was done before
	}
	if err != nil {
		return err
	}
	if d := n.Refs[outputRole]; d != "" {
		if err = store.Name(ctx, e.o.Store, r.outputName(committed), store.Refs{outputRole: d}); err != nil {
			return err
		}
	}
	d := n.Refs[checkpointRole]
	if d == "" {
		return e.o.Store.Unname(ctx, name)
	}
	if n.Refs[outputRole] != "" {
		if err = store.Name(ctx, e.o.Store, name, store.Refs{checkpointRole: d}); err != nil {
			return err
		}
	}
	return e.dropCheckpoints(ctx, r, name)
}

// dropCheckpoints takes the names of a job's checkpoints that are older than that of a subjob, but those that another one still reads.
func (e *Executor) dropCheckpoints(ctx context.Context, r *run, newest string) error {
	var old []string
	err := e.o.Store.Names(ctx, e.jobNames(r.rec.Job), func(n store.Named) error {
		if t, bad := job.ParseToken(path.Base(n.Name)); bad == nil && n.Name != newest && !e.needed(t, r) {
			old = append(old, n.Name)
		}
		return nil
	})
	for _, name := range old {
		err = errors.Join(err, e.o.Store.Unname(ctx, name))
	}
	return err
}

// purge takes all names of what lives of a job before a generation have left; 0: of all of them.
func (e *Executor) purge(m protocol.Message) {
	for e.unsettled(m.Job, m.Generation) { // a name that is set while names are listed would be left for good
		select {
		case <-time.After(firstPause):
		case <-e.ctx.Done():
			return
		}
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := e.atStore(e.ctx, lengthy, func(ctx context.Context) error { return e.unname(ctx, m.Job, m.Generation) })
		if err == nil {
			err = e.dropKeys(e.ctx, e.namespace(&record{Job: m.Job}))
		}
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) { // what is stored is gone
			e.o.Log.Warn("the keys of a namespace without subjobs are left there", "secret", e.keysName(), "err", err)
			err = nil
		}
		if err == nil {
			e.box.Post(protocol.Message{Kind: protocol.Purged, From: m.To, To: m.From, Job: m.Job, Generation: m.Generation})
			return
		}
		e.o.Log.Warn("removing what is stored of a job; trying again", "job", string(m.Job), "err", err)
		select {
		case <-time.After(pause):
		case <-e.ctx.Done():
			return
		}
	}
}

// unsettled says whether a subjob of a job is not put away yet, of its lives before a generation; 0: of any. Subjobs of another journal name nothing.
func (e *Executor) unsettled(j job.ID, before job.Generation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r.rec.Job == j && !r.stranger() && (before == 0 || r.rec.Generation.Number() < before.Number()) {
			return true
		}
	}
	return false
}

func (e *Executor) unname(ctx context.Context, j job.ID, before job.Generation) error {
	var all []string
	collect := func(n store.Named) error {
		if before == 0 || lifeOf(n.Name) < before.Number() {
			all = append(all, n.Name)
		}
		return nil
	}
	err := errors.Join(e.o.Store.Names(ctx, e.jobNames(j), collect), e.o.Store.Names(ctx, e.outputNames(j), collect))
	for _, name := range all {
		if err == nil {
			err = e.o.Store.Unname(ctx, name)
		}
	}
	return err
}
