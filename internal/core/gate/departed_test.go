package gate_test

import (
	"fmt"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// without starts the gate again with these zones alone.
func (d *desk) without(zones ...gate.Zone) {
	d.zones = zones
	d.g = d.fresh()
	for _, f := range d.facts {
		d.g.Apply(f)
	}
	var out protocol.Out
	d.g.Recover(d.now, &out)
	d.facts = append(d.facts, out.Facts...)
	d.said = append(d.said[:0], out.Effects...)
}

// closed has the home of a job say how it ended.
func (d *desk) closed(id job.ID, home string, s job.State) {
	d.step(protocol.Message{Kind: protocol.Closed, From: zoneAt(home), Job: id, Epoch: 1, Generation: d.g.Life(id),
		Body: &protocol.Closing{Verdict: job.Verdict{State: s}, At: d.now}})
}

// TestAZoneForgetsAJobOnce, whatever the archive brought back: one departure of a job from a zone stands, the last.
func TestAZoneForgetsAJobOnce(t *testing.T) {
	d := twoZones(t)
	for epoch := range uint32(2) {
		f := protocol.Fact{Kind: protocol.JobDeparted, Job: "j", Generation: job.Generation(epoch + 1), Epoch: epoch + 1,
			Body: &protocol.Departure{Zone: "a", Pending: true}}
		d.facts = append(d.facts, f)
		d.g.Apply(f)
	}
	d.step(protocol.Message{Kind: protocol.Tick}) // its snapshot folds to what it is
	if to := d.sent(protocol.Forget); len(to) != 1 || d.of(protocol.Forget, "j").Epoch != 2 {
		t.Errorf("%v are to forget it: %+v", to, d.said)
	}
}

// wrote says whether there is such a fact of a job.
func (d *desk) wrote(k protocol.FactKind, id job.ID) bool {
	return slices.ContainsFunc(d.facts, func(f protocol.Fact) bool { return f.Kind == k && f.Job == id })
}

// TestADrainedZoneLeaves the configuration: who is over may have been at home there, and nobody waits for what it would have to forget.
func TestADrainedZoneLeaves(t *testing.T) {
	b, c := gate.Zone{ID: "b", Nodes: []job.NodeID{"n2", "n1"}}, gate.Zone{ID: "c", Nodes: []job.NodeID{"n3"}}
	d := twoZones(t)
	ids := d.homed(t, "a", 4)
	failed, deleted, moved, again := ids[0], ids[1], ids[2], ids[3]
	d.closed(failed, "a", job.Failed)
	d.closed(again, "a", job.Failed)
	d.closed(deleted, "a", job.Finished)
	d.call(protocol.Message{Kind: protocol.Delete, Job: deleted, Body: &protocol.Deletion{Request: "x"}})
	d.without(b, c)
	if _, home, found := d.g.Stray(); !found || home != "a" {
		t.Fatal("a zone that is not drained may be left out")
	}
	d.without(gate.Zone{ID: "a", Nodes: []job.NodeID{"n1"}}, gate.Zone{ID: "b", Nodes: []job.NodeID{"n2", "n3"}})
	d.report("n1", 512, 512)
	late := job.ID("")
	for i := 0; late == "" && i < 200; i++ { // its home has not confirmed that it is there
		name := fmt.Sprint("k", i)
		if d.call(submit(t, name, "r"+name, name)); d.g.Home(job.ID(name)) == "a" {
			late = job.ID(name)
		}
	}
	if err := d.drain("a"); err != nil || !d.g.Drained("a") || d.g.Drained("b") {
		t.Fatal(err)
	}
	d.without(b, c)
	if id, home, found := d.g.Stray(); !found || home != "a" || id != late {
		t.Fatalf("it is home to %s, and left out (%s, %s)", late, id, home)
	}
	d.without(gate.Zone{ID: "a", Nodes: []job.NodeID{"n1"}}, gate.Zone{ID: "b", Nodes: []job.NodeID{"n2", "n3"}})
	d.report("n2", 512, 2048)
	d.closed(late, "a", job.Cancelled)
	life := d.g.Life(moved)
	d.step(protocol.Message{Kind: protocol.Surrendered, From: zoneAt("a"), Job: moved, Epoch: 1, Generation: life,
		Body: &protocol.Record{Job: moved, Epoch: 1, Generation: life}})
	d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAt("b"), Job: moved, Epoch: 2, Generation: life})
	if d.of(protocol.Forget, moved) == nil || d.wrote(protocol.JobDeparted, moved) {
		t.Fatal("nobody has forgotten it yet")
	}
	d.without(b, c)
	for _, n := range []string{"n1", "n2", "n3"} {
		d.report(n, 2048, 2048)
	}
	if id, home, found := d.g.Stray(); found {
		t.Fatalf("%s of %s is a stray", id, home)
	}
	if d.of(protocol.Forget, moved) != nil || !d.wrote(protocol.JobDeparted, moved) {
		t.Error("a zone that has left is waited for")
	}
	d.step(protocol.Message{Kind: protocol.Purged, From: protocol.Address{Role: protocol.Executor}, Job: deleted, Generation: 100})
	if !d.wrote(protocol.JobPurged, deleted) {
		t.Error("the name of a job that was deleted is never free")
	}
	d.call(protocol.Message{Kind: protocol.Requeue, Job: failed, Body: &protocol.Requeueing{Request: "again"}})
	adopt := d.of(protocol.Adopt, failed)
	if adopt == nil || adopt.To.ID == "a" || adopt.Epoch != 2 || string(d.g.Home(failed)) != adopt.To.ID {
		t.Fatalf("what it has done is in the archive, its home is %q, and that is told %+v", d.g.Home(failed), adopt)
	}
	told := *adopt
	// Nothing of it is lost or doubled by a restart, and its new home is the last word.
	d.without(b, c)
	if _, home, found := d.g.Stray(); found || d.of(protocol.Adopt, failed) == nil || d.of(protocol.Adopt, failed).Epoch != 2 {
		t.Fatalf("a stray of %s; said %+v", home, d.said)
	}
	d.step(protocol.Message{Kind: protocol.Adopted, From: told.To, Job: failed, Epoch: 2, Generation: told.Generation})
	if d.of(protocol.Forget, failed) != nil || !d.wrote(protocol.JobDeparted, failed) {
		t.Errorf("a zone that has left is told %+v", d.said)
	}
	// One whose next life is cancelled before anybody could run it ends all the same.
	d.call(protocol.Message{Kind: protocol.Requeue, Job: again, Body: &protocol.Requeueing{Request: "again"}})
	d.call(protocol.Message{Kind: protocol.Cancel, Job: again, Body: &protocol.Cancellation{Request: "no"}})
	home := d.g.Home(again)
	d.step(protocol.Message{Kind: protocol.Closed, From: zoneAt(string(home)), Job: again, Epoch: 2, Generation: d.g.Life(again),
		Body: &protocol.Closing{Verdict: job.Verdict{State: job.Cancelled}, At: d.now}})
	if d.of(protocol.ClosedAck, again) == nil || d.g.Home(again) != home {
		t.Errorf("it was cancelled at %s, and is of %s; said %+v", home, d.g.Home(again), d.said)
	}
	if err := d.drain("a"); err == nil {
		t.Error("a zone that has left is drained again")
	}
}
