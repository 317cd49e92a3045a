//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// create makes the Pod and then its claim, which names the Pod as its owner so that it is never left behind. Objects that exist already
// are from an earlier try.
func (r *run) create(v *view, now quantity.Instant) error {
	if v.want.order.Stop || now >= v.want.order.End {
		return r.withdraw(v, now)
	}
	if r.pod.made == nil {
		if err := r.createPod(v, now); err != nil || r.pod.made == nil {
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
	if !r.pod.tried {
		r.said = r.never(v, now)
		return nil
	}
	if r.pod.made == nil {
		p, err := r.pod.get()
		if apierrors.IsNotFound(err) {
			r.said = r.never(v, now)
			return nil
		}
		if err != nil {
			return err
		}
		r.pod.made = p
	}
	r.whole = true // and obey deletes it
	return nil
}

func (r *run) createPod(v *view, now quantity.Instant) error {
	if err := cmp.Or(check(r.plan.work), r.plan.locate()); err != nil {
		o := job.StartFailed
		if errkind.Of(err) != errkind.Invalid {
			o = job.NodeFailed
		}
		r.said = r.end(o, err.Error(), now)
		return nil
	}
	sealed, err := r.seal(now)
	if why, kind := r.refused(err, now); why != "" {
		return r.refuse(kind, why, r.pod.tried, v, now)
	}
	if err != nil {
		return err
	}
	want, err := r.plan.makePod(sealed, now)
	if err != nil {
		return err
	}
	again := r.pod.tried
	p, err := r.pod.create(want)
	if apierrors.IsAlreadyExists(err) {
		if p, err = r.pod.get(); err == nil && !r.isOurs(p) {
			r.said = r.end(job.NodeFailed, "there is a Pod "+p.Namespace+"/"+p.Name+" that is not ours: delete it", now)
			return nil
		}
	}
	if why, kind := r.refused(err, now); why != "" {
		return r.refuse(kind, why, again, v, now)
	}
	if err == nil {
		r.pod.made, r.denied = slim(p), 0
	}
	return err
}

// refuse ends a subjob that the cluster does not let in. tried: an earlier try may have made its Pod after all.
func (r *run) refuse(kind errkind.Kind, why string, tried bool, v *view, now quantity.Instant) error {
	if r.giveUp(kind, why); tried {
		r.whole = false
		return r.withdraw(v, now)
	}
	r.said = r.never(v, now)
	return nil
}

// isOurs reports whether an existing Pod is this subjob's, from an earlier try.
func (r *run) isOurs(p *corev1.Pod) bool {
	rec, err := r.e.o.recordOf(p)
	return err == nil && r.e.ours(p) && rec.Token == r.rec.Token && rec.same(r.rec)
}

// createClaim makes the claim for the Pod's device, under DRA.
func (r *run) createClaim() error {
	if r.plan.device.Resource != "" {
		return nil
	}
	selector, err := r.e.devices.selector(r.e.ctx, &r.plan.device)
	if err != nil {
		return err
	}
	claim := r.plan.makeClaim(r.pod.made, selector)
	_, err = call(&r.e.api, "create resourceclaim", func() (*resourcev1.ResourceClaim, error) {
		return r.e.o.Client.ResourceV1().ResourceClaims(claim.Namespace).Create(r.e.ctx, claim, metav1.CreateOptions{})
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// seal makes the run file, encrypted for this Pod with the namespace's key.
func (r *run) seal(now quantity.Instant) (string, error) {
	file := r.plan.makeRun(r.plan.asked)
	if err := r.e.shelf.lend(r.e.ctx, file, r.rec, r.plan.work.Spec.Launch.Workdir, now); err != nil {
		return "", err
	}
	key, err := r.e.keys.key(r.e.ctx, r.pod.ns)
	if err != nil {
		return "", err
	}
	return pod.Seal(&key, r.pod.name, file)
}

// prove makes sure that a Pod that has not begun can begin: that its claim and keys exist. On an error that is not known.
func (r *run) prove(ctx context.Context) error {
	p := r.view().pod
	if p == nil || sealedIn(p) {
		if err := r.e.keys.have(ctx, r.pod.ns); errkind.Of(err) == errkind.NotFound {
			r.giveUp(errkind.NotFound, err.Error())
			return nil
		} else if err != nil {
			return err
		}
	}
	if p == nil || p.Spec.NodeName != "" || len(p.Spec.ResourceClaims) == 0 { // a bound Pod has its claim
		return nil
	}
	if err := r.plan.locate(); err != nil { // the inventory may not know the slice yet
		return err
	}
	err := r.createClaim()
	if why, kind := r.refused(err, r.e.o.now()); why != "" {
		r.giveUp(kind, why)
		return nil
	}
	return err
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
