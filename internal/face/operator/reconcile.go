//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
)

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
		done.Go(func() { serve(ctx, c.work, c.log, "an object is looked at again", c.turn) })
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

// serve takes items of a queue until it shuts down. One that failed is logged as what and put back; so is one that is due again, for then.
func serve(ctx context.Context, work workqueue.TypedRateLimitingInterface[string], log *slog.Logger, what string,
	turn func(ctx context.Context, key string) (time.Duration, error)) {
	for {
		key, over := work.Get()
		if over {
			return
		}
		after, err := turn(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Warn(what, "object", key, "error", err)
			work.AddRateLimited(key)
		case err == nil:
			work.Forget(key)
			if after > 0 {
				work.AddAfter(key, after)
			}
		}
		work.Done(key)
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
