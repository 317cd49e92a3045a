// Package starts is what the start of a program costs: by jobs that are alike and by machine, and for programs that stay between subjobs
// (ADR 0082) the next subjob's beginning apart from a cold start. What was learned is soft: a restart begins anew, with what jobs declare.
package starts

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

const (
	// mostSeen starts are remembered of each kind: of those the longest counts.
	mostSeen = 8
	// mostFamilies are remembered, those that were taught last, and mostMachines of each.
	mostFamilies, mostMachines = 512, 64
)

// Book is what was learned. The zero value knows nothing.
type Book struct {
	families map[string]*family
	// order of the families, the one that was taught last behind.
	order []string
}

// family is the starts of jobs that are alike (job.Spec.Family), by machine, the one that was taught last behind.
type family struct{ machines []machine }

type machine struct {
	node           job.NodeID
	cold, resident []time.Duration
}

// Learn notes how a subjob of a family began on a machine. Of a cold start only a program tells that says when it is ready.
func (b *Book) Learn(of string, on job.NodeID, r *job.Result) {
	if r.Start == 0 || !r.Stayed && r.Startup <= 0 {
		return
	}
	m := b.family(of).machine(on)
	if r.Stayed {
		m.resident = remember(m.resident, max(0, r.Prepare))
	} else {
		m.cold = remember(m.cold, r.Startup)
	}
}

func remember(list []time.Duration, took time.Duration) []time.Duration {
	if len(list) == mostSeen {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, took)
}

func (b *Book) family(of string) *family {
	f := b.families[of]
	if f == nil {
		if b.families == nil {
			b.families = map[string]*family{}
		}
		if len(b.order) == mostFamilies {
			delete(b.families, b.order[0])
			b.order = slices.Delete(b.order, 0, 1)
		}
		f = &family{}
		b.families[of] = f
	} else {
		i := slices.Index(b.order, of)
		b.order = slices.Delete(b.order, i, i+1)
	}
	b.order = append(b.order, of)
	return f
}

func (f *family) machine(on job.NodeID) *machine {
	m := machine{node: on}
	if i := f.find(on); i >= 0 {
		m = f.machines[i]
		f.machines = slices.Delete(f.machines, i, i+1)
	} else if len(f.machines) == mostMachines {
		f.machines = slices.Delete(f.machines, 0, 1)
	}
	f.machines = append(f.machines, m)
	return &f.machines[len(f.machines)-1]
}

func (f *family) find(on job.NodeID) int {
	return slices.IndexFunc(f.machines, func(m machine) bool { return m.node == on })
}

// Cold is how long a program of a family takes to be ready on a machine: the longest that was seen of late there, else on any. known: one
// was.
func (b *Book) Cold(of string, on job.NodeID) (took time.Duration, known bool) {
	return b.longest(of, on, func(m *machine) []time.Duration { return m.cold })
}

// Resident is how long it takes a machine to begin a subjob in a program that is there, in the same way.
func (b *Book) Resident(of string, on job.NodeID) (took time.Duration, known bool) {
	return b.longest(of, on, func(m *machine) []time.Duration { return m.resident })
}

func (b *Book) longest(of string, on job.NodeID, kind func(*machine) []time.Duration) (took time.Duration, known bool) {
	f := b.families[of]
	if f == nil {
		return 0, false
	}
	if i := f.find(on); i >= 0 && len(kind(&f.machines[i])) > 0 {
		return slices.Max(kind(&f.machines[i])), true
	}
	for i := range f.machines {
		for _, d := range kind(&f.machines[i]) {
			took, known = max(took, d), true
		}
	}
	return took, known
}
