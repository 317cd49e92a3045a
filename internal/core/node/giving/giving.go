// Package giving is the part of a node that gives slices back to workloads outside Sluice: it records wishes and machines, asks
// core/reclaim to decide, and keeps the reservations of the slices up to date. Soft: after a restart the executor reports all again. The
// truncation of a subjob is the node's fact (Truncated).
package giving

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/core/status"
)

const (
	// Gathers is how long wishes and machines are collected before a decision: related changes arrive in several messages.
	Gathers = 100 * time.Millisecond
	// blind is the interval at which it checks again whether the node knows what runs.
	blind = time.Second
	// mostLeft is the remaining time assumed of a subjob without an end, so that sums do not overflow.
	mostLeft = 365 * 24 * time.Hour
)

// Giver decides for one node. The zero value is ready to use.
type Giver struct {
	keeper *reclaim.Keeper
	// due is when the next decision is due, 0 if none is.
	due quantity.Instant
	// heard are the machines that were reported since the last decision.
	heard []string
	// closed are the slices with closures for wishes, by machine.
	closed map[string][]job.SliceID
	// gained is when the progress of a subjob was last reported to have grown.
	gained map[job.Token]gain
	record record
	waits  waits
}

type gain struct {
	progress int64
	at       quantity.Instant
}

// Hear records changed wishes, groups and machines.
func (g *Giver) Hear(now quantity.Instant, b *protocol.Wishes) {
	if g.keeper == nil {
		g.keeper, g.closed = reclaim.New(), map[string][]job.SliceID{}
	}
	for i := range b.Machines {
		g.keeper.Hear(&b.Machines[i])
		g.heard = append(g.heard, b.Machines[i].Name)
	}
	for _, name := range b.Lost {
		g.keeper.Lose(name)
		g.heard = append(g.heard, name)
	}
	for i := range b.Wishes {
		g.keeper.Wish(&b.Wishes[i])
		g.waits.hear(now, b.Wishes[i].ID)
	}
	for _, d := range b.Dropped {
		g.keeper.Withdraw(d.ID, d.Served)
		g.waits.drop(now, d.ID, d.Served)
	}
	for i := range b.Groups {
		g.keeper.Expect(&b.Groups[i])
	}
	for _, id := range b.Disbanded {
		g.keeper.Disband(id)
	}
	if at := now.Add(Gathers); g.due == 0 || g.due > at {
		g.due = at
	}
}

// Report notes the progress of a subjob.
func (g *Giver) Report(now quantity.Instant, token job.Token, progress int64) {
	if g.gained == nil {
		g.gained = map[job.Token]gain{}
	}
	if was, known := g.gained[token]; !known || progress > was.progress {
		g.gained[token] = gain{progress, now}
	}
}

// Over forgets a subjob.
func (g *Giver) Over(token job.Token) {
	delete(g.gained, token)
	delete(g.record.last, token)
}

// Due is when the next decision is due; 0: none is.
func (g *Giver) Due() quantity.Instant { return g.due }

// Keeper has the decisions; nil before the first wish.
func (g *Giver) Keeper() *reclaim.Keeper { return g.keeper }

// Decide decides and updates the reservations. Until the boot is confirmed it is not known what runs, so it waits.
func (g *Giver) Decide(now quantity.Instant, n Node) {
	if !n.Confirmed {
		g.due = now.Add(blind)
		return
	}
	d := g.keeper.Decide(now, func(id job.SliceID) (reclaim.Cost, bool) { return g.loss(now, n.Sold(id)) })
	if g.due = d.Again; g.due == quantity.Never {
		g.due = 0
	}
	chosen := g.chosen(d.Machines, n)
	machines := append(g.heard, d.Machines...)
	g.heard = nil
	slices.Sort(machines)
	machines = slices.Compact(machines)
	for _, m := range machines {
		g.applyClosures(m, n)
	}
	g.waits.note(chosen, g.keeper, machines)
	g.record.note(now, chosen, n)
}

// applyClosures makes the reservations of a machine's slices what the keeper's closures are now.
func (g *Giver) applyClosures(machine string, n Node) {
	of := map[job.SliceID][]protocol.Reservation{}
	all := g.closed[machine]
	delete(g.closed, machine)
	for _, h := range g.keeper.Closures(machine) {
		if len(of[h.Slice]) == 0 {
			g.closed[machine] = append(g.closed[machine], h.Slice)
		}
		r := protocol.Reservation{Kind: protocol.ForReclaim, Start: h.Start, End: h.End, Source: h.Who, Truncate: h.Truncate}
		if !slices.Contains(of[h.Slice], r) {
			of[h.Slice] = append(of[h.Slice], r)
		}
	}
	all = append(all, g.closed[machine]...)
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		n.Keep(id, of[id])
	}
}

// loss is the cost of taking a slice now: the work since the last progress, or since the start, of what runs there, and the time left of
// all its leases; false if it has none.
func (g *Giver) loss(now quantity.Instant, sold []Sold) (c reclaim.Cost, known bool) {
	for _, l := range sold {
		c.Left = min(c.Left+min(max(0, l.End.Sub(now)), mostLeft), mostLeft)
		if l.Since == 0 {
			continue
		}
		since := l.Since
		if !l.Whole {
			since = max(since, g.gained[l.Token].at)
		}
		c.Lost += max(0, now.Sub(since))
	}
	return c, len(sold) > 0
}

// Waits are copies of the latest waits that are over, of numbers above after, in order.
func (g *Giver) Waits(after uint64) []status.HostWait { return g.waits.since(after) }

// chosen are the subjobs in the way of the places on these machines.
func (g *Giver) chosen(machines []string, n Node) (list []candidate) {
	for _, m := range machines {
		for _, p := range g.keeper.On(m) {
			for _, id := range p.Stops {
				for _, l := range n.Sold(id) {
					list = append(list, candidate{p, id, l})
				}
			}
		}
	}
	return list
}

// Reclaims is who waits now, and what was decided of late.
func (g *Giver) Reclaims(now quantity.Instant, sold func(job.SliceID) []Sold) (all status.Reclaims) {
	all.Steps = g.record.steps()
	if g.keeper == nil {
		return all
	}
	for _, r := range g.keeper.Reasons(now) {
		w := status.Wish{ID: string(r.Wish), Group: string(r.Group), Who: reclaim.NameOf(r.Who), Since: r.Since,
			State: r.Verdict.String(), Why: r.String(), Until: r.Until}
		if p := r.Place; p != nil {
			placed(&w, p, sold)
		}
		all.Wishes = append(all.Wishes, w)
	}
	return all
}
