package play

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

const minute = quantity.Instant(time.Minute)

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
		"time went back": func(w *witness) {
			arrive(w, 0, 0)
			w.now = minute
			w.Sent(1)
			w.Done(0, 0, job.Finished)
		},
		"was held from": func(w *witness) {
			arrive(w, 0, 0)
			arrive(w, 1, 1)
			w.Ended(9*minute, piece(0, 0, 0, 3, 0))
			w.Ended(9*minute, piece(1, 0, 2, 4, 0))
		},
		"of work done": func(w *witness) {
			arrive(w, 0, 0)
			w.Ended(9*minute, piece(0, 0, 0, 3, 2*time.Minute))
		},
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
