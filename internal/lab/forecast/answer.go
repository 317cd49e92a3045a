package forecast

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Threshold is the gain over the best that is free, as a share of the idle time, from which on a daemon more is worth its trouble.
const Threshold = .03

// Answer is what a forecast says.
type Answer struct {
	// Install says whether for any backlog the gain reaches the Threshold.
	Install bool `json:"install"`
	// Says is the answer in a sentence or two, Why what stands behind it.
	Says string   `json:"says"`
	Why  []string `json:"why"`
	Gaps *Gaps    `json:"gaps"`
	// Measured is how busy devices were that jobs held; nil where nobody measured.
	Measured *Measured `json:"measured,omitempty"`
	// Outcomes by backlog, in their order.
	Outcomes []Outcome `json:"outcomes"`
	// Assumptions, each with what it is worth: how the answer moves when it is changed.
	Assumptions []Assumption `json:"assumptions"`
	// Said is what was taken for true in reading the record, Odd what was found there.
	Said        []string `json:"record,omitempty"`
	Odd         []Odd    `json:"odd,omitempty"`
	Notice      float64  `json:"noticeSeconds"`
	Stretches   int      `json:"stretches"`
	StretchDays int      `json:"stretchDays"`
	Devices     int      `json:"devicesInEach"`
	Seed        uint64   `json:"seed"`
}

// Outcome is what becomes of the idle time under one backlog.
type Outcome struct {
	Backlog
	// Mechanisms, the one that keeps most first.
	Mechanisms []Row `json:"mechanisms"`
	// Ours and Free are the best of either; Gain of ours over it, as a share of the idle time, and PerDay in GPU-hours a day.
	Ours   string   `json:"ours"`
	Free   string   `json:"free"`
	Gain   Interval `json:"gain"`
	PerDay float64  `json:"gainGPUHoursPerDay"`
}

// Row is a mechanism under a backlog.
type Row struct {
	Mechanism string `json:"mechanism"`
	Own       bool   `json:"sluice"`
	// Kept is the share of the idle time that became work that stays, Lost and Overhead what was thrown away or spent on starting and
	// saving; PerDay is what is kept in GPU-hours a day.
	Kept     Interval `json:"kept"`
	Lost     float64  `json:"lost"`
	Overhead float64  `json:"overhead"`
	PerDay   float64  `json:"keptGPUHoursPerDay"`
	// Met is the share of the starts of the host's jobs on a device that found a run there, WaitMean and WaitMost how long a start waited
	// for it, in seconds: over all starts, and at most.
	Met      float64 `json:"startsThatWaited"`
	WaitMean float64 `json:"waitMeanSeconds"`
	WaitMost float64 `json:"waitMostSeconds"`
}

// Assumption is something that no record says.
type Assumption struct {
	// Says what is assumed, Instead what was played instead.
	Says    string `json:"says"`
	Instead string `json:"instead,omitempty"`
	// Kept of ours and Gain over the best that is free then; Moved is how far the gain moves, all as shares of the idle time.
	Kept  float64 `json:"kept"`
	Gain  float64 `json:"gain"`
	Moved float64 `json:"moved"`
	// Free is the best that is free then.
	Free string `json:"free,omitempty"`
}

// of is the books of a mechanism under a backlog, in the order of the stretches.
func (p *plan) of(backlog int, mechanism string) (out []*book) {
	for i := range p.played {
		if t := &p.played[i]; t.backlog == backlog && t.mechanism == mechanism {
			out = append(out, p.books[i])
		}
	}
	return out
}

// days are what the days of each stretch add to the share that is kept, less that of other books, which may be nil.
func days(books, less []*book) (out [][]day) {
	for k, b := range books {
		list := make([]day, len(b.ByHour)/24)
		for hour, useful := range b.ByHour {
			d := &list[hour/24]
			d.over += useful.Seconds()
			d.under += b.GapByHour[hour].Seconds()
			if less != nil {
				d.over -= less[k].ByHour[hour].Seconds()
			}
		}
		out = append(out, list)
	}
	return out
}

// answer sums up what was played.
func (p *plan) answer() *Answer {
	a := &Answer{Gaps: p.log.Gaps(), Notice: p.Notice.Seconds(), Seed: p.Seed}
	stretches := p.stretches(p.Seed)
	a.Stretches, a.StretchDays, a.Devices = len(stretches), stretches[0].days, len(stretches[0].devices)
	for i := range p.Backlogs {
		a.Outcomes = append(a.Outcomes, p.outcome(i, a.Gaps))
	}
	best := a.best()
	p.parts(a.Gaps, best, &a.Outcomes[best])
	return a
}

// best is the backlog with the greatest gain.
func (a *Answer) best() (best int) {
	for i := range a.Outcomes {
		if a.Outcomes[i].Gain.Value > a.Outcomes[best].Gain.Value {
			best = i
		}
	}
	return best
}

func (p *plan) outcome(backlog int, g *Gaps) Outcome {
	o := Outcome{Backlog: p.Backlogs[backlog]}
	perDay := g.GPUHours / g.Days
	for _, m := range slices.Concat(ours(), free()) {
		books := p.of(backlog, m)
		if books == nil {
			continue
		}
		r := Row{Mechanism: m, Own: slices.Contains(ours(), m), Kept: interval(days(books, nil), p.Seed).within(0, 1)}
		var gap, lost, overhead, waited, longest time.Duration // at most 16 devices for 24 days
		var met, starts int64
		for _, b := range books {
			for _, x := range b.GapByDevice {
				gap += x
			}
			lost, overhead, waited, longest = lost+b.Lost, overhead+b.Overhead, waited+b.Waited, max(longest, b.Longest)
			met, starts = met+b.Met, starts+b.Starts
		}
		r.Lost, r.Overhead, r.PerDay = ratio(float64(lost), float64(gap)), ratio(float64(overhead), float64(gap)), r.Kept.Value*perDay
		if starts > 0 {
			r.Met, r.WaitMean = float64(met)/float64(starts), waited.Seconds()/float64(starts)
		}
		r.WaitMost = longest.Seconds()
		o.Mechanisms = append(o.Mechanisms, r)
	}
	slices.SortStableFunc(o.Mechanisms, func(a, b Row) int {
		switch {
		case a.Kept.Value > b.Kept.Value:
			return -1
		case a.Kept.Value < b.Kept.Value:
			return 1
		}
		return 0
	})
	for _, r := range o.Mechanisms {
		if r.Own && o.Ours == "" {
			o.Ours = r.Mechanism
		} else if !r.Own && o.Free == "" {
			o.Free = r.Mechanism
		}
	}
	o.Gain = interval(days(p.of(backlog, o.Ours), p.of(backlog, o.Free)), p.Seed).within(-1, 1)
	o.PerDay = o.Gain.Value * perDay
	return o
}

// Row of a mechanism that was played.
func (o *Outcome) Row(mechanism string) *Row {
	i := slices.IndexFunc(o.Mechanisms, func(r Row) bool { return r.Mechanism == mechanism })
	return &o.Mechanisms[i]
}

// parts books on partitions, kinds and hours what ours and the best that is free keep of their idle time.
func (p *plan) parts(g *Gaps, backlog int, o *Outcome) {
	clock := p.log.clock()
	for k, name := range []string{o.Ours, o.Free} {
		partitions, kinds, hourly := map[string]day{}, map[string]day{}, map[string]day{}
		add := func(to map[string]day, name string, useful, gap time.Duration) {
			d := to[name]
			to[name] = day{d.over + useful.Seconds(), d.under + gap.Seconds()}
		}
		for i := range p.played {
			t := &p.played[i]
			if t.backlog != backlog || t.mechanism != name {
				continue
			}
			b := p.books[i]
			for n, device := range t.stretch.devices {
				d := &p.log.Devices[device]
				add(partitions, d.Partition, b.ByDevice[n], b.GapByDevice[n])
				add(kinds, d.Kind, b.ByDevice[n], b.GapByDevice[n])
			}
			begin := p.log.begins(&t.stretch)
			for hour := range b.ByHour {
				from := begin.Add(time.Duration(hour) * time.Hour)
				add(hourly, hourName(time.Unix(0, int64(from)).In(clock.zone).Hour()), b.ByHour[hour], b.GapByHour[hour])
			}
		}
		for _, x := range []struct {
			list []Part
			from map[string]day
		}{{g.Partitions, partitions}, {g.Kinds, kinds}, {g.Hours, hourly}} {
			for i := range x.list {
				if d := x.from[x.list[i].Name]; d.under > 0 && k == 0 {
					x.list[i].Kept = d.over / d.under
				} else if d.under > 0 {
					x.list[i].Free = d.over / d.under
				}
			}
		}
	}
}

// worth plays the backlog with the greatest gain under other assumptions, one at a time.
func (p *plan) worth(ctx context.Context, a *Answer, base setting) error {
	best := a.best()
	was := a.Outcomes[best].Gain.Value
	mechanisms := slices.Concat(ours(), free())
	list := changes(base)
	var all []task // of all of them: nobody waits between two
	ends := make([]int, len(list))
	for i := range list {
		all = append(all, p.tasks(list[i].setting, []int{best}, mechanisms)...)
		ends[i] = len(all)
	}
	if err := p.run(ctx, all); err != nil {
		return err
	}
	books, from := p.books, 0
	for i, x := range list {
		p.played, p.books = all[from:ends[i]], books[from:ends[i]]
		from = ends[i]
		o := p.outcome(best, a.Gaps)
		x.Kept, x.Gain, x.Free = o.Row(o.Ours).Kept.Value, o.Gain.Value, o.Free
		x.Moved = x.Gain - was
		a.Assumptions = append(a.Assumptions, x.Assumption)
	}
	return nil
}

type change struct {
	Assumption
	setting
}

// changes are the assumptions that can be changed, each with another in its place.
func changes(base setting) (out []change) {
	add := func(says, instead string, edit func(*setting)) {
		s := base
		edit(&s)
		out = append(out, change{Assumption{Says: says, Instead: instead}, s})
	}
	notice := fmt.Sprintf("what has to go is told %s before (the grace time of your preemption)", base.notice)
	if base.notice > 0 {
		add(notice, "nothing is told: what runs is killed", func(s *setting) { s.notice = 0 })
	}
	if base.notice < 2*time.Minute {
		add(notice, "2m", func(s *setting) { s.notice = 2 * time.Minute })
	}
	add("nobody knows before when a gap ends", "a gap's end is known from when the job was asked for that ends it (squeue --start)",
		func(s *setting) { s.foretold = true })
	add("a start, a restore and a checkpoint take what is said of the backlog", "three times as long", func(s *setting) { s.starts = 3 })
	add("the devices that were drawn stand for all", "others, drawn anew",
		func(s *setting) { s.seed++ })
	return out
}

// say writes the answer's sentences.
func (a *Answer) say() {
	g := a.Gaps
	if g.GPUHours == 0 {
		a.Says, a.Why = fmt.Sprintf("Don't install: no time of the %s GPU-hours a day lies free.", amount(24*g.GPUs)), nil
		return
	}
	best := &a.Outcomes[a.best()]
	ours, free := best.Row(best.Ours), best.Row(best.Free)
	a.Install = best.Gain.Value >= Threshold
	perDay := fmt.Sprintf("%s of the %s GPU-hours a day lie free", amount(g.GPUHours/g.Days), amount(24*g.GPUs))
	of := ""
	if len(a.Outcomes) > 1 {
		of = fmt.Sprintf(" with %q, the backlog that gains most,", best.Name)
	}
	compare := fmt.Sprintf("Sluice (%s) would keep %s%s of that%s and the best that is free, %s, %s: %s", best.Ours,
		percent(ours.Kept.Value), span(ours.Kept), of, plainName(best.Free), percent(free.Kept.Value), points(best.Gain))
	if a.Install {
		a.Says = fmt.Sprintf("Install it: %s, and %s, %s GPU-hours a day.", perDay, compare, amount(best.PerDay))
	} else {
		a.Says = fmt.Sprintf("Don't install: %s, and %s. Under %.0f points it is not worth another daemon.", perDay, compare, 100*Threshold)
	}
	a.Why = nil
	for i := range a.Outcomes {
		o := &a.Outcomes[i]
		word := "don't"
		if o.Gain.Value >= Threshold {
			word = "yes"
		}
		a.Why = append(a.Why, fmt.Sprintf("%s: %s. %s %s, %s %s: %s. %s", o.Name, word, o.Ours, percent(o.Row(o.Ours).Kept.Value),
			plainName(o.Free), percent(o.Row(o.Free).Kept.Value), points(o.Gain), o.reason()))
	}
}

// reason is why ours gain or don't.
func (o *Outcome) reason() string {
	own, free := o.Row(o.Ours), o.Row(o.Free)
	lost, overhead := free.Lost-own.Lost, free.Overhead-own.Overhead
	left := 1 - free.Kept.Value
	switch {
	case left < Threshold:
		return fmt.Sprintf("What is free leaves only %s of the idle time to gain.", percent(left))
	case o.Gain.Value < Threshold && own.Kept.Value < free.Kept.Value:
		return "What is free keeps more."
	case lost > overhead:
		return fmt.Sprintf("The free one throws away %s of the idle time, Sluice %s.", percent(free.Lost), percent(own.Lost))
	default:
		return fmt.Sprintf("The free one spends %s of the idle time on starting and saving, Sluice %s.", percent(free.Overhead),
			percent(own.Overhead))
	}
}

// plainName is a mechanism as an admin would call it.
func plainName(name string) string {
	base, size, _ := strings.Cut(name, ":")
	switch base {
	case "checkpoint":
		if size != "" {
			return "a checkpoint every " + size + " and on notice"
		}
		return "a checkpoint on notice"
	case "workers":
		return "workers with units of " + size
	case "time-min":
		return "arrays with --time-min"
	case "sjf":
		return "backfill of whole jobs"
	case "requeue":
		return "preempt and requeue"
	}
	return name
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// span is an interval behind its value.
func span(i Interval) string {
	if !i.Known {
		return ""
	}
	return fmt.Sprintf(" (80%%: %.1f to %.1f)", 100*i.Low, 100*i.High)
}

// points of a share with its interval.
func points(i Interval) string {
	if !i.Known {
		return fmt.Sprintf("%+.1f points", 100*i.Value)
	}
	return fmt.Sprintf("%+.1f points (80%%: %+.1f to %+.1f)", 100*i.Value, 100*i.Low, 100*i.High)
}

// amount is a number with three digits that matter.
func amount(x float64) string {
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
