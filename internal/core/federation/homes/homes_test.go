package homes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate/queues"
	"sluice.dev/sluice/internal/core/gate/stock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// sized is a rigid job that needs so much memory on each of n slices.
func sized(t interface{ Fatal(args ...any) }, mib int64, n int) *job.Spec {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 1, Mean: quantity.Amount(mib) << 20}}}, 1, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return &job.Spec{Name: "j", Queue: queues.Default, Kind: job.Rigid, Total: 1, Slices: n, Topology: job.SameZone, PerUnit: time.Second,
		Grid: 1, Safe: table, MaxFailures: 3}
}

func offered(sizes ...int) (all []protocol.Slice) {
	for i, mib := range sizes {
		all = append(all, protocol.Slice{ID: job.SliceID(fmt.Sprint(i)), Capacity: trp.Vector{quantity.Amount(mib) << 20}, Speed: 1000})
	}
	return all
}

// TestDigestWithoutChangeDrawsNoHome: which zones could run a job without a home does not depend on digests, only whether one can be drawn.
func TestDigestWithoutChangeDrawsNoHome(t *testing.T) {
	zones := []stock.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}}, {ID: "b", Nodes: []job.NodeID{"n2"}}}
	cfg, err := search.Config{
		Flow: flow.Config{Classes: flow.Classes{512 << 20, 2048 << 20}}, Zones: []search.Zone{{ID: "a", Nodes: []job.NodeID{"n1"}},
			{ID: "b", Nodes: []job.NodeID{"n2"}}},
	}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	in, now, spec := stock.New(zones, time.Second), quantity.Instant(1e9), sized(t, 1, 1)
	h := New(zones, time.Hour, in, queues.New(2, 2, time.Second), func(job.ZoneID) bool { return false }, cfg)
	news := func(z flow.ZoneID, version uint64, after time.Duration) bool {
		now = now.Add(after)
		m := protocol.Message{Kind: protocol.ZoneDigest, From: cfg.At(z), Body: &flow.Digest{Zone: z, Alive: true, Version: version,
			At: now, Free: [flow.MaxClasses]uint32{uint32(version)}}}
		is := h.Hear(now, &m, true)
		if is && h.Draw(now, spec, "j", 1, 1) != "" {
			t.Fatal("a home is drawn, and no node has reported")
		}
		return is
	}
	period := cfg.Flow.Period
	if !news(0, 1, period) {
		t.Error("the first word of a zone draws nothing for a job that waits")
	}
	if news(0, 2, period) || news(1, 1, period) || news(0, 3, period) {
		t.Error("whatever zones say, homes are drawn for a job that no node is known to be able to run")
	}
	if !news(1, 2, 2*cfg.Flow.Stale) {
		t.Error("the first word after a silence draws nothing")
	}
	in.Report("n2", offered(1024))
	h.Forget()
	if home := h.Draw(now, spec, "j", 1, 1); home != "b" {
		t.Errorf("home %q, and a node of b could run it", home)
	}
}

// TestOnlyZonesThatCouldRunAJobAreDrawn, in proportion to nothing else than their slices, and what is remembered of chances is what they
// are.
func TestOnlyZonesThatCouldRunAJobAreDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones := []stock.Zone{{ID: "a", Nodes: []job.NodeID{"n0"}}, {ID: "b", Nodes: []job.NodeID{"n1"}},
			{ID: "c", Nodes: []job.NodeID{"n2"}}}
		in, of, drained := stock.New(zones, time.Second), queues.New(3, 3, time.Second), map[job.ZoneID]bool{}
		h := New(zones, time.Hour, in, of, func(z job.ZoneID) bool { return drained[z] }, nil)
		sizes := make([][]int, 3)
		specs := []*job.Spec{sized(t, 100, 1), sized(t, 1000, 1), sized(t, 100, 2)}
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			at := rapid.IntRange(0, 2).Draw(t, "zone")
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				drained[zones[at].ID] = rapid.Bool().Draw(t, "drained")
			case 1:
				of.Set(&protocol.Queue{Name: queues.Default, Weight: 1, Cap: rapid.IntRange(0, 4).Draw(t, "cap")})
			default:
				sizes[at] = rapid.SliceOfN(rapid.SampledFrom([]int{512, 2048}), 0, 4).Draw(t, "slices")
				in.Report(string(zones[at].Nodes[0]), offered(sizes[at]...))
			}
			h.Forget()
			for _, spec := range specs {
				limit := of.Find(queues.Default).Cap
				var could []job.ZoneID
				for i, z := range zones {
					n := 0
					for _, mib := range sizes[i] {
						if spec.Safe.LeastOver(0, 1, trp.Unscaled) <= quantity.Amount(mib)<<20 {
							n++
						}
					}
					if part := queues.Share(limit, i, 3); n >= spec.Slices && !drained[z.ID] && (limit == 0 || part >= spec.Slices) {
						could = append(could, z.ID)
					}
				}
				id := job.ID(fmt.Sprint("j", step))
				home := h.Draw(1, spec, id, 1, 1)
				if home != h.Draw(2, spec, id, 1, 1) {
					t.Fatal("the same life is drawn twice, and differently")
				}
				if len(could) == 0 != (home == "") || home != "" && !slices.Contains(could, home) {
					t.Fatalf("home %q, and %v could run it", home, could)
				}
				if sums := h.chancesOf(spec); !slices.Equal(sums, h.sumChances(spec)) {
					t.Fatalf("chances are remembered as %v", sums)
				}
			}
		}
	})
}
