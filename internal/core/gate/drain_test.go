package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

func zoneAt(id string) protocol.Address { return protocol.Address{Role: protocol.Zone, ID: id} }

// drain asks for a zone to be drained.
func (d *desk) drain(zone job.ZoneID) error {
	d.t.Helper()
	return d.call(protocol.Message{Kind: protocol.DrainZone,
		Body: &protocol.Draining{Request: "drain", Zone: zone}}).Body.(*protocol.Receipt).Err
}

// homed submits jobs until so many are at home in a zone, and returns them.
func (d *desk) homed(t *testing.T, zone job.ZoneID, n int) (all []job.ID) {
	for i := 0; len(all) < n; i++ {
		name := job.ID(fmt.Sprint("j", i))
		d.call(submit(t, string(name), fmt.Sprint("r", i), fmt.Sprint("d", i)))
		home := d.g.Home(name)
		d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAt(string(home)), Job: name, Epoch: 1, Generation: d.g.Life(name)})
		if home == zone {
			all = append(all, name)
		}
	}
	return all
}

// of is the message of a kind about a job in what was said last; nil if there is none.
func (d *desk) of(k protocol.Kind, id job.ID) *protocol.Message {
	for i := range d.said {
		if d.said[i].Kind == k && d.said[i].Job == id {
			return &d.said[i]
		}
	}
	return nil
}

// TestAJobMoves from a zone that is drained to another, with what the old home surrenders.
func TestAJobMoves(t *testing.T) {
	d := twoZones(t)
	if err := d.drain("nowhere"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a zone that there is not: %v", err)
	}
	id := d.homed(t, "a", 1)[0]
	life := d.g.Life(id)
	if err := d.drain("a"); err != nil {
		t.Fatal(err)
	}
	m := d.of(protocol.Surrender, id)
	if m == nil || m.To.ID != "a" || m.Epoch != 1 || !strings.Contains(m.Body.(*protocol.Moving).Text, "zone b") ||
		d.of(protocol.Adopt, id) != nil {
		t.Fatalf("the old home is told %+v", m)
	}
	if err := d.drain("b"); errkind.Of(err) != errkind.Conflict {
		t.Errorf("the last zone: %v", err)
	}
	// Its owner's word goes to where something may run.
	d.call(protocol.Message{Kind: protocol.Cancel, Job: id, Body: &protocol.Cancellation{Request: "c"}})
	if c := d.of(protocol.Cancel, id); c == nil || c.To.ID != "a" || c.Epoch != 1 {
		t.Errorf("it is cancelled by %+v", c)
	}
	record := &protocol.Record{Job: id, Epoch: 1, Generation: life, Committed: job.Ranges{{From: 0, To: 7}}}
	d.step(protocol.Message{Kind: protocol.Surrendered, From: zoneAt("b"), Job: id, Epoch: 1, Generation: life, Body: record})
	if d.of(protocol.Adopt, id) != nil {
		t.Error("somebody else's record is passed on")
	}
	d.step(protocol.Message{Kind: protocol.Surrendered, From: zoneAt("a"), Job: id, Epoch: 1, Generation: life, Body: record})
	adopt := d.of(protocol.Adopt, id)
	if adopt == nil || adopt.To.ID != "b" || adopt.Epoch != 2 || adopt.Body.(*protocol.Adoption).Record != record {
		t.Fatalf("the new home is told %+v", adopt)
	}
	d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAt("b"), Job: id, Epoch: 2, Generation: life})
	forget := d.of(protocol.Forget, id)
	if forget == nil || forget.To.ID != "a" || forget.Epoch != 1 || d.g.Home(id) != "b" {
		t.Fatalf("at home in %q, the old home is told %+v", d.g.Home(id), forget)
	}
	d.now = d.now.Add(time.Minute)
	d.step(protocol.Message{Kind: protocol.Tick})
	if c := d.of(protocol.Cancel, id); c == nil || c.To.ID != "b" || c.Epoch != 2 {
		t.Errorf("the new home ends it by %+v", c)
	}
	d.step(protocol.Message{Kind: protocol.Closed, From: zoneAt("b"), Job: id, Epoch: 2, Generation: life,
		Body: &protocol.Closing{Verdict: job.Verdict{State: job.Cancelled}, At: d.now}})
	d.call(protocol.Message{Kind: protocol.Delete, Job: id, Body: &protocol.Deletion{Request: "x"}})
	for range 2 { // the old home's word is not taken for the new one's
		d.step(protocol.Message{Kind: protocol.Forgotten, From: zoneAt("a"), Job: id, Epoch: 1, Generation: life})
	}
	d.step(protocol.Message{Kind: protocol.Purged, From: protocol.Address{Role: protocol.Executor}, Job: id, Generation: life + 1})
	gone := func() bool {
		return slices.ContainsFunc(d.facts, func(f protocol.Fact) bool { return f.Kind == protocol.JobPurged && f.Job == id })
	}
	if gone() {
		t.Error("the name is free while the new home has the record")
	}
	if d.step(protocol.Message{Kind: protocol.Forgotten, From: zoneAt("b"), Job: id, Epoch: 2, Generation: life}); !gone() {
		t.Error("the name is never free")
	}
}

// TestAJobThatEndsWhileItMovesStays where it was, and its next life moves.
func TestAJobThatEndsWhileItMovesStays(t *testing.T) {
	d := twoZones(t)
	id := d.homed(t, "a", 1)[0]
	life := d.g.Life(id)
	if err := d.drain("a"); err != nil {
		t.Fatal(err)
	}
	closed := protocol.Message{Kind: protocol.Closed, From: zoneAt("a"), Job: id, Epoch: 1, Generation: life,
		Body: &protocol.Closing{Verdict: job.Verdict{State: job.Failed}, At: d.now}}
	for range 2 {
		if d.step(closed); d.of(protocol.ClosedAck, id) == nil || d.g.Home(id) != "a" {
			t.Fatalf("it has failed, at home in %q; said %+v", d.g.Home(id), d.said)
		}
	}
	d.call(protocol.Message{Kind: protocol.Requeue, Job: id, Body: &protocol.Requeueing{Request: "again"}})
	adopt := d.of(protocol.Adopt, id)
	if adopt == nil || adopt.To.ID != "a" || adopt.Epoch != 1 {
		t.Fatalf("what it has done is in zone a, and that is told %+v", adopt)
	}
	d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAt("a"), Job: id, Epoch: 1, Generation: adopt.Generation})
	if m := d.of(protocol.Surrender, id); m == nil || m.To.ID != "a" || m.Generation != adopt.Generation {
		t.Errorf("its next life does not move: %+v", m)
	}
}

// TestAJobWithNowhereToGoWaits at its old home, which says why, until another zone could run it.
func TestAJobWithNowhereToGoWaits(t *testing.T) {
	d := twoZones(t)
	d.call(rigid(t, "large", 1024, 1))
	d.step(protocol.Message{Kind: protocol.Adopted, From: zoneAt("b"), Job: "large", Epoch: 1, Generation: 1})
	if err := d.drain("b"); err != nil {
		t.Fatal(err)
	}
	m := d.of(protocol.Surrender, "large")
	if m == nil || m.To.ID != "b" || !strings.Contains(m.Body.(*protocol.Moving).Text, "no other zone") || d.g.Home("large") != "b" {
		t.Fatalf("at home in %q, which is told %+v", d.g.Home("large"), m)
	}
	record := &protocol.Record{Job: "large", Epoch: 1, Generation: 1}
	d.step(protocol.Message{Kind: protocol.Surrendered, From: zoneAt("b"), Job: "large", Epoch: 1, Generation: 1, Body: record})
	if d.of(protocol.Adopt, "large") != nil {
		t.Error("it moves to a zone that could not run it")
	}
	d.report("n1", 512, 2048)
	if adopt := d.of(protocol.Adopt, "large"); adopt == nil || adopt.To.ID != "a" || adopt.Epoch != 2 ||
		adopt.Body.(*protocol.Adoption).Record != record {
		t.Errorf("a zone can run it now, and is told %+v", adopt)
	}
}

// TestNothingIsDrawnInADrainedZone, and what moves is drawn by its name and epoch alone.
func TestNothingIsDrawnInADrainedZone(t *testing.T) {
	d := twoZones(t)
	if err := d.drain("b"); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		name := fmt.Sprint("k", i)
		if d.call(submit(t, name, "r"+name, name)); d.g.Home(job.ID(name)) != "a" {
			t.Fatalf("%s is at home in %s", name, d.g.Home(job.ID(name)))
		}
	}
	if r := d.call(rigid(t, "large", 1024, 1)).Body.(*protocol.Receipt); r.Err == nil && d.g.Home("large") != "" {
		t.Errorf("what only slices of b could run is at home in %q", d.g.Home("large"))
	}
}
