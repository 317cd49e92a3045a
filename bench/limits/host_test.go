package main

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestEarliest holds a plan against one that is kept second by second.
func TestEarliest(t *testing.T) {
	const nodes, seconds = 5, 40
	rapid.Check(t, func(t *rapid.T) {
		p := plan{[]slot{{0, firstNodes(nodes)}}}
		var taken [2 * seconds][nodes]bool
		for range rapid.IntRange(0, 8).Draw(t, "taken") {
			from := rapid.IntRange(0, seconds-1).Draw(t, "from")
			to := rapid.IntRange(from+1, seconds).Draw(t, "to")
			var on set
			for node := range nodes {
				if rapid.Bool().Draw(t, "on") {
					on.add(&set{1 << node})
					for s := from; s < to; s++ {
						taken[s][node] = true
					}
				}
			}
			p.take(quantity.Instant(from)*quantity.Instant(time.Second), quantity.Instant(to)*quantity.Instant(time.Second), &on)
		}
		want := rapid.IntRange(1, nodes).Draw(t, "nodes")
		length := rapid.IntRange(1, seconds).Draw(t, "length")
		from, on := p.earliest(want, time.Duration(length)*time.Second)
		at := 0
		var free []int
		for ; ; at++ {
			free = free[:0]
			for node := range nodes {
				if !slices.ContainsFunc(taken[at:at+length], func(s [nodes]bool) bool { return s[node] }) {
					free = append(free, node)
				}
			}
			if len(free) >= want {
				break
			}
		}
		var best set
		for _, node := range free[:want] {
			best.add(&set{1 << node})
		}
		if from != quantity.Instant(at)*quantity.Instant(time.Second) || on != best {
			t.Fatalf("%d nodes for %d s: at %v on %b, want %d s on %b", want, length, time.Duration(from), on, at, best)
		}
	})
	p := plan{[]slot{{0, firstNodes(2)}}}
	if at, _ := p.earliest(3, time.Second); at != quantity.Never {
		t.Errorf("3 of 2 nodes are free at %v", at)
	}
}

// drawJobs in order of submission.
func drawJobs(t *rapid.T, nodes int) (jobs []job) {
	at := quantity.Instant(0)
	for range rapid.IntRange(1, 30).Draw(t, "jobs") {
		at = at.Add(time.Duration(rapid.OneOf(rapid.IntRange(0, 1800), rapid.IntRange(0, 36_000)).Draw(t, "later")) * time.Second)
		limit := time.Duration(rapid.OneOf(rapid.IntRange(1, 7200), rapid.IntRange(1, 100_000)).Draw(t, "limit")) * time.Second
		jobs = append(jobs, job{user: rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "user"), submitted: at, limit: limit,
			run:   min(limit, time.Duration(rapid.OneOf(rapid.IntRange(1, 7200), rapid.IntRange(1, 100_000)).Draw(t, "run"))*time.Second),
			nodes: rapid.IntRange(1, nodes).Draw(t, "nodes")})
	}
	return jobs
}

// TestHost: no node has two jobs, a job has as many nodes as it wants, everybody is served, and whoever is first in the queue starts no
// later than he was meant to.
func TestHost(t *testing.T) {
	const nodes = 4
	rapid.Check(t, func(t *rapid.T) {
		h := newHost(nodes, drawJobs(t, nodes))
		meantFor := map[*job]quantity.Instant{}
		for h.next() != quantity.Never {
			now := h.next()
			_, _, meant := h.turn(now)
			var busy set
			for _, j := range h.running {
				both := busy
				both.intersect(&j.on)
				if both.count() > 0 || j.on.count() != j.nodes {
					t.Fatalf("at %v a job of %d nodes runs on %b, others on %b", time.Duration(now), j.nodes, j.on, busy)
				}
				busy.add(&j.on)
				if by, there := meantFor[j]; there && j.began > by {
					t.Fatalf("the first in the queue starts at %v, and was meant to at %v", time.Duration(j.began), time.Duration(by))
				}
			}
			if len(h.waiting) > 0 && len(meant) > 0 && meant[0].job == h.waiting[0] {
				meantFor[meant[0].job] = meant[0].from
			}
			for i := range meant {
				if meant[i].from <= now {
					t.Fatalf("what is meant for %v does not begin by %v", time.Duration(meant[i].from), time.Duration(now))
				}
			}
		}
		if len(h.waiting)+len(h.running)+len(h.coming) > 0 {
			t.Fatalf("%d jobs wait for good", len(h.waiting))
		}
	})
}
