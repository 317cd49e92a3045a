package home

import (
	"iter"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
)

// mostBuried bounds what is remembered of dropped jobs. No Adopt is under way for as long as this many are dropped.
const mostBuried = 1024

// graves are the jobs that were dropped last, each up to its last life: an Adopt that was under way then is not taken for a new job.
type graves struct {
	of map[job.ID]burial
	// line has them from the one that was dropped first on. A turn is void if its job has a later one or is forgotten; so are all
	// before from.
	line  []turn
	from  int
	turns uint64
}

// burial is the last life of a dropped job, and its turn.
type burial struct {
	last job.Generation
	turn uint64
}

type turn struct {
	number uint64
	id     job.ID
}

// last is the last life of a job that was dropped; 0 if none is remembered. A life has a number of at least 1.
func (g *graves) last(id job.ID) job.Generation { return g.of[id].last }

// add remembers a job as the one that was dropped last.
func (g *graves) add(id job.ID, last job.Generation) {
	if g.of == nil {
		g.of = map[job.ID]burial{}
	}
	g.turns++
	g.of[id] = burial{last, g.turns}
	g.line = append(g.line, turn{g.turns, id})
	if len(g.line) >= 2*mostBuried { // about one in two is void
		g.line, g.from = slices.DeleteFunc(g.line, g.void), 0
	}
}

// void says whether a turn is nobody's any more.
func (g *graves) void(t turn) bool { return g.of[t.id].turn != t.number }

// first is the one that was dropped first; there must be one.
func (g *graves) first() job.ID {
	for g.void(g.line[g.from]) {
		g.from++
	}
	return g.line[g.from].id
}

// all yields them, the one that was dropped first first.
func (g *graves) all() iter.Seq2[job.ID, job.Generation] {
	return func(yield func(job.ID, job.Generation) bool) {
		for _, t := range g.line[g.from:] {
			if !g.void(t) && !yield(t.id, g.last(t.id)) {
				return
			}
		}
	}
}

func graveSum(id job.ID, last job.Generation) uint64 {
	return digest.New().Text("buried").Text(string(id)).Int(int64(last)).Sum()
}

// bury remembers a dropped job. Facts from before there were lives have no generation and nobody asks for it.
func (h *Ledger) bury(id job.ID, last job.Generation) {
	g := &h.buried
	switch was := g.last(id); {
	case last == 0:
		return
	case was != 0:
		last = max(last, was)
		h.exhume(id)
	case len(g.of) == mostBuried:
		h.exhume(g.first())
	}
	g.add(id, last)
	h.sum += graveSum(id, last)
}

// exhume forgets one.
func (h *Ledger) exhume(id job.ID) {
	h.sum -= graveSum(id, h.buried.last(id))
	delete(h.buried.of, id)
}
