package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// stores is the executor's word that a subjob is gone and what it left is being stored.
func stores(t job.Token, vacant bool) protocol.Message {
	return protocol.Message{Kind: protocol.Report, From: executor, Token: t,
		Body: &protocol.Observation{Progress: 100, Storing: true, Vacant: vacant}}
}

// TestWhatIsBeingStoredHoldsNoSlice: its time is sold again though nobody knows yet how it ended, through restarts and beyond its lease's
// end, and its result goes home when it comes.
func TestWhatIsBeingStoredHoldsNoSlice(t *testing.T) {
	w := booted(t)
	first := w.running(1, "a", 0, time.Minute)
	next := w.lease(2, "a", time.Minute, 2*time.Minute)
	w.now = at(40 * time.Second)
	w.step(stores(first, false)) // as a Pod says whose device is its own still
	w.recorded()
	w.must(protocol.Report)
	w.step(stores(first, true))
	w.recorded(protocol.SubjobVacated)
	if said := w.must(protocol.Report).Body.(*protocol.Observation); !said.Storing || said.Slice != "a" {
		t.Errorf("its home hears %+v", said)
	}
	if gaps := w.gaps("a"); len(gaps) != 2 || gaps[0].Start != w.now || gaps[0].End != at(time.Minute) {
		t.Errorf("gaps %v, want its place first", gaps)
	}
	w.step(stores(first, true))
	w.recorded()
	between := w.lease(3, "a", 40*time.Second, 50*time.Second)
	same(t, "started", w.must(protocol.Start).Token, between)
	w.step(protocol.Message{Kind: protocol.Stop, From: zone, Token: first, Body: &protocol.Halt{}})
	w.recorded()
	w.never(protocol.Stop)
	w.step(protocol.Message{Kind: protocol.Extend, From: zone, Token: first, Job: "j",
		Body: &protocol.Extension{Ask: 1, Slice: "a", Range: job.Range{To: 200}, End: at(time.Hour)}})
	w.must(protocol.Refused)
	snapshot := New(w.cfg)
	for _, f := range capture.All(w.n) {
		snapshot.Apply(f)
	}
	same(t, "digest", snapshot.Digest(), w.n.Digest())
	w.restart()
	found := func(t job.Token) protocol.Found {
		return protocol.Found{Token: t, Job: "j", Slice: "a", Alive: true, Started: at(0)}
	}
	w.inventory(found(first), found(between))
	w.recorded(protocol.SubjobEnded, protocol.SubjobStarted) // next was not begun before the restart
	same(t, "lost", w.must(protocol.Result).Token, next)
	w.step(exited(between, job.Done, 100))
	w.wait(5 * time.Minute)
	w.never(protocol.Stop)
	w.step(exited(first, job.Done, 100))
	w.recorded(protocol.SubjobEnded)
	same(t, "result", w.must(protocol.Result).Token, first)
}

// TestAQuarantineLiftsWithTheLastProcess: also where what that has left takes long to be stored.
func TestAQuarantineLiftsWithTheLastProcess(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	w.step(protocol.Message{Kind: protocol.Stuck, From: executor, Token: token, Body: &protocol.Reason{Text: "in state D"}})
	w.recorded(protocol.Quarantined)
	w.step(stores(token, true))
	w.recorded(protocol.SubjobVacated, protocol.QuarantineLifted)
	w.restart()
	w.inventory(protocol.Found{Token: token, Job: "j", Slice: "a", Alive: true, Started: at(0)})
	w.recorded()
	w.step(ask(2, "a", 0, time.Minute))
	w.must(protocol.Granted)
	w.step(exited(token, job.Done, 100))
	w.recorded(protocol.SubjobEnded)
}
