// Package giving is the part of a node that gives slices back to those who wait for devices: it hears of them, has core/reclaim decide, and
// says what is kept of which slice. All of it is soft: after a restart the executor says it again. What is cut short is the node's fact
// (Truncated).
package giving

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

const (
	// Gathers is how long what is said of wishes is collected before anything is decided: what belongs together comes in several words.
	Gathers = 100 * time.Millisecond
	// blind is when it is looked again whether the node knows what runs.
	blind = time.Second
	// mostLeft is the time left that is assumed of a subjob without an end, so that sums stay within their bounds.
	mostLeft = 365 * 24 * time.Hour
)

// Giver decides for one node. The zero value has heard of nobody.
type Giver struct {
	keeper *reclaim.Keeper
	// due is when it is to decide, 0 if it need not.
	due quantity.Instant
	// heard are machines of which anything was said since it last did.
	heard []string
	// holds are the slices of each machine of which something is kept.
	holds map[string][]job.SliceID
	// gained is when the last progress of a subjob was heard of.
	gained map[job.Token]gain
}

type gain struct {
	progress int64
	at       quantity.Instant
}

// Sold is a lease on a slice: when it ends, and since when it runs; 0: it does not. Whole: it is worth nothing before its end.
type Sold struct {
	Token      job.Token
	Since, End quantity.Instant
	Whole      bool
}

// Node is what it needs to know of its node, and to tell it.
type Node struct {
	// Confirmed: it is known what runs.
	Confirmed bool
	// Sold are the leases on a slice that are not over.
	Sold func(job.SliceID) []Sold
	// Keep is told all that is kept of a slice, in place of what was before.
	Keep func(job.SliceID, []protocol.Reservation)
}

// Hear takes in what has changed of wishes and machines.
func (g *Giver) Hear(now quantity.Instant, b *protocol.Wishes) {
	if g.keeper == nil {
		g.keeper, g.holds = reclaim.New(), map[string][]job.SliceID{}
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
	}
	for _, d := range b.Dropped {
		g.keeper.Drop(d.ID, d.Served)
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

// Report notes how far a subjob is.
func (g *Giver) Report(now quantity.Instant, token job.Token, progress int64) {
	if g.gained == nil {
		g.gained = map[job.Token]gain{}
	}
	if was, known := g.gained[token]; !known || progress > was.progress {
		g.gained[token] = gain{progress, now}
	}
}

// Over forgets a subjob.
func (g *Giver) Over(token job.Token) { delete(g.gained, token) }

// Due is when it is to decide; 0: it need not.
func (g *Giver) Due() quantity.Instant { return g.due }

// Keeper has what it decided; nil: nothing was said yet.
func (g *Giver) Keeper() *reclaim.Keeper { return g.keeper }

// Decide gives back, once that is due. Before the boot is confirmed nobody knows what runs.
func (g *Giver) Decide(now quantity.Instant, n Node) {
	if !n.Confirmed {
		g.due = now.Add(blind)
		return
	}
	d := g.keeper.Decide(now, func(id job.SliceID) (reclaim.Cost, bool) { return g.loss(now, n.Sold(id)) })
	if g.due = d.Again; g.due == quantity.Never {
		g.due = 0
	}
	machines := append(g.heard, d.Machines...)
	g.heard = nil
	slices.Sort(machines)
	for _, m := range slices.Compact(machines) {
		g.keep(m, n)
	}
}

// keep has the slices of a machine held for who waits, as it was decided.
func (g *Giver) keep(machine string, n Node) {
	of := map[job.SliceID][]protocol.Reservation{}
	all := g.holds[machine]
	delete(g.holds, machine)
	for _, h := range g.keeper.Holds(machine) {
		if len(of[h.Slice]) == 0 {
			g.holds[machine] = append(g.holds[machine], h.Slice)
		}
		r := protocol.Reservation{Kind: protocol.ForReclaim, Start: h.Start, End: h.End, Source: h.Who, Truncate: h.Truncate}
		if !slices.Contains(of[h.Slice], r) {
			of[h.Slice] = append(of[h.Slice], r)
		}
	}
	all = append(all, g.holds[machine]...)
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		n.Keep(id, of[id])
	}
}

// loss is what is lost if a slice is taken now: of what runs there all since its last progress was heard of, or since it began, and the
// time left of all that was sold. false: nothing was.
func (g *Giver) loss(now quantity.Instant, sold []Sold) (c reclaim.Cost, known bool) {
	for _, l := range sold {
		c.Left = min(c.Left+max(0, l.End.Sub(now)), mostLeft)
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
