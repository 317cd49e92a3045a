package host

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// listedZone is a zone with jobs 0 to n-1, one at each instant, which remembers the longest page that it was asked for.
type listedZone struct {
	toyZone
	n, longest int
}

func (z *listedZone) Page(_ quantity.Instant, q status.JobQuery) (p status.JobPage) {
	last := z.n
	if q.Before != (status.JobKey{}) {
		last = int(q.Before.Submitted) - 1
	}
	first := max(0, last-q.Limit)
	for i := first; i < last; i++ {
		p.Jobs = append(p.Jobs, status.Job{Name: job.ID(fmt.Sprint(i)), Submitted: quantity.Instant(i + 1),
			Generation: job.Generation(1 + i%2)})
	}
	z.longest = max(z.longest, len(p.Jobs))
	if p.Older = first; first > 0 {
		p.Next = p.Jobs[0].Key()
	}
	return p
}

// lifeGate knows the first life of every job.
type lifeGate struct{ toyGate }

func (lifeGate) Life(job.ID) job.Generation { return 1 }

// TestALongListIsReadInPieces: no look from within the loop is long, what the gate knows no more is left out, and the pages
// together are the list.
func TestALongListIsReadInPieces(t *testing.T) {
	z := &listedZone{n: 1000}
	r := newRig(t)
	r.actors = func() actor.Set {
		return actor.Alone("z", "n", &lifeGate{toyGate{toy{step: accept}}}, z, &toyNode{})
	}
	h, stop := r.start(t)
	for _, limit := range []int{0, 100, 300, 499, 500, 2000} {
		var all []status.Job
		for q := (status.JobQuery{Limit: limit}); ; {
			page, err := h.Jobs(context.Background(), q)
			if err != nil || limit > 0 && len(page.Jobs) > limit {
				t.Fatalf("limit %d: a page of %d: %v", limit, len(page.Jobs), err)
			}
			all = append(page.Jobs, all...)
			if q.Before = page.Next; q.Before == (status.JobKey{}) {
				break
			}
		}
		if len(all) != 500 || !slices.IsSortedFunc(all, func(a, b status.Job) int { return a.Key().Compare(b.Key()) }) {
			t.Errorf("limit %d: %d jobs", limit, len(all))
		}
	}
	if err := stop(); err != nil || z.longest > 128 {
		t.Errorf("a look at %d jobs at once, %v", z.longest, err)
	}
}
