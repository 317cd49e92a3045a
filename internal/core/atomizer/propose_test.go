package atomizer_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// TestVectorOfSJAThroughPropose: the windows of TestVectorOfSJA, asked for variants. The first is the piece of the vector.
func TestVectorOfSJAThroughPropose(t *testing.T) {
	spec := vector(t)
	spec.Deadline, spec.Worth, spec.OverheadMax = quantity.Never, job.DefaultWorth, 500
	for _, c := range []struct {
		name            string
		gb, d, progress int64
		// Of each variant the units it takes, when it starts in milliseconds, and how long it takes in seconds.
		want [][3]int64
	}{
		// The delayed one still meets the early half, by a millisecond; the quarter meets both.
		{"W1", 10, 900, 0, [][3]int64{{600, 0, 615}, {240, 0, 255}, {600, 254_999, 615}, {120, 120_000, 135}}},
		{"W2", 18, 1200, 600, [][3]int64{{1140, 0, 1175}, {540, 0, 575}, {540, 574_999, 575}, {240, 300_000, 275}}},
		{"W3", 14, 1200, 1740, nil},
		{"W4", 24, 100, 1740, nil},
		{"W5", 20, 3600, 1740, [][3]int64{{2460, 0, 2495}, {1200, 0, 1235}, {2460, 1_105_000, 2495}, {540, 530_001, 575}}},
		{"W6", 24, 300, 4200, nil},
		{"W7", 40, 3600, 4200, [][3]int64{{1200, 0, 1220}, {540, 0, 575}, {1200, 574_999, 1220}, {240, 300_000, 275}}},
	} {
		v := &atomizer.View{Spec: spec, Learned: &protocol.Learned{Margin: 1000}}
		if c.progress > 0 {
			v.Committed, v.Resume = v.Committed.Add(job.Range{From: 0, To: c.progress}), job.Token{Epoch: 1, Seq: 1}
		}
		w := atomizer.Window{ID: 7, Capacity: trp.Vector{quantity.Amount(c.gb * gb)}, Speed: 1000,
			End: quantity.Instant(0).Add(time.Duration(c.d) * time.Second)}
		got := atomizer.Propose(v, w, 64, 0, nil)
		var short [][3]int64
		for i := range got {
			x := &got[i]
			short = append(short, [3]int64{x.Range.Len(), time.Duration(x.Start).Milliseconds(), int64(x.Wall / time.Second)})
			if x.Window != 7 || x.ID != uint32(i+1) || x.Range.From != c.progress || x.Run != time.Duration(x.Range.Len())*time.Second {
				t.Errorf("%s: variant %+v", c.name, x)
			}
		}
		if !reflect.DeepEqual(short, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, short, c.want)
		}
	}
}

// TestDeclaredScores: progress, laxity and overhead, by hand.
func TestDeclaredScores(t *testing.T) {
	spec := vector(t)
	spec.Worth, spec.Deadline = job.Worth{Progress: 500, Laxity: 300, Overhead: 200}, quantity.Never
	v := &atomizer.View{Spec: spec, Learned: &protocol.Learned{Margin: 1000}}
	w := atomizer.Window{Capacity: trp.Vector{10 * gb}, Speed: 1000, End: quantity.Instant(900 * 1e9)}
	for _, c := range []struct {
		deadline quantity.Instant
		want     int64
	}{
		// 600 of 5400 units: .111111; 15 of 615 s: .975610. .5 x .111111 + .2 x .975610 = .250678.
		{quantity.Never, 250_678},
		// 5400 s of run time, half an hour of slack: half an hour of the hour that counts.
		{quantity.Instant(7200 * 1e9), 400_678},
		{quantity.Instant(5400 * 1e9), 550_678},
	} {
		spec.Deadline = c.deadline
		got := atomizer.Propose(v, w, 1, 0, nil)
		if len(got) != 1 || got[0].Score < c.want-1 || got[0].Score > c.want+1 {
			t.Errorf("deadline %v: %+v, want a score of %d", c.deadline, got, c.want)
		}
	}
}

// bargain is a random job with options before a random window.
func bargain(t *rapid.T, kind job.Kind) situation {
	q := draw(t, kind)
	s := q.spec
	s.Deadline, s.Worth, s.OverheadMax = quantity.Never, job.DefaultWorth, rapid.IntRange(0, 1000).Draw(t, "overhead")
	if rapid.Bool().Draw(t, "in a hurry") {
		s.Deadline = quantity.Instant(rapid.Int64Range(0, 7200).Draw(t, "deadline") * 1e9)
	}
	if kind == job.Items {
		s.Parallelism = rapid.IntRange(1, 6).Draw(t, "parallelism")
		q.view.Running = rapid.IntRange(0, s.Parallelism).Draw(t, "running")
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "options") {
		s.Options = append(s.Options, job.Option{
			Name: fmt.Sprint("o", i), Speed: rapid.Int64Range(10, 4000).Draw(t, "speed"),
			Memory: rapid.Int64Range(200, 3000).Draw(t, "memory"),
		})
	}
	q.view.Learned.MemoryScale = rapid.SampledFrom([]int64{0, 1000, 1150}).Draw(t, "scale")
	q.win.ID = rapid.Uint64().Draw(t, "window")
	if rapid.IntRange(0, 3).Draw(t, "tight") > 0 { // mostly there is a choice
		q.win.Capacity, q.win.End = trp.Vector{1000}, quantity.Instant(rapid.Int64Range(30, 300).Draw(t, "long")*1e9)
		s.TauMin, s.Restore, s.Checkpoint, s.OverheadMax = 2*time.Second, s.Restore/8, s.Checkpoint/8,
			rapid.SampledFrom([]int{100, 900}).Draw(t, "overheadMax")
		q.view.Committed, q.view.Running = nil, 0
		if q.view.Claimed.Len() > 0 {
			q.view.Running = 1
		}
	}
	q.win.Start = quantity.Instant(rapid.Int64Range(0, 1e12).Draw(t, "start"))
	q.win.End += q.win.Start
	q.win.Open = rapid.Bool().Draw(t, "open")
	return q
}

// wrong says what is wrong with one variant, from the definitions alone.
func (q *situation) wrong(x *protocol.Variant, first bool) string {
	s, v := q.spec, &q.view
	speed, memory := q.win.Speed, max(v.Learned.MemoryScale, 0)
	if memory == 0 {
		memory = 1000
	}
	if x.Option != "" {
		found := false
		for _, o := range s.Options {
			if o.Name == x.Option {
				found = true
				speed, memory = quantity.MulDiv(speed, o.Speed, 1000), quantity.MulDiv(memory, o.Memory, 1000)
			}
		}
		if !found {
			return "no such option"
		}
	}
	before, after := s.Startup, s.Checkpoint
	if !v.Resume.Zero() {
		before += s.Restore
	}
	if x.Range.To == s.Total && v.Committed.Len()+v.Claimed.Len()+x.Range.Len() == s.Total {
		after = 0
	}
	free := job.NextFree(x.Range.From, s.Total, v.Committed, v.Claimed)
	end := free.To
	least := s.Safe.LeastOver(x.Range.From, x.Range.To, memory)
	overhead := x.Wall - x.Run - s.Startup
	switch {
	case x.Range.Empty() || free.From != x.Range.From || x.Range.To > end:
		return "not free"
	case s.Kind == job.Steps && x.Range.From != job.NextFree(0, s.Total, v.Committed, v.Claimed).From:
		return "not the next step"
	case x.Range.To%s.Grid != 0 && x.Range.To != end:
		return "off the grid"
	case x.Run != v.RunTime(x.Range.Len(), speed):
		return "not its run time"
	case x.Wall != before+x.Run+after:
		return "not its wall time"
	case x.Start < q.win.Start || x.Start.Add(x.Wall+s.Launch.Grace) > q.win.End:
		return "outside the window"
	case q.win.Open && x.Start != q.win.Start && s.Kind == job.Steps:
		return "delayed for nothing"
	case x.Demand[trp.Memory] != least || !x.Demand.Fits(q.win.Capacity):
		return fmt.Sprintf("not safe: it needs %d", least)
	case x.Run < s.TauMin && x.Range.To != end:
		return "below tau_min"
	case !first && x.Option == "" && s.OverheadMax > 0 && x.Start == q.win.Start &&
		int64(overhead)*1000 > int64(x.Wall)*int64(s.OverheadMax):
		return "too much overhead"
	case x.Score < 0 || x.Score > score.One:
		return "no score"
	}
	return v.Cut(x.Range, x.Run)
}

// TestVariants: every variant is right by itself, the first is the piece of Fit, and no two of them sell the same work twice
// if both are won.
func TestVariants(t *testing.T) {
	seen := map[string]int{}
	for i := range 20 {
		kind := []job.Kind{job.Items, job.Steps}[i%2]
		rapid.Check(t, func(t *rapid.T) {
			q := bargain(t, kind)
			most := rapid.IntRange(0, 70).Draw(t, "most")
			earlier := make([]protocol.Variant, rapid.IntRange(0, 3).Draw(t, "earlier"))
			now := q.win.Start.Add(time.Duration(rapid.Int64Range(-5, 5).Draw(t, "early")) * time.Second)
			all := atomizer.Propose(&q.view, q.win, most, now, append([]protocol.Variant(nil), earlier...))
			got := all[len(earlier):]
			p, refusal := atomizer.Fit(&q.view, q.win)
			if interested := refusal.Why == atomizer.Interested && most > 0; interested != (len(got) > 0) ||
				len(got) > min(most, atomizer.MostVariants) {
				t.Fatalf("%d variants of %d, Fit says %+v", len(got), most, refusal)
			}
			for i := range got {
				x := &got[i]
				if x.ID != uint32(len(earlier)+i+1) || x.Window != q.win.ID {
					t.Fatalf("variant %d is %+v", i, x)
				}
				if i == 0 && (x.Range != p.Range || x.Start != q.win.Start || x.Run != p.Run || x.Wall != p.Wall || x.Demand != p.Demand ||
					x.Option != "") {
					t.Fatalf("the first is %+v, Fit has %+v", x, p)
				}
				if why := q.wrong(x, i == 0); why != "" {
					t.Fatalf("%+v: %s", x, why)
				}
				for j := range got[:i] {
					o := &got[j]
					apart := x.Start.Add(x.Wall) <= o.Start || o.Start.Add(o.Wall) <= x.Start
					if x.Range.Overlaps(o.Range) && apart {
						t.Fatalf("both could be won: %+v and %+v", o, x)
					}
					if *x == *o {
						t.Fatalf("twice the same: %+v", x)
					}
				}
				switch {
				case x.Option != "":
					seen["option"]++
				case x.Range.From != p.Range.From:
					seen["chain"]++
				case x.Start > q.win.Start:
					seen["delayed"]++
				case i > 0:
					seen["shorter"]++
				}
			}
			chained := 0
			for i := range got {
				if got[i].Option == "" && got[i].Range.From >= p.Range.To {
					chained++
				}
			}
			if chained > 0 && q.view.Running+1+chained > q.spec.Parallelism {
				t.Fatalf("%d run already of %d, and a chain of %d is proposed", q.view.Running, q.spec.Parallelism, 1+chained)
			}
			for i := range q.spec.Options {
				v := q.view
				v.Option = &q.spec.Options[i]
				_, r := atomizer.Fit(&v, q.win)
				proposed := slices.ContainsFunc(got, func(x protocol.Variant) bool { return x.Option == v.Option.Name })
				if want := r.Why == atomizer.Interested && len(got) > 0; proposed != want && (proposed || len(got) < most) {
					t.Fatalf("option %+v: %+v in %+v", v.Option, r, got)
				}
			}
			if again := atomizer.Propose(&q.view, q.win, most, now, append([]protocol.Variant(nil), earlier...)); !reflect.DeepEqual(all,
				again) {
				t.Fatalf("%+v, and again %+v", all, again)
			}
			if len(got) > 1 {
				fewer := atomizer.Propose(&q.view, q.win, len(got)-1, now, append([]protocol.Variant(nil), earlier...))
				if !reflect.DeepEqual(fewer, all[:len(all)-1]) {
					t.Fatalf("%+v, of them one fewer: %+v", all, fewer)
				}
			}
		})
	}
	for _, what := range []string{"option", "chain", "delayed", "shorter"} {
		if seen[what] < 50 {
			t.Errorf("only %d variants of the sort %q were seen", seen[what], what)
		}
	}
}

// TestVariantsOfAFailingRange: while a bad unit is looked for, every variant is a legal cut (no wider than the limit, not over
// an edge of the range), and none sells the same work twice.
func TestVariantsOfAFailingRange(t *testing.T) {
	inside := 0
	rapid.Check(t, func(t *rapid.T) {
		q := bargain(t, job.Items)
		from := rapid.Int64Range(0, q.spec.Total-1).Draw(t, "suspect")
		s := job.Range{From: from, To: rapid.Int64Range(from+1, q.spec.Total).Draw(t, "suspect end")}
		limit := rapid.Int64Range(1, s.Len()).Draw(t, "limit")
		q.view.Learned.Suspects = []protocol.Suspect{{Range: s, Limit: limit}}
		got := atomizer.Propose(&q.view, q.win, atomizer.MostVariants, q.win.Start, nil)
		for i := range got {
			x := &got[i]
			if why := q.view.Cut(x.Range, x.Run); why != "" {
				t.Fatalf("%+v: %s", x, why)
			}
			if x.Range.Overlaps(s) {
				inside++
				if x.Range.Len() > limit || !s.Contains(x.Range) {
					t.Fatalf("%+v crosses %v or is wider than %d", x, s, limit)
				}
			}
			for j := range got[:i] {
				o := &got[j]
				if x.Range.Overlaps(o.Range) && (x.Start.Add(x.Wall) <= o.Start || o.Start.Add(o.Wall) <= x.Start) {
					t.Fatalf("both could be won: %+v and %+v", o, x)
				}
			}
		}
	})
	if inside < 10 {
		t.Errorf("only %d variants were of the failing range", inside)
	}
}

// TestAnAgentKnowsEnough: an agent that knows only a call proposes what the job itself would, as long as nothing was learned.
func TestAnAgentKnowsEnough(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		rapid.Check(t, func(t *rapid.T) {
			q := bargain(t, kind)
			q.view.Learned, q.view.Running, q.win.Open = &protocol.Learned{}, q.spec.Parallelism-1, false
			c := protocol.Call{Most: 4, First: q.view.Resume.Zero(), Left: q.spec.Total - q.view.Committed.Len() - q.view.Claimed.Len()}
			for free := job.NextFree(0, q.spec.Total, q.view.Committed, q.view.Claimed); !free.Empty(); free = job.NextFree(free.To,
				q.spec.Total, q.view.Committed, q.view.Claimed) {
				c.Free = append(c.Free, free)
			}
			a := protocol.Advert{Window: q.win.ID, Speed: q.win.Speed, Capacity: q.win.Capacity, Start: q.win.Start, End: q.win.End}
			v, w := atomizer.FromCall(q.spec, &c, &a)
			if w != q.win {
				t.Fatalf("window %+v, want %+v", w, q.win)
			}
			got, want := atomizer.Propose(&v, w, c.Most, q.win.Start, nil), atomizer.Propose(&q.view, q.win, c.Most, q.win.Start, nil)
			for i := range want {
				want[i].Score = 0 // it does not know what is claimed, and takes it for done
				if i < len(got) {
					got[i].Score = 0
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("the agent proposes %+v, the job %+v", got, want)
			}
		})
	}
}

// TestRigidAndHopefulJobsProposeOnePiece: they have no choice.
func TestRigidAndHopefulJobsProposeOnePiece(t *testing.T) {
	spec := vector(t)
	spec.Deadline = quantity.Never
	hopeful := atomizer.View{Spec: spec, Learned: &protocol.Learned{}, Hopeful: true}
	rigid := *spec
	rigid.Kind, rigid.Walltime = job.Rigid, time.Minute
	for name, v := range map[string]*atomizer.View{"hopeful": &hopeful, "rigid": {Spec: &rigid, Learned: &protocol.Learned{}}} {
		w := atomizer.Window{Capacity: trp.Vector{80 * gb}, Speed: 1000, End: quantity.Instant(3600 * 1e9)}
		p, _ := atomizer.Fit(v, w)
		if got := atomizer.Propose(v, w, 64, 0, nil); len(got) != 1 || got[0].Range != p.Range || got[0].Wall != p.Wall || p.Wall == 0 {
			t.Errorf("%s: %+v, Fit has %+v", name, got, p)
		}
	}
}

// bidders are jobs as benchmarks meet them: a chain of phases, and items with several shares in the window.
func bidders(t testing.TB) []atomizer.View {
	steps := vector(t)
	steps.Worth, steps.Deadline, steps.OverheadMax = job.DefaultWorth, quantity.Instant(9000*1e9), 500
	items := *steps
	items.Kind, items.Parallelism, items.Restore, items.Checkpoint, items.Grid = job.Items, 8, 0, 0, 10
	withOption := *steps
	withOption.Options = []job.Option{{Name: "bf16", Speed: 1400, Memory: 600}}
	var out []atomizer.View
	for i, s := range []*job.Spec{steps, &items, &withOption} {
		for done := int64(0); done < 5400; done += 900 {
			v := atomizer.View{Spec: s, Learned: &protocol.Learned{Rate: time.Second + time.Duration(i)}, Resume: job.Token{Epoch: 1}}
			v.Committed = v.Committed.Add(job.Range{To: done})
			if s.Kind == job.Items && done > 0 {
				v.Claimed, v.Running = v.Claimed.Add(job.Range{From: done + 100, To: done + 200}), 1
			}
			out = append(out, v)
		}
	}
	return out
}

func TestProposeDoesNotAllocate(t *testing.T) {
	views := bidders(t)
	w := atomizer.Window{Capacity: trp.Vector{40 * gb}, Speed: 1000, End: quantity.Instant(1800 * 1e9)}
	out := make([]protocol.Variant, 0, atomizer.MostVariants)
	if n := testing.AllocsPerRun(100, func() {
		for i := range views {
			out = atomizer.Propose(&views[i], w, atomizer.MostVariants, 0, out[:0])
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPropose is one job for one window, over jobs of three sorts at six points of their progress and slices of two sizes.
func BenchmarkPropose(b *testing.B) {
	views := bidders(b)
	for _, most := range []int{1, 4, 16} {
		b.Run(fmt.Sprint("most=", most), func(b *testing.B) {
			out := make([]protocol.Variant, 0, most)
			variants, i := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				w := atomizer.Window{Capacity: trp.Vector{quantity.Amount(20+20*(i&1)) * gb}, Speed: 1000,
					End: quantity.Instant((600 + 300*int64(i%7)) * 1e9)}
				out = atomizer.Propose(&views[i%len(views)], w, most, 0, out[:0])
				variants += len(out)
				i++
			}
			b.ReportMetric(float64(variants)/float64(b.N), "variants/op")
		})
	}
}
