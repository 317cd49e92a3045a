package slurm

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/edge/provider"
)

// unserved is how long a job of others is expected to begin now on a pilot's host before that is given back though Slurm does not take it:
// longer than pilots take to leave that it does take.
const unserved = 10 * time.Second

// wanted marks the pilots as preempted on whose hosts jobs of others are expected now, and have been for unserved. Slurm takes room for a
// job once, and no more before the whole grace of what it took is over, also where another job has got what was given back sooner. What is
// marked stays so.
func (s *Slurm) wanted(now time.Time, seen []provider.Seen, rows, strangers []row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hosts := map[string]bool{}
	for _, r := range strangers {
		if first, is := s.since[wait{r.id, true}]; is && now.Sub(first) >= unserved {
			for _, name := range r.meant {
				hosts[name] = true
			}
		}
	}
	on := map[string][]string{}
	for _, r := range rows {
		on[r.id] = r.hosts
	}
	marked := map[begun]bool{}
	for i := range seen {
		p := &seen[i]
		is := begun{p.ID, p.Began}
		if p.Began.IsZero() || !s.given[is] && (p.State != provider.Running ||
			!slices.ContainsFunc(on[p.ID], func(name string) bool { return hosts[name] })) {
			continue
		}
		if marked[is] = true; !p.Preempted && p.State == provider.Running {
			p.Why = "a job of others is to begin on its node"
		}
		p.Preempted = true
	}
	s.given = marked
}

// waits notes which jobs of others wait for room, with an expected start that has come or with none, and since when.
func (s *Slurm) waits(now time.Time, strangers []row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := map[wait]time.Time{}
	for _, r := range strangers {
		if r.reason != "Resources" || r.start.After(now) {
			continue
		}
		w := wait{r.id, !r.start.IsZero()}
		first, known := s.since[w]
		if !known {
			first = now
		}
		since[w] = first
	}
	s.since = since
}
