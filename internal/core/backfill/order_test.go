package backfill

import (
	"math"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestTheLineStandsByTheClassesThatThereAre: who is the faster on slices that come later goes before the others from then on.
func TestTheLineStandsByTheClassesThatThereAre(t *testing.T) {
	x, _, _, _ := alone(protocol.Gap{Start: 1, End: 2})
	floor := market.NewFloor(market.FloorConfig{Policy: shortest.Policy{}}, nil)
	pl := New(Config{Discipline: Discipline{Reserve: 1, Overtake: true, Gangs: true}, Retry: time.Second, AskTTL: time.Second}, floor, x)
	add := func(id job.SliceID, memory int64, profile string) {
		s := &fake{rigidJob: x.rigidJob}
		s.floor.Supply = (*fakeSlice)(s)
		pl.Place(&Slice{Supply: (*fakeSlice)(s)}, floor.Place(&s.floor,
			&protocol.Slice{ID: id, Capacity: trp.Vector{trp.Memory: 1 << memory}, Speed: 1000, Profile: profile}), false)
	}
	gang := func(name job.ID, small, large int64) *Job {
		spec := *x.spec
		spec.Name, spec.Slices, spec.Speeds = name, 2, []job.SpeedOn{{Profile: "small", Permille: small},
			{Profile: "large", Permille: large}}
		return &Job{Demand: rigidJob{&spec}}
	}
	line := func() (names []job.ID) {
		pl.UpdateLine()
		for j := range pl.line.All() {
			names = append(names, j.Name())
		}
		return names
	}
	add("s", 30, "small")
	pl.InvalidateJob(gang("a", 500, 500))
	pl.InvalidateJob(gang("b", 400, 4000))
	if got := line(); !slices.Equal(got, []job.ID{"a", "b"}) {
		t.Errorf("on small slices the line is %v", got)
	}
	add("t", 31, "large")
	if got := line(); !slices.Equal(got, []job.ID{"b", "a"}) {
		t.Errorf("with a large one the line is %v", got)
	}
}

// TestSums of the greatest indexes there can be.
func TestSums(t *testing.T) {
	var a, b sum
	for range 5 {
		a.add(math.MaxInt64)
		b.add(math.MaxInt64)
	}
	if a.less(b) || b.less(a) {
		t.Error("equal sums differ")
	}
	if b.add(1); !a.less(b) || b.less(a) {
		t.Error("one more is not more")
	}
}

// single is the owner's side of a job that waits for windows.
type single struct {
	index.Demand
	rigidJob
}

func (d single) Name() job.ID                               { return d.spec.Name }
func (d single) Spec() *job.Spec                            { return d.spec }
func (d single) Submitted() quantity.Instant                { return 1 }
func (d single) View() atomizer.View                        { return d.rigidJob.View() }
func (d single) Avoids(*window.Slice) bool                  { return false }
func (d single) Queue() (string, time.Duration)             { return d.spec.Queue, 0 }
func (d single) Busy() int                                  { return 0 }
func (d single) Volatile() bool                             { return false }
func (d single) Served() quantity.Instant                   { return 0 }
func (d single) Attained() int64                            { return 0 }
func (d single) Use(quantity.Instant) (_, _, weight int64)  { return 0, 0, 1 }
func (d single) Loses() bool                                { return false }
func (d single) Ineligible(quantity.Instant) explain.Reason { return explain.Eligible }

// TestAGangIsWorthWhatItIsAtItsOwnSpeed: it holds a fast slice for as long as the slow one beside it takes.
func TestAGangIsWorthWhatItIsAtItsOwnSpeed(t *testing.T) {
	for walltime, want := range map[time.Duration]bool{30 * time.Minute: false, 10 * time.Hour: true} {
		x, _, _, _ := alone(protocol.Gap{Start: 1, End: 2})
		floor := market.NewFloor(market.FloorConfig{Policy: shortest.Policy{}, Horizon: time.Hour}, nil)
		pl := New(Config{Discipline: Discipline{Reserve: 1, Overtake: true, Gangs: true}, Retry: time.Second, AskTTL: time.Second}, floor,
			x)
		place := Placement{Start: 1, End: quantity.Never, Speed: 250}
		for _, of := range []protocol.Slice{{ID: "s", Profile: "small", Speed: 250}, {ID: "t", Profile: "large", Speed: 1000}} {
			o := &fake{rigidJob: x.rigidJob}
			o.floor.Supply = (*fakeSlice)(o)
			of.Capacity = trp.Vector{trp.Memory: 1 << 30}
			s := &Slice{Supply: (*fakeSlice)(o), surveyed: []protocol.Gap{{Start: 1, End: quantity.Never}}}
			pl.Place(s, floor.Place(&o.floor, &of), false)
			place.Slices = append(place.Slices, s)
		}
		spec := func(name job.ID, slices int, walltime time.Duration, small int64) *job.Spec {
			s := *x.spec
			s.Name, s.Slices, s.Walltime, s.Speeds = name, slices, walltime, []job.SpeedOn{{Profile: "small", Permille: small},
				{Profile: "large", Permille: 1000}}
			return &s
		}
		other := &index.Job{Demand: single{rigidJob: rigidJob{spec("other", 1, walltime, 0)}}}
		floor.Activate(other)
		floor.Changed(other)
		gang := &Job{Demand: rigidJob{spec("gang", 2, 10*time.Minute, 250)}, place: place}
		if got := pl.order.outweighs(1, gang, &gang.place, surveyed); got != want {
			t.Errorf("forty minutes on two slices outweigh %v on the fast one: %v", walltime, got)
		}
	}
}
