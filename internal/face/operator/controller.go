//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	SubmitAll(ctx context.Context, jobs []host.Submission, snapshot []byte) []host.Outcome
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

// run reconciles until ctx ends.
func (c *controller) run(ctx context.Context) error {
	add := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			c.work.Add(key)
		}
	}
	again := func(any) { c.work.Add(allQueues) }
	_, err1 := c.jobs.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add})
	_, err2 := c.queues.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: again, UpdateFunc: func(_, o any) { again(o) },
		DeleteFunc: again})
	look := func(any) { c.work.AddAfter(allPools, gather) }
	_, err3 := c.pools.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) },
		DeleteFunc: look})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	var done sync.WaitGroup
	defer done.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done.Go(func() { c.jobs.Run(ctx.Done()) })
	done.Go(func() { c.queues.Run(ctx.Done()) })
	done.Go(func() { c.pools.Run(ctx.Done()) })
	changes, end := c.daemon.Changes()
	defer end()
	if !cache.WaitForCacheSync(ctx.Done(), c.jobs.HasSynced, c.queues.HasSynced, c.pools.HasSynced) {
		return nil // ctx ended
	}
	// Queues come before the jobs that name them, and once even if no object exists.
	if err := c.setQueues(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("queues", "error", err)
		c.work.AddRateLimited(allQueues)
	}
	if err := c.enqueueKnown(ctx); err != nil {
		return stopped(ctx, fmt.Errorf("list the jobs that the journal has: %w", err))
	}
	for range workers {
		done.Go(func() { c.worker(ctx) })
	}
	defer c.work.ShutDown()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.Some():
			for _, id := range changes.Take() {
				if ns, name, ours := cluster.SplitJob(id); ours {
					c.work.Add(ns + "/" + name)
				}
			}
		}
	}
}

// stopped drops an error that only says that ctx ended.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// enqueueKnown queues every job that the daemon has from an object, which may have been deleted while no operator ran.
func (c *controller) enqueueKnown(ctx context.Context) error {
	page, err := c.daemon.Jobs(ctx, status.JobQuery{})
	for i := range page.Jobs {
		if ns, name, ours := cluster.SplitJob(page.Jobs[i].Name); ours {
			c.work.Add(ns + "/" + name)
		}
	}
	return err
}

func (c *controller) worker(ctx context.Context) {
	for {
		key, over := c.work.Get()
		if over {
			return
		}
		after, err := c.turn(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			c.log.Warn("an object is looked at again", "object", key, "error", err)
			c.work.AddRateLimited(key)
		case err == nil:
			c.work.Forget(key)
			if after > 0 {
				c.work.AddAfter(key, after)
			}
		}
		c.work.Done(key)
	}
}

// turn reconciles one object, and says when to do so again; 0: on its next change.
func (c *controller) turn(ctx context.Context, key string) (time.Duration, error) {
	if key == allQueues {
		return 0, c.setQueues(ctx)
	}
	if key == allPools {
		return c.lookAtPools(ctx)
	}
	namespace, name, ok := strings.Cut(key, "/")
	if !ok || c.namespace != "" && namespace != c.namespace {
		return 0, nil // from before the operator was restricted to a namespace: left alone
	}
	o, err := c.object(c.jobs, key)
	if err != nil {
		return 0, err
	}
	id := cluster.JobID(namespace, name)
	switch {
	case o == nil, c.others(o): // it may have been ours, and given to another operator by a person
		return c.leave(ctx, id, nil)
	case o.GetDeletionTimestamp() != nil:
		return c.leave(ctx, id, o)
	}
	return c.keep(ctx, id, o)
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
