package interest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// frugal asks first who has had least, whatever the queue.
type frugal struct{}

func (frugal) Name() string { return "frugal" }
func (frugal) Compare(a, b *policy.Candidate) int {
	return cmp.Or(cmp.Compare(a.Attained, b.Attained), policy.ByAge(a, b))
}
func (frugal) Key(c *policy.Candidate) [2]int64 {
	return [2]int64{c.Attained, policy.Age(c.Priority, c.Submitted)}
}
func (frugal) Motion() policy.Motion { return policy.Still }

// TestTheMechanismDecidesAsThePlainOneDoes: whatever happens to jobs, their agents and slices, one that looks only at what has changed
// sells and says what one does that looks at everything. After every step all that is kept, but for what is marked, is what would be
// found if one looked: so nothing is ever read that is stale.
func TestTheMechanismDecidesAsThePlainOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(append(all.Policies(), frugal{})).Draw(t, "policy")
		limit := drawLimit(t)
		worlds := []*world{newWorld(p, limit, false), newWorld(p, limit, true)}
		both := func(do func(w *world)) {
			for _, w := range worlds {
				do(w)
			}
		}
		now := quantity.Instant(1e12)
		for i := range rapid.IntRange(1, 9).Draw(t, "slices") {
			gib, speed := rapid.Int64Range(4, 7).Draw(t, "gib"), rapid.SampledFrom([]int64{500, 1000}).Draw(t, "speed")
			both(func(w *world) {
				w.offer(fmt.Sprint("s", i), gib, speed, protocol.Gap{Start: now, End: quantity.Never})
			})
		}
		for i := range worlds[0].slices {
			lasts := time.Duration(max(0, rapid.IntRange(-200, 200).Draw(t, "lasts"))) * time.Second
			both(func(w *world) { w.slices[i].Supply.(*markettest.Slice).Lasts = lasts })
		}
		agents := rapid.Bool().Draw(t, "agents")
		submit := func() {
			s := markettest.Spec(t, rapid.IntRange(0, 999).Draw(t, "spec"))
			s.Name, s.Queue = job.ID(fmt.Sprint("j", len(worlds[0].jobs))), rapid.SampledFrom([]string{"q", "qq"}).Draw(t, "queue")
			s.Total, s.Priority = rapid.Int64Range(10, 300).Draw(t, "total"), int32(rapid.IntRange(-2, 2).Draw(t, "priority")*50)
			if rapid.Bool().Draw(t, "deadline") {
				s.Deadline = now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "within")) * time.Minute)
			}
			if rapid.IntRange(0, 4).Draw(t, "option") == 0 {
				s.Options = []job.Option{{Name: "other", Speed: rapid.Int64Range(500, 1500).Draw(t, "faster"),
					Memory: rapid.Int64Range(500, 1500).Draw(t, "less")}}
			}
			if rapid.Bool().Draw(t, "items") {
				s.Kind, s.Parallelism, s.Restore, s.Checkpoint = job.Items, rapid.IntRange(1, 3).Draw(t, "parallelism"), 0, 0
			}
			if rapid.IntRange(0, 4).Draw(t, "rigid") == 0 {
				s.Kind, s.Walltime = job.Rigid, time.Duration(rapid.IntRange(0, 5).Draw(t, "walltime"))*time.Minute
			}
			s.Profile.Phases = []trp.Phase{{UpTo: s.Total, Mean: quantity.Amount(rapid.Int64Range(3, 8).Draw(t, "mean") << 30)}}
			s.Safe, _ = trp.Compile(s.Profile, s.Total, s.Theta)
			s.External = agents && s.Divisible() && rapid.IntRange(0, 2).Draw(t, "agent") == 0
			d := markettest.Job{Of: s, Came: now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second),
				Losing:  rapid.Bool().Draw(t, "losing"),
				Moves:   rapid.IntRange(0, 4).Draw(t, "volatile") == 0,
				Longest: time.Duration(rapid.IntRange(0, 2).Draw(t, "longest")) * 3 * time.Minute}
			d.Learned.Trust = protocol.Trust{Error: rapid.Int64Range(0, 900_000).Draw(t, "error"),
				History: rapid.Int64Range(0, 1_000_000).Draw(t, "history"), Seen: rapid.Int64Range(0, 2).Draw(t, "seen")}
			both(func(w *world) { w.submit(d) })
		}
		crowd := rapid.IntRange(0, 10).Draw(t, "crowd")
		if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
			crowd += 40 // those that are volatile have no rank
		}
		for range crowd {
			submit()
		}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch kind := rapid.IntRange(0, 9).Draw(t, "what"); {
			case kind < 4:
				submit()
			case kind < 7 && len(worlds[0].seller.Runs) > 0:
				i := rapid.IntRange(0, len(worlds[0].seller.Runs)-1).Draw(t, "ends")
				both(func(w *world) {
					w.seller.Runs[i]()
					w.seller.Runs = slices.Delete(w.seller.Runs, i, i+1)
				})
			case kind == 7 && len(worlds[0].jobs) > 0:
				i, pause := rapid.IntRange(0, len(worlds[0].jobs)-1).Draw(t, "whom"), rapid.Bool().Draw(t, "pause")
				both(func(w *world) {
					w.jobs[i].Demand.(*markettest.Job).Paused = pause
					w.Changed(w.jobs[i])
				})
			case kind == 8 && rapid.IntRange(0, 2).Draw(t, "learned") == 0:
				i := rapid.IntRange(0, len(worlds[0].slices)-1).Draw(t, "slice")
				lasts := time.Duration(rapid.IntRange(0, 200).Draw(t, "lasts")) * time.Second
				both(func(w *world) {
					w.slices[i].Supply.(*markettest.Slice).Lasts = lasts
					w.InvalidateSlice(w.slices[i])
				})
			case kind == 8:
				i := rapid.IntRange(0, len(worlds[0].slices)-1).Draw(t, "slice")
				from := now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "from")) * time.Second)
				gap := protocol.Gap{Start: from, End: from.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "length")) * time.Second),
					Until: protocol.ForDrain}
				both(func(w *world) {
					w.slices[i].Supply.(*markettest.Slice).Gaps = []protocol.Gap{gap}
					w.InvalidateSlice(w.slices[i])
				})
			case kind == 9 && rapid.Bool().Draw(t, "new slice"):
				gib, speed := rapid.Int64Range(4, 9).Draw(t, "gib"), rapid.SampledFrom([]int64{500, 1000}).Draw(t, "speed")
				both(func(w *world) {
					w.offer(fmt.Sprint("s", len(w.slices)), gib, speed, protocol.Gap{Start: now, End: quantity.Never})
				})
			case kind == 9 && len(worlds[0].jobs) > 0:
				i, k := rapid.IntRange(0, len(worlds[0].jobs)-1).Draw(t, "whom"), rapid.IntRange(0, len(worlds[0].slices)-1).Draw(t,
					"where")
				both(func(w *world) {
					w.jobs[i].Demand.(*markettest.Job).Avoided = w.slices[k]
					w.Changed(w.jobs[i])
				})
			}
			wake := worlds[0].run(now)
			for _, w := range worlds[1:] {
				w.run(now)
			}
			if wrong := worlds[0].audit(now); len(wrong) > 0 {
				t.Fatalf("at %d what is kept is not so: %q", now/1e6, wrong)
			}
			if !slices.Equal(worlds[0].seller.Sold, worlds[1].seller.Sold) {
				t.Fatalf("at %d it has sold\n%q\nthe plain one\n%q", now/1e6, worlds[0].seller.Sold, worlds[1].seller.Sold)
			}
			if a, b := worlds[0].out.Effects, worlds[1].out.Effects; !reflect.DeepEqual(a, b) {
				t.Fatalf("at %d agents are told\n%+v\nplainly\n%+v", now/1e6, a, b)
			}
			for i, j := range worlds[0].jobs {
				if a, b := j.Losses().List(), worlds[1].jobs[i].Losses().List(); !slices.Equal(a, b) {
					t.Fatalf("at %d %s has lost\n%+v\nplainly\n%+v", now/1e6, j.Name(), a, b)
				}
			}
			if i := slices.IndexFunc(worlds[0].jobs, func(j *index.Job) bool { return j.Busy() == 1 && j.Spec().Divisible() }); i >= 0 {
				k := rapid.IntRange(0, len(worlds[0].slices)-1).Draw(t, "where it runs")
				if a, b := worlds[0].displaced(now, i, k), worlds[1].displaced(now, i, k); a != b {
					t.Fatalf("at %d another gets the window behind %s: %v, plainly %v", now/1e6, worlds[0].jobs[i].Name(), a, b)
				}
			}
			both(func(w *world) { w.hear(now) })
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "later")) * time.Second)
			if wake != quantity.Never && rapid.Bool().Draw(t, "on time") {
				now = max(now, wake)
			}
		}
	})
}

// drawLimit is a limit that many come to.
func drawLimit(t *rapid.T) starvation.Limit {
	return starvation.Limit{
		After:    time.Duration(rapid.IntRange(1, 300).Draw(t, "after")) * time.Second,
		Slowdown: rapid.Int64Range(1, 4).Draw(t, "slowdown"),
		Share:    rapid.Int64Range(1, 1000).Draw(t, "share of the late"),
	}
}

// displaced says whether another job gets the window behind one that runs on a slice for a minute from now, rather than that it goes on.
func (w *world) displaced(now quantity.Instant, i, k int) bool {
	j, s := w.jobs[i], w.slices[k]
	v, d := j.View(), j.Demand.(*markettest.Job)
	at := now.Add(time.Minute)
	v.Continues, v.Running = d.Claimed[0], v.Running-1
	p, r := atomizer.Fit(&v, w.est.Window(j, s.Class(), at, quantity.Never))
	c := &protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{Range: d.Claimed[0], Start: now, End: at},
		Speed: max(1, s.Class().SpeedOf(j.Spec()))}}
	return r.Why == atomizer.Interested && w.displaces(now, j, s, c, quantity.Never, &p) != nil
}

// audit says what is kept that is not what would be found now.
func (w *world) audit(now quantity.Instant) []string {
	return append(w.index.Audit(now), w.board.Audit(now)...)
}
