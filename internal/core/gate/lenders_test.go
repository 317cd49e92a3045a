package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// spanning is a gang that may lie in several zones.
func spanning(t testing.TB, name string, mib int64, n int) protocol.Message {
	m := rigid(t, name, mib, n)
	m.Body.(*protocol.Submission).Spec.Topology = job.SameCluster
	return m
}

// lenders are the zones that a zone is named for a job.
func (d *desk) lenders(of job.ID, zone string, without ...job.ZoneID) []protocol.Lender {
	d.step(protocol.Message{Kind: protocol.Lenders, From: protocol.Address{Role: protocol.Zone, ID: zone}, Job: of,
		Body: &protocol.LenderList{Seq: 7, Without: without}})
	m := d.find(protocol.Lenders)
	if m == nil || m.To.ID != zone || m.Body.(*protocol.LenderList).Seq != 7 {
		d.t.Fatalf("zone %s asks whom it could borrow of, and hears %+v", zone, m)
	}
	return m.Body.(*protocol.LenderList).Zones
}

// TestAGangMaySpanZones: what no zone could hold alone is taken if several could, and refused with what would fit if not.
func TestAGangMaySpanZones(t *testing.T) {
	d := twoZones(t)
	refusal := func(m protocol.Message) string {
		if err := d.call(m).Body.(*protocol.Receipt).Err; err != nil {
			return err.Error()
		}
		return ""
	}
	if why := refusal(spanning(t, "six", 100, 6)); why != "" || d.g.Home("six") == "" {
		t.Errorf("all slices of both zones: %q, at home in %q", why, d.g.Home("six"))
	}
	for i := range 40 { // whoever could hold it alone is home to it
		name := fmt.Sprint("four", i)
		if why := refusal(spanning(t, name, 100, 4)); why != "" || d.g.Home(job.ID(name)) != "b" {
			t.Fatalf("%s: %q, at home in %q", name, why, d.g.Home(job.ID(name)))
		}
	}
	for name, c := range map[string]struct {
		m    protocol.Message
		want string
	}{
		"seven": {spanning(t, "seven", 100, 7), "what would fit: slices: 6"},
		"large": {spanning(t, "large", 1024, 4), "what would fit: slices: 3"},
		"node":  {rigid(t, "node", 100, 5), "slices: 2, or topology: cluster"},
	} {
		if why := refusal(c.m); !strings.Contains(why, c.want) {
			t.Errorf("%s: %q; want %q", name, why, c.want)
		}
	}
	zoned := rigid(t, "zoned", 100, 5)
	zoned.Body.(*protocol.Submission).Spec.Topology = job.SameZone
	if why := refusal(zoned); !strings.Contains(why, "slices: 4, or topology: cluster") {
		t.Errorf("%q does not say that it could span zones", why)
	}
	d.call(protocol.Message{Kind: protocol.SetQueue,
		Body: &protocol.QueueSetting{Request: "q", Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: 10}}})
	if why := refusal(spanning(t, "capped", 100, 6)); !strings.Contains(why, "5 of them in one of the 2 zones") {
		t.Errorf("%q does not say that all of it counts in one zone", why)
	}
}

// TestHomesOfGangsThatSpanZones have slices for them, and none that is drained.
func TestHomesOfGangsThatSpanZones(t *testing.T) {
	d := newDeskOf(t, []gate.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2"}},
		{ID: "c", Nodes: []job.NodeID{"n3"}}})
	d.report("n1", 512, 512)
	d.report("n2", 512, 512, 512)
	d.step(spanning(t, "early", 300, 6))
	if home := d.g.Home("early"); home != "" {
		t.Fatalf("at home in %q, and all that is known has 5 slices", home)
	}
	d.report("n3", 128, 512)
	if home := d.g.Home("early"); home == "" {
		t.Fatal("all is known, and it has no home")
	}
	homes := map[job.ZoneID]int{}
	for i := range 300 {
		name := job.ID(fmt.Sprint("j", i))
		d.step(spanning(t, string(name), 300, 6))
		homes[d.g.Home(name)]++
	}
	if len(homes) != 3 || homes["b"] < 100 || homes["c"] > 90 {
		t.Errorf("homes by how many slices zones have: %v", homes)
	}
}

// TestWhoIsNamedToLend: those with most slices for the job first, none that is to be left out or is drained, and no more than a gang may
// lie in.
func TestWhoIsNamedToLend(t *testing.T) {
	d := twoZones(t)
	d.step(spanning(t, "six", 100, 6))
	if got := d.lenders("six", "a"); !slices.Equal(got, []protocol.Lender{{Zone: "b", Slices: 4}, {Zone: "a", Slices: 2}}) {
		t.Errorf("named are %v", got)
	}
	if got := d.lenders("six", "a", "b", "a"); !slices.Equal(got, []protocol.Lender{{Zone: "a", Slices: 2}}) {
		t.Errorf("without b, and the home itself, are named %v", got)
	}
	if err := d.drain("b"); err != nil {
		t.Fatal(err)
	}
	if got := d.lenders("six", "a"); !slices.Equal(got, []protocol.Lender{{Zone: "a", Slices: 2}}) {
		t.Errorf("b is drained, and named are %v", got)
	}
	d.step(protocol.Message{Kind: protocol.Lenders, From: protocol.Address{Role: protocol.Zone, ID: "a"}, Job: "nobody",
		Body: &protocol.LenderList{Seq: 1}})
	if m := d.find(protocol.Lenders); m != nil {
		t.Errorf("of a job that there is not, %+v", m)
	}
	var many []gate.Zone
	for i := range 40 {
		many = append(many, gate.Zone{ID: job.ZoneID(fmt.Sprint("z", i)), Nodes: []job.NodeID{job.NodeID(fmt.Sprint("n", i))}})
	}
	d = newDeskOf(t, many)
	for i := range 40 {
		d.report(fmt.Sprint("n", i), 512, 512)
	}
	if err := d.call(spanning(t, "wider", 100, 33)).Body.(*protocol.Receipt).Err; err == nil ||
		!strings.Contains(err.Error(), "no 16 zones together have more than 32") {
		t.Errorf("33 slices of 40 zones of two: %v", err)
	}
	first := map[job.ZoneID]bool{}
	for i := range 20 {
		name := fmt.Sprint("wide", i)
		d.step(spanning(t, name, 100, 32))
		got := d.lenders(job.ID(name), "z0")
		if len(got) != protocol.MostLenders {
			t.Fatalf("%d zones are named", len(got))
		}
		first[got[0].Zone] = true
	}
	if len(first) < 5 {
		t.Errorf("20 gangs are sent to %v first", first)
	}
}

// TestDigestsOrderLenders: of zones that are alike those with most free come first, and one that is silent is none.
func TestDigestsOrderLenders(t *testing.T) {
	d := drawing(t)
	d.digest(0, 1, 1)
	d.digest(1, 1, 9)
	d.step(spanning(t, "four", 100, 4))
	for _, free := range [][2]uint32{{0, 2}, {2, 0}} {
		d.now = d.now.Add(time.Second)
		d.digest(0, uint64(d.now), free[0])
		d.digest(1, uint64(d.now), free[1])
		got := d.lenders("four", "c")
		if want := []job.ZoneID{"a", "b"}[map[bool]int{true: 1}[free[1] > 0]]; len(got) != 2 || got[0].Zone != want {
			t.Errorf("free are %v, named %v", free, got)
		}
	}
	d.now = d.now.Add(time.Hour)
	d.digest(flow.ZoneID(1), uint64(d.now), 1)
	if got := d.lenders("four", "c"); len(got) != 1 || got[0].Zone != "b" {
		t.Errorf("a is silent, and named are %v", got)
	}
}
