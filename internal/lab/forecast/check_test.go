package forecast

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

const minuteLong = quantity.Instant(time.Minute)

// ran is a lease over minutes, of which a process ran from start to end; first is when its first unit was done, 0 if it never said.
func ran(from, start, first, end, to int, units int64) status.Span {
	s := status.Span{Kind: protocol.ForLease,
		Start: base.Add(time.Duration(from) * time.Minute), End: base.Add(time.Duration(to) * time.Minute),
		UsedStart: base.Add(time.Duration(start) * time.Minute), UsedEnd: base.Add(time.Duration(end) * time.Minute),
		Committed: job.Range{To: units}}
	if first > 0 {
		s.FirstProgress = base.Add(time.Duration(first) * time.Minute)
	}
	return s
}

const base = quantity.Instant(1_700_000_000) * quantity.Instant(time.Second)

func taken1(kind protocol.ReservationKind, from, to int) status.Span {
	return status.Span{Kind: kind, Start: base + quantity.Instant(from)*minuteLong, End: base + quantity.Instant(to)*minuteLong}
}

func remembered(minutes int, slices ...status.SliceHistory) *status.History {
	return &status.History{From: base, To: base + quantity.Instant(minutes)*minuteLong, Slices: slices}
}

// TestMeasure: what was kept, thrown away and spent on starts, of slices of two sizes, is what was done there.
func TestMeasure(t *testing.T) {
	h := remembered(600,
		status.SliceHistory{Slice: protocol.Slice{Speed: 1000}, Spans: []status.Span{
			taken1(0, 0, 60), taken1(protocol.ForForeign, 60, 120), taken1(protocol.ForMaintenance, 100, 180),
			ran(180, 190, 210, 300, 300, 10), // ten units of 10 minutes, begun at 200
			ran(300, 301, 0, 330, 330, 0),    // nothing was committed
			ran(330, 340, 0, 399, 400, 5),    // it never said when its first unit was done
			{Kind: protocol.ForLease, Start: base.Add(400 * time.Minute), End: base.Add(700 * time.Minute),
				UsedStart: base.Add(401 * time.Minute)},
		}},
		status.SliceHistory{Slice: protocol.Slice{Speed: 500}, Spans: []status.Span{taken1(0, 0, 300),
			taken1(protocol.ForReclaim, 300, 9000)}})
	m, err := ActualOf(h, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, minutes float64) {
		if math.Abs(got*60-minutes) > 1e-6 {
			t.Errorf("%s: %v minutes, want %v", what, got*60, minutes)
		}
	}
	near("free", m.Free, 600-120+150)
	near("kept", m.Kept, 100+59)
	near("lost", m.Lost, 30)
	near("overhead", m.Overhead, 20+11)
	if m.Subjobs != 3 || m.Unsplit != 1 {
		t.Errorf("%+v", m)
	}
	if _, err := ActualOf(h, Day); errkind.Of(err) != errkind.Invalid ||
		!strings.Contains(err.Error(), "remembers 10h0m0s of its 2 slices") {
		t.Error(err)
	}
	h.Slices[1].Spans[0].Start = base.Add(2 * time.Hour) // it came later: before that nothing is known of all
	if m, err = ActualOf(h, time.Hour); err != nil || m.Days != 8./24 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := ActualOf(&status.History{From: base, To: base.Add(Day)}, time.Hour); err == nil {
		t.Error("no slice is no record")
	}
}

// TestMeasureByMinutes: the free time is that of a walk over all minutes, and no time is counted twice.
func TestMeasureByMinutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []status.Span
		free, at := 0, 0
		var held [300]bool
		for at < 300 {
			to := min(300, at+rapid.IntRange(1, 60).Draw(t, "long"))
			kinds := []protocol.ReservationKind{0, protocol.ForLease, protocol.ForForeign, protocol.ForDrain}
			switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
			case protocol.ForLease:
				start := rapid.IntRange(at, to).Draw(t, "start")
				end := rapid.IntRange(start, to).Draw(t, "end")
				spans = append(spans, ran(at, start, rapid.IntRange(start, end).Draw(t, "first"), end, to,
					rapid.Int64Range(0, 9).Draw(t, "units")))
			default:
				spans = append(spans, taken1(kind, at, to))
				if kind != 0 { // some go on below what follows
					until := min(300, to+rapid.IntRange(0, 20).Draw(t, "more"))
					spans[len(spans)-1].End = base + quantity.Instant(until)*minuteLong
					for m := at; m < until; m++ {
						held[m] = true
					}
				}
			}
			at = to
		}
		for _, x := range held {
			if !x {
				free++
			}
		}
		m, err := ActualOf(remembered(300, status.SliceHistory{Spans: spans}), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		leased := 0.
		for _, s := range spans {
			if s.Kind == protocol.ForLease && s.UsedEnd != 0 {
				leased += s.End.Sub(s.Start).Hours()
			}
		}
		if math.Abs(m.Free*60-float64(free)) > 1e-6 || math.Abs(m.Kept+m.Lost+m.Overhead-leased) > 1e-6 ||
			min(m.Kept, m.Lost, m.Overhead) < 0 {
			t.Fatalf("%+v, want %d minutes free, %v hours leased", m, free, leased)
		}
	})
}

// TestCheck: a share inside its interval holds, one outside does not, and an answer of something else is refused.
func TestCheck(t *testing.T) {
	answer := func() *Answer {
		row := func(name string) Row {
			return Row{Mechanism: name, Kept: Interval{.9, .85, .95, true}, Lost: .01, Overhead: .05, PerDay: 100}
		}
		return &Answer{Gaps: &Gaps{Days: 2, GPUHours: 240}, Outcomes: []Outcome{
			{Backlog: Backlog{Name: "units"}, Mechanisms: []Row{row("sja"), row("requeue")}},
			{Backlog: Backlog{Name: "large"}, Mechanisms: []Row{row("sja")}}}}
	}
	m := &Actual{Days: 1, Free: 100, Kept: 91, Lost: 2, Overhead: 3, Subjobs: 7}
	for name, c := range map[string]struct {
		edit               func(*Answer, *Actual)
		backlog, mechanism string
		says, err          string
	}{
		"inside":  {backlog: "units", says: "The forecast held: 91.0% kept, foretold 85.0 to 95.0."},
		"outside": {backlog: "large", edit: func(_ *Answer, m *Actual) { m.Kept = 50 }, says: "The forecast did not hold: 50.0% kept"},
		"at the edge": {backlog: "units", edit: func(a *Answer, _ *Actual) { a.Outcomes[0].Mechanisms[0].Kept.Low = .91 },
			says: "The forecast held"},
		"no interval": {backlog: "units", edit: func(a *Answer, _ *Actual) { a.Outcomes[0].Mechanisms[0].Kept.Known = false },
			says: "No verdict: 91.0% kept, foretold 90.0% without an interval"},
		"one backlog":     {edit: func(a *Answer, _ *Actual) { a.Outcomes = a.Outcomes[:1] }, says: "The forecast held"},
		"which backlog":   {err: "the backlogs units, large: say with --backlog"},
		"another backlog": {backlog: "x", err: "the backlogs units, large: say with --backlog"},
		"mechanism":       {backlog: "units", mechanism: "jasda", err: `the daemon runs "jasda", and the forecast says nothing of it`},
		"nothing free":    {backlog: "units", edit: func(_ *Answer, m *Actual) { m.Free = 0 }, err: "no slice was free"},
		"no answer":       {edit: func(a *Answer, _ *Actual) { *a = Answer{} }, err: "this is no answer"},
	} {
		a, measured := answer(), *m
		if c.edit != nil {
			c.edit(a, &measured)
		}
		mechanism := c.mechanism
		if mechanism == "" {
			mechanism = "sja"
		}
		got, err := Check(a, mechanism, c.backlog, &measured)
		if c.err != "" {
			if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", name, err, c.err)
			}
			continue
		}
		if err != nil || !strings.HasPrefix(got.Says, c.says) {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.says)
		}
		if i := slices.IndexFunc(got.Figures, func(f Foretold) bool { return f.Unit != "share" }); i != 3 ||
			got.Figures[3].Measured != 100 || got.Figures[3].Forecast.Value != 120 || got.Figures[3].Inside {
			t.Errorf("%s: %+v", name, got.Figures)
		}
		var out strings.Builder
		if err := got.Text(&out); err != nil || !strings.HasPrefix(out.String(), got.Says+"\n") ||
			!strings.Contains(out.String(), "FIGURE") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

func ExampleChecked_Text() {
	a := &Answer{Gaps: &Gaps{Days: 2, GPUHours: 240}, Outcomes: []Outcome{{Backlog: Backlog{Name: "units"},
		Mechanisms: []Row{{Mechanism: "sja", Kept: Interval{.9, .85, .95, true}, Lost: .01, Overhead: .05, PerDay: 108}}}}}
	c, err := Check(a, "sja", "", &Actual{Days: 1, Free: 100, Kept: 91, Lost: 2, Overhead: 3, Subjobs: 7})
	if err != nil {
		fmt.Println(err)
	}
	var out strings.Builder
	_ = c.Text(&out)
	for line := range strings.Lines(out.String()) {
		fmt.Println(strings.TrimSpace(line))
	}
	// Output:
	// The forecast held: 91.0% kept, foretold 85.0 to 95.0.
	//
	// Mechanism sja, backlog units.
	// FIGURE                 FORECAST  80%           MEASURED  INSIDE
	// kept                   90.0%     85.0 to 95.0  91.0%     yes
	// thrown away            1.0%      -             2.0%      -
	// start, save            5.0%      -             3.0%      -
	// free, GPU-hours a day  120       -             100       -
	// kept, GPU-hours a day  108       -             91        -
	//
	// Measured over 1.0 days, with 7 subjobs that ended; the forecast's interval is for a week.
	// What a program saves in its run, and what it did behind its last commit, counts as kept where something was committed.
	// How long the host's jobs waited is not in the daemon's record.
}
