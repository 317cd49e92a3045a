package watch

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
)

// TestWhoIsToEndInOrderGoesOn: its home, or its node, has asked it to leave.
func TestWhoIsToEndInOrderGoesOn(t *testing.T) {
	x := newWorld(t)
	s := x.add(1, 30*gib, nil)
	x.m.base = 63 * gib
	x.look(rest)
	x.look(alert)
	x.table.Rows[0].Stopping = true
	x.publish()
	x.look(alert)
	if s.told || x.state(1) != airlock.Ending {
		t.Fatalf("told %v, %v", s.told, x.state(1))
	}
	x.m.base = 0
	x.look(time.Minute)
	if s.ended {
		t.Fatal("the timer of its entry has ended it in its grace")
	}
}

// TestTheEndOfALeaseIsNoStep of Airlock's: a subjob in its grace was asked nothing, and one whose lease is extended after all can give way again.
func TestTheEndOfALeaseIsNoStep(t *testing.T) {
	x := newWorld(t)
	x.add(1, gib, func(r *Row) { r.Stopping = true })
	for _, stopping := range []bool{true, false, true} {
		x.table.Rows[0].Stopping = stopping
		x.publish()
		x.look(rest)
		want := airlock.Running
		if stopping {
			want = airlock.Ending
		}
		if s, _ := x.board().Of(job.Token{Epoch: 1, Seq: 1}); s.State != want || s.Since != 0 || s.Cause != 0 {
			t.Fatalf("with its end there %v it is said %+v", stopping, s)
		}
	}
}

// TestWhoWasAskedToYieldKeepsItsTimer: its node passes on that it is to, which is no other end.
func TestWhoWasAskedToYieldKeepsItsTimer(t *testing.T) {
	x := newWorld(t)
	x.m.room = 0
	s := x.add(1, 30*gib, func(r *Row) { r.Yields = true })
	x.m.base = 63 * gib
	x.look(rest)
	x.table.Rows[0].Stopping = true
	x.publish()
	x.look(alert)
	if x.look(29 * time.Second); s.ended {
		t.Fatal("it was ended before its timer")
	}
	if x.look(time.Second); !s.ended {
		t.Fatalf("its timer is over, and it is %v", x.state(1))
	}
}
