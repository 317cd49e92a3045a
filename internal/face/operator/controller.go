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
	// slicePools are read at the start too.
	slicePools = resource("slicepools") //nolint:gochecknoglobals // as jobs
)

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version, Resource: plural}
}

const (
	// workers is how many objects are brought up to date at once: each mostly waits for an answer of the API server or for the journal.
	workers = 8
	// between is the least time between two writes of one object's status.
	between = time.Second
	// resync is how often every object is looked at again, whatever was missed.
	resync = 10 * time.Minute
	// askAgain is after what time a job is offered again that was refused for what may pass (no slice that could run it, a queue that is not there); then after twice
	// that, and so on to resync.
	askAgain = 30 * time.Second
	// allQueues is the key under which queues are brought up to date, all at once: no job has it.
	allQueues = "queues"
	// allPools is that of pools. Changes of them are gathered for a while, since each has the whole cluster looked at.
	allPools = "slicepools"
	gather   = 2 * time.Second
)

// daemon is what the controller drives: of the host, what objects stand for.
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

// controller keeps objects and the daemon in agreement. Objects say what should be, the daemon what is; all that the controller has of its own is soft.
type controller struct {
	daemon daemon
	client dynamic.Interface
	events record.EventRecorder
	log    *slog.Logger
	// name of the operator, and the namespace whose jobs it may take; empty: all.
	name, namespace string
	// writable are the namespaces in which the operator may write Pods; none: all.
	writable []string

	// older: the API server's definition of a Job does not know status.operator.
	older atomic.Bool

	jobs, queues, pools cache.SharedIndexInformer
	offers              offers
	work                workqueue.TypedRateLimitingInterface[string]

	mu   sync.Mutex
	seen map[string]*seen
}

// seen is what is known of an object since the start. It belongs to the worker that has the object's key.
type seen struct {
	uid types.UID
	// ours: the job of this name that the daemon has is this object's.
	ours bool
	// taken: the object bears our name since we have written it.
	taken bool
	// refused is how many times in a row it was, in the same words.
	refused int
	// verdict of its submission, zero: it has not been offered.
	verdict verdict
	// wrote is the status that was written last, and when.
	wrote string
	at    time.Time
	state job.State
	told  bool
}

// newController watches objects of one namespace, or of all where it is empty, for an operator of a name.
func newController(d daemon, client dynamic.Interface, events record.EventRecorder, name, namespace string, offered offers, log *slog.Logger) *controller {
	own := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, nil)
	all := dynamicinformer.NewDynamicSharedInformerFactory(client, resync)
	return &controller{
		daemon: d, client: client, events: events, log: log, name: name, namespace: namespace, jobs: own.ForResource(jobs).Informer(), queues: all.ForResource(queues).Informer(), pools: all.ForResource(slicePools).Informer(), offers: offered,
		work: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, time.Minute)),
		seen: map[string]*seen{},
	}
}

// run works until ctx is done.
func (c *controller) run(ctx context.Context) error {
	add := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			c.work.Add(key)
		}
	}
	again := func(any) { c.work.Add(allQueues) }
	_, err1 := c.jobs.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add})
	_, err2 := c.queues.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: again, UpdateFunc: func(_, o any) { again(o) }, DeleteFunc: again})
	look := func(any) { c.work.AddAfter(allPools, gather) }
	_, err3 := c.pools.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, o any) { look(o) }, DeleteFunc: look})
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
		return nil // it was stopped
	}
	// Queues before the jobs that name them, and once even where there is no object.
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

// stopped is nil where an error only says that the process was told to stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// enqueueKnown has every job of an object looked at that the daemon has: the object may have gone while nobody was there.
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

// turn brings one object up to date, and says after what time it is to be looked at again; 0: when something changes.
func (c *controller) turn(ctx context.Context, key string) (time.Duration, error) {
	if key == allQueues {
		return 0, c.setQueues(ctx)
	}
	if key == allPools {
		return 0, c.lookAtPools(ctx)
	}
	namespace, name, ok := strings.Cut(key, "/")
	if !ok || c.namespace != "" && namespace != c.namespace {
		return 0, nil // a job from before the operator was told of one namespace alone is left as it is
	}
	o, err := c.object(c.jobs, key)
	if err != nil {
		return 0, err
	}
	id := cluster.JobID(namespace, name)
	switch {
	case o == nil, c.others(o): // if it was ours before, somebody has given it to the other one
		return c.leave(ctx, id, nil)
	case o.GetDeletionTimestamp() != nil:
		return c.leave(ctx, id, o)
	}
	return c.keep(ctx, id, o)
}

// of is what is known of an object; nothing, where there was another under its key.
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

// event tells people of an object what happened to it.
func (c *controller) event(o *object, warning bool, reason, format string, args ...any) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	c.events.Eventf(o, kind, reason, format, args...)
}
