package reach

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const gib = quantity.Amount(1) << 30

// fleet is the slices of a zone: floor and planner at once.
type fleet struct {
	board   *window.Board
	horizon time.Duration
	// nodes have their slices smallest first, as the planner has them.
	nodes [][]*backfill.Slice
}

func (f *fleet) Classes() []*window.Class { return f.board.Classes() }
func (f *fleet) Slices() []*window.Slice  { return f.board.Slices() }
func (f *fleet) Estimator() *index.Estimator {
	return index.NewEstimator(fifo.Policy{}, f.horizon, false, f.board)
}

// Within has a place for each node, and for all that is wider one for all of them.
func (f *fleet) Within(level job.Level) [][]*backfill.Slice {
	if level == job.SameNode {
		return f.nodes
	}
	var all []*backfill.Slice
	for _, n := range f.nodes {
		all = append(all, n...)
	}
	return [][]*backfill.Slice{all}
}

// supply is a slice as a planner sees it: only its class counts here.
type supply struct {
	backfill.Supply
	class *window.Class
}

func (s supply) Class() *window.Class { return s.class }

// size is a slice of so many GiB and a speed.
type size struct{ gib, speed int64 }

// newFleet has the slices of each node.
func newFleet(horizon time.Duration, nodes ...[]size) *fleet {
	f := &fleet{board: window.NewBoard(time.Second), horizon: horizon}
	for _, n := range nodes {
		var list []*backfill.Slice
		for _, z := range n {
			s := &window.Slice{Supply: &markettest.Slice{}}
			c, _ := f.board.ClassOf(&protocol.Slice{Capacity: trp.Vector{trp.Memory: quantity.Amount(z.gib) * gib}, Speed: z.speed})
			f.board.Place(s, c)
			list = append(list, &backfill.Slice{Supply: supply{class: c}})
		}
		f.nodes = append(f.nodes, list)
	}
	return f
}

// keeper makes room for jobs, and hears of nothing.
type keeper struct{ record.Watcher }

func (keeper) Make(*job.Spec) *record.Job { return &record.Job{} }
func (keeper) Slices() int                { return 1 }

// jobOf is a job as of its record, and as a market sees it.
func jobOf(r *protocol.Record, longest time.Duration) (*home.Job, *index.Job) {
	j := record.New(record.Config{}, keeper{}, keeper{}).Outsider(r)
	return j, &index.Job{Demand: &markettest.Job{Of: r.Spec, Longest: longest}}
}

// chain has 100 steps of a second; the first half needs 4 GiB, the second 8.
func chain(kind job.Kind) *job.Spec {
	return &job.Spec{
		Name: "j", Kind: kind, Total: 100, Grid: 10, PerUnit: time.Second, Parallelism: 1, TauMin: 10 * time.Second, MaxFailures: 3,
		Safe: trp.Table{Bounds: []int64{50, 100}, Least: [][]quantity.Amount{{4 * gib, 8 * gib}, {8 * gib}}},
	}
}

// TestWhatIsLeftIsOutOfReach where no slice holds it and no window is long enough, and only there.
func TestWhatIsLeftIsOutOfReach(t *testing.T) {
	lean := func(kind job.Kind) *job.Spec {
		s := chain(kind)
		s.Options = []job.Option{{Name: "lean", Speed: 500, Memory: 500}}
		return s
	}
	wide := func(level job.Level, slices int) *job.Spec {
		s := chain(job.Rigid)
		s.Slices, s.Topology = slices, level
		return s
	}
	only := func(s *job.Spec, profile string) *job.Spec {
		s.Speeds = []job.SpeedOn{{Profile: "", Permille: 0}, {Profile: profile, Permille: 1000}}
		return s
	}
	node := []size{{10, 1000}}
	for _, c := range []struct {
		name      string
		spec      *job.Spec
		done      int64
		learned   protocol.Learned
		nodes     [][]size
		elsewhere quantity.Amount
		options   bool
		longest   time.Duration
		why       string
	}{
		{name: "it fits", spec: chain(job.Steps), nodes: [][]size{node}},
		{name: "its profile was never raised", spec: chain(job.Steps), nodes: [][]size{{{2, 1000}}}},
		{name: "raised, and it fits", spec: chain(job.Steps), learned: protocol.Learned{MemoryScale: 1200}, nodes: [][]size{node}},
		{name: "the part that is left has outgrown", spec: chain(job.Steps), done: 50, learned: protocol.Learned{MemoryScale: 1300},
			nodes: [][]size{node}, why: "it outgrew every slice: after memory; it needs about 10649 MiB, the largest slice has 10240 MiB"},
		{name: "the part that is left is small", spec: chain(job.Steps), done: 40, learned: protocol.Learned{MemoryScale: 1300},
			nodes: [][]size{node}},
		{name: "its next unit fits, no useful piece does", spec: chain(job.Steps), done: 45, learned: protocol.Learned{MemoryScale: 2000},
			nodes: [][]size{{{8, 1000}}}, why: "no slice safely runs a useful piece from unit 45 on, the largest has 8192 MiB"},
		{name: "all of it has to fit at once", spec: chain(job.Rigid), learned: protocol.Learned{MemoryScale: 1300}, nodes: [][]size{node},
			why: "it needs about 10649 MiB"},
		{name: "another way to run fits", spec: lean(job.Steps), done: 50, learned: protocol.Learned{MemoryScale: 1300}, options: true,
			nodes: [][]size{node}},
		{name: "another way, where nobody may choose", spec: lean(job.Steps), done: 50, learned: protocol.Learned{MemoryScale: 1300},
			nodes: [][]size{node}, why: "it outgrew every slice"},
		{name: "no way is lean enough", spec: lean(job.Steps), done: 50, learned: protocol.Learned{MemoryScale: 3000}, options: true,
			nodes: [][]size{node}, why: "it needs about 12288 MiB"},
		{name: "larger slices, on which it can not run", spec: only(chain(job.Steps), "other"), done: 50,
			learned: protocol.Learned{MemoryScale: 1300}, nodes: [][]size{node}},
		{name: "nobody has a slice", spec: chain(job.Steps), done: 50, learned: protocol.Learned{MemoryScale: 1300}},
		{name: "another zone has a larger one", spec: chain(job.Steps), done: 50, learned: protocol.Learned{MemoryScale: 1300},
			nodes: [][]size{node}, elsewhere: 12 * gib},
		{name: "no zone has one that is large enough", spec: chain(job.Steps), done: 50, learned: protocol.Learned{MemoryScale: 2000},
			nodes: [][]size{node}, elsewhere: 12 * gib, why: "the largest slice has 12288 MiB"},
		{name: "several of one node", spec: wide(job.SameNode, 2), learned: protocol.Learned{MemoryScale: 1300},
			nodes: [][]size{{{10, 1000}, {12, 1000}}, {{12, 1000}}}, why: "no node has 2 slices with more than 10240 MiB"},
		{name: "several of one zone", spec: wide(job.SameZone, 2), learned: protocol.Learned{MemoryScale: 1300},
			nodes: [][]size{{{10, 1000}, {12, 1000}}, {{12, 1000}}}},
		{name: "more than there are", spec: wide(job.SameNode, 3), learned: protocol.Learned{MemoryScale: 1300}, nodes: [][]size{node}},
		{name: "several of several zones", spec: wide(job.SameCluster, 2), learned: protocol.Learned{MemoryScale: 1300},
			nodes: [][]size{node}, elsewhere: 12 * gib},
		{name: "several of several zones, none large enough", spec: wide(job.SameCluster, 2), learned: protocol.Learned{MemoryScale: 2000},
			nodes: [][]size{node}, elsewhere: 12 * gib, why: "no zone has a slice with more than 12288 MiB"},
		{name: "a slow run, and the longest window holds a grid", spec: chain(job.Steps), nodes: [][]size{node},
			learned: protocol.Learned{Rates: []time.Duration{50 * time.Second, 6 * time.Second}}, longest: time.Minute},
		{name: "no run fits the longest window", spec: chain(job.Steps), nodes: [][]size{node},
			learned: protocol.Learned{Rates: []time.Duration{50 * time.Second, 7 * time.Second}}, longest: time.Minute,
			why: "a unit takes 7s at best: the least useful piece needs a window of 1m10s, the longest is 1m0s"},
		{name: "nor the horizon", spec: chain(job.Steps), nodes: [][]size{node},
			learned: protocol.Learned{Rates: []time.Duration{time.Hour}}, why: "the longest is 10m0s"},
		{name: "a fast slice holds it", spec: chain(job.Steps), nodes: [][]size{{{10, 1000}, {10, 2000}}},
			learned: protocol.Learned{Rates: []time.Duration{7 * time.Second}}, longest: time.Minute},
		{name: "a slow slice does not, another zone may", spec: chain(job.Steps), nodes: [][]size{{{10, 500}}}, elsewhere: 10 * gib,
			learned: protocol.Learned{Rates: []time.Duration{6 * time.Second}}, longest: time.Minute},
		{name: "a slow slice does not", spec: chain(job.Steps), nodes: [][]size{{{10, 500}}},
			learned: protocol.Learned{Rates: []time.Duration{6 * time.Second}}, longest: time.Minute, why: "at best"},
		{name: "a slow rigid job has no piece", spec: chain(job.Rigid), nodes: [][]size{node},
			learned: protocol.Learned{Rates: []time.Duration{time.Hour}}, longest: time.Minute},
	} {
		if c.learned.MemoryScale == 0 {
			c.learned.MemoryScale = trp.Unscaled
		}
		f := newFleet(10*time.Minute, c.nodes...)
		j, of := jobOf(&protocol.Record{Spec: c.spec, Committed: job.Ranges{}.Add(job.Range{To: c.done}), Learned: c.learned}, c.longest)
		if why := New(f, f, c.options, c.elsewhere).Beyond(j, of); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, want %q", c.name, why, c.why)
		}
	}
}

// could says by brute force whether some slice or the largest elsewhere has a window in which the job's atomizer would cut a piece.
func could(f *fleet, elsewhere quantity.Amount, options bool, j *home.Job, longest time.Duration) bool {
	v := j.View()
	ways := []*job.Option{nil}
	for i := range j.Spec.Options {
		if options {
			ways = append(ways, &j.Spec.Options[i])
		}
	}
	end := quantity.Instant(0).Add(min(f.horizon, longest))
	for _, v.Option = range ways {
		for _, v.Hopeful = range []bool{false, true} {
			if elsewhere > 0 {
				w := atomizer.Window{Capacity: trp.Vector{elsewhere}, Speed: 1000, End: end}
				if _, r := atomizer.Fit(&v, w); r.Why == atomizer.Interested {
					return true
				}
			}
			for _, c := range f.Classes() {
				w := atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec), End: end}
				if _, r := atomizer.Fit(&v, w); r.Why == atomizer.Interested {
					return true
				}
			}
		}
	}
	return false
}

// TestWhatCouldRunIsNeverOutOfReach: whatever was done and learned; and one more slice puts nothing out of reach that was not.
func TestWhatCouldRunIsNeverOutOfReach(t *testing.T) {
	beyond, within := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		sizes := func(what string) (list []size) {
			for range rapid.IntRange(1, 3).Draw(t, what) {
				list = append(list, size{rapid.Int64Range(2, 20).Draw(t, "gib"),
					rapid.SampledFrom([]int64{300, 1000, 1700}).Draw(t, "speed")})
			}
			return list
		}
		s := chain(rapid.SampledFrom([]job.Kind{job.Steps, job.Items}).Draw(t, "kind"))
		if rapid.Bool().Draw(t, "option") {
			s.Options = []job.Option{{Name: "lean", Speed: 700, Memory: 500}}
		}
		learned := protocol.Learned{MemoryScale: rapid.Int64Range(1000, 4000).Draw(t, "scale")}
		for range rapid.IntRange(0, 2).Draw(t, "runs") {
			learned.Rates = append(learned.Rates, time.Duration(rapid.IntRange(1, 60).Draw(t, "rate"))*time.Second/2)
			learned.Rate = max(learned.Rate, learned.Rates[len(learned.Rates)-1]) // a plan is never faster than the fastest run
		}
		longest := time.Duration(rapid.IntRange(20, 120).Draw(t, "longest")) * time.Second
		elsewhere := quantity.Amount(rapid.SampledFrom([]int64{0, 0, 8, 24}).Draw(t, "elsewhere")) * gib
		options := rapid.Bool().Draw(t, "options")
		j, of := jobOf(&protocol.Record{Spec: s, Committed: job.Ranges{}.Add(job.Range{To: rapid.Int64Range(0, 9).Draw(t, "done") * 10}),
			Learned: learned}, longest)
		first := sizes("first")
		second := sizes("second")
		few, more := newFleet(10*time.Minute, first), newFleet(10*time.Minute, first, second)
		why := New(few, few, options, elsewhere).Beyond(j, of)
		if runs := could(few, elsewhere, options, j, longest); runs && why != "" {
			t.Fatalf("it could run, and is said to be out of reach: %s", why)
		} else if !runs && why == "" && learned.MemoryScale > trp.Unscaled {
			t.Fatal("nothing could run it, and nothing is said")
		}
		if also := New(more, more, options, elsewhere).Beyond(j, of); why == "" && also != "" {
			t.Fatalf("one more slice puts it out of reach: %s", also)
		} else if lending := lends(few, options, elsewhere, second).Beyond(j, of); lending != also {
			t.Fatalf("with slices of its own %q, with the same slices lent %q", also, lending)
		}
		if why != "" {
			beyond++
		} else {
			within++
		}
	})
	if beyond == 0 || within == 0 {
		t.Errorf("%d out of reach, %d not: the test tests nothing", beyond, within)
	}
}

// lends judges by a fleet and by slices that a pool may lend.
func lends(f *fleet, options bool, elsewhere quantity.Amount, list []size) *Reach {
	r := New(f, f, options, elsewhere)
	r.Lend("pool", []protocol.Slice{{Capacity: trp.Vector{trp.Memory: 100 * gib}, Speed: 1000}}) // which the next replaces
	var lent []protocol.Slice
	for _, z := range list {
		lent = append(lent, protocol.Slice{Capacity: trp.Vector{trp.Memory: quantity.Amount(z.gib) * gib}, Speed: z.speed})
	}
	r.Lend("pool", lent)
	return r
}
