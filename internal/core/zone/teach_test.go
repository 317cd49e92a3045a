package zone

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// classroom is a zone with jobs of one template that wait, and one that has finished.
func classroom(t testing.TB, waiting int) (z *Zone, done *state) {
	z, err := New(Config{ID: "z", Policy: fifo.Policy{}})
	if err != nil {
		t.Fatal(err)
	}
	var out protocol.Out
	for i := range waiting + 1 {
		spec := &job.Spec{
			Name: job.ID(fmt.Sprintf("j%05d", i)), Queue: "q", Template: "t", Kind: job.Steps, Total: 32, Grid: 1, Parallelism: 1,
			PerUnit: time.Second, Theta: 50_000, Deadline: quantity.Never, Safe: trp.Table{Bounds: []int64{32}, Least: [][]quantity.Amount{{100}}},
		}
		out.Reset()
		z.Step(1, protocol.Message{Kind: protocol.Adopt, Job: spec.Name, Epoch: 1, Spec: spec, At: quantity.Instant(1 + i)}, &out)
	}
	done = z.jobs["j00000"]
	done.Committed, done.Started = job.Ranges{{From: 0, To: 32}}, 1
	done.Past = []protocol.Past{{Committed: job.Range{From: 0, To: 32}, Outcome: job.Done, Peak: trp.Vector{40}}}
	return z, done
}

// TestTheOldestAreTold, and not more at once than a step should carry; the others when a while has passed.
func TestTheOldestAreTold(t *testing.T) {
	const waiting = mostTold + 1000
	z, done := classroom(t, waiting)
	youngest := z.jobs[job.ID(fmt.Sprintf("j%05d", waiting))]
	var told [][2]int // lesson, jobs
	for n := 1; n <= forecast.MaxRuns+tellAgain; n++ {
		var out protocol.Out
		z.teach(done, &out)
		facts := len(out.Facts) - 1
		if facts > 0 {
			told = append(told, [2]int{n, facts})
		}
		if facts == mostTold && out.Facts[1].Job != "j00001" {
			t.Fatalf("lesson %d was told %s before the oldest", n, out.Facts[1].Job)
		}
	}
	// 19 runs are just enough. At 32 the oldest know enough of it, and so it is the turn of the others; after the last doubling
	// theirs comes when a while has passed.
	all := mostTold
	if want := [][2]int{{1, all}, {2, all}, {4, all}, {8, all}, {16, all}, {19, all}, {32, 1000}, {64, all}, {128, all}, {256, all}, {512, 1000}}; fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("jobs were told at lessons %v, want %v", told, want)
	}
	if l := youngest.Learned; l.Runs != forecast.MaxRuns || l.Safe.Peak(trp.Unscaled) != 40 {
		t.Errorf("the youngest was told of %d runs", l.Runs)
	}
}

// BenchmarkAdoptTaught is of a job whose template has taught a full memory, when another lesson has come since the last and
// when none has.
func BenchmarkAdoptTaught(b *testing.B) {
	z, done := classroom(b, 1)
	var out protocol.Out
	for range forecast.MaxRuns {
		z.teach(done, &out)
	}
	one, t := z.jobs["j00001"], z.jobs["j00001"].q.templates[0]
	for _, fresh := range []bool{true, false} {
		b.Run(map[bool]string{true: "after a lesson", false: "without"}[fresh], func(b *testing.B) {
			for b.Loop() {
				if fresh {
					t.tables = nil
				}
				out.Reset()
				z.instruct(one, &out)
			}
		})
	}
}
