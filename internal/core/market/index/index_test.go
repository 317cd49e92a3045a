package index

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// fakeJob is the owner's side of a job.
type fakeJob struct {
	spec      *job.Spec
	committed job.Ranges
	learned   protocol.Learned
	submitted quantity.Instant
	served    quantity.Instant
	held      bool
	volatile  bool
	busy      int
}

func (d *fakeJob) Name() job.ID                         { return d.spec.Name }
func (d *fakeJob) Spec() *job.Spec                      { return d.spec }
func (d *fakeJob) Queue() (string, time.Duration)       { return d.spec.Queue, 0 }
func (d *fakeJob) Agent() protocol.Address              { return protocol.Address{} }
func (d *fakeJob) Busy() int                            { return d.busy }
func (d *fakeJob) Submitted() quantity.Instant          { return d.submitted }
func (d *fakeJob) Served() quantity.Instant             { return d.served }
func (d *fakeJob) RestsUntil() quantity.Instant         { return 0 }
func (d *fakeJob) Volatile() bool                       { return d.volatile }
func (d *fakeJob) Avoids(*window.Slice) bool            { return false }
func (d *fakeJob) Loses() bool                          { return false }
func (d *fakeJob) Attained() int64                      { return int64(d.served) }
func (d *fakeJob) Trust() protocol.Trust                { return protocol.Trust{} }
func (d *fakeJob) Sentence(r explain.Reason) string     { return fmt.Sprint(r) }
func (d *fakeJob) Use(quantity.Instant) (_, _, _ int64) { return d.Attained(), 0, 1 }
func (d *fakeJob) View() atomizer.View {
	return atomizer.View{Spec: d.spec, Committed: d.committed, Running: d.busy, Learned: &d.learned}
}
func (d *fakeJob) Ineligible(quantity.Instant) explain.Reason {
	if d.held {
		return explain.Paused
	}
	return explain.Eligible
}

// world is an index with a class of slices or some.
type world struct {
	board *window.Board
	est   *Estimator
	x     *Index
}

func newWorld(p policy.Policy, byQueue bool) *world {
	w := &world{board: window.NewBoard(0)}
	w.est = NewEstimator(p, time.Hour, false, w.board)
	w.x = New(Config{ByQueue: byQueue, Seniority: true}, w.est)
	return w
}

func (w *world) class(gib, speed int64) *window.Class {
	c, first := w.board.ClassOf(&protocol.Slice{Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: speed})
	if first {
		w.x.Cover(c)
	}
	return c
}

func spec(tb rapid.TB, name, queue string, total, gib int64) *job.Spec {
	s := &job.Spec{
		Name: job.ID(name), Queue: queue, Kind: job.Steps, Total: total, PerUnit: time.Second, Grid: 1, Parallelism: 1,
		TauMin:   10 * time.Second,
		Deadline: quantity.Never, Theta: 10_000,
	}
	s.Profile.Form, s.Profile.Phases = trp.Phases, []trp.Phase{{UpTo: total, Mean: quantity.Amount(gib << 30)}}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, total, s.Theta); err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestTheIndexFindsWhatAskingEverybodyFinds: whatever happens to jobs and classes, the first by policy, the first that is late, those that
// have waited longest and the contenders are those that are found when every job is asked.
func TestTheIndexFindsWhatAskingEverybodyFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(all.Policies()).Draw(t, "policy")
		w, now := newWorld(p, p.Motion() == policy.WithinQueue), quantity.Instant(1e12)
		w.class(4, 1000)
		var jobs []*Job
		for range rapid.IntRange(1, 50).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "later")) * time.Second)
			switch kind := rapid.IntRange(0, 6).Draw(t, "what"); {
			case kind < 3 || len(jobs) == 0:
				queue := rapid.SampledFrom([]string{"q", "r"}).Draw(t, "queue")
				d := &fakeJob{spec: spec(t, fmt.Sprint("j", len(jobs)), queue, rapid.Int64Range(5, 100).Draw(t, "total"),
					rapid.Int64Range(1, 6).Draw(t, "gib")), submitted: now}
				d.volatile = rapid.IntRange(0, 4).Draw(t, "volatile") == 0
				j := &Job{Demand: d}
				jobs = append(jobs, j)
				w.x.Activate(j, now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "due"))*time.Second))
				w.x.Changed(j)
			case kind == 3:
				w.class(rapid.Int64Range(2, 8).Draw(t, "capacity"), rapid.SampledFrom([]int64{500, 1000}).Draw(t, "speed"))
			default:
				j := rapid.SampledFrom(jobs).Draw(t, "job")
				d := j.Demand.(*fakeJob)
				switch kind {
				case 4:
					d.held = !d.held
				case 5:
					d.served = now.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "ahead")) * 30 * time.Second)
				default:
					if j.Active() {
						w.x.Retire(j)
					}
				}
				w.x.Changed(j)
			}
			w.x.Refresh(now)
			if wrong := w.x.Audit(now); len(wrong) > 0 {
				t.Fatalf("%q", wrong)
			}
			c := rapid.SampledFrom(w.board.Classes()).Draw(t, "class")
			length := time.Duration(rapid.IntRange(0, 120).Draw(t, "length")) * time.Second
			var able []*Job
			for _, j := range jobs {
				if _, r := w.est.Fit(j, c, now, now.Add(length)); j.Active() && !d(j).volatile && !d(j).held &&
					r.Why == atomizer.Interested {
					able = append(able, j)
				}
			}
			w.check(t, now, c, length, able)
		}
	})
}

func d(j *Job) *fakeJob { return j.Demand.(*fakeJob) }

// check holds the lists against those jobs of the index that could use a window.
func (w *world) check(t *rapid.T, now quantity.Instant, c *window.Class, length time.Duration, able []*Job) {
	var ranked, late []*Job
	for _, g := range w.x.Groups() {
		if list := g.On(c.At()); list != nil {
			in := slices.Collect(list.Within(length))
			for i := 1; i < len(in); i++ {
				if a, b := in[i-1].entry.KeyOn(c.At()), in[i].entry.KeyOn(c.At()); w.est.Policy().Compare(&a, &b) >= 0 {
					t.Fatalf("%s is ranked before %s", in[i-1].Name(), in[i].Name())
				}
			}
			ranked = append(ranked, in...)
		}
	}
	for _, j := range able {
		if j.IsLate(now) {
			late = append(late, j)
		}
	}
	sorted := func(list []*Job) []*Job { return slices.SortedFunc(slices.Values(list), ByName) }
	if !slices.Equal(sorted(ranked), sorted(able)) {
		t.Fatalf("%d are ranked for a window of %v, %d could use it", len(ranked), length, len(able))
	}
	slices.SortFunc(late, w.x.lateness.line.order.Compare)
	if first, ok := w.x.Late(c.At(), length); ok != (len(late) > 0) || ok && first != late[0] {
		t.Fatalf("the first that is late is %v, want one of %d", first, len(late))
	}
	in := slices.Collect(w.x.Senior(c.At(), length))
	if !slices.IsSortedFunc(in, w.x.seniority.line.order.Compare) {
		t.Fatal("who has waited longest does not come first")
	}
	for _, j := range w.x.Ahead() {
		if slices.Contains(able, j) {
			in = append(in, j)
		}
	}
	if !slices.Equal(sorted(in), sorted(able)) {
		t.Fatalf("%d wait for a window of %v, %d could use it", len(in), length, len(able))
	}
}

// TestWhoIsInAnotherQueueIsRankedThere: a policy that has an order within each queue finds a job in the queue that it is in now, and in no
// other, although it answers every window as before. Only its owner knows whether a job ever changes its queue.
func TestWhoIsInAnotherQueueIsRankedThere(t *testing.T) {
	now := quantity.Instant(1e15)
	w := newWorld(fair.Policy{}, true)
	w.class(10, 1000)
	var jobs []*Job
	for i := range 2 {
		j := &Job{Demand: &fakeJob{spec: spec(t, fmt.Sprint("j", i), "q", 100, 1), submitted: 1}}
		w.x.Activate(j, quantity.Never)
		w.x.Changed(j)
		jobs = append(jobs, j)
	}
	w.x.Refresh(now)
	moves := jobs[1]
	for _, queue := range []string{"qq", "q", "qq"} {
		is := *moves.Spec()
		is.Queue = queue
		d(moves).spec = &is
		w.x.Changed(moves)
		w.x.Refresh(now)
		for name, g := range w.x.rankings.queues {
			if found := slices.Contains(slices.Collect(g.On(0).All()), moves); found != (name == queue) {
				t.Errorf("it is in queue %q, and ranked in %q: %v", queue, name, found)
			}
		}
	}
}
