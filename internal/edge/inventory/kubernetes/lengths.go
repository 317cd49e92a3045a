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

// Of most Pods nobody says when they end. How long earlier ones of the same owner ran says it with a chance: enough to plan what begins behind them, which is withdrawn if
// they stay, and never to start anything.

const (
	// fewest is how many Pods of an owner have ended before anything is said of the next: then it is gone by what is said but for a chance of one in twenty.
	fewest = 19
	// sure is the share of lengths that are looked for, in parts per million. Of n Pods that ended the bound is the k-th shortest, k = floor(.975 (n+1)), and the next is longer
	// with a chance of at most .025 + 1/(n+1), from 39 on; below that the bound is the longest, with 1/(n+1).
	sure = 975_000
	// mostOwners bounds of how many owners lengths are remembered; those that were taught last stay.
	mostOwners = 1024
)

// lengths are how long Pods ran, by whose they were; those that run still are counted as what they are.
type lengths struct {
	of     map[string]*ends.Curve
	taught []string
	open   map[types.UID]run
}

// run is a Pod that runs.
type run struct {
	of    string
	since quantity.Instant
	// said is when it was said to end last.
	said quantity.Instant
}

func newLengths() lengths {
	return lengths{of: map[string]*ends.Curve{}, open: map[types.UID]run{}}
}

// begun notes that a Pod of somebody's runs.
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

// over notes that one runs no more; cut: it was ended before its time.
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

// curve is that of an owner, who was taught last now.
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

// until is when a Pod that runs is likely to be gone; Never: nothing is known, or it has stayed for longer. What was said of it stands while it is not off by more than a
// tenth: each Pod that ends changes it a bit.
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

// called is what a Pod is called together with those like it: by its controller, else as it says of itself, else by its image; empty: by nothing.
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

// stem is a prefix of generated names, as people would write it.
func stem(generate string) string { return strings.TrimRight(generate, "-.") }

// calledJob is what a Job is called together with those like it: by what makes such Jobs.
func calledJob(o metav1.Object) string {
	for _, owner := range o.GetOwnerReferences() {
		if value(owner.Controller) {
			return owner.Name
		}
	}
	return cmp.Or(stem(o.GetGenerateName()), o.GetName())
}

// whose says whose a Pod is, NAMESPACE/NAME, as its Job is called if that is known; empty: nobody's. inv.mu is held.
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

// learn takes in who runs on a machine. inv.mu is held.
func (inv *Inventory) learn(tenants []*tenant) {
	for _, t := range tenants {
		if of := inv.whose(t); of != "" && !t.ours && !t.forever {
			inv.lengths.begun(t.UID, of, t.started)
		}
	}
}

// ended takes in that a Pod is gone, as it was last; unseen: some time ago.
func (inv *Inventory) ended(t *tenant, unseen bool) {
	if t.ours || t.forever || t.called == "" {
		return
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.lengths.over(t.UID, inv.opts.Now(), unseen || t.leaves != 0)
}

// until is when a Pod is gone: at the latest, as something says, else as it is likely.
func (s *scene) until(t *tenant) quantity.Instant {
	end := t.ends(s.limits)
	if end != quantity.Never || s.likely == nil || t.ours || t.forever {
		return end
	}
	return s.likely(t)
}
