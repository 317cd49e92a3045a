// Package lender describes host schedulers that lend machines for a while, as scenarios list them, and plays them: a host that queues
// pilots and starts each in a gap that holds it, and the driver of a pool, which tells the zone what it sees of the host and obeys what
// the zone orders. The driver stands for host/pilots, which the lab may not import. It decides nothing: that is core/supply and
// core/pilot.
package lender

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/lab/measure"
)

// Pool is a pool of pilots with its host, which has no other.
type Pool struct {
	// Pool as the core knows it. Its Start is what is expected of a start.
	supply.Pool
	// Joins is how long after its start a pilot's machine has joined.
	Joins time.Duration
	// Pass is how often the host starts what waits; 0: at once.
	Pass time.Duration
	// Blind: the host does not show its gaps.
	Blind bool
	// Ahead is how long before it begins a gap is shown.
	Ahead time.Duration
	// Gaps are the host's room for pilots. Those that overlap add up.
	Gaps []Gap
	// Preempts are when others take room back.
	Preempts []Preemption
	// Refuses is when the host takes no pilot, Silent when it does not answer.
	Refuses, Silent []Span
}

// Gap is room for Count pilots at once over [Start, End). End Never: for good.
type Gap struct {
	Span
	Count int
	// Shown is the end that the host tells, which knows no better: pilots that still run at End are preempted, with Grace. 0: End.
	Shown quantity.Instant
	Grace time.Duration
}

// shown is the end that the host tells.
func (g *Gap) shown() quantity.Instant { return max(g.End, g.Shown) }

// Span is [Start, End).
type Span struct{ Start, End quantity.Instant }

// Holds reports whether an instant is in it.
func (s Span) Holds(at quantity.Instant) bool { return s.Start <= at && at < s.End }

// Preemption is that others take the room of Count running pilots, those that began last. They have it For so long; 0: to the gap's end.
type Preemption struct {
	At    quantity.Instant
	Count int
	// Grace is how long after its signal a pilot is killed.
	Grace, For time.Duration

	of int // the gap whose end it is, from 1; 0: any
}

// Lenders are the pools of a cluster.
type Lenders struct {
	Pools []Pool
	// Lent receives what was asked for, granted and used; nil: it is not recorded.
	Lent *measure.Lent
}

// Most is how many pilots of all pools there may be at once.
func (l *Lenders) Most() (n int) {
	if l == nil {
		return 0
	}
	for i := range l.Pools {
		n += l.Pools[i].Most
	}
	return n
}

// Check lists all errors.
func (l *Lenders) Check() (errs []error) {
	if l == nil {
		return nil
	}
	names := map[string]bool{}
	for i := range l.Pools {
		p := &l.Pools[i]
		wrong := func(bad bool, what string) {
			if bad {
				errs = append(errs, errkind.Errorf(errkind.Invalid, "pools[%d] (%q): %s", i, p.Name, what))
			}
		}
		wrong(p.Name == "" || names[p.Name], "give each pool a name of its own")
		names[p.Name] = true
		wrong(p.Most < 1 || len(p.Lengths) == 0 || len(p.Slices) == 0 || p.Step < time.Second,
			"it needs a limit, lengths, slices, and a step of a second at least")
		wrong(min(p.Joins, p.Pass, p.Ahead, p.Idle, p.Start, p.HandOver) < 0, "no length of time can be negative")
		for _, g := range p.Gaps {
			wrong(g.Count < 1 || g.End <= g.Start || g.Grace < 0, "each gap needs a count and a length, and no negative grace")
			wrong(g.Shown != 0 && g.Shown < g.End, "a gap lasts no longer than its host shows")
		}
		for _, x := range p.Preempts {
			wrong(x.Count < 1 || min(x.Grace, x.For) < 0, "each preemption needs a count, and no negative length of time")
		}
	}
	return errs
}

// After are the lenders with everything later by d, reporting to lent.
func (l *Lenders) After(d time.Duration, lent *measure.Lent) *Lenders {
	if l == nil {
		return nil
	}
	later := &Lenders{Pools: append([]Pool(nil), l.Pools...), Lent: lent}
	for i := range later.Pools {
		p := &later.Pools[i]
		p.Gaps, p.Preempts = append([]Gap(nil), p.Gaps...), append([]Preemption(nil), p.Preempts...)
		p.Refuses, p.Silent = after(p.Refuses, d), after(p.Silent, d)
		for k := range p.Gaps {
			p.Gaps[k].Span = p.Gaps[k].after(d)
			if p.Gaps[k].Shown != 0 {
				p.Gaps[k].Shown = Span{End: p.Gaps[k].Shown}.after(d).End
			}
		}
		for k := range p.Preempts {
			p.Preempts[k].At = p.Preempts[k].At.Add(d)
		}
	}
	return later
}

func after(list []Span, d time.Duration) (all []Span) {
	for _, s := range list {
		all = append(all, s.after(d))
	}
	return all
}

func (s Span) after(d time.Duration) Span {
	if s.Start = s.Start.Add(d); s.End != quantity.Never {
		s.End = s.End.Add(d)
	}
	return s
}

// Offers are the slices of a pilot of a name.
func (p *Pool) Offers(name string) (list []protocol.Slice) {
	for k := range p.Slices {
		s := &p.Slices[k]
		list = append(list, protocol.Slice{ID: job.SliceID(fmt.Sprintf("%s/%d", name, k)), Model: s.Model, Profile: s.Profile,
			Capacity: s.Capacity, Speed: s.Speed})
	}
	return list
}

// Room is the time of all places of pilots until an instant.
func (p *Pool) Room(until quantity.Instant) (sum time.Duration) {
	for _, g := range p.Gaps {
		sum += max(0, min(g.End, until).Sub(g.Start)) * time.Duration(g.Count)
	}
	return sum
}
