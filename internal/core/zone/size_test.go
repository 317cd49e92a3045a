package zone

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// BenchmarkWaiting is what a waiting job takes of memory here, in bytes and objects: its record, what is only known until the next
// crash, and its places in lists and in the index, on slices of one class. Its name and its spec are the gate's too, and not counted:
// jobs that are alike share the spec, of others a command is all that differs.
func BenchmarkWaiting(b *testing.B) {
	for name, m := range map[string]*auction.Config{"sja": nil, "jasda": {}} {
		b.Run(name, func(b *testing.B) { waiting(b, m, false) })
	}
	b.Run("each with its own command", func(b *testing.B) { waiting(b, nil, true) })
}

func waiting(b *testing.B, m *auction.Config, own bool) {
	const jobs = 100_000
	spec := &job.Spec{Queue: "q", Kind: job.Steps, Total: 100, PerUnit: time.Second, Grid: 1, Parallelism: 1,
		Launch: job.Launch{Command: []string{"train"}}}
	spec.Profile.Form, spec.Profile.Phases = trp.Phases, []trp.Phase{{UpTo: 100, Mean: 1 << 31}}
	var err error
	if spec.Safe, err = trp.Compile(spec.Profile, 100, 10_000); err != nil {
		b.Fatal(err)
	}
	names := make([]job.ID, jobs)
	for i := range names {
		names[i] = job.ID(fmt.Sprintf("j%06d", i))
	}
	for b.Loop() {
		z, err := New(Config{ID: "z", Policy: fifo.Policy{}, Horizon: time.Hour, Market: m})
		if err != nil {
			b.Fatal(err)
		}
		var out protocol.Out
		view := &protocol.SliceView{
			Slice: protocol.Slice{ID: "a", Speed: 1000, Capacity: trp.Vector{trp.Memory: 4 << 30}}, Node: "n", Usable: true, Version: 1,
			Gaps: []protocol.Gap{{Start: quantity.Instant(time.Hour), End: quantity.Never}},
		}
		z.Step(1, protocol.Message{Kind: protocol.Offer, From: protocol.Address{Role: protocol.Node, ID: "n"}, Body: view}, &out)
		before, objects := heap()
		for i := range jobs {
			out.Reset()
			s := *spec
			if own {
				s.Launch.Command = []string{"train", string(names[i])}
			}
			z.Step(quantity.Instant(i+2), protocol.Message{Kind: protocol.Adopt, Job: names[i], Epoch: 1,
				Body: &protocol.Adoption{Spec: &s, At: quantity.Instant(i)}}, &out)
		}
		out = protocol.Out{}
		bytes, all := heap()
		b.ReportMetric(float64(bytes-before)/jobs, "B/job")
		b.ReportMetric(float64(all-objects)/jobs, "objects/job")
		if z.home.Book().Waiting() != jobs {
			b.Fatalf("%d jobs wait", z.home.Book().Waiting())
		}
	}
}

// heap is how much is in use, in bytes and in objects.
func heap() (bytes, objects uint64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.HeapObjects
}
