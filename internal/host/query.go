package host

import (
	"context"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// ask runs f within the loop, between batches, where what the actors know is durable, and hands its result out. What f
// returns must not share memory that an actor will change.
func ask[T any](ctx context.Context, h *Host, f func(now quantity.Instant) T) (T, error) {
	var zero T
	ch := make(chan T, 1)
	if err := h.inbox.ask(func(now quantity.Instant) { ch <- f(now) }); err != nil {
		return zero, err
	}
	select {
	case v := <-ch:
		return v, nil
	case <-ctx.Done():
		return zero, errkind.Errorf(errkind.Unavailable, "the daemon did not answer in time: %w", ctx.Err())
	case <-h.done:
		return zero, errStopping()
	}
}

// pageTurn is how many jobs one look from within the loop shows at most: well below a millisecond's worth, so that nobody else
// waits for somebody's list.
const pageTurn = 128

// Jobs lists the newest jobs before a key. A long page is put together from several looks, between which the daemon goes on: a
// job that begins another life meanwhile may be seen twice or not at all.
func (h *Host) Jobs(ctx context.Context, q status.JobQuery) (status.JobPage, error) {
	var out status.JobPage
	var parts [][]status.Job // the newest first
	for found := 0; ; {
		part := q
		if part.Limit = pageTurn; q.Limit > 0 {
			part.Limit = min(pageTurn, q.Limit-found)
		}
		page, err := ask(ctx, h, func(now quantity.Instant) status.JobPage {
			page := h.actors.Zone.Page(now, part)
			// What the gate has forgotten, or begun another life of, its home may have to hear yet.
			page.Jobs = slices.DeleteFunc(page.Jobs, func(j status.Job) bool { return h.actors.Gate.Life(j.Name) != j.Generation })
			return page
		})
		if err != nil {
			return status.JobPage{}, err
		}
		parts, found = append(parts, page.Jobs), found+len(page.Jobs)
		if out.Older, out.Next = page.Older, page.Next; out.Older == 0 || q.Limit > 0 && found >= q.Limit {
			break
		}
		q.Before = page.Next
	}
	slices.Reverse(parts)
	out.Jobs = slices.Concat(parts...)
	return out, nil
}

// Job is one job. An error of kind NotFound: there is none of that name.
func (h *Host) Job(ctx context.Context, name job.ID) (status.Job, error) {
	return one(ctx, h, name, h.actors.Zone.Job, func(j *status.Job) job.Generation { return j.Generation })
}

// Standing is how jobs stand, without their histories, in the order of their names. An error of kind NotFound: there is none of
// one of them.
func (h *Host) Standing(ctx context.Context, names []job.ID) ([]status.Job, error) {
	out := make([]status.Job, 0, len(names))
	for part := range slices.Chunk(names, pageTurn) {
		found, err := ask(ctx, h, func(now quantity.Instant) []status.Job {
			list := make([]status.Job, len(part))
			for i, name := range part {
				if j, ok := h.actors.Zone.Brief(now, name); ok && h.actors.Gate.Life(name) == j.Generation {
					list[i] = j
				}
			}
			return list
		})
		if err != nil {
			return nil, err
		}
		for i, name := range part {
			if found[i].Name == "" { // on its way to its home, or unknown
				if found[i], err = one(ctx, h, name, h.actors.Zone.Brief, func(j *status.Job) job.Generation { return j.Generation }); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, found...)
	}
	return out, nil
}

// Explain says why a job waits, or where it ran.
func (h *Host) Explain(ctx context.Context, name job.ID) (status.Explanation, error) {
	return one(ctx, h, name, h.actors.Zone.Explain, func(e *status.Explanation) job.Generation { return e.Job.Generation })
}

// adoption is how long a job may be on its way from the gate to its home before a question about it is given up.
const adoption = 5 * time.Second

// one looks a job up at its home. Between its acceptance and its adoption only the gate knows it: whoever has just
// submitted it must not be told that it does not exist, and whoever has requeued it not how its last life ended.
func one[T any](ctx context.Context, h *Host, name job.ID, view func(quantity.Instant, job.ID) (T, bool), life func(*T) job.Generation) (T, error) {
	type result struct {
		value     T
		ok, known bool
	}
	var zero T
	limit := time.NewTimer(adoption)
	defer limit.Stop()
	changed, stop := h.Watch(name)
	defer stop()
	for {
		r, err := ask(ctx, h, func(now quantity.Instant) result {
			v, ok := view(now, name)
			present := h.actors.Gate.Life(name)
			return result{v, ok && life(&v) == present, present != 0}
		})
		switch {
		case err != nil:
			return zero, err
		case r.ok:
			return r.value, nil
		case !r.known:
			return zero, errkind.Errorf(errkind.NotFound, "there is no job %q; see the list of jobs for those there are", name)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return zero, errkind.Errorf(errkind.Unavailable, "job %s was accepted and is on its way to its home: ask again: %w", name, ctx.Err())
		case <-limit.C:
			return zero, errkind.Errorf(errkind.Unavailable, "job %s was accepted and is on its way to its home: ask again", name)
		case <-h.done:
			return zero, errStopping()
		}
	}
}

// Slices lists this node's slices.
func (h *Host) Slices(ctx context.Context) ([]status.Slice, error) {
	return ask(ctx, h, h.actors.Node.Slices)
}

// Windows lists what is advertised now.
func (h *Host) Windows(ctx context.Context) ([]status.Window, error) {
	return ask(ctx, h, h.actors.Zone.Windows)
}

// Queues lists the queues with their use.
func (h *Host) Queues(ctx context.Context) ([]status.Queue, error) {
	return ask(ctx, h, h.actors.Zone.Queues)
}

// History is what each slice did since then, as far back as is kept.
func (h *Host) History(ctx context.Context, since quantity.Instant) (status.History, error) {
	return ask(ctx, h, func(now quantity.Instant) status.History { return h.observer.History(since, now) })
}
