//go:build kubernetes

package kubernetes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/cluster"
)

// When a journal is lost the next one issues the same tokens again, from 1-1. So a Pod names the journal of its token, and one of another
// journal is a stranger under our name: it is stopped at once, what it leaves does not count, and nothing is reported. The store is not
// touched, since labels can be forged and another cluster may keep its objects there under that name.

// stranger reports whether a subjob is of another journal.
func (r *run) stranger() bool { return r.rec.Journal != r.e.o.Journal }

// key is its Pod's.
func (r *run) key() string { return r.e.namespace(&r.rec) + "/" + r.name() }

// meet handles a Pod without a subjob: one of our journal is swept, a stranger's ended and removed. A deleted one without our finalizer
// needs nothing.
func (e *Executor) meet(p *corev1.Pod) {
	if p.Labels[cluster.LabelJournal] == e.o.Journal {
		e.sweep(p)
		return
	}
	if p.DeletionTimestamp != nil && !slices.Contains(p.Finalizers, cluster.Finalizer) {
		return
	}
	rec, err := e.recordOf(p)
	if err != nil {
		return // Find reports it
	}
	r := newRun(e, rec)
	r.tried, r.whole, r.made = true, true, p
	r.seen.pod, r.ordered = p, orderOf(p, &rec)
	o := &r.seen.want.order
	o.End, o.Stop, o.Now, o.Why = r.ordered.End, true, true, "it is of another journal of this operator"
	r.seen.want.settle = &protocol.Message{Kind: protocol.Settle, Token: rec.Token, Job: rec.Job, Body: &protocol.Settlement{}}
	if !e.o.Made.IsZero() && !p.CreationTimestamp.Time.Before(e.o.Made) { // leftovers of a lost journal are older than ours
		e.warned.Do(func() {
			e.o.Log.Error("another operator of this name is at work in this cluster: give each a name of its own; its Pods are left alone",
				"pod", r.key(), "journal", rec.Journal)
		})
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || r.key() != keyOf(p) || e.strangers[r.key()] != nil {
		return
	}
	e.o.Log.Warn("a Pod is of another journal of this operator, and is ended", "pod", r.key(), "journal", rec.Journal)
	e.strangers[r.key()] = r
	e.loops.Go(r.loop)
}

// sweep removes a Pod of ours without a subjob: the answer to its creation was lost, and its subjob was stopped and reported as never
// begun. The store is not touched. A late event of a settled subjob's Pod may come here too, and costs a call.
func (e *Executor) sweep(p *corev1.Pod) {
	rec, err := e.recordOf(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || !e.looked || e.closed || p.DeletionTimestamp != nil || e.swept[p.UID] {
		return
	}
	r := newRun(e, rec)
	if r.key() != keyOf(p) || e.runs[rec.Token] != nil {
		return
	}
	r.made, e.swept[p.UID] = p, true
	e.loops.Go(func() {
		for pause := firstPause; e.ctx.Err() == nil; pause = min(2*pause, lastPause) {
			if err := r.dismiss(&view{pod: p}); err == nil {
				break
			}
			select {
			case <-time.After(pause):
			case <-e.ctx.Done():
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.swept, p.UID)
	})
}
