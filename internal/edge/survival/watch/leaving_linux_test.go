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

// TestTheEndOfALeaseIsNoStep of Airlock's: a subjob in its grace was asked nothing, and one whose lease is extended after all can give way
// again.
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

// TestWhatWasEndedIsOwed: three that can neither yield nor be moved out, and one of them is as much as is missing. The lowest is ended, and
// nobody else while the machine does not show it yet, whether its daemon knows by then or not. What a machine has not shown for two seconds
// it has not got.
func TestWhatWasEndedIsOwed(t *testing.T) {
	for _, known := range []bool{false, true} {
		x := newWorld(t)
		x.m.room, x.m.lags = 0, true
		var jobs []*subjob
		for i, priority := range []int32{-50, 0, 90} {
			jobs = append(jobs, x.add(uint64(1+i), 6*gib, func(r *Row) { r.Priority = priority }))
		}
		x.look(rest)
		x.m.base = 79*gib + gib/2
		ended := func() (n int) {
			for _, s := range jobs {
				if s.ended {
					n++
				}
			}
			return n
		}
		x.look(alert)
		if known {
			x.table.Rows = x.table.Rows[1:]
			x.publish()
		}
		for range 100 {
			x.look(alert)
		}
		if !jobs[0].ended || ended() != 1 {
			t.Fatalf("%d were ended, the lowest %v", ended(), jobs[0].ended)
		}
		x.m.base -= 6 * gib
		x.look(alert)
		x.m.base += 6 * gib // others take what it had, and it is not counted again
		if x.look(alert); !jobs[1].ended || jobs[2].ended {
			t.Fatalf("the machine has shown it, and is short again: ended %d", ended())
		}
		for range 300 {
			x.look(alert)
		}
		if !jobs[2].ended {
			t.Fatal("the machine shows nothing of it for 3 s, and it is counted on")
		}
	}
}
