package foresight

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// TestAWaitTeachesOnce: what a job was told is held against its first start, and against nothing after it or after a pause.
func TestAWaitTeachesOnce(t *testing.T) {
	var l Learner
	now := quantity.Instant(time.Hour)
	begin := func(told *Told, after time.Duration) { l.Begun(told, now.Add(after)) }
	var paused, unasked, sooner, later, inside Told
	l.Tell(&paused, now, time.Minute)
	paused.Void()
	begin(&paused, time.Minute)
	begin(&unasked, time.Minute)
	l.Tell(&unasked, now, 0) // there was a window for it
	if !unasked.Stands() || paused.Stands() || l.Record() != (status.Foresight{}) {
		t.Fatalf("nobody's wait was counted: %+v", l.Record())
	}
	for _, told := range []*Told{&sooner, &later, &inside} {
		l.Tell(told, now, time.Minute)
	}
	begin(&inside, time.Minute)
	if _, known := l.Interval(now); known {
		t.Error("one start gives no rate")
	}
	begin(&inside, time.Minute)
	begin(&sooner, time.Millisecond)
	begin(&later, 24*time.Hour)
	if got, want := l.Record(), (status.Foresight{Waits: 3, Sooner: 1, Later: 1}); got != want {
		t.Errorf("waits came out as %+v, want %+v", got, want)
	}
	begin(&unasked, time.Second)
	if d, known := l.Interval(now.Add(5 * time.Minute)); !known || d != time.Minute || l.Record().Waits != 3 {
		t.Errorf("4 starts in the 4 minutes since the first: one in %v (%v), %+v", d, known, l.Record())
	}
}

// TestTheRangeGoesByWhatHasPassed of a wait: it is as told when the job comes, and never in the past.
func TestTheRangeGoesByWhatHasPassed(t *testing.T) {
	var l Learner
	var told Told
	now := quantity.Instant(time.Hour)
	l.Tell(&told, now, time.Minute)
	early, late := l.Range(now, told)
	if e, f := l.Range(now, Plain(now, time.Minute)); e != early || f != late || early != now.Add(told.low) || late != now.Add(told.high) ||
		early >= late {
		t.Errorf("from %v to %v, a stranger from %v to %v", early.Sub(now), late.Sub(now), e.Sub(now), f.Sub(now))
	}
	for far := time.Duration(0); far < time.Hour; far += time.Minute {
		if e, f := l.Range(now.Add(far), told); e < now.Add(far) || f < e || f < late {
			t.Errorf("after %v: from %v to %v", far, e.Sub(now), f.Sub(now))
		} else {
			late = f
		}
	}
}
