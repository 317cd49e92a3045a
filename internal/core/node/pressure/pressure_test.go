package pressure

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// some is the pressure on a node with one lease.
func some() (*Pressure, *leases.Lease) {
	var sold *leases.Leases
	i := inventory.New()
	r := record.New("n", func(f *protocol.Fact) { sold.Apply(f) })
	sold = leases.New(r, i)
	token := job.Token{Epoch: 1, Seq: 7}
	r.Fact(&protocol.Out{}, protocol.Fact{Kind: protocol.LeaseMade, Token: token, Job: "j",
		Body: &protocol.Terms{Placement: protocol.Placement{Slice: "a", Start: 1, End: 2}}})
	return New(airlock.Config{}, i, holds.New(i, 0), sold, leases.NewRunner(leases.Config{}, sold)), sold.Of(token)
}

// TestTheHistoryIsBounded: the oldest steps go, and how many is said.
func TestTheHistoryIsBounded(t *testing.T) {
	p, _ := some()
	h := &p.history
	for i := range int64(3*mostSteps + 5) {
		h.keep(step{decision: i + 1, deed: recovered})
	}
	steps := p.steps("n", func(*step) bool { return true })
	if len(steps) != mostSteps || cap(h.steps) != mostSteps || h.forgotten != 2*mostSteps+5 {
		t.Fatalf("%d of %d steps are kept, %d forgotten", len(steps), cap(h.steps), h.forgotten)
	}
	for i, s := range steps {
		if want := int64(2*mostSteps + 6 + i); s.Decision != want {
			t.Fatalf("step %d is of decision %d, want %d", i, s.Decision, want)
		}
	}
}

// TestNotingAllocatesNothing but the ring, once.
func TestNotingAllocatesNothing(t *testing.T) {
	p, low := some()
	high := job.Token{Epoch: 1, Seq: 8}
	for _, f := range []protocol.Fact{
		{Kind: protocol.LeaseMade, Token: high, Job: "k",
			Body: &protocol.Terms{Placement: protocol.Placement{Slice: "b", Start: 1, End: 2}, Rank: protocol.Rank{Priority: 1}}},
		{Kind: protocol.SubjobStarted, Token: low.Token(), At: 1},
		{Kind: protocol.SubjobStarted, Token: high, At: 1},
	} {
		p.leases.Apply(&f)
	}
	p.lock, p.strain = airlock.New(p.cfg), &protocol.Strain{Capacity: 100 << 30, Used: 93 << 30, Room: 50 << 30, Uses: []protocol.Use{
		{Token: low.Token(), Resident: 20 << 30}, {Token: high, Resident: 60 << 30},
	}}
	snapshot, now := p.snapshot(), quantity.Instant(2)
	d := p.lock.Decide(now, &snapshot)
	if len(d.Actions) == 0 {
		t.Fatal("nothing is done that could be noted")
	}
	if got := testing.AllocsPerRun(100, func() {
		now++
		p.history.note(now, &p.table, p.lock.Config(), d)
		p.Tally(now)
		p.noteOne(now, low, refused)
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// TestTheLastWhyIsTheLatest, also where the ring has begun anew between two steps with the same subjob.
func TestTheLastWhyIsTheLatest(t *testing.T) {
	p, l := some()
	for i := range mostSteps + 1 {
		e := step{cause: airlock.Eased}
		switch i {
		case 1:
			e = step{token: l.Token(), cause: airlock.Deficit}
		case mostSteps:
			e = step{token: l.Token(), cause: airlock.Overtime}
		}
		p.history.keep(e)
	}
	if why := p.lastWhy(l); !strings.HasPrefix(why, airlock.Overtime.String()) {
		t.Errorf("it says %q", why)
	}
}

// TestWhatIsEndedTwiceIsOwedOnce: between two reports a node may find at more than one tick that another node's is over its time.
func TestWhatIsEndedTwiceIsOwedOnce(t *testing.T) {
	p, _ := some()
	other := airlock.Task{Token: job.Token{Epoch: 1, Seq: 9}, Resident: 10}
	p.ends(&other)
	p.ends(&other)
	if released := p.released(&protocol.Strain{}); released != other.Resident {
		t.Errorf("it released %d, and had %d", released, other.Resident)
	}
}
