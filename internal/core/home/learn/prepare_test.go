package learn

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

func TestLearnPrepare(t *testing.T) {
	const ms = time.Millisecond
	start := func(took, unpack time.Duration) job.Result {
		return job.Result{Start: quantity.Instant(0).Add(time.Hour), Prepare: took, Unpack: unpack}
	}
	for _, c := range []struct {
		name string
		seen []job.Result
		want time.Duration
	}{
		{"a node that says nothing teaches nothing", []job.Result{start(0, 0)}, 0},
		{"nor does what never started", []job.Result{{Prepare: time.Second}}, 0},
		{"what was unpacked is not paid again", []job.Result{start(2060*ms, 2000*ms)}, 60 * ms},
		{"the longest of a few", []job.Result{start(60*ms, 0), start(900*ms, 0), start(50*ms, 0)}, 900 * ms},
		{"one that stands out of more is left out", []job.Result{start(60*ms, 0), start(900*ms, 0), start(50*ms, 0), start(70*ms, 0)},
			70 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l protocol.Learned
			for i := range c.seen {
				learnPrepare(&l, &c.seen[i])
			}
			if l.Prepare != c.want {
				t.Errorf("plans use %v, want %v", l.Prepare, c.want)
			}
		})
	}
	var l protocol.Learned
	for i := range 3 * protocol.MaxPrepares {
		r := start(time.Duration(1000-i)*ms, 0)
		learnPrepare(&l, &r)
	}
	if want := time.Duration(1000-2*protocol.MaxPrepares-1) * ms; len(l.Prepares) != protocol.MaxPrepares || l.Prepare != want {
		t.Errorf("%d starts are remembered and plans use %v, want %d and %v", len(l.Prepares), l.Prepare, protocol.MaxPrepares, want)
	}
}
