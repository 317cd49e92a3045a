package backlog

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
)

const gib = quantity.Amount(1) << 30

const now = quantity.Instant(1e18)

// zone has jobs of records, and slices.
type zone struct {
	board   *window.Board
	live    []*home.Job
	waits   map[job.ID]explain.Reason
	options bool
}

func (z *zone) Live() []*home.Job                                    { return z.live }
func (z *zone) Waits(_ quantity.Instant, j *home.Job) explain.Reason { return z.waits[j.ID] }
func (z *zone) Classes() []*window.Class                             { return z.board.Classes() }
func (z *zone) Options() bool                                        { return z.options }
func (z *zone) Listed(j *home.Job) *index.Job {
	return &index.Job{Demand: listed{&markettest.Job{Of: j.Spec}, j}}
}
func (z *zone) Estimator() *index.Estimator {
	return index.NewEstimator(fifo.Policy{}, time.Hour, false, z.board)
}

// listed is a job as the market sees it: when it came decides.
type listed struct {
	*markettest.Job
	of *home.Job
}

func (l listed) Name() job.ID                { return l.of.ID }
func (l listed) Submitted() quantity.Instant { return l.of.Submitted }

// keeper makes room for jobs, and hears of nothing.
type keeper struct{ record.Watcher }

func (keeper) Make(*job.Spec) *record.Job { return &record.Job{} }
func (keeper) Slices() int                { return 1 }

// add has the zone have a job.
func (z *zone) add(r *protocol.Record) *home.Job {
	if r.Learned.MemoryScale == 0 {
		r.Learned.MemoryScale = trp.Unscaled
	}
	r.Job, r.Submitted = r.Spec.Name, now+quantity.Instant(len(z.live))
	z.live = append(z.live, record.New(record.Config{}, keeper{}, keeper{}).Outsider(r))
	return z.live[len(z.live)-1]
}

func slice(memory, speed int64) supply.Slice {
	return supply.Slice{Capacity: trp.Vector{trp.Memory: quantity.Amount(memory) * gib}, Speed: speed}
}

func pool(of ...supply.Slice) *supply.Pool {
	return &supply.Pool{Name: "p", Most: 1, Lengths: []time.Duration{time.Hour}, Slices: of}
}

// chain has 100 steps of a second that need 8 GiB, in pieces of at least ten.
func chain(name job.ID, kind job.Kind) *job.Spec {
	s := &job.Spec{
		Name: name, Kind: kind, Total: 100, Grid: 10, PerUnit: time.Second, Parallelism: 1, TauMin: 10 * time.Second, MaxFailures: 3,
		Checkpoint: 2 * time.Second, Startup: time.Second, Slices: 1, Deadline: quantity.Never,
		Safe: trp.Table{Bounds: []int64{100}, Least: [][]quantity.Amount{{8 * gib}}},
	}
	if kind == job.Rigid {
		s.Walltime = 5 * time.Minute
	}
	return s
}

func with(s *job.Spec, change func(*job.Spec)) *job.Spec {
	change(s)
	return s
}

// TestWhatAPoolCouldServe is one job and one pool at a time. Run times have a margin of a quarter until they are known.
func TestWhatAPoolCouldServe(t *testing.T) {
	for _, c := range []struct {
		name    string
		spec    *job.Spec
		done    int64
		learned protocol.Learned
		waits   explain.Reason
		pool    *supply.Pool
		options bool
		own     []supply.Slice
		want    supply.Demand
		none    bool
	}{
		{name: "a chain", spec: chain("j", job.Steps), pool: pool(slice(10, 1000)),
			want: supply.Demand{Left: 125 * time.Second, Least: 15500 * time.Millisecond, Costs: 3 * time.Second, Width: 1}},
		{name: "half of it is done", spec: chain("j", job.Steps), done: 50, pool: pool(slice(10, 1000)),
			want: supply.Demand{Left: 62500 * time.Millisecond, Least: 15500 * time.Millisecond, Costs: 3 * time.Second, Width: 1}},
		{name: "on slices of half the speed", spec: chain("j", job.Steps), pool: pool(slice(10, 500)),
			want: supply.Demand{Left: 250 * time.Second, Least: 28 * time.Second, Costs: 3 * time.Second, Width: 1}},
		{name: "units, three at once", spec: with(chain("j", job.Items), func(s *job.Spec) { s.Parallelism = 3 }),
			pool: pool(slice(10, 1000)),
			want: supply.Demand{Left: 125 * time.Second, Least: 15500 * time.Millisecond, Costs: 3 * time.Second, Width: 3}},
		{name: "rigid", spec: chain("j", job.Rigid), pool: pool(slice(10, 1000)),
			want: supply.Demand{Left: 5 * time.Minute, Least: 5 * time.Minute, Width: 1, Whole: true}},
		{name: "rigid without a walltime", spec: with(chain("j", job.Rigid), func(s *job.Spec) { s.Walltime = 0 }),
			pool: pool(slice(10, 1000)), none: true},
		{name: "several slices", spec: with(chain("j", job.Rigid), func(s *job.Spec) { s.Slices = 2 }),
			pool: pool(slice(10, 1000)), none: true},
		{name: "external", spec: with(chain("j", job.Items), func(s *job.Spec) { s.External = true }),
			pool: pool(slice(10, 1000)), none: true},
		{name: "paused", spec: chain("j", job.Steps), waits: explain.Paused, pool: pool(slice(10, 1000)), none: true},
		{name: "capped", spec: chain("j", job.Steps), waits: explain.QueueCap, pool: pool(slice(10, 1000)), none: true},
		{name: "rests for a while", spec: chain("j", job.Steps), waits: explain.Resting, pool: pool(slice(10, 1000)),
			want: supply.Demand{Left: 125 * time.Second, Least: 15500 * time.Millisecond, Costs: 3 * time.Second, Width: 1}},
		{name: "too large", spec: chain("j", job.Steps), pool: pool(slice(7, 1000)), none: true},
		{name: "outgrown", spec: chain("j", job.Steps), learned: protocol.Learned{MemoryScale: 1500},
			pool: pool(slice(10, 1000)), none: true},
		{name: "another way is lean enough", options: true, pool: pool(slice(7, 1000)),
			spec: with(chain("j", job.Steps), func(s *job.Spec) { s.Options = []job.Option{{Name: "lean", Speed: 500, Memory: 500}} }),
			want: supply.Demand{Left: 250 * time.Second, Least: 28 * time.Second, Costs: 3 * time.Second, Width: 1}},
		{name: "where nobody may choose", pool: pool(slice(7, 1000)), none: true,
			spec: with(chain("j", job.Steps), func(s *job.Spec) { s.Options = []job.Option{{Name: "lean", Speed: 500, Memory: 500}} })},
		{name: "it can not run there", pool: pool(slice(10, 1000)), none: true,
			spec: with(chain("j", job.Steps), func(s *job.Spec) { s.Speeds = []job.SpeedOn{{Profile: "", Permille: 0}} })},
		{name: "one slice of two", spec: chain("j", job.Steps), pool: pool(slice(7, 1000), slice(10, 1000)), want: supply.Demand{
			Left: 125 * time.Second, Least: 15500 * time.Millisecond, Costs: 3 * time.Second, Width: 1, Barred: []int{-1}}},
		{name: "the faster of two", spec: chain("j", job.Steps), pool: pool(slice(10, 500), slice(10, 1000)),
			want: supply.Demand{Left: 125 * time.Second, Least: 15500 * time.Millisecond, Costs: 3 * time.Second, Width: 1}},
		{name: "what serves it here", spec: chain("j", job.Steps), pool: pool(slice(10, 1000)),
			own: []supply.Slice{slice(7, 1000), slice(80, 1000), slice(80, 700), slice(80, 100)}, want: supply.Demand{
				Left: 125 * time.Second, Least: 15500 * time.Millisecond, Costs: 3 * time.Second, Width: 1, Barred: []int{0, 3}}},
		{name: "one slow run does not keep it out", spec: chain("j", job.Steps), pool: pool(slice(10, 1000)),
			learned: protocol.Learned{Rate: 10 * time.Minute, Rates: []time.Duration{10 * time.Minute, time.Second}},
			want:    supply.Demand{Left: 1000 * time.Minute, Least: 13 * time.Second, Costs: 3 * time.Second, Width: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			z := &zone{board: window.NewBoard(time.Second), waits: map[job.ID]explain.Reason{"j": c.waits}, options: c.options}
			for _, s := range c.own {
				z.board.ClassOf(&protocol.Slice{Capacity: s.Capacity, Speed: s.Speed})
			}
			z.add(&protocol.Record{Spec: c.spec, Committed: job.Ranges{}.Add(job.Range{To: c.done}), Learned: c.learned})
			got := Demand(now, c.pool, z)
			if c.none {
				if len(got) > 0 {
					t.Errorf("%+v, want nothing", got)
				}
				return
			}
			if c.want.Job = "j"; len(got) != 1 || !same(&got[0], &c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func same(a, b *supply.Demand) bool {
	return a.Job == b.Job && a.Left == b.Left && a.Least == b.Least && a.Costs == b.Costs && a.Width == b.Width && a.Whole == b.Whole &&
		slices.Equal(a.Barred, b.Barred)
}

// TestTheFirstByPriorityAndAge are looked at where very many wait, and told in the policy's order.
func TestTheFirstByPriorityAndAge(t *testing.T) {
	z := &zone{board: window.NewBoard(time.Second)}
	for i := range 3 * most {
		s := chain(job.ID([]byte{byte('a' + i/26%26), byte('a' + i%26), byte('a' + i/676)}), job.Steps)
		s.Priority = int32(i % 2)
		z.add(&protocol.Record{Spec: s})
	}
	first := z.live[1].ID
	slices.Reverse(z.live)
	got := Demand(now, pool(slice(10, 1000)), z)
	if len(got) != most || got[0].Job != first {
		t.Fatalf("%d jobs, the first is %s, want %d and %s", len(got), got[0].Job, most, first)
	}
	for _, d := range got {
		if z.live[slices.IndexFunc(z.live, func(j *home.Job) bool { return j.ID == d.Job })].Spec.Priority != 1 {
			t.Fatalf("%s goes before others of a higher priority", d.Job)
		}
	}
}

// TestTheLeastPieceIsTheAtomizers: in a window of that length the job takes a piece, and in one that is shorter by more than a checkpoint
// it takes none; and what it pays beside its work is what the atomizer plans.
func TestTheLeastPieceIsTheAtomizers(t *testing.T) {
	pieces := 0
	rapid.Check(t, func(t *rapid.T) {
		s := chain("j", rapid.SampledFrom([]job.Kind{job.Items, job.Steps, job.Rigid}).Draw(t, "kind"))
		s.Grid = rapid.Int64Range(1, 30).Draw(t, "grid")
		s.TauMin = time.Duration(rapid.IntRange(0, 60).Draw(t, "tau")) * time.Second
		s.Launch.Grace = time.Duration(rapid.IntRange(0, 5).Draw(t, "grace")) * time.Second
		if s.Kind == job.Items {
			s.Parallelism = rapid.IntRange(1, 5).Draw(t, "parallelism")
		}
		done := job.Ranges{}
		if from := rapid.Int64Range(0, 99).Draw(t, "done from"); s.Kind == job.Items {
			done = done.Add(job.Range{From: from, To: rapid.Int64Range(from+1, 100).Draw(t, "to")})
		} else if s.Kind == job.Steps && from > 0 {
			done = done.Add(job.Range{To: from})
		}
		z := &zone{board: window.NewBoard(time.Second)}
		j := z.add(&protocol.Record{Spec: s, Committed: done})
		of := slice(rapid.Int64Range(6, 10).Draw(t, "memory"), rapid.Int64Range(100, 3000).Draw(t, "speed"))
		got := Demand(now, pool(of), z)
		fits := func(d time.Duration) (atomizer.Piece, bool) {
			v := j.View()
			p, no := atomizer.Fit(&v, atomizer.Window{Capacity: of.Capacity, Speed: of.Speed, Start: now, End: now.Add(d)})
			return p, no.Why == atomizer.Interested
		}
		p, ever := fits(1000 * time.Hour)
		if ever != (len(got) == 1) {
			t.Fatalf("%+v, where the atomizer takes %+v, %v, of a very long window", got, p, ever)
		}
		if !ever {
			return
		}
		pieces++
		d := &got[0]
		if _, ok := fits(d.Least); !ok {
			t.Fatalf("%v holds no piece", d.Least)
		}
		// What is left may need less than a piece that is followed by another: it leaves no checkpoint.
		if less, ok := fits(d.Least - s.Checkpoint - 1); ok {
			t.Fatalf("less than %v holds %+v", d.Least, less)
		}
		if pays := p.Length - p.Run; s.Kind != job.Rigid && (pays > d.Costs || pays < d.Costs-s.Checkpoint) {
			t.Fatalf("a piece pays %v, said are %v", pays, d.Costs)
		}
	})
	if pieces == 0 {
		t.Error("nothing ever fitted: the test tests nothing")
	}
}
