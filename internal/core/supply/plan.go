package supply

import (
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// lookAgain is how long an order holds at most.
	lookAgain = 30 * time.Second
	// lookSoon is how long while a job waits for a gap: one that opens for a few minutes is worth a look.
	lookSoon = time.Second
	// young pilots are not withdrawn, even if nothing is left for them: what waits may be on its way from one claim to the next.
	young = 5 * time.Second
	// patience is how long after it was asked for a pilot may still start in the gap that it was asked for, though that is a little shorter
	// than the pilot by now. Hosts start nothing at once: Slurm's passes are seconds to half a minute apart, and take their time.
	patience = time.Minute
	// missedFor is how long what was learned from a pilot that missed its gap counts.
	missedFor = 3 * time.Hour
	// learnedFrom is how many of the newest starts the cost of a start is learned from.
	learnedFrom = 15
)

// plan is one decision in the making.
type plan struct {
	now  quantity.Instant
	s    *Sight
	pool *Pool
	// slots as they were told.
	slots []Slot
	// free is when what a machine was sold on any of its slots is over.
	free map[job.NodeID]quantity.Instant
	// pilots and gaps are those of the Sight in an order that does not depend on its own.
	pilots []Pilot
	gaps   []opening
	// start is what a pilot takes from its start until its machine has joined, cost the same with its hand-over: what of it is not sold.
	start, cost time.Duration
	// wait is what the host takes to start a pilot that has a gap: that much of the gap is over by then.
	wait time.Duration
	// shortest and longest are what may be asked for, in whole steps.
	shortest, longest time.Duration
	places            []*place
	asks              []*ask
	streak, limit     streak
	// laid counts the shares.
	laid int
	// most: a job got no new pilot since there may be no more. unfit is the job with the shortest least piece that no gap holds, and how
	// long that is; nil: there is none.
	most  bool
	unfit *Demand
	// soon: some work was laid on what exists or is on its way, full: some waits there longer than a new pilot would take.
	soon, full bool
}

// opening is a gap in which a pilot may be asked for now.
type opening struct {
	// left is how long it lasts, length that of the longest pilot to be asked for there.
	left, length time.Duration
	count        int
}

// ask is a new pilot in the making.
type ask struct {
	job *Demand
	// most is how long it may be, least the shortest piece that was laid on it.
	most, least time.Duration
	// places of it.
	places []*place
}

// kind of a place, in the order in which work is laid.
type kind uint8

const (
	// standing is a slice that is there.
	standing kind = iota
	// coming is one of a pilot on its way, added one of a pilot that is to be asked for.
	coming
	added
	// missed is one of a pilot that waits and fits into no gap any more: it may never start.
	missed
)

// place is time on one slice that work is laid on.
type place struct {
	kind kind
	// pilot it is of, by its number among the sorted; -1: of another machine, or of none yet.
	pilot int
	// name and class tell like places apart.
	name  job.NodeID
	class int
	// from is when it is there, free when what it has is over, until when it is not sold any more.
	from, free, until quantity.Instant
	// used: something was laid on it. by is the job that was laid on it last.
	used bool
	by   *Demand
}

// load is how long the place has work for.
func (x *place) load() time.Duration { return max(0, x.free.Sub(x.from)) }

// holds reports whether a piece of a job may be laid behind what the place has.
func (x *place) holds(d *Demand, need time.Duration) bool {
	return x.by != d && x.until.Sub(x.free) >= need && !d.barred(x.class)
}

// barred reports whether slots of a class can not serve a job. The slices of a pool's pilots are of the classes -1, -2 and so on.
func (d *Demand) barred(class int) bool {
	_, found := slices.BinarySearch(d.Barred, class)
	return found
}

// piece is the shortest that may be laid of a job.
func (d *Demand) piece() time.Duration {
	if d.Whole {
		return max(1, d.Left)
	}
	return max(1, d.Least)
}

// waits reports whether a pilot has not begun at its host, so that it costs nobody anything. One that was sent before its provider came up
// again may have.
func (x *Pilot) waits() bool { return (x.State == Sent || x.State == Waiting) && x.Started == 0 }

// fresh reports whether a pilot was asked for less than a while ago.
func (p *plan) fresh(x *Pilot, d time.Duration) bool { return x.Asked != 0 && p.now.Sub(x.Asked) < d }

// roundUp is d in whole steps, at least one.
func roundUp(d, step time.Duration) time.Duration {
	return max(1, (d+step-1)/step) * step
}

// brief is a length of time in full seconds, without those parts that are 0: 3m, not 3m0s.
func brief(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
