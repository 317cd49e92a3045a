//go:build kubernetes

package kubernetes

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// called names the group of Pods that a Pod is like: its controller, else its app label or generated name, else its image; empty: none.
func called(o *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return strings.TrimSuffix(owner.Name, "-"+o.Labels["pod-template-hash"])
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
	return cmp.Or(value(metav1.GetControllerOfNoCopy(o)).Name, stem(o.GetGenerateName()), o.GetName())
}

// whose is the key of a Pod's group, NAMESPACE/NAME, by its Job where that is known; empty: none. inv.mu is held.
func (inv *Inventory) whose(t *pod) string {
	name := t.called
	for _, l := range by[*jobOrWorkload](inv.jobs, byOwner, string(t.owner)) {
		name = cmp.Or(l.called, name)
	}
	if name == "" {
		return ""
	}
	return t.Namespace + "/" + name
}

// learn records which Pods run on a machine. inv.mu is held.
func (inv *Inventory) learn(pods []*pod) {
	for _, t := range pods {
		if of := inv.whose(t); of != "" && !t.ours && !t.life.forever {
			inv.lengths.Begun(string(t.UID), of, t.life.started)
		}
	}
}

// ended records that a Pod is gone, by its last state; unseen: when it ended is not known.
func (inv *Inventory) ended(t *pod, unseen bool) {
	if t.ours || t.life.forever || t.called == "" {
		return
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.lengths.Over(string(t.UID), inv.opts.Now(), unseen || t.life.leaves != 0)
}
