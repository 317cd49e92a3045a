//go:build kubernetes

package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// What is kept of a cluster's objects: as little as says which slices there are and who holds them, since there are a hundred thousand Pods in a large one. Each
// has its name for the informers' sake. Nobody writes to one that is kept.

// machine is a Node.
type machine struct {
	metav1.ObjectMeta
	// pools that it is of, by their places: those of the time at which it is looked at.
	pools []int
	// counts are how many it has of extended resources.
	counts map[string]int64
	// product is the model of its GPUs, as its labels say; memory theirs, in bytes.
	product string
	memory  quantity.Amount
	// taints that keep Pods away, and closed is what else ends gaps on it: a cordon, maintenance.
	taints []taint
	closed []protocol.Reservation
}

// taint is one of NoSchedule or NoExecute.
type taint struct {
	key, value string
	effect     corev1.TaintEffect
}

// offer is a ResourceSlice: a part of what a driver's pool has.
type offer struct {
	metav1.ObjectMeta
	driver, pool string
	// machine that all of it is on; empty: each device says.
	machine string
	// generation of the pool, and of how many parts it consists.
	generation, parts int64
	devices           []device
	counters          []count
}

// pooled names a driver's pool.
type pooled struct{ driver, pool string }

// device is one that a driver publishes.
type device struct {
	name, machine string
	// attributes and capacities by their names, with a domain where their driver has written one.
	attributes map[string]string
	capacities map[string]int64
	memory     quantity.Amount
	uses       []count
	// tainted says why nobody is to get it; empty: anybody may.
	tainted string
	// several: it may be allocated to several at once, each a part of it.
	several bool
}

// count is so much of a counter of a set.
type count struct {
	set, counter string
	n            int64
}

// claim is a ResourceClaim.
type claim struct {
	metav1.ObjectMeta
	ours bool
	// has is what was allocated to it.
	has []place
	// by are the Pods it is reserved for, by their keys.
	by []string
	// wants are the requests of one that has nothing yet, shape the same as text.
	wants []want
	shape string
}

// place is a device's.
type place struct {
	pooled
	device string
}

// class is a DeviceClass: which devices it means.
type class struct {
	metav1.ObjectMeta
	only selector
}

// terms of what it means; none of one that nobody has seen.
func (c *class) terms() selector {
	if c == nil {
		return nil
	}
	return c.only
}

// tenant is a Pod.
type tenant struct {
	metav1.ObjectMeta
	machine string
	ours    bool
	// slice that a Pod of ours is on, without the operator's name.
	slice job.SliceID
	// fills: it is of the class of subjobs, whoever's, so that nothing is given back to it.
	fills bool
	// asks are extended resources.
	asks map[string]int64
	// claims by their keys.
	claims []string
	// requests are how many claims it has, made or not.
	requests int
	// nodes are labels that the machine must have of one that waits, affinity what else it asks of it (any of them; nil: nothing), tolerates which taints it bears. shape is all of
	// that and what it asks for, beside its claims, as text.
	nodes     map[string]string
	affinity  []labels.Selector
	tolerates []corev1.Toleration
	shape     string
	// active is how long it may run (0: for ever) from started on, and grace what it has to end.
	active, grace time.Duration
	started       quantity.Instant
	// leaves is by when it is gone, since it is being deleted; 0: it is not.
	leaves quantity.Instant
	// waits is since when no place was found for it; 0: it has one, or is not looked for.
	waits quantity.Instant
	owner types.UID
	// called is what it and those like it are called by; forever: its containers are started again whatever they end with, so that it has no end.
	called  string
	forever bool
	// kind of object that it is for, of one that is still to come; empty: it is a Pod.
	kind string
	// queued: something holds it back, as Kueue does; nominated: the scheduler makes room for it by itself.
	queued, nominated bool
}

// limit is until when what an object owns runs at most: a Job, or a Workload of Kueue for the Job that it is of.
type limit struct {
	metav1.ObjectMeta
	of  types.UID
	end quantity.Instant
	// owners are all of a Workload's: Pods themselves may be several.
	owners []types.UID
	// most is for how long it may run from when it begins; 0: nobody says.
	most time.Duration
	// called is what a Job and those like it are called by; parent owns a Job; coming is what a Workload's Pods will want, nil of one that is over.
	called string
	parent types.UID
	coming *coming
}

// template is a ResourceClaimTemplate: what claims made of it want.
type template struct {
	metav1.ObjectMeta
	wants []want
}
