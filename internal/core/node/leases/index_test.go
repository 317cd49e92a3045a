package leases

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestEveryDurableFieldMovesTheHash: facts that lose one would fold to what looks like the same state.
func TestEveryDurableFieldMovesTheHash(t *testing.T) {
	l := &Lease{}
	digesttest.EveryField(t, l, l.hash, "phase", "stand", "spec", "why", "lost", "restless", "hurried", "fresh", "retry", "slot", "stirred",
		"pending", "sum")
}

// TestWhatAStepLooksAtIsAllThatIsDue: whatever happens to leases, their alarms, their indexes and the digest are what looking at every one
// of them gives, and no two run on a slice at once.
func TestWhatAStepLooksAtIsAllThatIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		some := func(t *rapid.T) *Lease {
			all := w.Ordered()
			if len(all) == 0 {
				t.Skip("none")
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "lease")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"make": func(t *rapid.T) {
				s := w.Leases.inventory.Of(job.SliceID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "slice")))
				start := w.now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "start")) * time.Second)
				end := start.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "length")) * time.Second)
				if _, free := s.Free(w.now, start, end, ""); free {
					w.lease(job.ID(rapid.SampledFrom([]string{"j", "k"}).Draw(t, "job")), s.ID(), start, end)
				}
			},
			"started": func(t *rapid.T) { w.Started(w.now, &protocol.Message{Token: some(t).Token()}, w.now, &w.out) },
			"exited": func(t *rapid.T) {
				if l := some(t); l.Issued() {
					w.End(w.now, l, &job.Result{Outcome: job.Done, Progress: 100}, false, &w.out)
				}
			},
			"acknowledged": func(t *rapid.T) {
				l := some(t)
				w.Acknowledged(w.now, &protocol.Message{Token: l.Token(), Job: l.Job()}, &protocol.Acknowledgement{}, &w.out)
			},
			"settled": func(t *rapid.T) { w.Settled(some(t).Token(), &w.out) },
			"stop":    func(t *rapid.T) { w.Stop(w.now, &protocol.Message{Token: some(t).Token()}, &protocol.Halt{}, &w.out) },
			"make way": func(t *rapid.T) {
				s := w.Leases.inventory.Of("a")
				w.Truncate(w.now, s, &protocol.Reservation{Start: w.now.Add(2 * time.Second), End: w.now.Add(time.Hour)}, &w.out)
			},
			"time": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				w.Drive(w.now, &w.out)
				next, sum := quantity.Never, uint64(0)
				jobs, running := map[job.ID]int{}, map[job.SliceID]job.Token{}
				for _, l := range w.Ordered() {
					next = min(next, w.attention(w.now, l))
					sum += l.hash()
					jobs[l.Job()]++
					if l.Issued() && !l.Vacated() {
						if other, two := running[l.terms.Slice]; two {
							t.Fatalf("%v and %v are both started on %s", other, l.Token(), l.terms.Slice)
						}
						running[l.terms.Slice] = l.Token()
					}
					if l.phase == Sold && l.terms.Start <= w.now && w.obstacle(w.now, l) == "" {
						t.Fatalf("%v is due, nothing is in its way, and it was not started", l.Token())
					}
				}
				if got := w.Next(w.now); got != next {
					t.Fatalf("the next needs attention at %v, want %v", got, next)
				}
				if sum != w.Sum() {
					t.Fatal("the digest that is kept is not that of the leases")
				}
				for id, n := range jobs {
					if of := w.index.ofJob[id]; 1+len(of.more) != n || of.first.Job() != id {
						t.Fatalf("job %s has %d leases, the index has %d", id, n, 1+len(of.more))
					}
				}
				if len(jobs) != len(w.index.ofJob) {
					t.Fatalf("%d jobs have leases, the index has %d", len(jobs), len(w.index.ofJob))
				}
				w.out.Reset()
			},
		})
	})
}
