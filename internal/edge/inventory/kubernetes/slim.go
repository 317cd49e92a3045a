//go:build kubernetes

package kubernetes

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory/kubernetes/gpulabels"
)

// sliceOf is the slice that a Pod of ours is on, without the operator's prefix. With a key its record must pass cluster.Sealed and name
// the annotation's slice; false: it is not ours.
func (s *slimmer) sliceOf(o *corev1.Pod) (id job.SliceID, is bool) {
	full := o.Annotations[cluster.AnnotationSlice]
	if !s.ours(o) || !cluster.Sealed(s.key, s.made, o.CreationTimestamp.Time, o.Namespace, o.Name, o.Annotations) {
		return "", false
	}
	if len(s.key) > 0 { // the record is sealed; the annotation is not
		var record struct{ Slice string }
		if err := json.Unmarshal([]byte(o.Annotations[cluster.AnnotationRun]), &record); err != nil || record.Slice != full {
			return "", false
		}
	}
	_, own, _ := strings.Cut(full, "/")
	return job.SliceID(own), true
}

func (s *slimmer) machine(o *corev1.Node) *machine {
	m := &machine{ObjectMeta: named(o), counts: extended(o.Status.Allocatable)}
	m.Labels, m.splitter = o.Labels, gpulabels.Splitter(o.Annotations)
	if o.Spec.Unschedulable {
		m.closed = append(m.closed, protocol.Reservation{Kind: protocol.ForDrain, End: quantity.Never, Source: "node " + o.Name +
			" is cordoned"})
	}
	for _, t := range o.Spec.Taints {
		// The cordon's own taint is left out: the cordon itself says more.
		if t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != corev1.TaintNodeUnschedulable {
			m.taints = append(m.taints, taint{t.Key, t.Value, t.Effect})
		}
	}
	m.broken = conditions(o)
	m.closed = append(m.closed, maintenance(o.Annotations[AnnotationMaintenance])...)
	return m
}

// extended are the extended resources of a list: those whose names have a domain. nil: none.
func extended(list corev1.ResourceList) (of map[string]int64) {
	for name, n := range list {
		if strings.Contains(string(name), "/") {
			if of == nil {
				of = map[string]int64{}
			}
			of[shared(string(name))] = n.Value()
		}
	}
	return of
}

func (s *slimmer) resourceSlice(o *resourcev1.ResourceSlice) *resourceSlice {
	x := &resourceSlice{ObjectMeta: named(o), driver: o.Spec.Driver, pool: o.Spec.Pool.Name, machine: value(o.Spec.NodeName),
		generation: o.Spec.Pool.Generation, parts: o.Spec.Pool.ResourceSliceCount}
	for _, set := range o.Spec.SharedCounters {
		x.counters = append(x.counters, counts(shared(set.Name), set.Counters, false)...)
	}
	for i := range o.Spec.Devices {
		d := &o.Spec.Devices[i]
		y := device{name: d.Name, machine: cmp.Or(x.machine, value(d.NodeName)), several: value(d.AllowMultipleAllocations)}
		if len(d.Attributes) > 0 {
			y.attributes = make(map[string]string, len(d.Attributes))
		}
		for name, a := range d.Attributes {
			if text := attribute(a); text != "" {
				y.attributes[shared(string(name))] = shared(text)
			}
		}
		if len(d.Capacity) > 0 {
			y.capacities = make(map[string]amount, len(d.Capacity))
		}
		for name, c := range d.Capacity {
			if y.capacities[shared(string(name))] = amountOf(&c.Value, false); bare(name) == "memory" {
				y.memory = quantity.Amount(c.Value.Value())
			}
		}
		for _, u := range d.ConsumesCounters {
			y.uses = append(y.uses, counts(shared(u.CounterSet), u.Counters, true)...)
		}
		x.fine = x.fine || slices.ContainsFunc(y.uses, fraction)
		for _, t := range d.Taints {
			if state := taintOf(t.Key, t.Value, string(t.Effect), ""); state != nil {
				y.taints = append(y.taints, *state)
			}
		}
		x.devices = append(x.devices, y)
	}
	x.fine = x.fine || slices.ContainsFunc(x.counters, fraction)
	return x
}

func attribute(a resourcev1.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return *a.StringValue
	case a.VersionValue != nil:
		return *a.VersionValue
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.FormatBool(*a.BoolValue)
	}
	return ""
}

// counts lists counters by name. up: what would be too fine is rounded up, as uses are.
func counts(set string, all map[string]resourcev1.Counter, up bool) (list []count) {
	for name, c := range all {
		list = append(list, count{set, shared(name), amountOf(&c.Value, up)})
	}
	slices.SortFunc(list, func(a, b count) int { return strings.Compare(a.counter, b.counter) })
	return list
}

func (s *slimmer) claim(o *resourcev1.ResourceClaim) *claim {
	c := &claim{ObjectMeta: named(o), ours: s.ours(o)}
	if a := o.Status.Allocation; a != nil {
		for _, r := range a.Devices.Results {
			if !value(r.AdminAccess) {
				c.has = append(c.has, place{pooled{r.Driver, r.Pool}, r.Device})
			}
		}
	} else {
		c.wants, c.shape = wantsOf(&o.Spec), shapeOf(&o.Spec)
	}
	for _, by := range o.Status.ReservedFor {
		if by.Resource == "pods" {
			c.by = append(c.by, o.Namespace+"/"+by.Name)
		}
	}
	return c
}

func (s *slimmer) template(o *resourcev1.ResourceClaimTemplate) *template {
	return &template{ObjectMeta: named(o), wants: wantsOf(&o.Spec.Spec)}
}

func (s *slimmer) class(o *resourcev1.DeviceClass) *class {
	return &class{ObjectMeta: named(o), only: selectors(o.Spec.Selectors)}
}

func (s *slimmer) pod(o *corev1.Pod) *pod {
	t := &pod{ObjectMeta: named(o), machine: o.Spec.NodeName, fills: o.Spec.PriorityClassName == cluster.Leftover,
		life: life{grace: 30 * time.Second}, turn: turn{queued: len(o.Spec.SchedulingGates) > 0}}
	t.slice, t.ours = s.sliceOf(o)
	t.need.asks = asksIn(&o.Spec)
	t.need.requests = len(o.Spec.ResourceClaims)
	for _, c := range o.Spec.ResourceClaims {
		name := value(c.ResourceClaimName)
		for _, made := range o.Status.ResourceClaimStatuses {
			if made.Name == c.Name {
				name = value(made.ResourceClaimName)
			}
		}
		if name != "" {
			t.need.claims = append(t.need.claims, o.Namespace+"/"+name)
		}
	}
	if len(t.need.asks)+len(t.need.claims)+len(o.Spec.ResourceClaims) == 0 {
		return t // it holds no slice: only its name is kept
	}
	if o.Spec.TerminationGracePeriodSeconds != nil {
		t.life.grace = time.Duration(*o.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	t.life.active = time.Duration(value(o.Spec.ActiveDeadlineSeconds)) * time.Second
	if o.Status.StartTime != nil {
		t.life.started = quantity.At(o.Status.StartTime.Time)
	}
	t.turn.nominated = shared(o.Status.NominatedNodeName)
	if o.DeletionTimestamp != nil {
		t.life.leaves = quantity.At(o.DeletionTimestamp.Time)
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
			t.machine == "" && t.life.leaves == 0 {
			t.turn.unschedulableSince = quantity.At(c.LastTransitionTime.Time)
		}
	}
	t.owner = controller(o)
	t.called, t.life.forever = shared(called(o)), o.Spec.RestartPolicy == corev1.RestartPolicyAlways
	if t.turn.unschedulableSince != 0 {
		s.asksOf(t, &o.Spec)
	}
	return t
}

// controller is the UID of an object's controller; empty: none.
func controller(o metav1.Object) types.UID { return value(metav1.GetControllerOfNoCopy(o)).UID }

// asksIn are a Pod's extended resources; nil: none.
func asksIn(spec *corev1.PodSpec) (asks map[string]int64) {
	for name := range extendedOf(spec) {
		if n := requests(spec, corev1.ResourceName(name)); n > 0 {
			if asks == nil {
				asks = map[string]int64{}
			}
			asks[shared(name)] = n
		}
	}
	return asks
}

// extendedOf names the extended resources in a Pod's containers; nil: none, as for most Pods.
func extendedOf(spec *corev1.PodSpec) (of map[string]int64) {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			for _, r := range []corev1.ResourceList{list[i].Resources.Requests, list[i].Resources.Limits} {
				if more := extended(r); of == nil {
					of = more
				} else {
					maps.Copy(of, more)
				}
			}
		}
	}
	return of
}

// requests is how much of a resource a Pod holds at most at once: its containers and sidecars together, or an init container and the
// sidecars before it, if that is more.
func requests(spec *corev1.PodSpec, name corev1.ResourceName) int64 {
	of := func(c *corev1.Container) int64 {
		if q, there := c.Resources.Requests[name]; there {
			return q.Value()
		}
		q := c.Resources.Limits[name]
		return q.Value()
	}
	var sum, sidecars, most int64
	for i := range spec.Containers {
		sum += of(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars += of(c)
			most = max(most, sidecars)
			continue
		}
		most = max(most, sidecars+of(c))
	}
	return max(sum+sidecars, most)
}

func (s *slimmer) batchJob(o *batchv1.Job) *jobOrWorkload {
	l := &jobOrWorkload{ObjectMeta: named(o), of: o.UID, end: quantity.Never, parent: controller(o), called: calledJob(o)}
	if o.Spec.ActiveDeadlineSeconds != nil && o.Status.StartTime != nil {
		l.end = quantity.At(o.Status.StartTime.Time).Add(time.Duration(*o.Spec.ActiveDeadlineSeconds) * time.Second)
	}
	return l
}
