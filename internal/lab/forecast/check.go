package forecast

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Actual is what became of slices, by a daemon's own record. Hours are of whole GPUs: a slice counts by its speed.
type Actual struct {
	// From and To bound what the daemon remembers of every slice.
	From quantity.Instant `json:"-"`
	To   quantity.Instant `json:"-"`
	Days float64          `json:"days"`
	// Free is the time in which nobody but Sluice had a slice. Kept, Lost and Overhead are parts of it: the work of subjobs that was
	// committed, subjobs of which nothing was, and the time before a first unit was under way.
	Free     float64 `json:"freeGPUHours"`
	Kept     float64 `json:"keptGPUHours"`
	Lost     float64 `json:"lostGPUHours"`
	Overhead float64 `json:"overheadGPUHours"`
	Subjobs  int     `json:"subjobs"`
	// Unsplit is how many subjobs did not say when their first unit was done: all of their time counts as kept.
	Unsplit int `json:"unsplit"`
}

// ActualOf sums up a daemon's record. Errors have kind Invalid: it remembers less than least, or no slice.
func ActualOf(h *status.History, least time.Duration) (*Actual, error) {
	m := &Actual{From: h.From, To: h.To}
	for i := range h.Slices {
		if spans := h.Slices[i].Spans; len(spans) > 0 { // a slice is known from its first span on
			m.From = max(m.From, spans[0].Start)
		}
	}
	long := m.To.Sub(m.From)
	if long < least || len(h.Slices) == 0 {
		return nil, errkind.Errorf(errkind.Invalid, "the daemon remembers %s of its %d slices, and a forecast is held against %s or more: "+
			"ask again later", max(0, long).Round(time.Minute), len(h.Slices), least)
	}
	m.Days = long.Hours() / 24
	for i := range h.Slices {
		s := &h.Slices[i]
		m.slice(s, float64(cmp.Or(s.Slice.Speed, wholeGPU))/wholeGPU)
	}
	return m, nil
}

// slice adds one slice.
func (m *Actual) slice(s *status.SliceHistory, weight float64) {
	hours := func(d time.Duration) float64 { return d.Hours() * weight }
	taken := time.Duration(0) // by others, each instant once
	at := m.From
	spans := slices.Clone(s.Spans)
	slices.SortStableFunc(spans, func(a, b status.Span) int { return cmp.Compare(a.Start, b.Start) })
	for i := range spans {
		x := &spans[i]
		from, to := max(x.Start, m.From), min(x.End, m.To)
		if from >= to || x.Kind == 0 {
			continue
		}
		if x.Kind != protocol.ForLease && x.Kind != protocol.ForHold && x.Kind != protocol.ForRigid {
			if from = max(from, at); from < to {
				taken += to.Sub(from)
				at = to
			}
			continue
		}
		if x.Kind == protocol.ForLease && x.UsedEnd != 0 && x.End > x.Start { // it is over
			kept, lost, overhead := parts(x)
			share := to.Sub(from).Hours() / x.End.Sub(x.Start).Hours()
			m.Kept += hours(kept) * share
			m.Lost += hours(lost) * share
			m.Overhead += hours(overhead) * share
			m.Subjobs++
			if x.FirstProgress == 0 && kept > 0 {
				m.Unsplit++
			}
		}
	}
	m.Free += hours(m.To.Sub(m.From) - taken)
}

// parts of a subjob's time. Its first unit is taken to have lasted as long as the others in the mean; what came before it is overhead, and
// so is what lies between the process and its lease's bounds. What a program saves within its run is not told apart from work.
func parts(x *status.Span) (kept, lost, overhead time.Duration) {
	held := x.End.Sub(x.Start)
	units := int64(x.Committed.To - x.Committed.From)
	if units <= 0 || x.UsedStart == 0 {
		return 0, held, 0
	}
	begin := x.UsedStart
	if x.FirstProgress > begin && x.FirstProgress <= x.UsedEnd && units > 1 {
		begin = max(begin, x.FirstProgress.Add(-x.UsedEnd.Sub(x.FirstProgress)/time.Duration(units-1)))
	}
	kept = min(max(0, x.UsedEnd.Sub(begin)), held)
	return kept, 0, held - kept
}

// Checked is a forecast beside what was measured since.
type Checked struct {
	// Says is the sentence; Held is whether the share that is kept lies in its interval, which Known says that there is one.
	Says  string `json:"says"`
	Held  bool   `json:"held"`
	Known bool   `json:"known"`

	Mechanism string `json:"mechanism"`
	Backlog   string `json:"backlog"`
	// Figures in the order in which they are read.
	Figures  []Foretold `json:"figures"`
	Measured *Actual    `json:"measured"`
	Notes    []string   `json:"notes"`
}

// Foretold is a figure of a forecast beside what it came to. Forecast.Known is false for one without an interval, and
// Inside then says nothing.
type Foretold struct {
	Name     string   `json:"name"`
	Unit     string   `json:"unit"` // "share" of the free time, or "GPU-hours a day"
	Forecast Interval `json:"forecast"`
	Measured float64  `json:"measured"`
	Inside   bool     `json:"inside"`
}

// Check holds an answer against what was measured under a mechanism. backlog names one of the answer's; empty if it has one alone. Errors
// have kind Invalid: the answer says nothing of the mechanism or the backlog, or nothing was free.
func Check(a *Answer, mechanism, backlog string, m *Actual) (*Checked, error) {
	var names []string
	var of *Outcome
	for i := range a.Outcomes {
		names = append(names, a.Outcomes[i].Name)
		if o := &a.Outcomes[i]; o.Name == backlog || backlog == "" && len(a.Outcomes) == 1 {
			of = o
		}
	}
	switch {
	case len(names) == 0 || a.Gaps == nil || a.Gaps.Days <= 0:
		return nil, errkind.Errorf(errkind.Invalid, "this is no answer: give what sluice forecast -o json printed")
	case of == nil:
		return nil, errkind.Errorf(errkind.Invalid, "the forecast has the backlogs %s: say with --backlog which one is most like the jobs "+
			"that run, or forecast anew with --jobs", strings.Join(names, ", "))
	}
	i := slices.IndexFunc(of.Mechanisms, func(r Row) bool { return r.Mechanism == mechanism })
	if i < 0 {
		return nil, errkind.Errorf(errkind.Invalid, "the daemon runs %q, and the forecast says nothing of it: forecast anew with this "+
			"version", mechanism)
	}
	if m.Free <= 0 {
		return nil, errkind.Errorf(errkind.Invalid, "no slice was free in the %.1f days that the daemon remembers: there is nothing to "+
			"compare", m.Days)
	}
	row := &of.Mechanisms[i]
	c := &Checked{Mechanism: mechanism, Backlog: of.Name, Measured: m}
	add := func(name, unit string, foretold Interval, measured float64) {
		c.Figures = append(c.Figures, Foretold{name, unit, foretold, measured,
			foretold.Known && measured >= foretold.Low && measured <= foretold.High})
	}
	point := func(x float64) Interval { return Interval{Value: x, Low: x, High: x} }
	add("kept", "share", row.Kept, m.Kept/m.Free)
	add("thrown away", "share", point(row.Lost), m.Lost/m.Free)
	add("start, save", "share", point(row.Overhead), m.Overhead/m.Free)
	add("free", "GPU-hours a day", point(a.Gaps.GPUHours/a.Gaps.Days), m.Free/m.Days)
	add("kept", "GPU-hours a day", point(row.PerDay), m.Kept/m.Days)
	c.Held, c.Known = c.Figures[0].Inside, row.Kept.Known
	kept := percent(m.Kept / m.Free)
	between := fmt.Sprintf("%.1f to %.1f", 100*row.Kept.Low, 100*row.Kept.High)
	switch {
	case !c.Known:
		c.Says = fmt.Sprintf("No verdict: %s kept, foretold %s without an interval, as the log had too few days.", kept,
			percent(row.Kept.Value))
	case c.Held:
		c.Says = fmt.Sprintf("The forecast held: %s kept, foretold %s.", kept, between)
	default:
		c.Says = fmt.Sprintf("The forecast did not hold: %s kept, foretold %s.", kept, between)
	}
	c.Notes = append(c.Notes, fmt.Sprintf("Measured over %.1f days, with %d subjobs that ended; the forecast's interval is for a week.",
		m.Days, m.Subjobs))
	if m.Unsplit > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d subjobs did not say when their first unit was done: their start counts as kept.",
			m.Unsplit))
	}
	c.Notes = append(c.Notes, "What a program saves in its run, and what it did behind its last commit, counts as kept where something "+
		"was committed.", "How long the host's jobs waited is not in the daemon's record.")
	return c, nil
}

// Text writes it for a terminal.
func (c *Checked) Text(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%s\n\nMechanism %s, backlog %s.\n", c.Says, c.Mechanism, c.Backlog); err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "FIGURE\tFORECAST\t80%\tMEASURED\tINSIDE") // an error comes back at Flush
	for _, f := range c.Figures {
		show := amount
		if f.Unit == "share" {
			show = percent
		}
		name, between, inside := f.Name, "-", "-"
		if f.Unit != "share" {
			name += ", " + f.Unit
		}
		if f.Forecast.Known {
			between, inside = fmt.Sprintf("%.1f to %.1f", 100*f.Forecast.Low, 100*f.Forecast.High), "no"
		}
		if f.Inside {
			inside = "yes"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", name, show(f.Forecast.Value), between, show(f.Measured), inside)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n"+strings.Join(c.Notes, "\n"))
	return err
}
