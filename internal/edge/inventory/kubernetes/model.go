//go:build kubernetes

package kubernetes

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory/kubernetes/gpulabels"
)

// What is kept of a cluster's objects: only what decides which slices there are and who holds them, since a large cluster has a hundred
// thousand Pods. Each type has object metadata for the informers' sake. Kept objects are immutable.

// machine is a Node: in Sluice a node is an actor.
type machine struct {
	metav1.ObjectMeta
	// pools are indexes into Options.Pools, set only in a scene's copy.
	pools []int
	// counts are its allocatable extended resources.
	counts map[string]int64
	// splitter is an annotation of another manager that gives GPUs out in parts; empty: none.
	splitter string
	// taints that keep Pods away; closed are other reservations of the whole machine: a cordon, maintenance.
	taints []taint
	closed []protocol.Reservation
	// broken is what its conditions say of its GPUs.
	broken []health.State
}

// said is what its labels say about its devices.
func (m *machine) said() gpulabels.Node {
	return gpulabels.Node{Labels: m.Labels, Splitter: m.splitter}
}

// resourceSlice is a ResourceSlice: a part of a driver's pool.
type resourceSlice struct {
	metav1.ObjectMeta
	driver, pool string
	// machine of all its devices; empty: each device names its own.
	machine string
	// generation of the pool, and how many parts that has.
	generation, parts int64
	devices           []device
	counters          []count
	// fine: some count in it has a fraction.
	fine bool
}

// claim is a ResourceClaim.
type claim struct {
	metav1.ObjectMeta
	ours bool
	// has are the devices allocated to it.
	has []place
	// by are the keys of the Pods it is reserved for.
	by []string
	// wants are its requests while nothing is allocated, and shape the same as text.
	wants []want
	shape string
}

// class is a DeviceClass: which devices it selects.
type class struct {
	metav1.ObjectMeta
	only selector
}

// classes finds a DeviceClass by its name; false: it was not seen.
type classes func(name string) (*class, bool)

// terms of a class's selector; none of one that was not seen, nor where nobody is asked (nil).
func (of classes) terms(name string) selector {
	if of == nil {
		return nil
	}
	if c, there := of(name); there {
		return c.only
	}
	return nil
}

// pod is a Pod.
type pod struct {
	metav1.ObjectMeta
	machine string
	ours    bool
	// slice that a Pod of ours is on, without the operator's prefix.
	slice job.SliceID
	// fills: it has the PriorityClass of subjobs, of whichever operator, so nothing is given back to it.
	fills bool
	need  need
	life  life
	turn  turn
	owner types.UID
	// called names its group (called).
	called string
	// kind of the object it stands for while its Pod does not exist yet; empty: it is a Pod.
	kind string
}

// need is what a Pod wants.
type need struct {
	// asks are its extended resources.
	asks map[string]int64
	// claims are the keys of its ResourceClaims whose names are known: those it names, which need not exist, and those made from templates
	// once its status names them.
	claims []string
	// requests counts its claims, including those not made yet.
	requests int
	// Set while it waits, and for a pod set's Pods to come: where selects suitable machines, and shape is that and its requests, except
	// claims, as text.
	where reclaim.Where
	shape string
}

// life is how long a Pod may be there.
type life struct {
	// active is its activeDeadlineSeconds (0: none), counted from started; grace is its termination grace period.
	active, grace time.Duration
	started       quantity.Instant
	// leaves is by when it is gone once it is being deleted; 0: it is not.
	leaves quantity.Instant
	// forever: restartPolicy Always, so that it has no end.
	forever bool
}

// turn is where a Pod is on its way to a machine.
type turn struct {
	// unschedulableSince is 0 while it is not unschedulable.
	unschedulableSince quantity.Instant
	// queued: it has scheduling gates, as Kueue sets.
	queued bool
	// nominated is the machine on which kube-scheduler preempts for it; empty: none.
	nominated string
}

// jobOrWorkload is a batch Job, or a Kueue Workload for its Job or Pods: until when what it owns may run, and what is to come of it.
type jobOrWorkload struct {
	metav1.ObjectMeta
	of  types.UID
	end quantity.Instant
	// owners are all objects of a Workload: there are several for a group of Pods.
	owners []types.UID
	// most is what a Workload's maximumExecutionTimeSeconds leaves it; 0: none is set, as always for a Job.
	most time.Duration
	// called names a Job's group, parent is its owner; coming is what a Workload's Pods will want, nil if nothing.
	called string
	parent types.UID
	coming *coming
}

// template is a ResourceClaimTemplate: what its claims will want.
type template struct {
	metav1.ObjectMeta
	wants []want
}

// slimmer cuts objects down to what is kept. It must not depend on pools: those change, while kept objects stay.
type slimmer struct {
	operator, journal string
	// key and made are the journal's (Options).
	key  []byte
	made time.Time
}

// ours reports whether an object bears our labels. Anybody can write these: a Pod's seal is checked in sliceOf, and a claim counts as ours
// unless a known Pod that it is reserved for is not (scene.stays).
func (s *slimmer) ours(o metav1.Object) bool {
	l := o.GetLabels()
	return s.operator != "" && l[cluster.LabelOperator] == s.operator && l[cluster.LabelJournal] == s.journal
}

// coming is what a Workload's Pods will want.
type coming struct {
	// queue is its LocalQueue; cluster is the ClusterQueue whose quota it has, empty while it waits for quota.
	queue, cluster string
	// since is when it got its quota; admitted: all admission checks have passed too.
	since    quantity.Instant
	admitted bool
	// priority and created order those that wait.
	priority int32
	created  quantity.Instant
	parts    []part
}

// part is a pod set: n Pods that are alike, with claims by name and from templates.
type part struct {
	name              string
	n                 int
	like              *pod
	claims, templates []string
	// flavors are the ResourceFlavors its quota is of.
	flavors []string
}

// alias is a LocalQueue or a ResourceFlavor: a name for something else.
type alias struct {
	metav1.ObjectMeta
	// cluster is a LocalQueue's ClusterQueue; nodes are a ResourceFlavor's node labels.
	cluster string
	nodes   map[string]string
}

// owned lists the objects whose Pods it bounds: itself, or those that own a Workload.
func (l *jobOrWorkload) owned() []types.UID {
	if len(l.owners) == 0 {
		return []types.UID{l.of}
	}
	return l.owners
}

func (l *jobOrWorkload) ownedBy() (list []string) {
	for _, of := range l.owned() {
		list = append(list, only(string(of))...)
	}
	return list
}

const (
	byComing = "coming"
	reserved = "reserved"
	pending  = "pending"
)

// comes indexes Workloads whose Pods are expected: those with quota, and those that wait for it.
func (l *jobOrWorkload) comes() []string {
	switch {
	case l.coming == nil:
		return nil
	case l.coming.since != 0:
		return []string{reserved}
	}
	return []string{pending}
}

// ends is when a Pod is gone at the latest: by its own deadline, those of its owners, or its deletion. Never if nothing bounds it.
func (t *pod) ends(limits func(types.UID) quantity.Instant) quantity.Instant {
	end := quantity.Never
	if t.life.active > 0 && t.life.started != 0 {
		end = t.life.started.Add(t.life.active + t.life.grace)
	}
	for _, of := range []types.UID{t.UID, t.owner} {
		if by := limits(of); of != "" && by != quantity.Never {
			end = min(end, by.Add(t.life.grace))
		}
	}
	if t.life.leaves != 0 {
		end = min(end, t.life.leaves)
	}
	return end
}

// owners indexes a Pod by its owner and, if it wants a device, by itself, since a Workload may be a bare Pod's.
func (t *pod) owners() []string {
	list := only(string(t.owner))
	if len(t.need.asks)+t.need.requests > 0 {
		list = append(list, string(t.UID))
	}
	return list
}

// machines lists where a ResourceSlice's devices are.
func (o *resourceSlice) machines() (list []string) {
	for i := range o.devices {
		if m := o.devices[i].machine; m != "" && (len(list) == 0 || list[len(list)-1] != m) {
			list = append(list, m)
		}
	}
	return append(list, only(o.machine)...)
}

// pools lists the pools of a claim's devices.
func (c *claim) pools() (list []string) {
	for _, at := range c.has {
		if k := at.driver + "/" + at.pool; len(list) == 0 || list[len(list)-1] != k {
			list = append(list, k)
		}
	}
	return list
}

// rule is a DeviceTaintRule: a taint of the devices that it selects, by what it names; empty: any.
type rule struct {
	metav1.ObjectMeta
	driver, pool, device string
	// all is false without a selector: it selects nothing then.
	all   bool
	state *health.State
}
