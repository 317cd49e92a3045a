package backoff

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestPausesGrowAndReset: refusals in a row double the pause up to a minute, or 15 s if a node is silent; concurrent asks count once, and
// after a quiet time the pause starts over.
func TestPausesGrowAndReset(t *testing.T) {
	for text, most := range map[string]time.Duration{"no room": Most, Silent: mostSilence} {
		var s State
		now := quantity.Instant(time.Hour)
		for i := range 10 {
			asked := uint64(i + 1)
			s.Refused(now, asked, asked, time.Second, text)
			pause := s.Refused(now, asked, asked, time.Second, text) // one that was asked for beside it
			if p := s.Refusals(); p.Times != i+1 || pause != min(most, time.Second<<i) {
				t.Fatalf("%s: %d refusals in a row are counted after %d, a pause of %v", text, p.Times, i+1, pause)
			}
			if often := s.Often(now.Add(pause)); often != (i+1 >= 3) || often && s.Refusals().Until != now.Add(pause) {
				t.Errorf("%s: after %d refusals it pauses altogether: %v, until %v", text, i+1, often, s.Refusals().Until)
			}
			now = max(now, s.Refusals().Until).Add(time.Second)
		}
		now = now.Add(2*Most + 1)
		if s.Refused(now, 11, 11, time.Second, text); s.Refusals().Times != 1 {
			t.Errorf("%s: %d refusals in a row, the one before was long ago", text, s.Refusals().Times)
		}
	}
}

// TestConsecutiveNodeFailures: what nodes can't start delays the next try, and concurrent subjobs count once; any other end of a subjob
// resets the count.
func TestConsecutiveNodeFailures(t *testing.T) {
	var s State
	now := quantity.Instant(time.Hour)
	for i := range 10 {
		if !s.NodeFailed(now, "no space left", 500*time.Millisecond) || s.NodeFailed(now, "no space left", 500*time.Millisecond) {
			t.Fatalf("after %d troubles in a row one beside the other counts", i)
		}
		want := Pause{i + 1, "no space left", now.Add(min(Most, 500*time.Millisecond<<i))}
		if s.NodeFailures() != want {
			t.Fatalf("after %d troubles in a row: %+v, want %+v", i+1, s.NodeFailures(), want)
		}
		now = s.NodeFailures().Until
	}
	s.NodeWorks()
	if s.NodeFailed(now, "no space left", time.Second); s.NodeFailures().Times != 1 {
		t.Errorf("after a subjob that met none: %+v", s.NodeFailures())
	}
}

// TestEachSliceIsAvoidedOnceAndInTime against a plain map.
func TestEachSliceIsAvoidedOnceAndInTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s State
		want := map[job.SliceID]quantity.Instant{}
		now := quantity.Instant(0)
		for range rapid.IntRange(1, 40).Draw(rt, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "passes")))
			id := rapid.SampledFrom([]job.SliceID{"a", "b", "c"}).Draw(rt, "slice")
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				until := now.Add(time.Duration(rapid.IntRange(1, 9).Draw(rt, "for")))
				s.Avoid(id, until)
				want[id] = max(want[id], until)
			case 1:
				s.Expire(now)
				for id, until := range want {
					if until <= now {
						delete(want, id)
					}
				}
			default:
				if _, avoids := want[id]; s.LooksAnother(id) != avoids {
					rt.Fatalf("%s is on offer anew, and was avoided: %v", id, avoids)
				}
				delete(want, id)
			}
			next := quantity.Never
			for _, until := range want {
				next = min(next, until)
			}
			if got := s.Avoided(); len(got) != len(want) || s.Expires() != next || s.Avoiding() != (len(want) > 0) ||
				slices.ContainsFunc(got, func(id job.SliceID) bool { return want[id] == 0 || !s.Avoids(id) }) {
				rt.Fatalf("it avoids %v until %d, want %v", got, s.Expires(), want)
			}
		}
	})
}
