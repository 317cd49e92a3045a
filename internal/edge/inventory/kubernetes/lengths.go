//go:build kubernetes

package kubernetes

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/quantity"
)

// Most Pods state no end. How long earlier Pods of the same owner ran gives a bound that holds with some probability: good enough to plan
// what follows, which is withdrawn if the Pod stays, and never a reason to start anything.

const (
	// fewest is how many Pods of an owner must have ended before their successors' ends are estimated: the longest of 19 is exceeded with
	// a chance of 1/20.
	fewest = 19
	// sure is the quantile of lengths in parts per million. Of n lengths the bound is the k-th shortest, k = floor(.975 (n+1)), exceeded
	// with a chance of at most .025 + 1/(n+1) where n >= 39; below that it is the longest, exceeded with 1/(n+1) (conformal prediction,
	// docs/adr/0015-learned-profiles.md).
	sure = 975_000
	// mostOwners bounds the owners that are remembered; the least recently updated is dropped.
	mostOwners = 1024
)

// lengths are distributions of how long Pods ran, by owner. Pods that still run count as censored.
type lengths struct {
	of     map[string]*ends.Curve
	taught []string
	open   map[types.UID]run
}

// run is a Pod that runs.
type run struct {
	of    string
	since quantity.Instant
	// said is the last estimate of its end.
	said quantity.Instant
}

func newLengths() lengths {
	return lengths{of: map[string]*ends.Curve{}, open: map[types.UID]run{}}
}

// begun records that a Pod of an owner runs.
func (l *lengths) begun(uid types.UID, of string, since quantity.Instant) {
	if _, known := l.open[uid]; known || since == 0 {
		return
	}
	l.open[uid] = run{of: of, since: since}
	if c := l.of[of]; c != nil {
		c.Open(since)
		return
	}
	l.curve(of).Open(since)
}

// over records that a Pod has ended; cut: it was deleted, or its end not seen, so its length is censored.
func (l *lengths) over(uid types.UID, now quantity.Instant, cut bool) {
	r, known := l.open[uid]
	if !known {
		return
	}
	delete(l.open, uid)
	c := l.curve(r.of)
	c.Close(r.since)
	c.Add(now.Sub(r.since), cut)
}

// curve is an owner's distribution, marked as most recently updated.
func (l *lengths) curve(of string) *ends.Curve {
	if i := slices.Index(l.taught, of); i >= 0 {
		l.taught = slices.Delete(l.taught, i, i+1)
	}
	l.taught = append(l.taught, of)
	if l.of[of] == nil {
		l.of[of] = &ends.Curve{}
	}
	if len(l.taught) > mostOwners {
		delete(l.of, l.taught[0])
		l.taught = slices.Delete(l.taught, 0, 1)
	}
	return l.of[of]
}

// until estimates when a running Pod will be gone; Never if too little is known or it has outlived the bound. An estimate changes only
// when it is off by more than a tenth, since every Pod that ends shifts it a little.
func (l *lengths) until(now quantity.Instant, uid types.UID) quantity.Instant {
	r := l.open[uid]
	c := l.of[r.of]
	if c == nil || c.Len() < fewest {
		return quantity.Never
	}
	long, ok := c.Residual(now, 0, sure)
	if !ok || long == ends.None || r.since.Add(long) <= now {
		return quantity.Never
	}
	if end := r.since.Add(long); r.said <= now || max(end.Sub(r.said), r.said.Sub(end)) > long/10 {
		r.said = end
		l.open[uid] = r
	}
	return r.said
}

// called names the group of Pods that a Pod is like: its controller, else its app label or generated name, else its image; empty: none.
func called(o *corev1.Pod) string {
	for _, owner := range o.OwnerReferences {
		if value(owner.Controller) {
			return strings.TrimSuffix(owner.Name, "-"+o.Labels["pod-template-hash"])
		}
	}
	image := ""
	if len(o.Spec.Containers) > 0 {
		image = o.Spec.Containers[0].Image
		image = image[strings.LastIndex(image, "/")+1:]
		image, _, _ = strings.Cut(image, "@")
		image, _, _ = strings.Cut(image, ":")
	}
	return cmp.Or(o.Labels["app.kubernetes.io/name"], o.Labels["app"], stem(o.GenerateName), image)
}

// stem trims the separator from a generateName.
func stem(generate string) string { return strings.TrimRight(generate, "-.") }

// calledJob names the group of Jobs that a Job is like: its controller (a CronJob), else the stem of its generateName, else its name.
func calledJob(o metav1.Object) string {
	for _, owner := range o.GetOwnerReferences() {
		if value(owner.Controller) {
			return owner.Name
		}
	}
	return cmp.Or(stem(o.GetGenerateName()), o.GetName())
}

// whose is the key of a Pod's group, NAMESPACE/NAME, by its Job where that is known; empty: none. inv.mu is held.
func (inv *Inventory) whose(t *tenant) string {
	name := t.called
	for _, l := range by[*limit](inv.jobs, byOwner, string(t.owner)) {
		name = first(l.called, name)
	}
	if name == "" {
		return ""
	}
	return t.Namespace + "/" + name
}

// learn records which Pods run on a machine. inv.mu is held.
func (inv *Inventory) learn(tenants []*tenant) {
	for _, t := range tenants {
		if of := inv.whose(t); of != "" && !t.ours && !t.forever {
			inv.lengths.begun(t.UID, of, t.started)
		}
	}
}

// ended records that a Pod is gone, by its last state; unseen: when it ended is not known.
func (inv *Inventory) ended(t *tenant, unseen bool) {
	if t.ours || t.forever || t.called == "" {
		return
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.lengths.over(t.UID, inv.opts.Now(), unseen || t.leaves != 0)
}

// until is when a Pod is gone: at its stated latest, else as estimated.
func (s *scene) until(t *tenant) quantity.Instant {
	end := t.ends(s.limits)
	if end != quantity.Never || s.likely == nil || t.ours || t.forever {
		return end
	}
	return s.likely(t)
}
