//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
)

// setQueues applies Queue objects to the daemon's queues. A queue without an object gets the defaults.
func (c *controller) setQueues(ctx context.Context) error {
	have, err := c.daemon.Queues(ctx)
	if err != nil {
		return err
	}
	want := map[string]protocol.Queue{}
	for _, q := range have {
		want[q.Queue.Name] = protocol.Queue{Name: q.Queue.Name, Weight: 1}
	}
	var errs []error
	verdicts := map[*object]verdict{}
	for _, key := range c.queues.GetStore().ListKeys() {
		o, err := c.object(c.queues, key)
		if err != nil || o == nil || o.GetDeletionTimestamp() != nil {
			errs = append(errs, err)
			continue
		}
		q, err := config.ParseQueue(o.GetName(), FileOf(o))
		if err != nil { // the queue keeps its settings
			verdicts[o] = no(o.GetGeneration(), invalid, placed(err).Error())
			for _, h := range have {
				if h.Queue.Name == o.GetName() {
					want[o.GetName()] = h.Queue
				}
			}
			continue
		}
		want[q.Name], verdicts[o] = q.Queue, yes(o.GetGeneration(), "jobs may name it")
	}
	for _, q := range want {
		at := slices.IndexFunc(have, func(h status.Queue) bool { return h.Queue.Name == q.Name })
		if at >= 0 && have[at].Queue == q {
			continue
		}
		if err := c.daemon.SetQueue(ctx, "", q); err != nil {
			errs = append(errs, fmt.Errorf("queue %s: %w", q.Name, err))
		}
	}
	errs = append(errs, c.say(ctx, verdicts))
	c.askAgainAll()
	return errors.Join(errs...)
}

// askAgainAll reconciles every job that was not accepted: the queue it names may exist now.
func (c *controller) askAgainAll() {
	for _, key := range c.jobs.GetStore().ListKeys() {
		o, err := c.object(c.jobs, key)
		if err != nil || o == nil {
			continue
		}
		if _, is := has(conditionsOf(o), accepted); !is {
			c.work.Add(key)
		}
	}
}

// admitted checks that jobs of a namespace may have Pods there and may name a queue; if not, the error is of kind Denied. A queue without
// a readable object admits nobody, except the default queue, which admits everybody while it has no object.
func (c *controller) admitted(namespace, queue string) error {
	if len(c.writable) > 0 && !slices.Contains(c.writable, namespace) {
		return errkind.Errorf(errkind.Denied, "namespace %s: this operator may run Pods only in %s: use one of these, or have this one "+
			"added to jobNamespaces of the chart", namespace, strings.Join(c.writable, ", "))
	}
	o, err := c.object(c.queues, queue)
	if err != nil || o == nil && queue == config.DefaultQueue {
		return err
	}
	if o == nil || o.GetDeletionTimestamp() != nil {
		return errkind.Errorf(errkind.Denied, "spec.queue: there is no queue %q: choose another, or kubectl apply a Queue of that name",
			queue)
	}
	q, err := config.ParseQueue(queue, FileOf(o))
	if err != nil {
		return errkind.Errorf(errkind.Denied, "spec.queue: what is written of queue %s can't be read, so that nobody may name it: see "+
			"its condition", queue)
	}
	if len(q.Namespaces) == 0 || slices.Contains(q.Namespaces, namespace) {
		return nil
	}
	return errkind.Errorf(errkind.Denied, "spec.queue: queue %s is for jobs of %s: choose another queue, or have this namespace added "+
		"to the queue's spec.namespaces", queue, strings.Join(q.Namespaces, ", "))
}
