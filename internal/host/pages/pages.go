// Package pages answers what people ask: from the actors, and of jobs that are over from the archive. It changes nothing.
package pages

import (
	"context"
	"slices"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host/inbox"
)

// Job is one job. An error of kind NotFound: there is none of that name.
func (p *Pages) Job(ctx context.Context, name job.ID) (status.Job, error) {
	return one(ctx, p, name, p.views.Job, shown(p, name, actor.Zone.Job), func(j *status.Job) job.Generation { return j.Generation })
}

// older is what a zone shows of the subjobs of a life of a job.
type older struct {
	list []status.Subjob
	life job.Generation
}

// Whole are pages for those who need all of a job, however large it is.
type Whole struct{ *Pages }

// Older are the subjobs of a job that Job leaves out, the last of them before an index: the first is as many before that as there are.
// Whoever wants all goes on with the index of the first; none are left at 0.
func (w Whole) Older(ctx context.Context, name job.ID, before int) ([]status.Subjob, error) {
	p := w.Pages
	look := func(z actor.Zone, _ quantity.Instant, name job.ID) (o older, ok bool) {
		if s, is := z.(actor.Surveyor); is {
			o.list, o.life, ok = s.Survey().Older(name, before)
		}
		return o, ok
	}
	live := func(now quantity.Instant, name job.ID) (older, bool) { return look(p.views.home(now, name), now, name) }
	o, err := one(ctx, p, name, live, shown(p, name, look), func(o *older) job.Generation { return o.life })
	return o.list, err
}

// Standing is how jobs stand, without their histories, in the order of their names. An error of kind NotFound: there is none of
// one of them.
func (p *Pages) Standing(ctx context.Context, names []job.ID) ([]status.Job, error) {
	out := make([]status.Job, 0, len(names))
	for part := range slices.Chunk(names, pageTurn) {
		found, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) []status.Job {
			list := make([]status.Job, len(part))
			for i, name := range part {
				if j, ok := p.views.brief(now, name); ok && p.views.Life(name) == j.Generation {
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
				if found[i], err = one(ctx, p, name, p.views.brief, shown(p, name, actor.Zone.Brief),
					func(j *status.Job) job.Generation { return j.Generation }); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, found...)
	}
	return out, nil
}

// Explain says why a job waits, or where it ran.
func (p *Pages) Explain(ctx context.Context, name job.ID) (status.Explanation, error) {
	filed := func(facts []protocol.Fact) (status.Explanation, bool, error) {
		record := protocol.Kept(facts)
		if record == nil {
			return status.Explanation{}, false, nil
		}
		// Where it would fit is a matter of the slices there are.
		e, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) status.Explanation {
			z := p.views.filedAt(now, name, facts[0].Actor)
			e := z.ExplainFiled(now, record)
			p.views.complete(now, name, z, &e)
			return e
		})
		return e, true, err
	}
	return one(ctx, p, name, p.views.explain, filed, func(e *status.Explanation) job.Generation { return e.Job.Generation })
}

// Slices lists the slices of this machine.
func (p *Pages) Slices(ctx context.Context) ([]status.Slice, error) {
	return inbox.Ask(ctx, p.inbox, p.views.slices)
}

// Wishes lists the workloads outside Sluice that wait for devices of this machine.
func (p *Pages) Wishes(ctx context.Context) ([]status.Wish, error) {
	return inbox.Ask(ctx, p.inbox, p.views.wishes)
}

// HostWaits asks for the waits that are over (Views.HostWaits).
func HostWaits(p *Pages) func(context.Context, map[job.NodeID]uint64) ([]status.HostWait, error) {
	return func(ctx context.Context, after map[job.NodeID]uint64) ([]status.HostWait, error) {
		return inbox.Ask(ctx, p.inbox, func(quantity.Instant) []status.HostWait { return p.views.HostWaits(after) })
	}
}

// Windows lists what is advertised now.
func (p *Pages) Windows(ctx context.Context) ([]status.Window, error) {
	return inbox.Ask(ctx, p.inbox, p.views.windows)
}

// Zones lists the zones with what they have.
func (p *Pages) Zones(ctx context.Context) ([]status.Zone, error) {
	return inbox.Ask(ctx, p.inbox, p.views.zones)
}

// Airlocks lists what each node makes of this machine's memory, and did of late.
func (p *Pages) Airlocks(ctx context.Context) ([]status.Airlock, error) {
	return inbox.Ask(ctx, p.inbox, p.views.airlocks)
}

// Queues lists the queues with their use.
func (p *Pages) Queues(ctx context.Context) ([]status.Queue, error) {
	return inbox.Ask(ctx, p.inbox, p.views.queues)
}

// History is what each slice did since then, as far back as is kept. It is put together from several looks.
func (p *Pages) History(ctx context.Context, since quantity.Instant) (out status.History, err error) {
	type piece struct {
		status.History
		next job.SliceID
	}
	for after := job.SliceID(""); ; {
		part, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) (x piece) {
			if out.To != 0 {
				now = out.To // all of one instant
			}
			x.History, x.next = p.observer.History(since, now, after)
			return x
		})
		if err != nil {
			return status.History{}, err
		}
		out.From, out.To, out.Slices = part.From, part.To, append(out.Slices, part.Slices...)
		if after = part.next; after == "" {
			return out, nil
		}
	}
}

// Check says of each job what would keep it from being accepted, and changes nothing; nil for one that would be accepted, and for one
// whose name is taken: it is the same job again, or is refused in its turn.
func (p *Pages) Check(ctx context.Context, specs []*job.Spec) ([]error, error) {
	out := make([]error, 0, len(specs))
	for part := range slices.Chunk(specs, pageTurn) {
		errs, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) []error {
			errs := make([]error, len(part))
			for i, s := range part {
				if p.views.Life(s.Name) == 0 {
					errs[i] = p.views.check(now, s)
				}
			}
			return errs
		})
		if err != nil {
			return nil, err
		}
		out = append(out, errs...)
	}
	return out, nil
}

// DryRun predicts what Submit would do and when the job would start, and changes nothing.
func (p *Pages) DryRun(ctx context.Context, spec *job.Spec) (status.Explanation, error) {
	type result struct {
		explanation status.Explanation
		err         error
	}
	r, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) result {
		if err := p.views.check(now, spec); err != nil {
			return result{err: err}
		}
		return result{explanation: p.views.dryRun(now, spec)}
	})
	if err == nil {
		err = r.err
	}
	return r.explanation, err
}

// Cuts says what a reservation that cuts running subjobs short would cost, and changes nothing.
func (p *Pages) Cuts(ctx context.Context, r protocol.Reservation) ([]status.Cut, error) {
	type result struct {
		cuts []status.Cut
		err  error
	}
	answer, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) result {
		cuts, err := p.views.cuts(now, r)
		return result{cuts, err}
	})
	if err == nil {
		err = answer.err
	}
	return answer.cuts, err
}
