package host

import (
	"context"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
)

// pageTurn is how many jobs one look from within the loop shows at most: well below a millisecond's worth, so that nobody else
// waits for somebody's list.
const pageTurn = 128

// gone is the life of a job that was forgotten and that the archive has yet to hear of: no job's.
const gone = ^job.Generation(0)

// maxListed is how many archived jobs a list has that asks for all.
const maxListed = 10_000

// Jobs lists the newest jobs before a key, those in memory and those in the archive. A long page is put together from several
// looks, between which the daemon goes on: a job that begins another life or leaves memory meanwhile may be seen twice or not at all.
func (h *Host) Jobs(ctx context.Context, q status.JobQuery) (status.JobPage, error) {
	hot, at, err := h.hotJobs(ctx, q)
	if err != nil || h.archivist == nil || !q.States.Over() {
		return hot, err // all in the archive are over: one that runs is not looked for among them
	}
	old, err := h.archivedJobs(ctx, q, at)
	if err != nil {
		return status.JobPage{}, err
	}
	return merged(q, hot, old), nil
}

// hotJobs lists those in memory.
func (h *Host) hotJobs(ctx context.Context, q status.JobQuery) (out status.JobPage, at quantity.Instant, err error) {
	var parts [][]status.Job // the newest first
	for found := 0; ; {
		part := q
		if part.Limit = pageTurn; q.Limit > 0 {
			part.Limit = min(pageTurn, q.Limit-found)
		}
		var left []job.ID // what the gate does not have
		page, err := ask(ctx, h, func(now quantity.Instant) status.JobPage {
			at = now
			page := h.page(now, part)
			// What the gate has forgotten, or begun another life of, its home may have to hear yet.
			page.Jobs = slices.DeleteFunc(page.Jobs, func(j status.Job) bool {
				life := h.actors.GateOf(j.Name).Life(j.Name)
				if life != 0 || h.archivist == nil || h.forgotten(j.Name) >= j.Generation {
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
		for _, name := range left { // or it has left it to the archive, where it is by now
			life, err := h.archivedLife(name)
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

// archivedJobs lists those in the archive, but not one that lives again. It looks at no more than the archive does in one call:
// a page of few matches may be short, and is then followed by others.
func (h *Host) archivedJobs(ctx context.Context, q status.JobQuery, at quantity.Instant) (out status.JobPage, err error) {
	before := archive.End()
	if q.Before != (status.JobKey{}) {
		before = archive.Cursor{Submitted: q.Before.Submitted, Job: q.Before.Name}
	}
	keep := func(e *archive.Entry) bool { return q.Queue == "" || q.Queue == e.Queue }
	limit := maxListed
	if q.Limit > 0 {
		limit = q.Limit
	}
	a := h.archivist.archive
	page, err := a.Page(before, limit, q.States, keep)
	if err != nil {
		return out, err
	}
	for _, damaged := range page.Damaged {
		_ = hidden(&out, damaged)
	}
	if !page.Done {
		out.Next = status.JobKey{Submitted: page.Next.Submitted, Name: page.Next.Job}
		if out.Older, err = h.older(q, page, keep); err != nil {
			return out, err
		}
	}
	for chunk := range slices.Chunk(page.Entries, pageTurn) {
		lives, err := ask(ctx, h, func(quantity.Instant) []job.Generation {
			lives := make([]job.Generation, len(chunk))
			for i := range chunk {
				if lives[i] = h.actors.GateOf(chunk[i].Job).Life(chunk[i].Job); lives[i] == 0 && h.forgotten(chunk[i].Job) >= chunk[i].Generation {
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
			part, of, err := h.filed(protocol.Zone, chunk[i].Job)
			if err = hidden(&out, err); err != nil {
				return out, err
			}
			if of == chunk[i].Generation { // else it is at home still, and in that list
				facts, names = append(facts, part...), append(names, chunk[i].Job)
			}
		}
		z := folded(h.opts.Actors, facts)
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

// hidden takes damage for a warning: it hides one job and no other. Any other error it returns.
func hidden(page *status.JobPage, err error) error {
	if errkind.Of(err) != errkind.Corrupt {
		return err
	}
	page.Warnings = append(page.Warnings, err.Error())
	return nil
}

// maxWarnings is how many jobs that can't be shown one page names.
const maxWarnings = 20

// fewer leaves out those beyond that, and says so.
func fewer(warnings []string) []string {
	if n := len(warnings) - maxWarnings; n > 0 {
		return append(warnings[:maxWarnings:maxWarnings], fmt.Sprintf("and %d more jobs are damaged", n))
	}
	return warnings
}

// older counts the archived jobs before a page: of all jobs without looking at them, of a selection as many as one call looks at.
func (h *Host) older(q status.JobQuery, page archive.Page, keep func(*archive.Entry) bool) (n int, err error) {
	if q.Before == (status.JobKey{}) && q.Queue == "" && q.States == 0 {
		size, failed := h.archivist.archive.Size()
		return max(1, int(size.Jobs)-len(page.Entries)-len(page.Damaged)), failed
	}
	_, err = h.archivist.archive.Page(page.Next, 1, q.States, func(e *archive.Entry) bool {
		if keep(e) {
			n++
		}
		return false
	})
	return max(1, n), err
}

// merged is one page of two. Where one of them goes on, the other is worth nothing beyond that: what is between may be missing.
func merged(q status.JobQuery, a, b status.JobPage) (out status.JobPage) {
	end := status.JobKey{}
	for _, p := range []status.JobPage{a, b} {
		if p.Older > 0 && p.Next.Compare(end) > 0 {
			end = p.Next
		}
	}
	out.Warnings = fewer(append(a.Warnings, b.Warnings...))
	out.Jobs = append(a.Jobs, b.Jobs...)
	slices.SortStableFunc(out.Jobs, func(x, y status.Job) int { return x.Key().Compare(y.Key()) })
	out.Jobs = slices.CompactFunc(out.Jobs, func(x, y status.Job) bool { return x.Key() == y.Key() })
	from, _ := slices.BinarySearchFunc(out.Jobs, end, func(j status.Job, k status.JobKey) int { return j.Key().Compare(k) })
	if q.Limit > 0 {
		from = max(from, len(out.Jobs)-q.Limit)
	}
	out.Older, out.Jobs = a.Older+b.Older+from, out.Jobs[from:]
	switch {
	case out.Older == 0:
	case from > 0 && len(out.Jobs) > 0 && out.Jobs[0].Key().Compare(end) > 0:
		out.Next = out.Jobs[0].Key()
	default:
		out.Next = end
	}
	return out
}
