//go:build kubernetes

package kubernetes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

// What is kept of a cluster's objects: only what decides which slices there are and who holds them, since a large cluster has a hundred
// thousand Pods. Each type has object metadata for the informers' sake. Kept objects are immutable.

// machine is a Node.
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

// taint is one of NoSchedule or NoExecute.
type taint struct {
	key, value string
	effect     corev1.TaintEffect
}

// offer is a ResourceSlice: a part of a driver's pool.
type offer struct {
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

// pooled names a driver's pool.
type pooled struct{ driver, pool string }

// device is a device as its driver publishes it.
type device struct {
	name, machine string
	// attributes and capacities by name, with a domain where the driver wrote one.
	attributes map[string]string
	capacities map[string]amount
	memory     quantity.Amount
	uses       []count
	// taints keep everybody from it.
	taints []health.State
	// several: it may be allocated to several claims at once, a part to each.
	several bool
}

// count is an amount of one counter of a set.
type count struct {
	set, counter string
	amount
}

// amount is n / 10^places, exactly: Kubernetes' quantities have fractions down to a billionth.
type amount struct {
	n      int64
	places int8
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

// place identifies a device.
type place struct {
	pooled
	device string
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

// tenant is a Pod.
type tenant struct {
	metav1.ObjectMeta
	machine string
	ours    bool
	// slice that a Pod of ours is on, without the operator's prefix.
	slice job.SliceID
	// fills: it has the PriorityClass of subjobs, of whichever operator, so nothing is given back to it.
	fills bool
	// asks are its extended resources.
	asks map[string]int64
	// claims are the keys of its ResourceClaims whose names are known: those it names, which need not exist, and those made from templates
	// once its status names them.
	claims []string
	// requests counts its claims, including those not made yet.
	requests int
	// Set while it waits, and for a pod set's Pods to come: where says which machines would do, and shape is that, and what it asks for but
	// for its claims, as text.
	where reclaim.Where
	shape string
	// active is its activeDeadlineSeconds (0: none), counted from started; grace is its termination grace period.
	active, grace time.Duration
	started       quantity.Instant
	// leaves is by when it is gone once it is being deleted; 0: it is not.
	leaves quantity.Instant
	// waits is since when it has been unschedulable; 0: it is not.
	waits quantity.Instant
	owner types.UID
	// called names its group (called); forever: restartPolicy Always, so that it has no end.
	called  string
	forever bool
	// kind of the object it stands for while its Pod does not exist yet; empty: it is a Pod.
	kind string
	// queued: it has scheduling gates, as Kueue sets; nominated: kube-scheduler preempts for it.
	queued, nominated bool
}

// limit is until when what an object owns may run: a Job, or a Kueue Workload for its Job.
type limit struct {
	metav1.ObjectMeta
	of  types.UID
	end quantity.Instant
	// owners are all objects of a Workload: there are several for a group of Pods.
	owners []types.UID
	// most is what a Workload's maximumExecutionTimeSeconds leaves it; 0: none is set, as always for a Job.
	most time.Duration
	// called names a Job's group, and parent owns it; coming is what a Workload's Pods will want, nil as for coming().
	called string
	parent types.UID
	coming *coming
}

// template is a ResourceClaimTemplate: what its claims will want.
type template struct {
	metav1.ObjectMeta
	wants []want
}
