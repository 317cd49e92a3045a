package backfill

import (
	"math"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
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
		pl.Place(&Slice{Supply: (*fakeSlice)(s)}, floor.Place(&s.floor, &protocol.Slice{ID: id, Capacity: trp.Vector{trp.Memory: 1 << memory}, Speed: 1000, Profile: profile}))
	}
	gang := func(name job.ID, small, large int64) *Job {
		spec := *x.spec
		spec.Name, spec.Slices, spec.Speeds = name, 2, []job.SpeedOn{{Profile: "small", Permille: small}, {Profile: "large", Permille: large}}
		return &Job{Demand: rigidJob{&spec}}
	}
	line := func() (names []job.ID) {
		pl.LineUp()
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
