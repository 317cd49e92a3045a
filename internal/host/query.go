package host

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
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

// Job is one job. An error of kind NotFound: there is none of that name.
func (h *Host) Job(ctx context.Context, name job.ID) (status.Job, error) {
	return one(ctx, h, name, h.job, shown(h, name, actor.Zone.Job), func(j *status.Job) job.Generation { return j.Generation })
}

// Standing is how jobs stand, without their histories, in the order of their names. An error of kind NotFound: there is none of
// one of them.
func (h *Host) Standing(ctx context.Context, names []job.ID) ([]status.Job, error) {
	out := make([]status.Job, 0, len(names))
	for part := range slices.Chunk(names, pageTurn) {
		found, err := ask(ctx, h, func(now quantity.Instant) []status.Job {
			list := make([]status.Job, len(part))
			for i, name := range part {
				if j, ok := h.brief(now, name); ok && h.actors.GateOf(name).Life(name) == j.Generation {
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
				if found[i], err = one(ctx, h, name, h.brief, shown(h, name, actor.Zone.Brief), func(j *status.Job) job.Generation { return j.Generation }); err != nil {
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
	filed := func(facts []protocol.Fact) (status.Explanation, bool, error) {
		if len(facts) == 0 || facts[0].Record == nil {
			return status.Explanation{}, false, nil
		}
		// Where it would fit is a matter of the slices there are.
		e, err := ask(ctx, h, func(now quantity.Instant) status.Explanation {
			z := h.filedAt(now, name, facts[0].Actor)
			e := z.ExplainFiled(now, facts[0].Record)
			e.Home, e.Endured = h.nameOf(z), h.endured(name, e.Job.Generation)
			return e
		})
		return e, true, err
	}
	return one(ctx, h, name, h.explain, filed, func(e *status.Explanation) job.Generation { return e.Job.Generation })
}

// adoption is how long a job may be on its way from the gate to its home before a question about it is given up.
const adoption = 5 * time.Second

// one looks a job up at its home, or in the archive once it has left there. Between its acceptance and its adoption only the gate
// knows it: whoever has just submitted it must not be told that it does not exist, and whoever has requeued it not how its last
// life ended.
func one[T any](ctx context.Context, h *Host, name job.ID, view func(quantity.Instant, job.ID) (T, bool), filed func([]protocol.Fact) (T, bool, error), life func(*T) job.Generation) (T, error) {
	type result struct {
		// value is what the home shows, if it has it (ok), of life shown; present is the gate's.
		value          T
		ok             bool
		shown, present job.Generation
		// forgotten lives are on their way out of the archive.
		forgotten job.Generation
	}
	var zero T
	limit := time.NewTimer(adoption)
	defer limit.Stop()
	changed, stop := h.Watch(name)
	defer stop()
	for {
		r, err := ask(ctx, h, func(now quantity.Instant) result {
			r := result{present: h.actors.GateOf(name).Life(name), forgotten: h.forgotten(name)}
			if v, ok := view(now, name); ok {
				r.value, r.ok, r.shown = v, true, life(&v)
			}
			return r
		})
		if err != nil {
			return zero, err
		}
		// Asked first and looked up then: what has left memory by now is in the archive.
		cold := r.present == 0
		if cold {
			if r.present, err = h.archivedLife(name); err != nil {
				return zero, err
			}
			if r.present <= r.forgotten {
				r.present = 0
			}
		}
		if r.ok && r.shown == r.present {
			return r.value, nil
		}
		if r.present == 0 {
			return zero, errkind.Errorf(errkind.NotFound, "there is no job %q; see the list of jobs for those there are", name)
		}
		v, of, err := archivedView(h, name, filed, life)
		if err != nil || of == r.present || of != 0 && planted.In(planted.ShowEarlierLife) {
			return v, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return zero, errkind.Errorf(errkind.Unavailable, "job %s was accepted and is on its way to its home: ask again: %w", name, ctx.Err())
		case <-limit.C:
			if cold && of == 0 && !r.ok { // the gate let go of it, and its home has done so before
				return zero, errkind.Errorf(errkind.Corrupt, "archive %s: what the home of job %q filed is missing: restore the archive's directory from a backup; or go on without the job: `sluice delete %s`",
					filepath.Join(h.opts.DataDir, ArchiveDir), name, name)
			}
			return zero, errkind.Errorf(errkind.Unavailable, "job %s was accepted and is on its way to its home: ask again", name)
		case <-h.done:
			return zero, errStopping()
		}
	}
}

// Slices lists the slices of this machine.
func (h *Host) Slices(ctx context.Context) ([]status.Slice, error) {
	return ask(ctx, h, h.slicesOf)
}

// Windows lists what is advertised now.
func (h *Host) Windows(ctx context.Context) ([]status.Window, error) {
	return ask(ctx, h, h.windows)
}

// Zones lists the zones with what they have.
func (h *Host) Zones(ctx context.Context) ([]status.Zone, error) { return ask(ctx, h, h.zones) }

// Airlocks lists what each node makes of this machine's memory, and did of late.
func (h *Host) Airlocks(ctx context.Context) ([]status.Airlock, error) {
	return ask(ctx, h, h.airlocks)
}

// Queues lists the queues with their use.
func (h *Host) Queues(ctx context.Context) ([]status.Queue, error) {
	return ask(ctx, h, h.queues)
}

// History is what each slice did since then, as far back as is kept. It is put together from several looks.
func (h *Host) History(ctx context.Context, since quantity.Instant) (out status.History, err error) {
	type piece struct {
		status.History
		next job.SliceID
	}
	for after := job.SliceID(""); ; {
		p, err := ask(ctx, h, func(now quantity.Instant) (p piece) {
			if out.To != 0 {
				now = out.To // all of one instant
			}
			p.History, p.next = h.observer.History(since, now, after)
			return p
		})
		if err != nil {
			return status.History{}, err
		}
		out.From, out.To, out.Slices = p.From, p.To, append(out.Slices, p.Slices...)
		if after = p.next; after == "" {
			return out, nil
		}
	}
}
