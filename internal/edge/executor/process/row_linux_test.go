package process

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// TestTheWatcherIsToldAllThatARankFollowsFrom, and within its grace that a subjob is to end in order.
func TestTheWatcherIsToldAllThatARankFollowsFrom(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	token, at := job.Token{Epoch: 1, Seq: 7}, quantity.At(now)
	s := &still{o: &Options{Now: func() time.Time { return now }}, token: token, told: &executor.Answers{}, control: &control{},
		lease: &shim.Lease{Planned: 5, Rank: protocol.Rank{Priority: 3, Value: 4, Class: protocol.Collective, Yields: true},
			Part: executor.Part{Members: 2}, Grace: 10 * time.Second}}
	if _, ok := s.row("/base"); ok {
		t.Error("it is told of before it runs")
	}
	s.note = shim.Note{At: at, Init: 8, InitStarted: 9, Cgroup: "/base/group"}
	want := watch.Row{
		Token: token, Start: at, Planned: 5, Priority: 3, Value: 4, Class: airlock.Collective, Bound: true, Yields: true, Init: 8,
		InitStarted: 9, Group: "group",
	}
	for _, left := range []time.Duration{time.Minute, 10*time.Second + 1, 10 * time.Second} {
		s.control.restore(shim.Control{End: at.Add(left)})
		want.Stopping = left <= 10*time.Second
		if got, ok := s.row("/base"); !ok || got != want {
			t.Errorf("%v before its end it is told\n%+v, want\n%+v", left, got, want)
		}
	}
}

// TestTheNodeHearsWhatTheWatcherDoes of every state that it may have a subjob in.
func TestTheNodeHearsWhatTheWatcherDoes(t *testing.T) {
	token := job.Token{Epoch: 1, Seq: 7}
	for state, want := range map[airlock.State]protocol.Stance{
		airlock.Running: protocol.GoesOn, airlock.Suspending: protocol.IsSuspended, airlock.Suspended: protocol.IsSuspended,
		airlock.Resuming:     protocol.GoesOn,
		airlock.Readdressing: protocol.IsToYield, airlock.Reclaiming: protocol.IsEnded,
		airlock.Ending: protocol.GoesOn,
	} {
		w := watcher{board: watch.Board{Stands: []watch.Stand{{Token: token, Since: 1, Resumed: 2, Resident: 3, Parked: 4, Growth: 5,
			State: state, Entries: 6}}}}
		if got, all := w.use(token), (protocol.Use{Token: token, Resident: 3, Parked: 4, Growth: 5,
			Stand: protocol.Stand{State: want, Since: 1, Resumed: 2, Times: 6}}); got != all {
			t.Errorf("%v is told as %+v, want %+v", state, got, all)
		}
	}
}
