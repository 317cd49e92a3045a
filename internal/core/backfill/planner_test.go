package backfill

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
	"sluice.dev/sluice/internal/core/trp"
)

// rigidJob is the owner's side of a job that waits.
type rigidJob struct{ spec *job.Spec }

// fake is the owner of one job, one slice and all that is asked for.
type fake struct {
	rigidJob
	floor    window.Slice
	gaps     []protocol.Gap
	reserved []protocol.Reservation
	doubted  bool
	asks     uint64
	started  []award.Piece
	sent     []protocol.Message
	// gone: the job is over. looks at the slice's time that there were.
	gone  bool
	looks int
	// asking: a node is being asked for its place.
	asking bool
	// job as its planner keeps it, if anybody asks for it by name.
	job *Job
}

type (
	fakeJob   fake
	fakeSlice fake
)

func (d rigidJob) Name() job.ID                { return d.spec.Name }
func (d rigidJob) Spec() *job.Spec             { return d.spec }
func (d rigidJob) Submitted() quantity.Instant { return 1 }
func (d rigidJob) View() atomizer.View {
	return atomizer.View{Spec: d.spec, Learned: &protocol.Learned{}}
}
func (d rigidJob) Active() bool                                    { return true }
func (d rigidJob) Waiting() bool                                   { return true }
func (d rigidJob) Asking() bool                                    { return false }
func (d rigidJob) Waits(quantity.Instant) explain.Reason           { return explain.Eligible }
func (d rigidJob) Avoids(*Slice) bool                              { return false }
func (d rigidJob) CountRefusal(atomizer.Refusal, quantity.Instant) {}

func (d *fakeJob) Waiting() bool { return !d.gone && len(d.started) == 0 && !d.asking }
func (d *fakeJob) Asking() bool  { return d.asking }

func (s *fakeSlice) Name() job.SliceID                { return "s" }
func (s *fakeSlice) Node() job.NodeID                 { return "n" }
func (s *fakeSlice) Version() uint64                  { return 1 }
func (s *fakeSlice) Location() (rack, block string)   { return "", "" }
func (s *fakeSlice) Usable() bool                     { return true }
func (s *fakeSlice) Class() *window.Class             { return s.floor.Class() }
func (s *fakeSlice) At() int                          { return s.floor.At() }
func (s *fakeSlice) Reserved() []protocol.Reservation { return s.reserved }
func (s *fakeSlice) Free(_ quantity.Instant, out []protocol.Gap) []protocol.Gap {
	s.looks++
	return append(out[:0], s.gaps...)
}
func (s *fakeSlice) InDoubt(quantity.Instant) bool { return s.doubted }
func (s *fakeSlice) Lasting(quantity.Instant) bool { return true }

func (s *fakeSlice) Resident() *protocol.Resident { return nil }

func (s *fakeSlice) Safe(quantity.Instant) quantity.Instant { return quantity.Never }

func (s *fakeSlice) Unsold(_ quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return append(out[:0], s.gaps...)
}

func (x *fake) Start(_ quantity.Instant, _ *Job, _ []*Slice, p award.Piece, _ uint64, _ *protocol.Out) {
	x.started = append(x.started, p)
}
func (x *fake) Send(m protocol.Message, _ *protocol.Out) { x.sent = append(x.sent, m) }
func (x *fake) NewAsk() uint64                           { x.asks++; return x.asks }
func (x *fake) Reopen(*Slice)                            {}
func (x *fake) Planned(*Job)                             {}
func (x *fake) Job(job.ID) *Job                          { return x.job }

// alone is a planner with one rigid job of a minute and one slice, and nothing around it.
func alone(gaps ...protocol.Gap) (x *fake, pl *Planner, j *Job, s *Slice) {
	x = &fake{gaps: gaps, rigidJob: rigidJob{&job.Spec{
		Name: "a", Queue: "default", Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Walltime: time.Minute, MaxFailures: 3,
		Deadline: quantity.Never,
		Safe:     trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{1 << 20}}},
	}}}
	floor := market.NewFloor(market.FloorConfig{Policy: fifo.Policy{}}, nil)
	x.floor.Supply = (*fakeSlice)(x)
	pl = New(Config{Discipline: Discipline{Reserve: 1, Overtake: true}, Retry: time.Second, AskTTL: time.Second}, floor, x)
	j, s = &Job{Demand: (*fakeJob)(x)}, &Slice{Supply: (*fakeSlice)(x)}
	pl.Place(s, floor.Place(&x.floor, &protocol.Slice{ID: "s", Capacity: trp.Vector{1 << 30}, Speed: 1000}), false)
	pl.InvalidateSlice(s)
	pl.InvalidateJob(j)
	pl.UpdateLine()
	return x, pl, j, s
}

// TestAHoldEndsWhenItsGangStarts: also where nobody else waits, so that there is nothing to search for. Later the gang may wait again, and
// would get back what its run has cost.
func TestAHoldEndsWhenItsGangStarts(t *testing.T) {
	now := quantity.Instant(time.Second)
	x, pl, j, _ := alone(protocol.Gap{Start: 0, End: quantity.Never})
	pl.late.spares, pl.late.holders, j.paid = true, []*Job{j}, 7
	look := func() {
		pl.InvalidateJob(j)
		pl.UpdateLine()
		pl.Plan(now, nil)
	}
	x.asking = true
	look()
	if j.paid != 7 || len(pl.late.holders) != 1 {
		t.Fatalf("a gang whose place is asked for holds %d, paid %d; want it held, and 7", len(pl.late.holders), j.paid)
	}
	x.asking, x.started = false, []award.Piece{{}}
	look()
	if j.paid != 0 || len(pl.late.holders) != 0 {
		t.Errorf("a gang that has started holds %d, paid %d; want none, and 0", len(pl.late.holders), j.paid)
	}
}

// TestAHoldWithoutAPlaceEnds, though the pass before had a place for nobody and no slice's time has changed since: what was asked for the
// late gang was refused, and a pass that searches for all ends its hold.
func TestAHoldWithoutAPlaceEnds(t *testing.T) {
	now := quantity.Instant(time.Hour)
	x, _, _, _ := alone(protocol.Gap{End: quantity.Never})
	x.spec.Slices = 2
	floor := market.NewFloor(market.FloorConfig{Policy: shortest.Policy{},
		Starvation: starvation.Limit{After: time.Second, Slowdown: 1, Share: 1000}.WithDefaults()}, nil)
	pl := New(Config{Discipline: Discipline{Reserve: 1, Overtake: true, Gangs: true}, Retry: time.Second, AskTTL: time.Second, Late: 1},
		floor, x)
	var on []*Slice
	for range 2 {
		o := &fake{rigidJob: x.rigidJob, gaps: x.gaps}
		o.floor.Supply = (*fakeSlice)(o)
		s := &Slice{Supply: (*fakeSlice)(o)}
		pl.Place(s, floor.Place(&o.floor, &protocol.Slice{ID: "s", Capacity: trp.Vector{1 << 30}, Speed: 1000}), false)
		pl.InvalidateSlice(s)
		on = append(on, s)
	}
	floor.Late().Fill(1)
	floor.Late().Fill(now)
	j := &Job{Demand: (*fakeJob)(x)}
	look := func() {
		pl.InvalidateJob(j)
		pl.UpdateLine()
		pl.Plan(now, nil)
	}
	look()
	for _, s := range on { // what is asked for is all the time they have
		s.Supply.(*fakeSlice).gaps = nil
		pl.InvalidateSlice(s)
	}
	x.started, x.asking = nil, true
	look()
	if j.paid == 0 || !pl.nonePlaceable {
		t.Fatalf("a gang whose place is asked for has paid %d; nobody can be placed: %v", j.paid, pl.nonePlaceable)
	}
	x.asking = false
	look()
	if j.paid != 0 || len(pl.late.holders) != 0 {
		t.Errorf("without a place %d hold one, paid %d; want none, and 0", len(pl.late.holders), j.paid)
	}
}

// TestAPlannerStandsAlone: it reserves the earliest placement, and starts the job when that has come, with no zone around it.
func TestAPlannerStandsAlone(t *testing.T) {
	now, later := quantity.Instant(time.Second), quantity.Instant(time.Hour)
	x, pl, j, s := alone(protocol.Gap{Start: later, End: quantity.Never})
	wake := pl.Plan(now, nil)
	if p, ok := j.Placement(); !ok || p.Start != later || wake != later || len(x.sent) != 1 || x.sent[0].Kind != protocol.Reserve {
		t.Fatalf("it is placed at %+v (%v), looked at again at %v, and %+v was sent", p, ok, wake, x.sent)
	}
	x.reserved = []protocol.Reservation{{ID: 7, Kind: protocol.ForRigid, Job: "a",
		Start: x.sent[0].Body.(*protocol.Booking).Reservation.Start, End: x.sent[0].Body.(*protocol.Booking).Reservation.End}}
	pl.Seen(s)
	if at, r := pl.ReservedFor("a"); at != s || r.ID != 7 || !pl.Holds(s) || pl.Unanswered() != quantity.Never {
		t.Fatalf("%+v is reserved on %v", r, at)
	}
	pl.Plan(later, nil)
	if len(x.started) != 1 || x.started[0].Start != later || x.started[0].Range.Empty() {
		t.Errorf("in its time %+v was started", x.started)
	}
}

// TestWhatTheLastJobLeavesIsWithdrawn: it is cancelled while a place is reserved for it. That is given back, and asked back again as long
// as a view shows it; then nothing is looked at, and whoever comes next is placed by what the slice is like by then.
func TestWhatTheLastJobLeavesIsWithdrawn(t *testing.T) {
	now, later := quantity.Instant(time.Second), quantity.Instant(time.Hour)
	x, pl, j, s := alone(protocol.Gap{Start: later, End: quantity.Never})
	x.job = j
	pl.Plan(now, nil)
	x.reserved = []protocol.Reservation{{ID: 7, Kind: protocol.ForRigid, Job: "a",
		Start: x.sent[0].Body.(*protocol.Booking).Reservation.Start, End: x.sent[0].Body.(*protocol.Booking).Reservation.End}}
	pl.Seen(s)
	pl.Plan(now, nil)
	x.sent, x.gone = nil, true
	pl.InvalidateJob(j)
	pl.UpdateLine()
	pl.Plan(now, nil)
	if _, ok := j.Placement(); ok || len(x.sent) != 1 || x.sent[0].Kind != protocol.Unreserve ||
		x.sent[0].Body.(*protocol.Booking).Reservation.ID != 7 {
		t.Fatalf("it is placed: %v, and %+v was sent", ok, x.sent)
	}
	now = now.Add(2 * time.Second)
	pl.Lapse(now)
	if pl.Plan(now, nil); len(x.sent) != 2 {
		t.Errorf("what was not answered is not said again: %+v", x.sent)
	}
	x.reserved = nil
	pl.Seen(s)
	pl.Lapse(now.Add(2 * time.Second))
	if wake := pl.Plan(now.Add(2*time.Second), nil); wake != quantity.Never || len(x.sent) != 2 {
		t.Errorf("of nobody it looks again at %v: %+v", wake, x.sent)
	}
	x.looks, x.gaps = 0, []protocol.Gap{{Start: later.Add(time.Hour), End: quantity.Never}}
	pl.InvalidateSlice(s)
	if pl.Plan(later, nil); x.looks > 0 {
		t.Error("with nobody in line a slice was looked at")
	}
	x.gone = false
	pl.InvalidateJob(j)
	pl.UpdateLine()
	pl.Plan(later, nil)
	if p, ok := j.Placement(); !ok || p.Start != later.Add(time.Hour) {
		t.Errorf("who comes next is placed at %+v (%v)", p, ok)
	}
}

// TestWhatWasKeptForTheLastJobIsFree, also if no view has shown its reservation yet.
func TestWhatWasKeptForTheLastJobIsFree(t *testing.T) {
	now, gap := quantity.Instant(time.Second), protocol.Gap{Start: quantity.Instant(time.Hour), End: quantity.Never}
	x, pl, j, s := alone(gap)
	pl.Plan(now, nil)
	if left := s.Taken([]protocol.Gap{gap}); left[0].Start == gap.Start {
		t.Fatalf("nothing is kept: %v", left)
	}
	x.gone = true
	pl.InvalidateJob(j)
	pl.UpdateLine()
	pl.Lapse(now.Add(2 * time.Second))
	pl.Plan(now.Add(2*time.Second), nil)
	if left := s.Taken([]protocol.Gap{gap}); len(left) != 1 || left[0] != gap {
		t.Errorf("of %v is left %v", gap, left)
	}
}

// TestAPlaceThatHoldsNoPieceIsNotAskedFor: should a rigid job's place be too short for what it would run there, nothing is asked
// for, rather than an empty range, which nobody can be sold; and it is looked at again.
func TestAPlaceThatHoldsNoPieceIsNotAskedFor(t *testing.T) {
	const now = quantity.Instant(time.Second)
	x, pl, j, s := alone()
	for _, c := range []struct {
		length time.Duration
		asked  bool
	}{{atomizer.RigidLength(x.spec, 1000) - 1, false}, {atomizer.RigidLength(x.spec, 1000), true}} {
		j.refusedAt, pl.replan, x.started = 0, false, nil
		h := reservation{job: j, place: Placement{Slices: []*Slice{s}, Start: now, End: now.Add(c.length), Speed: 1000}}
		again := pl.start(now, &h, nil)
		if c.asked != (len(x.started) == 1) || c.asked && x.started[0].Range.Empty() {
			t.Errorf("a place of %v: asked for %+v", c.length, x.started)
		}
		if !c.asked && (again == quantity.Never || !pl.replan) {
			t.Errorf("a place of %v: it is looked at again at %d, planned anew: %v", c.length, again, pl.replan)
		}
	}
}

// TestAPlaceInDoubtIsKeptUntilItsTime: nothing is asked of its slice meanwhile and nothing withdrawn, so that a gang does not move back and
// forth, and nobody else is sold its time. When it is to begin and the doubt is not over, it has no place there.
func TestAPlaceInDoubtIsKeptUntilItsTime(t *testing.T) {
	now, later := quantity.Instant(time.Second), quantity.Instant(time.Hour)
	gap := protocol.Gap{Start: later, End: quantity.Never}
	for _, seen := range []bool{false, true} { // whether the node has said by then that it reserves the time
		x, pl, j, s := alone(gap)
		x.job = j
		pl.Plan(now, nil)
		place, _ := j.Placement()
		if seen {
			x.reserved = []protocol.Reservation{{ID: 7, Kind: protocol.ForRigid, Job: "a", Start: place.Start, End: place.End}}
		}
		pl.Seen(s)
		doubt := func(now quantity.Instant, doubted bool, gaps ...protocol.Gap) quantity.Instant {
			x.doubted, x.gaps, x.sent = doubted, gaps, nil
			pl.InvalidateSlice(s)
			pl.Lapse(now)
			return pl.Plan(now, nil)
		}
		stays := func(when string) {
			t.Helper()
			if p, ok := j.Placement(); !ok || !p.same(&place) || len(x.sent) > 0 {
				t.Errorf("%s, seen %v: it is placed at %+v (%v), and %+v was sent", when, seen, p, ok, x.sent)
			}
			if left := s.Taken([]protocol.Gap{gap}); left[0].Start == later {
				t.Errorf("%s, seen %v: its time is for sale: %v", when, seen, left)
			}
		}
		if wake := doubt(now.Add(2*time.Second), true); wake != later {
			t.Errorf("it is looked at again at %v, want %v, when it is to begin", wake, later)
		}
		stays("in doubt")
		if seen {
			doubt(now.Add(4*time.Second), false, gap)
			stays("behind the doubt")
			doubt(now.Add(6*time.Second), true)
			stays("in doubt again")
		}
		if pl.Plan(later, nil); len(x.started) > 0 {
			t.Errorf("seen %v: it is started in doubt: %+v", seen, x.started)
		}
		if p, ok := j.Placement(); ok {
			t.Errorf("seen %v: it is placed at %+v, in doubt when it is to begin", seen, p)
		}
		if doubt(later.Add(time.Second), false, gap); len(x.started)+len(x.sent) == 0 {
			t.Errorf("seen %v: nothing is done behind the doubt", seen)
		}
	}
}

// TestAPlaceKeptInDoubtIsGivenUpBehindIt, where the slice's node says by then that it has no time: it had none in doubt either, so that
// its time is the same as before. The job moves to where it may run, and does not wait for a place that it can't have.
func TestAPlaceKeptInDoubtIsGivenUpBehindIt(t *testing.T) {
	now, later := quantity.Instant(time.Second), quantity.Instant(time.Hour)
	x, pl, j, s := alone(protocol.Gap{Start: later, End: quantity.Never})
	pl.Plan(now, nil)
	look := func(doubted bool) (placed bool) {
		x.doubted, x.gaps = doubted, nil
		pl.InvalidateSlice(s)
		now = now.Add(2 * time.Second)
		pl.Lapse(now)
		pl.Plan(now, nil)
		_, placed = j.Placement()
		return placed
	}
	if !look(true) {
		t.Fatal("in doubt its place is lost")
	}
	if look(false) {
		t.Errorf("behind the doubt it is placed at %+v, where there is no time", j.place)
	}
}

// TestNobodyIsPlacedAnewInDoubt: only who held the place before keeps it on a slice in doubt, and only where it may run.
func TestNobodyIsPlacedAnewInDoubt(t *testing.T) {
	now, later := quantity.Instant(time.Second), quantity.Instant(time.Hour)
	for _, c := range []struct{ held, doubted, fits, stands bool }{
		{true, true, true, true}, {false, true, true, false}, {true, false, true, false}, {true, true, false, false},
	} {
		x, pl, j, s := alone()
		x.doubted = c.doubted
		j.place = Placement{Slices: []*Slice{s}, Start: later, End: later.Add(atomizer.RigidLength(x.spec, 1000))}
		if c.held {
			j.rankBefore = 1
		}
		pl.survey.fits = []bool{c.fits}
		if got := pl.survey.stillAvailable(now, j); got != c.stands {
			t.Errorf("%+v: its place stands: %v", c, got)
		}
	}
}

// TestWhoIsServedFirstNowIsNotKeptBehindOthers: a gang that has become late goes before one that was ahead of it, and takes the place that
// was the other's, though no slice has changed.
func TestWhoIsServedFirstNowIsNotKeptBehindOthers(t *testing.T) {
	now, later := quantity.Instant(time.Second), quantity.Instant(time.Hour)
	x, pl, a, _ := alone(protocol.Gap{Start: later, End: quantity.Never})
	pl.cfg.Reserve = 2
	spec := *x.spec
	spec.Name = "b"
	b := &Job{Demand: rigidJob{&spec}}
	pl.InvalidateJob(b)
	pl.UpdateLine()
	starts := func() [2]quantity.Instant {
		pl.Invalidate()
		pl.Plan(now, nil)
		return [2]quantity.Instant{a.place.Start, b.place.Start}
	}
	length := atomizer.RigidLength(x.spec, 1000)
	if got, want := starts(), [2]quantity.Instant{later, later.Add(length)}; got != want {
		t.Fatalf("they are placed at %v, want %v", got, want)
	}
	spec.Priority = 1
	pl.line = ranking.List[*Job]{}
	pl.line.Gather(pl.order.inLine, 0, a)
	pl.line.Gather(pl.order.inLine, 0, b)
	pl.line.Settle(pl.order.inLine)
	if got, want := starts(), [2]quantity.Instant{later.Add(length), later}; got != want {
		t.Errorf("with the other first they are placed at %v, want %v", got, want)
	}
}

// TestAGuestsPlaceInDoubtIsLookedAtInItsTime: from then on it has no place there.
func TestAGuestsPlaceInDoubtIsLookedAtInItsTime(t *testing.T) {
	now, later := quantity.Instant(time.Second), quantity.Instant(time.Hour)
	x, pl, j, s := alone(protocol.Gap{Start: later, End: quantity.Never})
	j.Guest = &Guest{}
	pl.Plan(now, nil)
	x.doubted, x.gaps = true, nil
	pl.InvalidateSlice(s)
	pl.Lapse(now.Add(2 * time.Second))
	if wake := pl.Plan(now.Add(2*time.Second), nil); wake != later || j.rank == 0 {
		t.Fatalf("it is looked at again at %v, want %v; rank %d", wake, later, j.rank)
	}
	if pl.Plan(later, nil); j.rank > 0 {
		t.Errorf("in its time it is placed at %+v, in doubt", j.place)
	}
}

// TestAGuestLosesAPlaceOfWhichASliceWasRemoved, though its home is taking the rest of it: nothing more is asked for it.
func TestAGuestLosesAPlaceOfWhichASliceWasRemoved(t *testing.T) {
	now := quantity.Instant(time.Hour)
	x, _, _, _ := alone(protocol.Gap{End: quantity.Never})
	x.spec.Slices = 2
	floor := market.NewFloor(market.FloorConfig{Policy: fifo.Policy{}}, nil)
	pl := New(Config{Discipline: Discipline{Reserve: 1, Overtake: true, Gangs: true}, Retry: time.Second, AskTTL: time.Second}, floor, x)
	var on []*fake
	var known []*Slice
	for range 2 {
		o := &fake{rigidJob: x.rigidJob, gaps: x.gaps}
		o.floor.Supply = (*fakeSlice)(o)
		s := &Slice{Supply: (*fakeSlice)(o)}
		pl.Place(s, floor.Place(&o.floor, &protocol.Slice{ID: "s", Capacity: trp.Vector{1 << 30}, Speed: 1000}), false)
		pl.InvalidateSlice(s)
		on, known = append(on, o), append(known, s)
	}
	j := &Job{Demand: (*fakeJob)(x), Guest: &Guest{}}
	pl.InvalidateJob(j)
	pl.UpdateLine()
	pl.Plan(now, nil)
	if j.rank == 0 || len(j.place.Slices) != 2 {
		t.Fatalf("it has rank %d and the place %+v", j.rank, j.place)
	}
	on[0].reserved = []protocol.Reservation{{Kind: protocol.ForHold, Job: "a", Slice: "s", Start: j.place.Start, End: j.place.End}}
	pl.Lapse(now.Add(3 * time.Second))
	pl.InvalidateSlice(known[0])
	pl.Remove(known[1])
	floor.Remove(&on[1].floor)
	x.sent = nil
	if pl.Plan(now.Add(3*time.Second), nil); j.rank > 0 || len(x.sent) > 0 {
		t.Errorf("it has rank %d, the place %+v, and asks %+v", j.rank, j.place, x.sent)
	}
}

// TestAPlaceBehindAReservationIsAskedForWhenThatEnds, though its node should never say that it was withdrawn.
func TestAPlaceBehindAReservationIsAskedForWhenThatEnds(t *testing.T) {
	const now = quantity.Instant(time.Second)
	x, pl, j, s := alone(protocol.Gap{End: quantity.Never})
	j.Guest = &Guest{}
	end := now.Add(500 * time.Millisecond) // before anything is said again
	x.reserved = []protocol.Reservation{{ID: 7, Kind: protocol.ForRigid, Job: "other", End: end}}
	pl.Seen(s)
	if wake := pl.Plan(now, nil); wake != end || x.asks > 0 {
		t.Fatalf("it is looked at again at %v, want %v; asked for %d times", wake, end, x.asks)
	}
	if pl.Plan(end, nil); x.asks != 1 {
		t.Errorf("it is asked for %d times", x.asks)
	}
}
