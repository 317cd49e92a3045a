//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// create makes the Pod and then its claim, which names the Pod as its owner so that it is never left behind. Objects that exist already
// are from an earlier try.
func (r *run) create(v *view, now quantity.Instant) error {
	if v.want.order.Stop || now >= v.want.order.End {
		return r.withdraw(v, now)
	}
	if r.made == nil {
		if err := r.createPod(v, now); err != nil || r.made == nil {
			return err
		}
	}
	err := r.createClaim()
	if why, kind := r.refused(err, now); why != "" {
		r.giveUp(kind, why)
		return nil
	}
	r.whole, r.proven = err == nil, now
	return err
}

// withdraw handles a subjob that is not to start any more. Its Pod may exist though the answer to its creation was lost.
func (r *run) withdraw(v *view, now quantity.Instant) error {
	if !r.tried {
		r.said = r.never(v, now)
		return nil
	}
	if r.made == nil {
		p, err := r.get()
		if apierrors.IsNotFound(err) {
			r.said = r.never(v, now)
			return nil
		}
		if err != nil {
			return err
		}
		r.made = p
	}
	r.whole = true // and obey deletes it
	return nil
}

func (r *run) get() (*corev1.Pod, error) {
	return call(r.e, "get pod", func() (*corev1.Pod, error) {
		return r.e.o.Client.CoreV1().Pods(r.e.namespace(&r.rec)).Get(r.e.ctx, r.name(), metav1.GetOptions{})
	})
}

func (r *run) createPod(v *view, now quantity.Instant) error {
	if err := r.prepare(); err != nil {
		o := job.StartFailed
		if errkind.Of(err) != errkind.Invalid {
			o = job.NodeFailed
		}
		r.said = r.end(o, err.Error(), now)
		return nil
	}
	sealed, err := r.seal(now)
	if why, kind := r.refused(err, now); why != "" {
		if r.giveUp(kind, why); r.tried { // an earlier try may have made it after all
			r.whole = false
			return r.withdraw(v, now)
		}
		r.said = r.never(v, now)
		return nil
	}
	if err != nil {
		return err
	}
	want, err := r.makePod(sealed, now)
	if err != nil {
		return err
	}
	again := r.tried
	r.tried = true
	p, err := call(r.e, "create pod", func() (*corev1.Pod, error) {
		return r.e.o.Client.CoreV1().Pods(want.Namespace).Create(r.e.ctx, want, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		if p, err = r.get(); err == nil && !r.isOurs(p) {
			r.said = r.end(job.NodeFailed, "there is a Pod "+p.Namespace+"/"+p.Name+" that is not ours: delete it", now)
			return nil
		}
	}
	if why, kind := r.refused(err, now); why != "" {
		if r.giveUp(kind, why); again { // an earlier try may have made it after all
			r.whole = false
			return r.withdraw(v, now)
		}
		r.said = r.never(v, now)
		return nil
	}
	if err == nil {
		r.made, r.denied = slim(p), 0
	}
	return err
}

// isOurs reports whether an existing Pod is this subjob's, from an earlier try.
func (r *run) isOurs(p *corev1.Pod) bool {
	rec, err := r.e.recordOf(p)
	return err == nil && r.e.ours(p) && rec.Token == r.rec.Token && rec.same(&r.rec)
}

// prepare gathers what the Pod needs. Errors of kind Invalid are the job's, others the cluster's.
func (r *run) prepare() error {
	if err := check(r.work); err != nil {
		return err
	}
	return r.find()
}

// find reads the device that the slice stands for.
func (r *run) find() error {
	s, _ := r.e.o.Slice(r.rec.Slice)
	d, err := cluster.ParseDevice(s.Device)
	if err != nil {
		return errkind.Errorf(errkind.NotFound, "slice %s: %w", r.rec.Slice, err)
	}
	r.device = d
	return nil
}

// createClaim makes the claim for the Pod's device, under DRA.
func (r *run) createClaim() error {
	if r.device.Resource != "" {
		return nil
	}
	selector, err := r.e.selector(r.e.ctx, &r.device)
	if err != nil {
		return err
	}
	claim := r.makeClaim(r.made, selector)
	_, err = call(r.e, "create resourceclaim", func() (*resourcev1.ResourceClaim, error) {
		return r.e.o.Client.ResourceV1().ResourceClaims(claim.Namespace).Create(r.e.ctx, claim, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// seal makes the run file, encrypted for this Pod with the namespace's key.
func (r *run) seal(now quantity.Instant) (string, error) {
	file := r.makeRun(r.asked)
	if err := r.lend(file, now); err != nil {
		return "", err
	}
	key, err := r.e.key(r.e.ctx, r.e.namespace(&r.rec))
	if err != nil {
		return "", err
	}
	return pod.Seal(&key, r.name(), file)
}

// mostLent is the longest life of a presigned URL: S3's own bound.
const mostLent = 7 * 24 * time.Hour

// lend fills in presigned URLs of the subjob's own objects. They expire when nothing of it can run any more, and after mostLent at the
// latest.
func (r *run) lend(f *pod.Run, now quantity.Instant) (err error) {
	ctx, lender := r.e.ctx, r.e.lender
	ends := mostLent
	if until := latest(nil, r.rec.End, &r.e.o); until != quantity.Never {
		ends = min(ends, until.Sub(now)+r.rec.Grace+r.e.o.Linger)
	}
	give := func(d store.Digest, most int64) (*pod.Source, error) {
		url, failed := lender.LendGet(ctx, d, ends)
		return &pod.Source{URL: url, Digest: d, Bytes: most}, failed
	}
	if id := r.work.Spec.Launch.Snapshot; id != "" {
		if f.Work, err = give(store.Digest(id), r.e.o.SnapshotLimit); err != nil {
			return err
		}
	}
	if t := r.rec.Resume; !t.Zero() {
		var d store.Digest
		if d, err = r.e.checkpoint(r.rec.Job, t); err != nil {
			return err
		}
		if f.Resume, err = give(d, f.OutputLimit); err != nil {
			return err
		}
	}
	for role, url := range map[string]*string{outputRole: &f.Output, checkpointRole: &f.Checkpoint, progressPlace: &f.Progress} {
		if *url, err = lender.LendPut(ctx, r.place(role), ends); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint finds the one that a subjob of a job left. NotFound: none is in the store.
func (e *Executor) checkpoint(j job.ID, t job.Token) (d store.Digest, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, tidying) // includes the wait for a turn, during which a stop would go unheard
	defer cancel()
	err = e.atStore(ctx, tidying, func(ctx context.Context) error {
		return e.o.Store.Names(ctx, e.jobNames(j), func(n store.Named) error {
			if path.Base(n.Name) == t.String() {
				d = cmp.Or(n.Refs[checkpointRole], d)
			}
			return nil
		})
	})
	if err == nil && d == "" {
		err = errkind.Errorf(errkind.NotFound, "the checkpoint of subjob %v is not in the store", t)
	}
	return d, err
}
