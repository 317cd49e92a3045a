package borrow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/loan"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const gib = quantity.Amount(1) << 30

// keeper makes room for jobs, and hears of nothing.
type keeper struct{ record.Watcher }

func (keeper) Make(*job.Spec) *record.Job { return &record.Job{} }
func (keeper) Opened(*record.Job)         {}
func (keeper) Changed(*record.Job)        {}
func (keeper) Slices() int                { return 1 }

// supply is a slice of the zone, as its planner sees it.
type supply struct {
	backfill.Supply
	s *window.Slice
	z *zone
}

func (s supply) Class() *window.Class           { return s.s.Class() }
func (s supply) At() int                        { return s.s.At() }
func (s supply) Node() job.NodeID               { return "own" }
func (s supply) Location() (rack, block string) { return "", "" }
func (s supply) Lasting(quantity.Instant) bool  { return !s.z.barred }

// rigid is a job as the planner sees it.
type rigid struct {
	backfill.Demand
	j *home.Job
}

func (r rigid) Spec() *job.Spec           { return r.j.Spec }
func (r rigid) View() atomizer.View       { return r.j.View() }
func (rigid) Avoids(*backfill.Slice) bool { return false }

// zone is "b" with as many slices as it is given. It notes what its gangs have said and done.
type zone struct {
	*Borrowers
	gang    *Gang
	job     *home.Job
	waits   explain.Reason
	barred  bool
	said    []string
	seq     uint64
	terms   map[job.ZoneID]*protocol.Loan
	ask     *home.Ask
	refused int
	now     quantity.Instant
	out     protocol.Out
}

func (z *zone) Waits(quantity.Instant, *home.Job) explain.Reason { return z.waits }
func (z *zone) Rigid(j *home.Job) *backfill.Job                  { return &backfill.Job{Demand: rigid{j: j}} }
func (z *zone) Gang(job.ID) *Gang                                { return z.gang }

func (z *zone) Lend(_ quantity.Instant, _ job.ID, _ uint32, l *protocol.Loan) { z.lends("b", l) }

func (z *zone) Ask(_ quantity.Instant, a *home.Ask, _ uint64, _ *protocol.Out) { z.ask = a }

func (z *zone) Version(id job.SliceID, _ quantity.Amount) (version uint64, own bool) {
	return 7, id == "own"
}

func (z *zone) Refused(quantity.Instant, *home.Job, atomizer.Refusal) { z.refused++ }

func (z *zone) Send(_ *protocol.Out, m protocol.Message) {
	switch body := m.Body.(type) {
	case *protocol.LenderList:
		z.seq = body.Seq
		z.said = append(z.said, fmt.Sprint("gate", body.Without))
	case *protocol.Loan:
		z.lends(job.ZoneID(m.To.ID), body)
	}
}

func (z *zone) lends(id job.ZoneID, l *protocol.Loan) {
	what := fmt.Sprintf("%s %d", id, l.Slices)
	switch {
	case l.Slices == 0 && l.Taken:
		what = string(id) + " taken"
	case l.Slices == 0:
		what = string(id) + " back"
	case l.Keep:
		what += " keep"
	}
	z.terms[id], z.said = l, append(z.said, what)
}

// newZone has a gang of three and some slices that hold a part of it each.
func newZone(slices int, spec *job.Spec) *zone {
	z := &zone{now: quantity.Instant(time.Hour), terms: map[job.ZoneID]*protocol.Loan{}}
	floor := market.NewFloor(market.FloorConfig{Policy: fifo.Policy{}, Horizon: time.Hour, MinWindow: time.Second}, nil)
	planner := backfill.New(backfill.Config{Retry: time.Second, AskTTL: time.Second}, floor, nil)
	for i := range slices {
		s := &window.Slice{Supply: &markettest.Slice{On: "own"}}
		is := &protocol.Slice{ID: job.SliceID(fmt.Sprint("s", i)), Speed: 1000, Capacity: trp.Vector{trp.Memory: 8 * gib}}
		placed := floor.Place(s, is)
		planner.Place(&backfill.Slice{Supply: supply{s: s, z: z}}, placed, false)
	}
	z.Borrowers = New(Config{ID: "b", Retry: time.Second}, z, planner)
	book := record.New(record.Config{}, keeper{}, keeper{})
	book.Apply(&protocol.Fact{Kind: protocol.HomeTaken, Job: "j", Epoch: 2, Generation: 1, At: 5, Body: &protocol.Taking{Spec: spec}})
	z.job = book.Job("j")
	return z
}

// wide is a gang of three that runs for a minute.
func wide() *job.Spec {
	return &job.Spec{Name: "j", Queue: "q", Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Slices: 3, Topology: job.SameCluster,
		Walltime: time.Minute, Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{4 * gib}}}}
}

// step lets a second go by after something has changed of the job, and returns what was said.
func (z *zone) step() string {
	z.said = nil
	z.now = z.now.Add(time.Second)
	z.Stir(z.job, &z.gang)
	z.Borrow(z.now, &z.out)
	return strings.Join(z.said, ", ")
}

// names has the gate name zones.
func (z *zone) names(zones ...protocol.Lender) string {
	z.said = nil
	z.Named(z.now, "j", &protocol.LenderList{Seq: z.seq, Zones: zones}, &z.out)
	return strings.Join(z.said, ", ")
}

// lent has a zone lend what it was asked for, on slices of these nodes if it keeps them.
func (z *zone) lent(id job.ZoneID, on ...protocol.LentSlice) string {
	z.said = nil
	l := z.terms[id]
	z.Lent(z.now, id, "j", &protocol.Lending{Seq: l.Seq, Could: l.Slices, Start: z.now, End: z.now.Add(l.Length), Speed: 1000, Kept: l.Keep,
		Earliest: z.now, Slices: on}, &z.out)
	return strings.Join(z.said, ", ")
}

func slice(node, id string, n quantity.Amount) protocol.LentSlice {
	return protocol.LentSlice{ID: job.SliceID(id), Node: job.NodeID(node), Capacity: trp.Vector{trp.Memory: n * gib}}
}

// TestAGangOfSeveralZones is asked for at the nodes of all of them, in order of their ids, once all keep its parts; the zone itself is
// asked without a message.
func TestAGangOfSeveralZones(t *testing.T) {
	z := newZone(0, wide())
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: %q, want %q", what, got, want)
		}
	}
	if why := z.gang.Waits(z.now); why != "" || z.Next() != quantity.Never {
		t.Errorf("before anything was asked: %q", why)
	}
	expect("its gate is asked", z.step(), "gate[]")
	expect("zones are named", z.names(protocol.Lender{Zone: "a", Slices: 2}, protocol.Lender{Zone: "b", Slices: 1}), "a 2, b 1")
	if l := z.terms["a"]; l.Spec != z.job.Spec || l.Submitted != 5 || l.Length != time.Minute+loan.Slack || l.Keep {
		t.Errorf("a is asked for %+v", l)
	}
	const few = "(Resources) its zone has too few slices for all 3 of it; 2 of zone a, 1 of zone b"
	if why := z.gang.Waits(z.now); !strings.HasPrefix(why, few) {
		t.Errorf("meanwhile %q", why)
	}
	expect("a offers", z.lent("a"), "")
	expect("b offers", z.lent("b"), "a 2 keep")
	expect("a keeps", z.lent("a", slice("n2", "x", 8), slice("n0", "y", 6)), "b 1 keep")
	if z.ask != nil {
		t.Fatal("it is asked for before all keep it")
	}
	z.lent("b", slice("n1", "own", 8))
	a := z.ask
	if a == nil {
		t.Fatal("all keep it, and no node is asked")
	}
	if a.Job != z.job || a.Node != "n0" || a.Slice != "y" || fmt.Sprint(a.Also) != "[own x]" || a.Range != (job.Range{To: 1}) ||
		a.Start != z.now || a.End != z.now.Add(time.Minute) || a.Speed != 1000 || a.Demand[trp.Memory] != 4*gib {
		t.Errorf("nodes are asked for %+v", a)
	}
	if a.Version != 0 { // that of the first node's slice, which is another zone's
		t.Errorf("of version %d", a.Version)
	}
	expect("a node has refused", z.step(), "a back, b back")
}

// TestAGangThatNeedsNoOtherZoneBorrowsNothing, and gives back what it has when it needs it no more or may not run.
func TestAGangThatNeedsNoOtherZoneBorrowsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		slices int
		do     func(s *job.Spec)
		asks   bool
	}{
		"it is too wide":           {2, func(*job.Spec) {}, true},
		"its zone has enough":      {3, func(*job.Spec) {}, false},
		"its zone's are too small": {3, func(s *job.Spec) { s.Safe.Least = [][]quantity.Amount{{9 * gib}} }, true},
		"it may not span zones":    {2, func(s *job.Spec) { s.Topology = job.SameZone }, false},
		"it is one slice":          {0, func(s *job.Spec) { s.Slices = 1 }, false},
		"it is cut, not placed":    {0, func(s *job.Spec) { s.Kind = job.Items }, false},
	} {
		s := wide()
		c.do(s)
		z := newZone(c.slices, s)
		if said := z.step(); (said == "gate[]") != c.asks || !c.asks && said != "" {
			t.Errorf("%s: %q", name, said)
		}
	}
	for name, change := range map[string]func(z *zone){
		"it is paused":                      func(z *zone) { z.waits = explain.Paused },
		"its zone's slices are there again": func(z *zone) { z.barred = false },
	} {
		z := newZone(3, wide())
		z.barred = true
		z.step()
		z.names(protocol.Lender{Zone: "a", Slices: 3})
		if said := z.lent("a"); said != "a 3 keep" {
			t.Fatalf("%s: a is asked %q", name, said)
		}
		change(z)
		if said := z.step(); said != "a back" || z.gang.Waits(z.now) != "" {
			t.Errorf("%s: %q, and it waits %q", name, said, z.gang.Waits(z.now))
		}
		if said := z.step(); said != "" {
			t.Errorf("%s: afterwards %q", name, said)
		}
	}
}

// TestSlicesThatWereNotOfferedYetAreWaitedFor: as long as the gate knows of enough at home, no other zone is asked.
func TestSlicesThatWereNotOfferedYetAreWaitedFor(t *testing.T) {
	z := newZone(2, wide())
	z.step()
	if said := z.names(protocol.Lender{Zone: "b", Slices: 3}, protocol.Lender{Zone: "a", Slices: 3}); said != "" {
		t.Errorf("with three at home: %q", said)
	}
	if said := z.names(protocol.Lender{Zone: "b", Slices: 2}, protocol.Lender{Zone: "a", Slices: 3}); said != "a 3" {
		t.Errorf("with two at home: %q", said)
	}
}

// TestAPlaceOfAnotherWidthIsNotBegun, nor one on which the gang would not be safe.
func TestAPlaceOfAnotherWidthIsNotBegun(t *testing.T) {
	for name, c := range map[string]struct {
		lent    []protocol.LentSlice
		refused int
		asked   bool
	}{
		"a slice too few":   {[]protocol.LentSlice{slice("n", "x", 8), slice("n", "y", 8)}, 0, false},
		"one is too small":  {[]protocol.LentSlice{slice("n", "x", 8), slice("n", "y", 3), slice("n", "v", 8)}, 1, false},
		"all of them do it": {[]protocol.LentSlice{slice("n", "x", 8), slice("n", "y", 4), slice("n", "v", 8)}, 0, true},
	} {
		z := newZone(0, wide())
		z.step()
		z.names(protocol.Lender{Zone: "a", Slices: 3})
		z.lent("a")
		if z.lent("a", c.lent...); (z.ask != nil) != c.asked || z.refused != c.refused {
			t.Errorf("%s: nodes are asked %v, refused %d", name, z.ask != nil, z.refused)
		}
	}
}

// TestAZoneAloneBorrowsNothing: it has no borrowers.
func TestAZoneAloneBorrowsNothing(t *testing.T) {
	var none *Borrowers
	var g *Gang
	none.Stir(nil, &g)
	if none.Borrow(1, &protocol.Out{}); g != nil || none.Next() != quantity.Never || g.Waits(1) != "" {
		t.Error("it borrows")
	}
}
