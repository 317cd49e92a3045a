package scenario

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// judged parses one expectation over a scenario of jobs a and b.
func judged(t *testing.T, line string) *Scenario {
	t.Helper()
	s, err := Parse("judge.yml", []byte(`
scenario: judge
cluster: {nodes: [{gpus: "sim:custom=1,mem=1Gi"}]}
workload: {jobs: [{at: 0s, name: a, rigid: {walltime: 1m}, memory: 1Mi}, {at: 0s, name: b, rigid: {walltime: 1m}, memory: 1Mi}]}
expect: ["`+line+`"]
`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func result(mechanism string, seed uint64, use, wait float64, fates map[string]Fate) Result {
	return Result{
		Run: measure.Run{Mechanism: mechanism, Seed: seed, Metrics: measure.Metrics{{Name: measure.Utilization, Value: use},
			{Name: measure.WaitMean, Value: wait}}},
		Finished: 2, Fates: fates,
	}
}

func TestJudge(t *testing.T) {
	at := func(m int) quantity.Instant { return quantity.Instant(m) * minute }
	fates := map[string]Fate{
		"a": {Began: 0, Ended: at(5), Pieces: 2, State: job.Finished},
		"b": {Began: at(5), Ended: quantity.Never, Pieces: 1, State: job.Running},
	}
	results := []Result{
		result("sja", 1, .8, 60, fates), result("sja", 2, .9, 120, fates), result("easy", 1, .5, 100, fates),
		result("easy", 2, .5, 101, fates),
	}
	partial := result("sja", 3, 0, 9999, nil)
	partial.Partial, partial.Broken = true, []string{"never looked at"}
	results = append(results, partial)
	for line, want := range map[string]string{
		"utilization >= 80%": "ok", "utilization > 0.8": "sja, seed 1: it is 0.8", "waitMean <= 2m": "ok", "waitMean < 1h30m": "ok",
		"sja.waitMean < easy.waitMean": "ok", "easy.utilization >= sja.utilization": "0.5 against 0.85", "fcfs.waitMean > 0": "open",
		"waitMean < easy.waitMean": "ok", "finished == 2": "ok", "finished != 2": "it is 2",
		"a ends before 6m": "ok", "a ends before 5m": "a ends at 5m0s, against at 5m0s", "a ends at 5m": "ok",
		"b starts after a starts": "ok", "b starts at a ends": "ok",
		"b ends after 1m": "b ends never", "a pieces == 2": "ok", "a pieces > 2": "2 pieces", "a finishes": "ok",
		"a fails": "it is COMPLETED", "b finishes": "it is RUNNING",
		"invariants hold": "ok",
	} {
		f := judged(t, line).Judge("sja", results)[0]
		got := "ok"
		switch {
		case f.Open:
			got = "open"
		case !f.OK:
			got = f.Seen
		}
		if got == "ok" != (want == "ok") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	results[1].Broken = []string{"two at once"}
	if f := judged(t, "invariants hold").Judge("sja", results)[0]; f.OK || !strings.Contains(f.Seen, "two at once") {
		t.Errorf("%+v", f)
	}
	if f := judged(t, "invariants hold").Judge("sja", nil)[0]; !f.Open {
		t.Errorf("nothing ran, and it is judged: %+v", f)
	}
}

// TestTheWitnessSees every fault that can be told from the events.
func TestTheWitnessSees(t *testing.T) {
	fresh := func() *witness { return newWitness(map[int64]string{0: "a"}, 2) }
	arrive := func(w *witness, s measure.Slot, n int64) {
		w.Arrived(0, s, &workload.Job{Number: n, Work: time.Minute, Slices: 1})
	}
	piece := func(s measure.Slot, first int32, from, to int, work time.Duration) *measure.Piece {
		return &measure.Piece{Slot: s, First: first, Slices: 1, Start: quantity.Instant(from) * minute, End: quantity.Instant(to) * minute,
			Work: work}
	}
	for want, do := range map[string]func(*witness){
		"": func(w *witness) {
			arrive(w, 0, 0)
			arrive(w, 1, 1)
			w.Began(0, 0, 0, 1)
			w.Ended(9*minute, piece(1, 0, 2, 4, time.Minute)) // told before the longer one that it followed
			w.Ended(9*minute, piece(0, 0, 0, 2, time.Second))
			w.Ended(9*minute, piece(0, 1, 0, 2, time.Second))
			w.Done(9*minute, 0, job.Finished)
			arrive2 := &workload.Job{Number: 2, Work: time.Minute, Slices: 1}
			w.Arrived(9*minute, 0, arrive2)
		},
		"time went back": func(w *witness) { arrive(w, 0, 0); w.now = minute; w.Sent(1); w.Done(0, 0, job.Finished) },
		"was held from": func(w *witness) {
			arrive(w, 0, 0)
			arrive(w, 1, 1)
			w.Ended(9*minute, piece(0, 0, 0, 3, 0))
			w.Ended(9*minute, piece(1, 0, 2, 4, 0))
		},
		"of work done":  func(w *witness) { arrive(w, 0, 0); w.Ended(9*minute, piece(0, 0, 0, 3, 2*time.Minute)) },
		"ends twice":    func(w *witness) { arrive(w, 0, 0); w.Done(0, 0, job.Finished); w.Done(0, 0, job.Finished) },
		"never held":    func(w *witness) { w.Began(0, 3, 0, 1) },
		"which holds":   func(w *witness) { arrive(w, 0, 0); arrive(w, 0, 1) },
		"on slice 2 of": func(w *witness) { arrive(w, 0, 0); w.Ended(9*minute, piece(0, 2, 0, 3, 0)) },
		"was of use for": func(w *witness) {
			arrive(w, 0, 0)
			p := piece(0, 0, 0, 3, 0)
			p.Useful = time.Hour
			w.Ended(9*minute, p)
		},
	} {
		w := fresh()
		do(w)
		got := strings.Join(w.broken, "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
		if want == "" && (w.finished != 1 || w.live != 2 || w.fates["a"].Ended != 9*minute || w.fates["a"].Pieces != 1) {
			t.Errorf("%+v", w)
		}
	}
}

// TestGapsAreCounted: idle stretches from 0 to the end, those of no length left out.
func TestGapsAreCounted(t *testing.T) {
	o := &occupied{slices: [][]hold{
		{{2 * minute, 4 * minute}, {4 * minute, 5 * minute}, {3 * minute, 4 * minute}},
		{{0, 20 * minute}},
		nil,
	}}
	if got := o.mean(10 * minute); got != (2+5+10)*time.Minute/3 {
		t.Errorf("mean gap %s", got)
	}
}
