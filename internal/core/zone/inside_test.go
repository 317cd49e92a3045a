package zone

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Count is how often a job was not served for each reason, and when last.
func Count(z *Zone, id job.ID) (n [market.Aside + 1]int64, last [market.Aside + 1]quantity.Instant) {
	for _, c := range z.floor.Counts(&entryOf(z.jobs[id]).floor).List {
		if c.Reason != market.Eligible { // who is noted for having kept another from continuing is the one difference
			n[c.Reason], last[c.Reason] = c.N, c.Last
		}
	}
	return n, last
}

// Audit says what the zone's floor keeps that is not so, and which slices with a rigid job's place are not known as such.
func Audit(z *Zone, now quantity.Instant) []string {
	wrong := z.floor.Audit(now)
	for s := range z.offeredSlices() {
		holds := slices.ContainsFunc(s.view.Reserved, func(r protocol.Reservation) bool { return r.Kind == protocol.ForRigid })
		if holds != z.planner.Holds(&s.kept) {
			wrong = append(wrong, fmt.Sprintf("slice %s: it holds a rigid job's place: %v", s.id, holds))
		}
	}
	return wrong
}

// Viewed is the version of the slice's view that the zone goes by.
func Viewed(z *Zone, id job.SliceID) uint64 { return z.slice(id).view.Version }

// Woken is when the zone has last asked to be woken.
func Woken(z *Zone) quantity.Instant { return z.woken }

// KeptQueue is all that is durable of a queue.
type KeptQueue struct {
	protocol.Queue
	Standing  protocol.Standing
	Templates map[string]any
}

// Durable is all that is durable of a zone, for comparison: an empty list is none.
func Durable(z *Zone) (all struct {
	Records []protocol.Record
	Queues  []KeptQueue
}) {
	for _, j := range z.all() {
		r := *j.record()
		for _, list := range []*job.Ranges{&r.Committed, &r.Claimed, &r.Skipped} {
			*list = append(job.Ranges(nil), *list...)
		}
		r.Claims, r.Past = append([]protocol.Claim(nil), r.Claims...), append([]protocol.Past(nil), r.Past...)
		r.Learned.Rates, r.Learned.Suspects = append([]time.Duration(nil), r.Learned.Rates...), append([]protocol.Suspect(nil), r.Learned.Suspects...)
		all.Records = append(all.Records, r)
	}
	for _, name := range z.queueNames() {
		q := z.queues[name]
		d := KeptQueue{Queue: q.Queue, Standing: q.standing, Templates: map[string]any{}}
		for _, t := range q.templates {
			d.Templates[t.name] = t.runs.List
		}
		if d.Queue != (protocol.Queue{Name: name, Weight: 1}) || d.Standing != (protocol.Standing{}) || len(d.Templates) > 0 {
			all.Queues = append(all.Queues, d) // others are as good as never heard of
		}
	}
	return all
}

// Listed is a job as a list of jobs has to show it.
type Listed struct {
	status.JobKey
	Queue string
	State job.State
}

// Everybody is all jobs of the zone in the order of lists, found without its rosters.
func Everybody(z *Zone) (all []Listed) {
	for _, j := range z.jobs { //sluice:sorted sorted below
		all = append(all, Listed{j.listKey(), j.q.Name, j.phase()})
	}
	slices.SortFunc(all, func(a, b Listed) int { return a.Compare(b.JobKey) })
	return all
}
