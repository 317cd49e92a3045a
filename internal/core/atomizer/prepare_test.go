package atomizer_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestAStartIsPlannedWith: what a start takes at its node is in the piece's time beside its units, and the last resort of a
// job is not barred by it.
func TestAStartIsPlannedWith(t *testing.T) {
	spec := func(kind job.Kind, files, bytes int64) *job.Spec {
		return &job.Spec{
			Kind: kind, Total: 100, Grid: 1, PerUnit: 100 * time.Millisecond, Walltime: 10 * time.Second, Parallelism: 1, Slices: 1,
			Startup: 300 * time.Millisecond,
			Safe:    trp.Table{Bounds: []int64{100}, Least: [][]quantity.Amount{{1}}},
			Launch:  job.Launch{Files: files, Bytes: bytes, Grace: time.Second},
		}
	}
	seen := &protocol.Learned{Margin: 1000, Prepares: []time.Duration{40 * time.Millisecond, 60 * time.Millisecond},
		Prepare: 60 * time.Millisecond}
	for _, c := range []struct {
		name    string
		spec    *job.Spec
		learned *protocol.Learned
		hopeful bool
		want    time.Duration
	}{
		{"nothing is known and nothing unpacked, as in simulated worlds", spec(job.Items, 0, 0), &protocol.Learned{Margin: 1000}, false, 0},
		{"by the size, a millisecond a file and 20 ms a MiB", spec(job.Items, 2000, 16<<20), &protocol.Learned{Margin: 1000}, false,
			2320 * time.Millisecond},
		{"as learned", spec(job.Items, 2000, 16<<20), seen, false, 60 * time.Millisecond},
		{"the last resort takes the fastest", spec(job.Items, 2000, 16<<20), seen, true, 40 * time.Millisecond},
		{"and is not barred by what unpacking may take", spec(job.Items, 2000, 16<<20), &protocol.Learned{}, true, 0},
		{"a rigid job keeps its walltime", spec(job.Rigid, 2000, 16<<20), &protocol.Learned{}, false, 2320 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &atomizer.View{Spec: c.spec, Learned: c.learned, Hopeful: c.hopeful}
			if got := v.Prepare(); got != c.want {
				t.Errorf("a start is planned with %v, want %v", got, c.want)
			}
			p, r := atomizer.Fit(v, atomizer.Window{Capacity: trp.Vector{1}, Speed: 1000, End: quantity.Instant(0).Add(time.Minute)})
			if r.Why != atomizer.Interested {
				t.Fatalf("refused: %+v", r)
			}
			own := c.spec.Startup
			if c.spec.Kind == job.Rigid {
				own = 0
			}
			if beside := p.Wall - p.Run; !c.hopeful && beside != c.want+own || p.Length != p.Wall+c.spec.Launch.Grace {
				t.Errorf("%v beside its units, want %v and %v; length %v of wall %v", beside, c.want, own, p.Length, p.Wall)
			}
		})
	}
	v := &atomizer.View{Spec: spec(job.Items, 2000, 16<<20), Learned: seen, Continues: job.Range{From: 0, To: 10}, Committed: job.Ranges{},
		Claimed: job.Ranges{{From: 0, To: 10}}, Running: 1}
	if p, r := atomizer.Fit(v, atomizer.Window{Capacity: trp.Vector{1}, Speed: 1000,
		End: quantity.Instant(0).Add(time.Minute)}); r.Why != atomizer.Interested || p.Wall != p.Run {
		t.Errorf("what goes on without a stop starts nothing: %+v, %+v", p, r)
	}
}

// TestAStartGetsTimeAfterPiecesWithoutProgress: a fixed time, since a factor on units of a millisecond makes up for no slow start; the
// last resort has the whole window anyway, and what goes on starts nothing.
func TestAStartGetsTimeAfterPiecesWithoutProgress(t *testing.T) {
	spec := &job.Spec{
		Kind: job.Items, Total: 100, Grid: 100, PerUnit: time.Millisecond, Parallelism: 2, Slices: 1, Startup: 300 * time.Millisecond,
		Safe: trp.Table{Bounds: []int64{100}, Least: [][]quantity.Amount{{1}}},
	}
	for _, c := range []struct {
		failures int
		want     time.Duration
	}{
		{failures: 0, want: 0},
		{failures: 1, want: time.Second},
		{failures: 2, want: 4 * time.Second},
		{failures: 3, want: 16 * time.Second},
		{failures: 900, want: 16 * time.Second},
	} {
		v := &atomizer.View{Spec: spec, Learned: &protocol.Learned{Margin: 1000, Failures: c.failures}}
		p, r := atomizer.Fit(v, atomizer.Window{Capacity: trp.Vector{1}, Speed: 1000, End: quantity.Instant(0).Add(time.Minute)})
		if beside := p.Wall - p.Run - spec.Startup; r.Why != atomizer.Interested || beside != c.want {
			t.Errorf("after %d without progress: %v on top of its start, want %v: %+v", c.failures, beside, c.want, r)
		}
		if least := atomizer.LeastWindow(v, 1000); least != p.Length {
			t.Errorf("after %d without progress: %v is the least window, its piece takes %v", c.failures, least, p.Length)
		}
	}
	hopeful := &atomizer.View{Spec: spec, Learned: &protocol.Learned{Margin: 1000, Failures: 2}, Hopeful: true}
	if p, r := atomizer.Fit(hopeful, atomizer.Window{Capacity: trp.Vector{1}, Speed: 1000,
		End: quantity.Instant(0).Add(500 * time.Millisecond)}); r.Why != atomizer.Interested {
		t.Errorf("the last resort is kept out: %+v, %+v", p, r)
	}
}
