package gate_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// drawing is a gate that draws among zones a and b, of one node each, by what they say of themselves.
func drawing(t testing.TB) *desk {
	cfg, err := search.Config{
		Flow: flow.Config{Classes: flow.Classes{512 << 20, 2048 << 20}}, Zones: []search.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}},
			{ID: "b", Nodes: []job.NodeID{"n2"}}},
	}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, zones: []gate.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2"}}}, now: 1e9, search: cfg}
	d.g = d.fresh()
	d.report("n1", 512, 512)
	d.report("n2", 512, 2048)
	return d
}

// digest of a zone that has so much free of both classes.
func (d *desk) digest(z flow.ZoneID, version uint64, free uint32) {
	d.step(protocol.Message{Kind: protocol.ZoneDigest, From: d.search.At(z), Body: &flow.Digest{Zone: z, Alive: true, Version: version,
		At: d.now, Free: [flow.MaxClasses]uint32{free, free}}})
}

func TestHomesFollowWhatZonesSay(t *testing.T) {
	d := drawing(t)
	d.step(rigid(t, "early", 100, 1))
	if home := d.g.Home("early"); home != "" {
		t.Fatalf("a home is drawn, %q, before any zone has said a word", home)
	}
	d.digest(0, 1, 1)
	if d.digest(1, 1, 99); d.g.Home("early") == "" {
		t.Fatal("no home is drawn once zones have said what they have")
	}
	d.now = d.now.Add(time.Second)
	d.digest(0, 2, 1)
	d.digest(1, 2, 99)
	inB := 0
	for i := range 200 {
		name := fmt.Sprintf("j-%d", i)
		d.step(rigid(t, name, 100, 1))
		if d.g.Home(job.ID(name)) == "b" {
			inB++
		}
	}
	if inB < 180 || inB == 200 {
		t.Errorf("%d of 200 homes are in the zone with 99 of 100 free slices", inB)
	}
}

func TestAHomeCouldRunTheJob(t *testing.T) {
	d := drawing(t)
	d.digest(0, 1, 99)
	d.digest(1, 1, 1)
	for i := range 20 {
		name := fmt.Sprintf("j-%d", i)
		d.step(rigid(t, name, 1000, 1))
		if d.g.Home(job.ID(name)) != "b" {
			t.Fatalf("home %q has no slice large enough", d.g.Home(job.ID(name)))
		}
	}
}

func TestATicketIsSentToALiveZoneOrHome(t *testing.T) {
	d := drawing(t)
	e := &protocol.Errand{Ticket: flow.Ticket{ID: 7, Home: 0, Zone: 0, Draws: 1, Kind: flow.Lasting}}
	again := protocol.Message{Kind: protocol.Redraw, From: protocol.Address{Role: protocol.Zone, ID: "a"}, Job: "j", Body: e}
	d.step(again)
	if m := d.find(protocol.Back); m == nil || m.To.ID != "a" || m.Body.(*protocol.Errand).Why != flow.NoZone ||
		m.Body.(*protocol.Errand).Phase != flow.Parked {
		t.Fatalf("no zone is alive, and it says %+v", d.said)
	}
	if e.Phase != flow.Drawing {
		t.Fatal("the message that came was written to")
	}
	d.digest(1, 1, 5)
	d.now = d.now.Add(time.Second)
	if d.step(again); len(d.sent(protocol.Search)) != 1 || d.sent(protocol.Search)[0] != "b" {
		t.Fatalf("zone b alone is alive, and it says %+v", d.said)
	}
	d.now = d.now.Add(time.Minute)
	if d.step(again); d.find(protocol.Back) == nil {
		t.Errorf("a zone that was silent for a minute is drawn: %+v", d.said)
	}
}

// TestAZoneSpeaksForItself: a digest under the name of another zone changes nothing, nor does one of a zone that is none.
func TestAZoneSpeaksForItself(t *testing.T) {
	d := drawing(t)
	for _, z := range []flow.ZoneID{1, 99} {
		d.step(protocol.Message{Kind: protocol.ZoneDigest, From: d.search.At(0), Body: &flow.Digest{Zone: z, Alive: true, Version: 1 << 60,
			At: d.now, Free: [flow.MaxClasses]uint32{5, 5}}})
	}
	if d.step(rigid(t, "j", 100, 1)); d.g.Home("j") != "" {
		t.Errorf("home %q is drawn, and no zone has said a word of itself", d.g.Home("j"))
	}
	if d.digest(1, 1, 5); d.g.Home("j") != "b" {
		t.Errorf("home %q once b has spoken", d.g.Home("j"))
	}
}

// TestAnAbsurdTicketIsNotDrawnFor: of a home or of a class that there is none of, or of one that is in no need of a zone.
func TestAnAbsurdTicketIsNotDrawnFor(t *testing.T) {
	d := drawing(t)
	d.digest(0, 1, 5)
	for name, x := range map[string]flow.Ticket{"home": {ID: 7, Home: 2}, "class": {ID: 7, Class: 2},
		"phase": {ID: 7, Phase: flow.Landed}} {
		d.step(protocol.Message{Kind: protocol.Redraw, From: d.search.At(0), Job: "j", Body: &protocol.Errand{Ticket: x}})
		if len(d.sent(protocol.Search))+len(d.sent(protocol.Back)) > 0 {
			t.Errorf("%s: it says %+v", name, d.said)
		}
	}
}

func TestPatienceNeedsTickets(t *testing.T) {
	for _, d := range []*desk{newDesk(t), drawing(t)} {
		m := rigid(t, "j", 100, 1)
		m.Body.(*protocol.Submission).Spec.Patience = time.Second
		if err := d.g.Check(d.now, m.Body.(*protocol.Submission).Spec); (err == nil) != (d.search != nil) {
			t.Errorf("with tickets %t: %v", d.search != nil, err)
		}
	}
}
