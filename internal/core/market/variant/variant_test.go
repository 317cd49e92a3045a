package variant

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

const (
	gib = quantity.Amount(1) << 30
	now = quantity.Instant(1e12)
)

// fixture is one window of one slice, and one job.
type fixture struct {
	est   *index.Estimator
	slice *window.Slice
	owner *markettest.Job
	job   *index.Job
	w     *window.Window
}

// on is a slice of 8 GiB with a window of a length, Never for one without an end.
func on(spec *job.Spec, speed int64, end quantity.Instant) *fixture {
	board := window.NewBoard(0)
	f := &fixture{est: index.NewEstimator(fifo.Policy{}, 10*time.Minute, true, board),
		slice: &window.Slice{Supply: &markettest.Slice{ID: "s", On: "n", Gaps: []protocol.Gap{{Start: now, End: end}}}},
		owner: &markettest.Job{Of: spec}, w: window.Of(1, now, end)}
	c, _ := board.ClassOf(&protocol.Slice{Capacity: trp.Vector{trp.Memory: 8 * gib}, Speed: speed})
	board.Place(f.slice, c)
	f.job = &index.Job{Demand: f.owner}
	return f
}

// verify is what the scheduler makes of a variant.
func (f *fixture) verify(v protocol.Variant) (Verified, string) {
	t, view := Verified{Variant: v, Job: f.job}, f.job.View()
	why := t.Verify(now, f.est, &view, f.slice, f.w)
	return t, why
}

// chain is one of 100 steps of a second that need 4 GiB, from 50 on 6.
func chain() *job.Spec {
	return &job.Spec{Name: "j", Kind: job.Steps, Total: 100, PerUnit: time.Second, Grid: 10, Parallelism: 1, TauMin: 10 * time.Second,
		Launch: job.Launch{Grace: 5 * time.Second}, Options: []job.Option{{Name: "lean", Speed: 500, Memory: 500}},
		Safe: trp.Table{Bounds: []int64{50, 100}, Least: [][]quantity.Amount{{4 * gib, 6 * gib}, {6 * gib}}}}
}

// TestAVariantThatBreaksARuleIsDenied, and is told which; one just within it stands.
func TestAVariantThatBreaksARuleIsDenied(t *testing.T) {
	start, end := now, now.Add(time.Minute)
	for _, c := range []struct {
		name string
		job  func(d *markettest.Job)
		say  func(v *protocol.Variant)
		why  string
	}{
		{"sound", nil, func(*protocol.Variant) {}, ""},
		{"an option it has", nil, func(v *protocol.Variant) { v.Option = "lean" }, ""},
		{"an option it has not", nil, func(v *protocol.Variant) { v.Option = "fast" }, `no option "fast"`},
		{"barred from the slice", func(d *markettest.Job) { d.Of.Speeds = []job.SpeedOn{{}} }, func(*protocol.Variant) {},
			"can not run on this kind"},
		{"the least score", nil, func(v *protocol.Variant) { v.Score = 0 }, ""},
		{"the greatest score", nil, func(v *protocol.Variant) { v.Score = score.One }, ""},
		{"a score below 0", nil, func(v *protocol.Variant) { v.Score = -1 }, "its score is -1"},
		{"a score above 1", nil, func(v *protocol.Variant) { v.Score = score.One + 1 }, "its score is 1000001"},
		{"no units", nil, func(v *protocol.Variant) { v.Range.To = 0 }, "no work of the job"},
		{"units before the first", nil, func(v *protocol.Variant) { v.Range.From = -10 }, "no work of the job"},
		{"units behind the last", nil, func(v *protocol.Variant) { v.Range.To = 110 }, "no work of the job"},
		{"units that are done", func(d *markettest.Job) { d.Committed = job.Ranges{{From: 10, To: 20}} }, func(*protocol.Variant) {},
			"sold or done"},
		{"units that are sold", func(d *markettest.Job) { d.Claimed = job.Ranges{{From: 10, To: 20}} }, func(*protocol.Variant) {},
			"sold or done"},
		{"as many as may run", func(d *markettest.Job) { d.Running = 1 }, func(*protocol.Variant) {}, "already runs the 1 subjobs"},
		{"no time", nil, func(v *protocol.Variant) { v.Run = 0 }, "it plans to run"},
		{"less time in all than for the work", nil, func(v *protocol.Variant) { v.Wall = v.Run - 1 }, "it plans to run"},
		{"more time than sums hold", nil, func(v *protocol.Variant) { v.Wall = math.MaxInt64 }, "it plans to run"},
		{"before the window", nil, func(v *protocol.Variant) { v.Start = start - 1 }, "does not begin within"},
		{"at the window's end", nil, func(v *protocol.Variant) { v.Start = end }, "does not begin within"},
		{"off the grid", nil, func(v *protocol.Variant) { v.Range.To = 19 }, "not on the grid"},
		{"not where the chain goes on", nil, func(v *protocol.Variant) { v.Range = job.Range{From: 20, To: 40} }, "the chain goes on at 0"},
		{"less than is useful", nil, func(v *protocol.Variant) { v.Run = 9 * time.Second }, "the least useful run"},
		{"just to the end, grace included", nil, func(v *protocol.Variant) { v.Wall = 55 * time.Second }, ""},
		{"over the end, grace included", nil, func(v *protocol.Variant) { v.Wall = 55*time.Second + 1 }, "it ends 1ns after the window"},
		{"over the end, as it usually takes longer", func(d *markettest.Job) {
			d.Of.External = true
			d.Learned.Trust = protocol.Trust{Seen: 3, Pace: 2000}
		}, func(v *protocol.Variant) { v.Wall = 28 * time.Second }, "it ends 1s after the window"},
		{"over the end, as it took longer once", func(d *markettest.Job) {
			d.Of.External = true
			d.Learned.Trust = protocol.Trust{Seen: 1, Pace: 2000}
		}, func(v *protocol.Variant) { v.Wall = 28 * time.Second }, ""},
		{"as much memory as there is", nil, func(v *protocol.Variant) { v.Demand[trp.Memory] = 8 * gib }, ""},
		{"more memory than there is", nil, func(v *protocol.Variant) { v.Demand[trp.Memory] = 8*gib + 1<<20 }, "it needs 8193 MiB"},
		{"more memory than it says", func(d *markettest.Job) { d.Learned.MemoryScale = 3000 }, func(*protocol.Variant) {},
			"it needs 12288 MiB"},
	} {
		f := on(chain(), 1000, end)
		if c.job != nil {
			c.job(f.owner)
		}
		v := protocol.Variant{Range: job.Range{To: 20}, Start: start, Run: 20 * time.Second, Wall: 22 * time.Second, Score: 500_000}
		c.say(&v)
		if _, why := f.verify(v); (c.why == "") != (why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q, want %q", c.name, why, c.why)
		}
	}
}

// TestMemorySpeedAndEndAreTheSchedulers: of a variant that stands the job's declaration counts only where it asks for more.
func TestMemorySpeedAndEndAreTheSchedulers(t *testing.T) {
	f := on(chain(), 500, quantity.Never)
	f.owner.Of.External, f.owner.Learned = true, protocol.Learned{MemoryScale: 1200, Trust: protocol.Trust{Seen: 3, Pace: 1500}}
	for _, c := range []struct {
		option   string
		says     quantity.Amount
		start    quantity.Instant
		mib      int64
		speed    int64
		from, to time.Duration
	}{
		{"", 0, now, 4915, 500, 0, 38 * time.Second},
		{"", -1, now, 4915, 500, 0, 38 * time.Second},
		{"", 7 * gib, now, 7168, 500, 0, 38 * time.Second},
		{"lean", 0, now, 2457, 250, 0, 38 * time.Second},
		{"", 0, now + 1, 4915, 500, Tick, Tick + 38*time.Second}, // times are whole ticks
	} {
		got, why := f.verify(protocol.Variant{Range: job.Range{To: 20}, Start: c.start, Run: 20 * time.Second, Wall: 22 * time.Second,
			Option: c.option, Demand: trp.Vector{trp.Memory: c.says}})
		if mib := int64(got.Demand[trp.Memory] >> 20); why != "" || mib != c.mib || got.Speed != c.speed || got.Start != now.Add(c.from) ||
			got.End != now.Add(c.to) {
			t.Errorf("option %q, says %d MiB: it has %d MiB at speed %d, [%v,%v) %s", c.option, c.says>>20, mib, got.Speed,
				got.Start.Sub(now), got.End.Sub(now), why)
		}
	}
}

// TestARigidJobWithoutAWalltimeNeedsAWindowWithoutAnEnd, and its lease has none either.
func TestARigidJobWithoutAWalltimeNeedsAWindowWithoutAnEnd(t *testing.T) {
	spec := &job.Spec{Name: "j", Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Safe: trp.Table{Bounds: []int64{1},
		Least: [][]quantity.Amount{{gib}}}}
	whole := protocol.Variant{Range: job.Range{To: 1}, Start: now}
	if got, why := on(spec, 1000, quantity.Never).verify(whole); why != "" || got.End != quantity.Never {
		t.Errorf("until %d %s", got.End, why)
	}
	if _, why := on(spec, 1000, now.Add(time.Hour)).verify(whole); why == "" {
		t.Error("it stands in a window with an end")
	}
}

// TestWhatStandsIsSound: of lies with any numbers only those stand that are true, whatever was done, sold and learned of the job; and what
// the job's own atomizer proposes from whole ticks on stands.
func TestWhatStandsIsSound(t *testing.T) {
	stand, denied := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := chain()
		if rapid.Bool().Draw(t, "items") {
			s.Kind, s.Parallelism = job.Items, 3
		}
		if rapid.Bool().Draw(t, "external") {
			s.External = true
		}
		end := quantity.Never
		if rapid.Bool().Draw(t, "ends") {
			end = now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "length")) * time.Second)
		}
		f := on(s, rapid.Int64Range(300, 1500).Draw(t, "speed"), end)
		done := rapid.Int64Range(0, 9).Draw(t, "done") * 10
		f.owner.Committed = job.Ranges{}.Add(job.Range{To: done})
		if s.Kind == job.Items {
			f.owner.Running = rapid.IntRange(0, 3).Draw(t, "running")
			if from := rapid.Int64Range(0, 9).Draw(t, "sold") * 10; from >= done {
				f.owner.Claimed = job.Ranges{}.Add(job.Range{From: from, To: from + 10})
			}
		}
		f.owner.Learned.MemoryScale = rapid.Int64Range(1000, 2500).Draw(t, "scale")
		f.owner.Learned.Trust = protocol.Trust{Seen: rapid.Int64Range(0, 5).Draw(t, "seen"), Pace: rapid.Int64().Draw(t, "pace")}
		view := f.job.View()
		honest := atomizer.Propose(&view, f.est.Within(f.job, f.slice, now, end), 5, now, nil)
		for _, v := range honest {
			// An agent's own plan may not fit when it is corrected, and what ends with the window not when its start is put off to a whole
			// tick.
			exact := f.est.Slowdown(f.job, &view) == 1000 && v.Start.Sub(now)%Tick == 0
			if _, why := f.verify(v); why != "" && exact {
				t.Fatalf("%+v is denied: %s", v, why)
			}
		}
		v := protocol.Variant{Range: job.Range{From: done, To: done + 10}, Start: now, Run: 10 * time.Second, Wall: 12 * time.Second,
			Option: rapid.SampledFrom([]string{"", "lean"}).Draw(t, "option")}
		if len(honest) > 0 {
			v = rapid.SampledFrom(honest).Draw(t, "honest")
		}
		for range rapid.IntRange(0, 3).Draw(t, "lies") {
			v = markettest.Lie(v, rapid.IntRange(0, markettest.Lies-1).Draw(t, "lie"), rapid.Int64Range(-9, 9).Draw(t, "by"))
		}
		got, why := f.verify(v)
		if why != "" {
			denied++
			return
		}
		stand++
		p := award.Piece{Piece: atomizer.Piece{Range: got.Range, Run: got.Run, Wall: got.Wall, Demand: got.Demand}, Start: got.Start,
			End: got.End, Speed: got.Speed, Option: got.Option, Bid: &protocol.Bid{Score: got.Score}}
		if wrong := markettest.Unsound(now, f.owner, f.slice, &p); wrong != "" {
			t.Fatalf("%+v stands, and %s", got, wrong)
		}
		if got.End.Sub(got.Start) < got.Wall+s.Launch.Grace-Tick && end != quantity.Never {
			t.Fatalf("its lease holds %v, it takes %v", got.End.Sub(got.Start), got.Wall+s.Launch.Grace)
		}
	})
	if stand == 0 || denied == 0 {
		t.Errorf("%d stand, %d are denied: the test tests nothing", stand, denied)
	}
}
