package sites

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestFreeTime: what a view leaves to anyone and to rigid jobs.
func TestFreeTime(t *testing.T) {
	type gap [2]quantity.Instant
	const never = quantity.Never
	place := protocol.Reservation{ID: 1, Kind: protocol.ForRigid, Start: 150, End: 200, Job: "a"}
	for _, c := range []struct {
		name          string
		gaps          []protocol.Gap
		reserved      []protocol.Reservation
		anyone, rigid []gap
	}{
		{"a clock that is ahead", []protocol.Gap{{Start: 120, End: 150}}, nil, []gap{{100, 150}}, []gap{{100, 150}}},
		{"a clock that is behind", []protocol.Gap{{Start: 80, End: 150}}, nil, []gap{{100, 150}}, []gap{{100, 150}}},
		{
			"a gap after a lease", []protocol.Gap{{Start: 120, End: never}},
			[]protocol.Reservation{{Kind: protocol.ForLease, Start: 50, End: 120}},
			[]gap{{120, never}}, []gap{{120, never}},
		},
		{
			"a gap after serving hours", []protocol.Gap{{Start: 120, End: 1000}},
			[]protocol.Reservation{{Kind: protocol.ForServing, Start: 10, End: 20, Every: 100}},
			[]gap{{120, 1000}}, []gap{{120, 1000}},
		},
		{
			"a place", []protocol.Gap{{Start: 100, End: 150}, {Start: 200, End: never}}, []protocol.Reservation{place},
			[]gap{{100, 150}, {200, never}}, []gap{{100, never}},
		},
		{
			"a drain over a place", []protocol.Gap{{Start: 100, End: 150}, {Start: 300, End: never}},
			[]protocol.Reservation{place, {ID: 2, Kind: protocol.ForDrain, Start: 180, End: 300}},
			[]gap{{100, 150}, {300, never}}, []gap{{100, 180}, {300, never}},
		},
		{
			"serving hours over a place", []protocol.Gap{{Start: 100, End: 150}},
			[]protocol.Reservation{place, {ID: 2, Kind: protocol.ForServing, Start: 5, End: 8, Every: 20}},
			[]gap{{100, 150}}, []gap{{100, 165}, {168, 185}, {188, 200}},
		},
		{
			"serving hours over a place without an end", []protocol.Gap{{Start: 100, End: 150}},
			[]protocol.Reservation{{ID: 1, Kind: protocol.ForRigid, Start: 150, End: never, Job: "a"},
				{ID: 2, Kind: protocol.ForServing, Start: 5, End: 8, Every: 20}},
			[]gap{{100, 150}}, []gap{{100, 165}},
		},
	} {
		v := &protocol.SliceView{Slice: protocol.Slice{ID: "s", Speed: 1000}, Version: 1, Usable: true, Gaps: c.gaps, Reserved: c.reserved}
		s := &Slice{view: v, begun: begun(v)}
		for whose, want := range map[string][]gap{"anyone": c.anyone, "rigid jobs": c.rigid} {
			free := s.Unsold(100, nil)
			if whose == "rigid jobs" {
				free = s.Free(100, nil)
			}
			var got []gap
			for _, g := range free {
				got = append(got, gap{g.Start, g.End})
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v", c.name, whose, got, want)
			}
		}
	}
}
