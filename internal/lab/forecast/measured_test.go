package forecast

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

const minute = quantity.Instant(time.Minute)

// TestMeasuredIsWhatALookAtEachMinuteSays: held and idle, and free and used, are what is left when as many devices as are held are taken to
// be busy, minute by minute; gaps lose what was used, and nothing else; and who held which device makes no difference to the sums.
func TestMeasuredIsWhatALookAtEachMinuteSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const last = 300
		n := rapid.IntRange(1, 4).Draw(t, "devices")
		type minutes [last]bool
		held, away, idle, busy := make([]minutes, n), make([]minutes, n), make([]minutes, n), make([]minutes, n)
		h := &history.History{To: last * minute, Kinds: []history.Kind{{Name: "gpu", Weight: 1000}},
			Nodes: []history.Node{{Name: "n", Count: int32(n)}}}
		spans := func(from, to int) history.Gap {
			return history.Gap{From: quantity.Instant(from) * minute, To: quantity.Instant(to) * minute}
		}
		if rapid.Bool().Draw(t, "away") {
			a, b := rapid.IntRange(0, last-1).Draw(t, "since"), rapid.IntRange(1, last).Draw(t, "until")
			x := spans(a, max(a+1, b))
			h.Nodes[0].Away = []history.Away{{From: x.From, To: x.To, Why: history.Drained}}
			for d := range n {
				for m := a; m < max(a+1, b); m++ {
					away[d][m] = true
				}
			}
		}
		measuredAny := false
		for d := range n {
			h.Devices = append(h.Devices, history.Device{})
			var holds []history.Hold
			for at := rapid.IntRange(0, 100).Draw(t, "first"); at < last; at += rapid.IntRange(0, 90).Draw(t, "apart") {
				end := min(last, at+rapid.IntRange(1, 120).Draw(t, "long"))
				x := spans(at, end)
				holds = append(holds, history.Hold{From: x.From, To: x.To, Run: int32(len(h.Runs))})
				h.Runs = append(h.Runs, history.Run{Submit: x.From, Eligible: x.From, Start: x.From, End: x.To})
				for m := at; m < end; m++ {
					held[d][m], away[d][m] = true, false
				}
				at = end
			}
			h.Held = append(h.Held, holds)
			if rapid.IntRange(0, 3).Draw(t, "measured") == 0 {
				h.Used = append(h.Used, nil)
				continue
			}
			measuredAny = true
			u := &history.Use{}
			for at := 0; at < last; {
				end := min(last, at+rapid.IntRange(1, 80).Draw(t, "level"))
				x := spans(at, end)
				kind := rapid.IntRange(0, 3).Draw(t, "kind")
				if kind > 0 {
					u.Covered = u.Covered.With(x.From, x.To)
				}
				if kind == 1 {
					u.Idle = u.Idle.With(x.From, x.To)
				}
				if kind == 2 {
					u.Busy = u.Busy.With(x.From, x.To)
				}
				for m := at; m < end; m++ {
					idle[d][m], busy[d][m] = kind == 1, kind == 2
				}
				at = end
			}
			h.Used = append(h.Used, u)
		}
		h.Names, h.Loads, h.Places = []string{""}, [][]history.Part{nil}, [][]int32{nil}
		before := *h
		before.Used = nil
		l, plain := Recorded(h), Recorded(&before)
		got := l.measured()
		if !measuredAny {
			if got != nil {
				t.Fatal("nothing was measured")
			}
			return
		}
		wantIdle, wantUsed := 0, 0
		for m := range last {
			i, b := 0, 0
			for d := range n {
				if away[d][m] {
					continue
				}
				if idle[d][m] {
					i++
				}
				if busy[d][m] {
					b++
				}
				if held[d][m] {
					b--
				} else {
					i--
				}
			}
			wantIdle, wantUsed = wantIdle+max(0, i), wantUsed+max(0, b)
		}
		near := func(what string, got float64, want int) {
			if d := got*60 - float64(want); d > 1e-6 || d < -1e-6 {
				t.Fatalf("%s: %g minutes, want %d", what, got*60, want)
			}
		}
		near("held and idle", got.Idle[0].GPUHours, wantIdle)
		near("free and used", got.Used, wantUsed)
		near("gaps", plain.Gaps().GPUHours-l.Gaps().GPUHours, wantUsed)
		if l.Gaps().Starts != plain.Gaps().Starts {
			t.Fatal("what was used counts as a job's start")
		}
		for i := range l.Devices {
			for k, s := range l.Devices[i].Busy {
				if k > 0 && l.Devices[i].Busy[k-1].To > s.From {
					t.Fatalf("device %d is busy twice: %v", i, l.Devices[i].Busy)
				}
			}
		}
	})
}

// TestMeasuredIsSaid in text, in the order of importance, and not where nobody measured.
func TestMeasuredIsSaid(t *testing.T) {
	m := &Measured{Devices: 8, Covered: .9, Held: 100, Free: 50, Used: 2,
		Idle: []HeldIdle{{"1 min", 7, 20, .2}, {"10 min", 3, 10, .1}, {"1 h", 1, 5, .05}}}
	text := strings.Join(m.sentences(), "\n") + fmt.Sprint(m.table())
	for _, says := range []string{"8 devices, 90.0% of all time", "20.0% was idle", "that is not filled", "Of the 50 GPU-hours",
		"2 were busy",
		"taken out of the gaps", "[1 h 1 5 5.0%]", "100 GPU-hours in which a job held"} {
		if !strings.Contains(text, says) {
			t.Errorf("%q is not said: %s", says, text)
		}
	}
}
