package pages

import (
	"context"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/host/inbox"
)

// gone is the life of a job that was forgotten while the archive still has it: no job has this number.
const gone = ^job.Generation(0)

// maxListed is how many archived jobs a list has that asks for all.
const maxListed = 10_000

// list puts a page of jobs together.
type list struct{ *Pages }

// hot lists those in memory.
func (p list) hot(ctx context.Context, q status.JobQuery) (out status.JobPage, at quantity.Instant, err error) {
	var parts [][]status.Job // the newest first
	for found := 0; ; {
		part := q
		if part.Limit = pageTurn; q.Limit > 0 {
			part.Limit = min(pageTurn, q.Limit-found)
		}
		var left []job.ID // unknown to the gate
		page, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) status.JobPage {
			at = now
			page := p.views.page(now, part)
			// If the gate has forgotten it, or begun another life, its home may not know that yet.
			page.Jobs = slices.DeleteFunc(page.Jobs, func(j status.Job) bool {
				life := p.views.Life(j.Name)
				if life != 0 || p.archive == nil || p.views.forgotten(j.Name) >= j.Generation {
					return life != j.Generation
				}
				left = append(left, j.Name)
				return false
			})
			return page
		})
		if err != nil {
			return status.JobPage{}, at, err
		}
		for _, name := range left { // or it was left to the archive, where it is by now
			life, err := p.archive.Life(name)
			if err = hidden(&out, err); err != nil {
				return status.JobPage{}, at, err
			}
			page.Jobs = slices.DeleteFunc(page.Jobs, func(j status.Job) bool { return j.Name == name && j.Generation != life })
		}
		parts, found = append(parts, page.Jobs), found+len(page.Jobs)
		if out.Older, out.Next = page.Older, page.Next; out.Older == 0 || q.Limit > 0 && found >= q.Limit {
			break
		}
		q.Before = page.Next
	}
	slices.Reverse(parts)
	out.Jobs = slices.Concat(parts...)
	return out, at, nil
}

// archived lists those in the archive, but not one that lives again. It looks at no more than the archive does in one call:
// a page of few matches may be short, and is then followed by others.
func (p list) archived(ctx context.Context, q status.JobQuery, at quantity.Instant) (out status.JobPage, err error) {
	before := archive.End()
	if q.Before != (status.JobKey{}) {
		before = archive.Cursor{Submitted: q.Before.Submitted, Job: q.Before.Name}
	}
	keep := func(e *archive.Entry) bool {
		return (q.Queue == "" || q.Queue == e.Queue) && (q.Owner == "" || q.Owner == e.Owner)
	}
	limit := maxListed
	if q.Limit > 0 {
		limit = q.Limit
	}
	a := p.archive.Archive()
	page, err := a.Page(before, limit, q.States, keep)
	if err != nil {
		return out, err
	}
	for _, damaged := range page.Damaged {
		_ = hidden(&out, damaged)
	}
	if !page.Done {
		out.Next = status.JobKey{Submitted: page.Next.Submitted, Name: page.Next.Job}
		if out.Older, err = p.older(q, page, keep); err != nil {
			return out, err
		}
	}
	for chunk := range slices.Chunk(page.Entries, pageTurn) {
		lives, err := inbox.Ask(ctx, p.inbox, func(quantity.Instant) []job.Generation {
			lives := make([]job.Generation, len(chunk))
			for i := range chunk {
				if lives[i] = p.views.Life(chunk[i].Job); lives[i] == 0 && p.views.forgotten(chunk[i].Job) >= chunk[i].Generation {
					lives[i] = gone
				}
			}
			return lives
		})
		if err != nil {
			return out, err
		}
		var facts []protocol.Fact
		var names []job.ID
		for i := range chunk {
			if lives[i] != 0 && lives[i] != chunk[i].Generation {
				continue
			}
			part, of, err := p.archive.Filed(protocol.Zone, chunk[i].Job)
			if err = hidden(&out, err); err != nil {
				return out, err
			}
			if of == chunk[i].Generation { // else it is at home still, and in that list
				facts, names = append(facts, part...), append(names, chunk[i].Job)
			}
		}
		z := folded(p.fresh, facts)
		for _, name := range names {
			j, ok := z.Brief(at, name)
			if !ok {
				_ = hidden(&out, errkind.Errorf(errkind.Corrupt, "what was archived of job %s does not show it; please report this", name))
				continue
			}
			out.Jobs = append(out.Jobs, j)
		}
	}
	slices.Reverse(out.Jobs)
	return out, nil
}

// older counts the archived jobs before a page: of all jobs without looking at them, of a selection as many as one call looks at.
func (p list) older(q status.JobQuery, page archive.Page, keep func(*archive.Entry) bool) (n int, err error) {
	if q.Before == (status.JobKey{}) && q.Queue == "" && q.Owner == "" && q.States == 0 {
		size, failed := p.archive.Archive().Size()
		return max(1, int(size.Jobs)-len(page.Entries)-len(page.Damaged)), failed
	}
	_, err = p.archive.Archive().Page(page.Next, 1, q.States, func(e *archive.Entry) bool {
		if keep(e) {
			n++
		}
		return false
	})
	return max(1, n), err
}

// Jobs lists the newest jobs before a key, those in memory and those in the archive. A long page is put together from several
// looks, between which the daemon goes on: a job that begins another life or leaves memory meanwhile may be seen twice or not at all.
func (p *Pages) Jobs(ctx context.Context, q status.JobQuery) (status.JobPage, error) {
	hot, at, err := list{p}.hot(ctx, q)
	if err != nil || p.archive == nil || !q.States.Over() {
		return hot, err // all in the archive are over: one that runs is not looked for among them
	}
	old, err := list{p}.archived(ctx, q, at)
	if err != nil {
		return status.JobPage{}, err
	}
	return merged(q, hot, old), nil
}
