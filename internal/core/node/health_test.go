package node

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// xid is an error of the GPU that a and b are cut from.
func xid(code uint32, on job.SliceID) protocol.Message {
	return protocol.Message{Kind: protocol.Checkup, From: executor, Body: &protocol.Vitals{
		Slices: []job.SliceID{"a", "b"}, Errors: []protocol.Xid{{Code: code, On: on}}, Life: "boot 1",
	}}
}

// looks is how that GPU is now.
func looks(told bool, states ...health.State) protocol.Message {
	return protocol.Message{Kind: protocol.Checkup, From: executor, Body: &protocol.Vitals{
		Slices: []job.SliceID{"a", "b"}, Look: &health.Look{States: states, Told: told}, Life: "boot 1",
	}}
}

func (w *world) shown(want ...string) {
	w.Helper()
	for i, s := range w.n.Slices(w.now)[:len(want)] {
		if got := s.State + ": " + s.Reason; !strings.HasPrefix(got, want[i]) {
			w.Errorf("%s is %q, want %q", s.Slice.ID, got, want[i])
		}
	}
}

func (w *world) release(id job.SliceID) {
	w.Helper()
	w.step(protocol.Message{Kind: protocol.Unquarantine, From: person, Body: &protocol.Clearance{Request: w.now.Time().String(),
		Slice: id}})
}

// TestAGPUThatIsLost: what runs on it ends at once and is the machine's failure, what is sold and has not begun is withdrawn, and nothing
// is sold until its driver says that it needs nothing. A restart changes none of that.
func TestAGPUThatIsLost(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	w.lease(2, "a", 11*time.Minute, 12*time.Minute)
	w.step(ask(3, "b", 0, time.Minute))
	held := redeem(w.must(protocol.Granted))
	w.step(xid(79, ""))
	w.recorded(protocol.SliceFailed, protocol.SubjobEnded, protocol.SliceFailed)
	stop := w.must(protocol.Stop)
	same(t, "ends", stop.Token, running)
	same(t, "at once", stop.Body.(*protocol.Halt).Now, true)
	same(t, "why", stop.Body.(*protocol.Halt).Text, "the GPU of a failed: Xid 79 (the GPU has fallen off the bus)")
	w.shown("quarantined: Xid 79", "quarantined: Xid 79")
	w.step(held)
	w.must(protocol.RedeemRefused)
	w.step(xid(79, ""))
	w.recorded() // it says nothing new

	w.step(exited(running, job.Stopped, 40))
	r := w.result()
	same(t, "outcome", r.Outcome, job.NodeFailed)
	same(t, "what is done counts", r.Progress, 40)
	same(t, "detail", r.Detail, "the GPU of a failed: Xid 79 (the GPU has fallen off the bus)")

	w.now = w.now.Add(time.Hour)
	w.restart()
	w.inventory()
	w.shown("quarantined: Xid 79", "quarantined: Xid 79")
	w.step(looks(false))
	w.recorded() // a driver that does not say what a GPU needs proves nothing
	w.step(looks(true))
	w.recorded(protocol.SliceMended, protocol.SliceMended)
	w.step(ask(4, "a", time.Hour, time.Hour+time.Minute))
	w.must(protocol.Granted)
}

// TestOneInstanceOfACard: what the driver names is lost, and the others go on; whether they are sold again is another question.
func TestOneInstanceOfACard(t *testing.T) {
	w := booted(t)
	a, b := w.running(1, "a", 0, 10*time.Minute), w.running(2, "b", 0, 10*time.Minute)
	w.step(xid(94, "a"))
	w.recorded(protocol.SliceFailed)
	same(t, "ends", w.must(protocol.Stop).Token, a)
	w.shown("quarantined: Xid 94 (contained memory error)", "running")
	w.step(xid(48, "a"))
	w.recorded(protocol.SliceFailed, protocol.SliceFailed)
	w.never(protocol.Stop)
	w.shown("quarantined: Xid 48 (double-bit ECC error)", "quarantined: Xid 48 (double-bit ECC error)")
	w.step(exited(a, job.ExitFailed, 7))
	same(t, "outcome", w.result().Outcome, job.NodeFailed)
	w.step(exited(b, job.Done, 100))
	same(t, "the other's", w.result().Outcome, job.Done)

	// The error was not contained after all.
	w = booted(t)
	w.running(1, "a", 0, 10*time.Minute)
	b = w.running(2, "b", 0, 10*time.Minute)
	w.step(xid(48, "a"))
	w.step(xid(95, ""))
	w.recorded(protocol.SliceFailed)
	same(t, "ends", w.must(protocol.Stop).Token, b)
}

// TestAnErrorOfTheProgramIsItsOwn: nothing is closed, and its failure counts.
func TestAnErrorOfTheProgramIsItsOwn(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	for _, code := range []uint32{13, 31, 43, 45, 68, 109, 154, 4711} {
		w.step(xid(code, "a"))
		w.recorded()
	}
	w.step(exited(running, job.ExitFailed, 0))
	same(t, "outcome", w.result().Outcome, job.ExitFailed)
}

// TestAProgramThatEndsBeforeItIsEnded is excused all the same if it failed, and for nothing else.
func TestAProgramThatEndsBeforeItIsEnded(t *testing.T) {
	for o, want := range map[job.Outcome]job.Outcome{
		job.ExitFailed: job.NodeFailed, job.Lost: job.NodeFailed, job.DeadlineKilled: job.NodeFailed, job.Stopped: job.NodeFailed,
		job.Done: job.Done, job.Yielded: job.Yielded, job.MemoryKilled: job.MemoryKilled, job.LimitKilled: job.LimitKilled,
	} {
		w := booted(t)
		running := w.running(1, "a", 0, 10*time.Minute)
		w.step(xid(119, ""))
		w.step(exited(running, o, 0))
		same(t, o.String(), w.result().Outcome, want)
	}
	// The daemon was dead when it ended: the fault is known, and what became of the program too.
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	w.step(xid(119, ""))
	w.restart()
	w.inventory(protocol.Found{Token: running, Job: "j", Slice: "a", Result: &job.Result{Outcome: job.ExitFailed, Detail: "CUDA error"}})
	same(t, "found dead", w.result().Outcome, job.NodeFailed)
	same(t, "says", w.result().Detail, "the GPU of a failed: Xid 119 (its system processor does not answer) (it said: CUDA error)")
}

// TestWhatRunsOnALostGPUIsEndedAfterARestart: the daemon died between the fact and the word to the executor.
func TestWhatRunsOnALostGPUIsEndedAfterARestart(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	w.step(xid(95, ""))
	w.restart()
	w.never(protocol.Stop)
	w.inventory(protocol.Found{Token: running, Job: "j", Slice: "a", Alive: true, Started: at(0)})
	same(t, "ends", w.must(protocol.Stop).Token, running)
	w.step(exited(running, job.Stopped, 0))
	same(t, "outcome", w.result().Outcome, job.NodeFailed)
}

// TestAStateIsOverWhenItIsSaidNoMore: what only keeps new work away lets what runs go on, what ends it does; a restart hears of either
// anew.
func TestAStateIsOverWhenItIsSaidNoMore(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	rows := health.State{Cause: health.RowsPending, Text: "memory rows wait for a reset"}
	w.step(looks(false, rows))
	w.recorded(protocol.SliceFailed, protocol.SliceFailed)
	w.never(protocol.Stop)
	w.shown("quarantined: memory rows wait for a reset", "quarantined: memory rows")
	w.step(looks(false, rows))
	w.recorded()
	w.step(looks(true, rows, health.State{Cause: health.NeedsReset, Text: "the driver wants a reset"}))
	same(t, "ends", w.must(protocol.Stop).Token, running)
	w.shown("quarantined: the driver wants a reset")
	w.step(looks(true))
	w.recorded(protocol.SliceMended, protocol.SliceMended)
	w.step(exited(running, job.Stopped, 0)) // it is over before what it ended is gone
	same(t, "outcome", w.result().Outcome, job.NodeFailed)

	w.step(looks(true, rows))
	w.restart()
	w.recorded(protocol.Booted, protocol.SliceMended, protocol.SliceMended)
	w.step(looks(true, rows)) // before anything is offered
	w.inventory()
	w.shown("quarantined", "quarantined")
	w.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: []protocol.Slice{device("b")}}})
	w.recorded(protocol.SliceMended) // nobody says any more how a is, which is gone
	w.shown("quarantined")
}

// TestAnErrorThatComesAgain is believed less each time: nothing shows that the GPU was reset.
func TestAnErrorThatComesAgain(t *testing.T) {
	w := booted(t)
	for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute} {
		w.step(xid(94, "a"))
		w.now = w.now.Add(wait - time.Second)
		w.step(looks(true))
		w.recorded()
		w.now = w.now.Add(time.Second)
		w.step(looks(true))
		w.recorded(protocol.SliceMended)
	}
}

// TestAPersonReleasesAGPU: an error at once, and a state until it is another.
func TestAPersonReleasesAGPU(t *testing.T) {
	w := booted(t)
	w.step(xid(62, ""))
	w.release("a")
	w.recorded(protocol.SliceMended)
	w.shown("idle", "quarantined: Xid 62")
	rows, taint := health.State{Cause: health.RowsFailed, Text: "rows failed"}, health.State{Cause: health.Closed, Text: "taint"}
	w.step(looks(false, rows))
	w.now++
	w.release("a")
	w.step(looks(false, rows))
	w.recorded()
	w.shown("idle", "quarantined")
	w.step(looks(false, taint))
	w.shown("quarantined: taint", "quarantined")
	w.step(looks(false))
	w.step(looks(false, rows)) // it had gone, and is back
	w.shown("quarantined: rows failed", "quarantined")
}

// TestALookThatEndsMoreThanAnErrorDid: the error stays, and says what it has led to.
func TestALookThatEndsMoreThanAnErrorDid(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	w.step(xid(74, ""))
	w.never(protocol.Stop)
	w.step(looks(true, health.State{Cause: health.Lost, Text: "it does not answer"}))
	same(t, "ends", w.must(protocol.Stop).Token, running)
	w.shown("quarantined: Xid 74 (NVLink error); it does not answer", "quarantined")
	w.now = w.now.Add(time.Hour)
	w.step(looks(false))
	w.recorded() // it answers, and nobody says that the error is over
}
