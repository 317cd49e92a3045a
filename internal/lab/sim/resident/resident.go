// Package resident is the programs that stay on their slices between subjobs, as simulated executors know them.
package resident

import (
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Parting is how long a program takes to be gone after it was dismissed.
const Parting = time.Second

// Gone is why a subjob that was cut to go on in a program did not begin.
const Gone = "the program that stayed is gone"

// Program is a process that takes one subjob after another.
type Program struct {
	// job and spec that it was started for, since when by its node's clock.
	job   job.ID
	spec  *job.Spec
	since quantity.Instant
}

// Programs are those that wait for their next subjob. Invariant: on a slice is at most one, and no subjob that has not ended.
type Programs struct {
	on map[job.SliceID]*waiting
	// waits is told how much more memory programs have that wait on a party's host, and below 0 how much less.
	waits func(party int, more quantity.Amount)
}

type waiting struct {
	*Program
	party int
	// after is the subjob that it stayed after, which names it.
	after  job.Token
	memory quantity.Amount
	// leaving: it was dismissed.
	leaving bool
}

// New is none. waits is told how much more memory programs have that wait on a party's host, and below 0 how much less.
func New(waits func(party int, more quantity.Amount)) Programs {
	return Programs{on: map[job.SliceID]*waiting{}, waits: waits}
}

// Enter finds the program that a subjob begins in by its Start at an instant of its node: one that has stayed on its slice, or a new one;
// nil where it has one of its own that ends with it. ok is false for a subjob that was cut to go on in one which is not there. It breaks
// an invariant that a slice is given to anybody else before the program there is confirmed gone.
func (p *Programs) Enter(m *protocol.Message, now quantity.Instant) (of *Program, stayed, ok bool) {
	w := m.Body.(*protocol.Work)
	for _, id := range append([]job.SliceID{w.Slice}, w.Also...) {
		x := p.on[id]
		if x == nil {
			continue
		}
		state := ""
		switch {
		case x.leaving:
			state = "has been dismissed and is not gone"
		case w.Spec == nil || !job.SameProgram(m.Job, w.Spec, x.job, x.spec):
			state = "waits"
		}
		if state != "" {
			invariant.Check(false, "%s starts %v of job %s on slice %s, where the program of job %s that stayed after %v %s",
				actor.Name(m.From), m.Token, m.Job, id, x.job, x.after, state)
		}
		p.remove(id)
		return x.Program, true, true
	}
	if w.Spec != nil && w.Spec.Resident {
		of = &Program{job: m.Job, spec: w.Spec, since: now}
	}
	return of, false, !w.Plan.Resident
}

// Stay lets a program stay after a subjob.
func (p *Programs) Stay(of *Program, party int, id job.SliceID, after job.Token, memory quantity.Amount) {
	p.on[id] = &waiting{Program: of, party: party, after: after, memory: memory}
	p.waits(party, memory)
}

// find is the program that waits on a slice since a subjob has ended; nil: it does not any more.
func (p *Programs) find(id job.SliceID, after job.Token) *waiting {
	if x := p.on[id]; x != nil && x.after == after {
		return x
	}
	return nil
}

// After is what a node is told of the program that stays after a subjob; nil: none does, or it leaves.
func (p *Programs) After(id job.SliceID, t job.Token) *protocol.Resident {
	x := p.find(id, t)
	if x == nil || x.leaving {
		return nil
	}
	return &protocol.Resident{Number: x.spec.Residence(x.job), Memory: x.memory, Since: x.since}
}

// Dismiss is that a node ends the program that stayed after a subjob. It reports whether that is there, and whether this is the first time.
func (p *Programs) Dismiss(id job.SliceID, t job.Token) (there, first bool) {
	x := p.find(id, t)
	if x == nil {
		return false, false
	}
	first, x.leaving = !x.leaving, true
	return true, first
}

// Part is that a dismissed program is gone. It is false if it was already.
func (p *Programs) Part(id job.SliceID, t job.Token) bool {
	if p.find(id, t) == nil {
		return false
	}
	p.remove(id)
	return true
}

// Abandon ends what waits on a party's slices: its daemon is away, or its machine.
func (p *Programs) Abandon(party int) {
	for id, x := range p.on {
		if x.party == party {
			p.remove(id)
		}
	}
}

// Evict ends what waits on a slice that others have taken, without asking its node, and names it.
func (p *Programs) Evict(now quantity.Instant, in *protocol.Intrusion) (after job.Token, gone bool) {
	x, taken := p.on[in.Slice], in.Present
	for i := range in.Closures {
		taken = taken || in.Closures[i].Start <= now && now < in.Closures[i].End
	}
	if x == nil || !taken {
		return job.Token{}, false
	}
	p.remove(in.Slice)
	return x.after, true
}

func (p *Programs) remove(id job.SliceID) {
	x := p.on[id]
	delete(p.on, id)
	p.waits(x.party, -x.memory)
}
