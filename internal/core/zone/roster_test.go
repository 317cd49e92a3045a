package zone_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/zone"
)

// TestAPageLeavesNobodyOut: whatever the world does, the pages of any query together are what a plain look at all jobs selects,
// in order, each job once, also where many share their instant of submission; and every page says how many are older.
func TestAPageLeavesNobodyOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		w := newWorld(rt, 1024, 2048)
		w.draw = draw
		w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
		jobs, crash := rapid.IntRange(1, 40).Draw(rt, "jobs"), rapid.SampledFrom([]int{0, 20}).Draw(rt, "restart every")
		life := map[job.ID]job.Generation{}
		for i := 0; i < 60; i++ {
			for range draw(4) { // several at one instant
				if n := len(w.adopted); n < jobs {
					s := w.drawJob(rt, draw, n)
					s.Owner = []string{"", "ada", "bob"}[draw(3)]
					w.submit(s)
				}
			}
			w.disturb(draw)
			name := job.ID(fmt.Sprint("j", draw(max(1, len(w.adopted)))))
			switch over := w.closed[name].State.Final(); {
			case over && draw(4) == 0: // another life, which stands where it began
				life[name] = max(life[name], w.lives[name]) + 1
				s := *w.adopted[name]
				w.step(protocol.Message{Kind: protocol.Adopt, Job: name, Epoch: 1, Body: &protocol.Adoption{Spec: &s, At: w.now, Since: 1},
					Generation: life[name]})
			case over && draw(4) == 0:
				w.step(protocol.Message{Kind: protocol.Forget, Job: name, Epoch: 1, Generation: max(life[name], w.lives[name])})
			}
			w.tick()
			if crash > 0 && i%crash == crash-1 {
				w.restart()
			}
			checkPages(rt, w, draw)
		}
	})
}

// checkPages holds the pages of a drawn query against all jobs.
func checkPages(t *rapid.T, w *world, draw func(int) int) {
	all := zone.Everybody(w.z, w.now)
	q := status.JobQuery{Limit: draw(4), Queue: []string{"", "", "other", "capped", "none"}[draw(5)],
		Owner: []string{"", "", "ada", "bob", "eve"}[draw(5)]}
	for state := range job.Impossible + 1 {
		if draw(3) == 0 {
			q.States = q.States.With(state)
		}
	}
	want := slices.DeleteFunc(slices.Clone(all), func(l zone.Listed) bool {
		return q.Queue != "" && l.Queue != q.Queue || q.Owner != "" && l.Owner != q.Owner || !q.States.Has(l.State)
	})
	for pages := 0; ; pages++ {
		page := w.z.Page(w.now, q)
		n := len(page.Jobs)
		if q.Limit > 0 && n > q.Limit || n > len(want) || page.Older != len(want)-n ||
			(page.Next == status.JobKey{}) != (page.Older == 0) || n == 0 && len(want) > 0 {
			t.Fatalf("%+v: a page of %d, %d older, then %v, of %d that match", q, n, page.Older, page.Next, len(want))
		}
		for i, l := range want[len(want)-n:] {
			if j := &page.Jobs[i]; j.Key() != l.JobKey || j.State != l.State || j.Queue != l.Queue {
				t.Fatalf("%+v, page %d: %v %v of %s, want %+v", q, pages, j.Key(), j.State, j.Queue, l)
			}
		}
		if want = want[:len(want)-n]; len(want) == 0 {
			break
		}
		q.Before = page.Next
	}
	for _, v := range w.z.Queues(w.now) {
		pending, running := 0, 0
		for _, l := range all {
			switch {
			case l.Queue != v.Queue.Name || l.State.Final():
			case l.State == job.Running:
				running++
			default:
				pending++
			}
		}
		if v.Pending != pending || v.Running != running {
			t.Fatalf("queue %s counts %d waiting and %d running, there are %d and %d", v.Queue.Name, v.Pending, v.Running, pending, running)
		}
	}
}

// TestPagesOfManyJobs that came in any order, with many at one instant, so that chunks are split and emptied everywhere: half of
// them before the first list, which is sorted at once, and half behind it.
func TestPagesOfManyJobs(t *testing.T) {
	w := newWorld(t, 512)
	spec := items(t, "any", 5, 1000, 1) // too large to run
	const n = 5000
	take := func(i int) {
		s := *spec
		at := quantity.Instant(1 + i*7919%n/3) // three at each instant
		s.Name = job.ID(fmt.Sprintf("j%04d", i))
		w.z.Apply(protocol.Fact{Kind: protocol.HomeTaken, Job: s.Name, Epoch: 1, Generation: 1, At: at, Body: &protocol.Taking{Spec: &s}})
	}
	read := func(want int) {
		t.Helper()
		all := zone.Everybody(w.z, w.now)
		if len(all) != want {
			t.Fatalf("%d jobs, want %d", len(all), want)
		}
		q := status.JobQuery{Limit: 97}
		for {
			page := w.z.Page(w.now, q)
			from := len(all) - len(page.Jobs)
			for i := range page.Jobs {
				if page.Jobs[i].Key() != all[from+i].JobKey {
					t.Fatalf("%v, want %v", page.Jobs[i].Key(), all[from+i].JobKey)
				}
			}
			if all = all[:from]; page.Older != from {
				t.Fatalf("%d older, want %d", page.Older, from)
			}
			if from == 0 {
				return
			}
			q.Before = page.Next
		}
	}
	for i := range n / 2 {
		take(i)
	}
	read(n / 2)
	for i := n / 2; i < n; i++ {
		take(i)
	}
	read(n)
	for i := range n {
		if i%1000 < 990 { // whole chunks become empty
			w.z.Apply(protocol.Fact{Kind: protocol.HomeDropped, Job: job.ID(fmt.Sprintf("j%04d", i*4999%n)), Generation: 1,
				Body: &protocol.HomeDrop{}})
		}
	}
	read(n / 100)
}
