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

// keep stores what a subjob left under its name, and then reports its end.
func (r *run) keep(*view) (time.Duration, error) {
	quiet := r.saysStoring()
	err := r.stow(r.e.ctx)
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
	r.tell(&r.said.Result)
	return 0, nil
}

// saysStoring reports every Options.Report, until the returned function is called, that the subjob's output is being stored: a slow or
// busy store may take long.
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

// stow turns what the Pod wrote to its places into content-addressed objects and names them. Idempotent. A subjob that left nothing needs
// no store.
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

// unavailable marks an error as the store's, not the output's.
func unavailable(err error) error {
	if k := errkind.Of(err); err != nil && (k == errkind.NotFound || k == errkind.Invalid) {
		return errkind.Errorf(errkind.Unavailable, "%w", err)
	}
	return err
}

// clear finishes a settled subjob: names what was committed, drops the rest, and removes the Pod with what it owns. Every step is
// idempotent.
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

// dismissed removes the Pod unless it is gone.
func (r *run) dismissed(v *view) error {
	if (r.tried || v.pod != nil) && !v.gone {
		return r.dismiss(v)
	}
	return nil
}

// dismiss removes the Pod and all it owns. The deletion comes first and the finalizer's patch completes it: the other way round costs one
// more write and watch event.
func (r *run) dismiss(v *view) error {
	if v.pod == nil || v.pod.DeletionTimestamp == nil || !spoken(v.pod) { // a deleted Pod that is over is removed by its kubelet
		if err := r.remove(v, 0); err != nil {
			return err
		}
	}
	return r.release(v)
}

// release takes the finalizer off the Pod by a JSON patch, which costs the API server a third of a strategic merge patch. Such a patch
// names the finalizer by index, tests that it is still there, and is made anew if not.
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
		{"op": "test", "path": "/metadata/uid", "value": p.UID}, {"op": "test", "path": path, "value": cluster.Finalizer},
		{"op": "remove", "path": path},
		// resets managedFields: nobody needs them of a Pod that goes
		{"op": "replace", "path": "/metadata/managedFields", "value": []any{map[string]any{}}},
	})
	if err != nil {
		return err
	}
	return r.alter(v, types.JSONPatchType, data)
}

// publish names the output of a committed range. The checkpoint keeps its name until a later one is committed.
func (r *run) publish(ctx context.Context, committed job.Range) error {
	e, name := r.e, r.resultName()
	n, err := e.o.Store.ReadName(ctx, name)
	if errkind.Of(err) == errkind.NotFound {
		return nil // nothing was left, or this is a repetition
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

// dropCheckpoints removes a job's names below jobs/, except the newest checkpoint's and those that an unsettled subjob left or may start
// from.
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

// purge removes all names of a job's lives before a generation; 0: of all lives.
func (e *Executor) purge(m protocol.Message) {
	for e.unsettled(m.Job, m.Generation) { // a name set while the names are listed would stay for good
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
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) { // the store's part is done, and no retry gives rights
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

// unsettled reports whether a subjob of a job's lives before a generation (0: of any life) is not put away yet. Subjobs of another journal
// name nothing.
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
