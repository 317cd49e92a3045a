//go:build kubernetes

package operator

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/edge/config"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/host"
)

// Our custom resources.
var (
	jobs   = resource("jobs")   //nolint:gochecknoglobals // read-only by use; Go has no constant structs
	queues = resource("queues") //nolint:gochecknoglobals // as jobs
	// slicePools are also read before the controller runs.
	slicePools = resource("slicepools") //nolint:gochecknoglobals // as jobs
)

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version, Resource: plural}
}

const (
	// workers reconcile objects concurrently; each mostly waits for the API server or the journal.
	workers = 8
	// between is the least interval between two writes of an object's status.
	between = time.Second
	// resync is how often every object is reconciled, even without an event.
	resync = 10 * time.Minute
	// askAgain is when a job is offered again that was refused for a cause that may pass (no slice that fits, no such queue); it doubles
	// up to resync.
	askAgain = 30 * time.Second
	// allQueues is the work item that reconciles all queues; no job has that key.
	allQueues = "queues"
	// allPools is the same for pools. Their changes are collected for gather, since each has the whole cluster evaluated.
	allPools = "slicepools"
	gather   = 2 * time.Second
)

// daemon is the part of the host that objects stand for.
type daemon interface {
	SubmitAll(ctx context.Context, jobs []host.Submission, workdir []byte) []host.Outcome
	Cancel(ctx context.Context, request string, name job.ID) error
	Delete(ctx context.Context, request string, name job.ID) error
	Standing(ctx context.Context, names []job.ID) ([]status.Job, error)
	Jobs(ctx context.Context, q status.JobQuery) (status.JobPage, error)
	Queues(ctx context.Context) ([]status.Queue, error)
	SetQueue(ctx context.Context, request string, q protocol.Queue) error
	Changes() (*host.Changes, func())
}

// controller reconciles objects with the daemon: objects are the desired state, the daemon is the actual one. The controller itself holds
// soft state only.
type controller struct {
	daemon daemon
	client dynamic.Interface
	events record.EventRecorder
	log    *slog.Logger
	// name of the operator, and the namespace whose jobs it takes; empty: all.
	name, namespace string
	// writable are the namespaces where the operator may create Pods; none: all.
	writable []string

	// older: the CRD installed in the cluster lacks status.operator.
	older atomic.Bool

	jobs, queues, pools cache.SharedIndexInformer
	offers              offers
	work                workqueue.TypedRateLimitingInterface[string]

	mu   sync.Mutex
	seen map[string]*seen
}

// seen is what this process knows of an object. It is accessed only by the worker that holds the object's key.
type seen struct {
	uid types.UID
	// ours: the daemon's job of this name was submitted for this object.
	ours bool
	// taken: we have annotated the object with our name.
	taken bool
	// refused counts refusals in a row with the same message.
	refused int
	// verdict of its submission; zero: not offered yet.
	verdict verdict
	// wrote is the status written last, at at.
	wrote string
	at    time.Time
	state job.State
	told  bool
}

// newController makes a controller for objects of one namespace, or of all if it is empty.
func newController(d daemon, client dynamic.Interface, events record.EventRecorder, name, namespace string, offered offers,
	log *slog.Logger) *controller {
	own := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, nil)
	all := dynamicinformer.NewDynamicSharedInformerFactory(client, resync)
	return &controller{
		daemon: d, client: client, events: events, log: log, name: name, namespace: namespace, jobs: own.ForResource(jobs).Informer(),
		queues: all.ForResource(queues).Informer(), pools: all.ForResource(slicePools).Informer(), offers: offered,
		work: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond,
			time.Minute)),
		seen: map[string]*seen{},
	}
}

// of is what is known of an object; reset if another one had its key.
func (c *controller) of(key string, uid types.UID) *seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.seen[key]
	if s == nil || s.uid != uid {
		s = &seen{uid: uid}
		c.seen[key] = s
	}
	return s
}

func (c *controller) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, key)
}

// event records an Event on an object.
func (c *controller) event(o *object, warning bool, reason, format string, args ...any) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	c.events.Eventf(o, kind, reason, format, args...)
}

// offers are the pools offered now, how to offer others, and what of a pool is left out and why (empty: nothing; nil: nobody knows).
// Accessed only while reconciling allPools.
type offers struct {
	now     []config.SlicePool
	set     func([]config.SlicePool) error
	leftOut func(pool string) string
}

const (
	// manager is our field manager for server-side apply.
	manager = "sluice-operator"
	// holding is a Job's finalizer: the object stays until nothing of it runs and the daemon has forgotten the job.
	holding = "sluice.dev/job"
	// whileEnding is how often a job that is ending is reconciled, besides on changes.
	whileEnding = 2 * time.Second
	// settle is how long after our write a differing cached status counts as stale, rather than as somebody else's write.
	settle = 10 * time.Second
)

type object = unstructured.Unstructured

// keyOf is an object's key in informers and work queue.
func keyOf(o *object) string { return o.GetNamespace() + "/" + o.GetName() }

// object copies an informer's object; nil if there is none.
func (c *controller) object(of cache.SharedIndexInformer, key string) (*object, error) {
	found, there, err := of.GetStore().GetByKey(key)
	if err != nil || !there {
		return nil, err
	}
	o, ok := found.(*object)
	if !ok {
		return nil, fmt.Errorf("%s is kept as %T", key, found)
	}
	return o.DeepCopy(), nil
}
