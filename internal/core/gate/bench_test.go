package gate

import (
	"fmt"
	"runtime"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// crowded is a gate with n waiting jobs that its zone has taken home, and the bytes and objects that each of them takes.
func crowded(b *testing.B, n int) (g *Gate, each, objects float64) {
	g = testGate(b, Config{Zones: Alone("z"), MaxJobs: 2 << 20})
	spec := &job.Spec{Queue: DefaultQueue, Kind: job.Items, Total: 1, Grid: 1}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		id := job.ID(fmt.Sprintf("j%x", uint32(i)*2654435761))
		g.Apply(protocol.Fact{Kind: protocol.JobAccepted, Job: id, Epoch: 1, Generation: 1, At: 1,
			Body: &protocol.Acceptance{Spec: spec, Request: "r", Digest: "d", Zone: "z"}})
		g.Apply(protocol.Fact{Kind: protocol.JobHomed, Job: id, Epoch: 1})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return g, float64(after.HeapAlloc-before.HeapAlloc) / float64(n), float64(after.HeapObjects-before.HeapObjects) / float64(n)
}

// BenchmarkStep is a step of a job's life at the gate (accepted, adopted, closed, deleted, purged, forgotten) where so many others
// wait. B/job and objects/job are what each of those takes, its name among them, its spec shared.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, each, objects := crowded(b, n)
			var out protocol.Out
			g.Recover(1e9, &out)
			now, zone, person := quantity.Instant(1e9), protocol.Address{Role: protocol.Zone, ID: "z"},
				protocol.Address{Role: protocol.Person}
			of := job.Generation(1)
			for i := 0; b.Loop(); i++ {
				id := job.ID(fmt.Sprintf("x%x", uint32(i)*2654435761))
				var m protocol.Message
				for step := range 6 {
					switch step {
					case 0:
						m = protocol.Message{Kind: protocol.Submit, From: person,
							Body: &protocol.Submission{Digest: "d", Spec: &job.Spec{Name: id, Queue: DefaultQueue, Kind: job.Items,
								Total: 1, Grid: 1}}}
					case 1:
						of = g.Life(id)
						m = protocol.Message{Kind: protocol.Adopted, From: zone, Job: id, Epoch: 1, Generation: of}
					case 2:
						m = protocol.Message{Kind: protocol.Closed, From: zone, Job: id, Epoch: 1, Generation: of,
							Body: &protocol.Closing{Verdict: job.Verdict{State: job.Finished}, At: now}}
					case 3:
						m = protocol.Message{Kind: protocol.Delete, From: person, Job: id, Body: &protocol.Deletion{}}
					case 4:
						m = protocol.Message{Kind: protocol.Purged, Job: id, Generation: of + 1}
					case 5:
						m = protocol.Message{Kind: protocol.Forgotten, From: zone, Job: id, Generation: of}
					}
					out.Reset()
					now = now.Add(1000)
					g.Step(now, m, &out)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/6, "ns/step")
			b.ReportMetric(each, "B/job")
			b.ReportMetric(objects, "objects/job")
		})
	}
}

// BenchmarkStepOfAny is a step that is about any of the jobs that wait (it is paused or goes on, and its home says so), which nobody
// has looked at for long.
func BenchmarkStepOfAny(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, _, _ := crowded(b, n)
			var out protocol.Out
			g.Recover(1e9, &out)
			now, zone, person := quantity.Instant(1e9), protocol.Address{Role: protocol.Zone, ID: "z"},
				protocol.Address{Role: protocol.Person}
			names := make([]job.ID, 4096)
			steps := 0
			for i := 0; b.Loop(); i++ {
				if i%len(names) == 0 { // another handful
					b.StopTimer()
					for k := range names {
						names[k] = job.ID(fmt.Sprintf("j%x", uint32((i+k)*7919%n)*2654435761))
					}
					b.StartTimer()
				}
				id, flag := names[i%len(names)], i/n%2 == 0
				for _, m := range []protocol.Message{
					{Kind: protocol.PauseJob, From: person, Job: id, Body: &protocol.Pause{Paused: flag}},
					{Kind: protocol.PauseJob, From: zone, Job: id, Generation: 1, Body: &protocol.Pause{Paused: flag}},
				} {
					out.Reset()
					now = now.Add(1000)
					g.Step(now, m, &out)
					steps++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
		})
	}
}

// BenchmarkDraw is the draw of a home among so many zones of four slices each, of jobs that are alike.
func BenchmarkDraw(b *testing.B) {
	for _, n := range []int{2, 10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var zones []Zone
			for i := range n {
				zones = append(zones, Zone{ID: job.ZoneID(fmt.Sprint("z", i)), Nodes: []job.NodeID{job.NodeID(fmt.Sprint("n", i))}})
			}
			g := testGate(b, Config{Zones: zones})
			var out protocol.Out
			for i := range n {
				stock := &protocol.Stock{}
				m := protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: fmt.Sprint("n", i)},
					Body: stock}
				for k := range 4 {
					stock.Slices = append(stock.Slices, protocol.Slice{ID: job.SliceID(fmt.Sprint(i, "/", k)), Profile: fmt.Sprint(k % 2),
						Capacity: trp.Vector{quantity.Amount(1+k%2) << 30}, Speed: 1000})
				}
				g.Step(1, m, &out)
			}
			spec := g.jobs.Share(runnable("any"))
			for i := 0; b.Loop(); i++ {
				if g.draw(0, spec, job.ID(fmt.Sprint("j", i%1000)), 1, 1) == "" {
					b.Fatal("no home")
				}
			}
		})
	}
}
