// Package dropped remembers which jobs were dropped last.
package dropped

import (
	"iter"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
)

// most bounds what is remembered. No Adopt is under way for as long as this many are dropped.
const most = 1024

// Jobs are those that were dropped last, each with its last generation: an Adopt that was under way then is not taken for a new job.
// Invariant: no more than most are remembered, those that were dropped latest; sum is the sum of their hashes.
type Jobs struct {
	of map[job.ID]entry
	// line has them from the one that was dropped first on. A turn is void if its job has a later one or is forgotten; so are all
	// before from.
	line  []turn
	from  int
	turns uint64
	sum   uint64
}

// entry is the last generation of a dropped job, and its turn.
type entry struct {
	last job.Generation
	turn uint64
}

type turn struct {
	number uint64
	id     job.ID
}

// Last is the last generation of a job that was dropped; 0 if none is remembered. Generations begin with 1.
func (d *Jobs) Last(id job.ID) job.Generation { return d.of[id].last }

// Add remembers a dropped job up to a generation. Facts from before there were generations have none, and nobody asks for it.
func (d *Jobs) Add(id job.ID, last job.Generation) {
	switch was := d.Last(id); {
	case last == 0:
		return
	case was != 0:
		last = max(last, was)
		d.forget(id)
	case len(d.of) == most:
		d.forget(d.first())
	}
	d.add(id, last)
	d.sum += sumOf(id, last)
}

// Sum is the jobs' part of the digest.
func (d *Jobs) Sum() uint64 { return d.sum }

// forget forgets one.
func (d *Jobs) forget(id job.ID) {
	d.sum -= sumOf(id, d.Last(id))
	delete(d.of, id)
}

// add puts a job at the end of the line.
func (d *Jobs) add(id job.ID, last job.Generation) {
	if d.of == nil {
		d.of = map[job.ID]entry{}
	}
	d.turns++
	d.of[id] = entry{last, d.turns}
	d.line = append(d.line, turn{d.turns, id})
	if len(d.line) >= 2*most { // about one in two is void
		d.line, d.from = slices.DeleteFunc(d.line, d.void), 0
	}
}

// void reports whether a turn was superseded.
func (d *Jobs) void(t turn) bool { return d.of[t.id].turn != t.number }

// first is the one that was dropped first; there must be one.
func (d *Jobs) first() job.ID {
	for d.void(d.line[d.from]) {
		d.from++
	}
	return d.line[d.from].id
}

// All yields them, the one that was dropped first first.
func (d *Jobs) All() iter.Seq2[job.ID, job.Generation] {
	return func(yield func(job.ID, job.Generation) bool) {
		for _, t := range d.line[d.from:] {
			if !d.void(t) && !yield(t.id, d.Last(t.id)) {
				return
			}
		}
	}
}

// sumOf is the hash of one. Its first word stays as it was at first: digests are compared between versions.
func sumOf(id job.ID, last job.Generation) uint64 {
	return digest.New().Text("buried").Text(string(id)).Int(int64(last)).Sum()
}
