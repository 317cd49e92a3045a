package lender

import (
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/strict"
)

const (
	// mostPools, mostPilots of one pool and mostLines of one list bound what a scenario may have.
	mostPools, mostPilots, mostLines = 100, 10_000, 10_000
	// longest is how late anything may be, and how long it may last.
	longest = 10 * 365 * 24 * time.Hour
)

// Read reads the pools of a scenario; nil if there are none.
func Read(list strict.Value) *Lenders {
	l := &Lenders{}
	lines := map[string]int{}
	for _, e := range list.List("a list of pools such as [{name: scavenger, atMost: 4, lengths: [2m, 30m], slices: [{memory: 10Gi}]}]",
		mostPools) {
		p := read(e)
		if line, again := lines[p.Name]; again && p.Name != "" {
			e.Wrong("is the second pool %s, after that of line %d; give each a name of its own", p.Name, line)
		}
		lines[p.Name] = e.Line()
		l.Pools = append(l.Pools, p)
	}
	if len(l.Pools) == 0 {
		return nil
	}
	return l
}

// Keys are those of a pool.
func Keys() []string {
	return []string{"name", "atMost", "lengths", "step", "idle", "start", "slices", "gaps", "ahead", "blind", "pass", "preempt", "refuse",
		"silent"}
}

func read(e strict.Value) Pool {
	o := e.Object(Keys()...)
	span := func(key string, least, or time.Duration) time.Duration {
		return o.Get(key).Duration(least, longest, or)
	}
	p := Pool{
		Pool: supply.Pool{
			Name: o.Need("name", "scavenger").Label(""), Most: int(o.Need("atMost", "4").Integer(1, mostPilots, 1)),
			Step: span("step", time.Second, time.Minute), Idle: span("idle", time.Second, 2*time.Minute),
			Start: span("start", 0, 30*time.Second), HandOver: departure.HandOver,
			Slices: config.SlicesOf(o.Need("slices", "[{memory: 10Gi}]")),
		},
		Pass: span("pass", 0, 0), Ahead: span("ahead", 0, 0), Blind: o.Get("blind").Boolean(false),
		Refuses: spans(o.Get("refuse")), Silent: spans(o.Get("silent")),
	}
	p.Joins = p.Start
	if name := o.Get("name"); p.Name != "" && !provider.SoundPool(p.Name) {
		name.Wrong("is %q; want at most %d lower-case letters, digits and hyphens, first a letter", p.Name, provider.MostPool)
	}
	p.Lengths = lengths(o.Need("lengths", "[2m, 30m]"), p.Step)
	for _, g := range o.Get("gaps").List("a list of gaps such as [{at: 1m, for: 20m15s, count: 2}]", mostLines) {
		of := g.Object("at", "for", "count", "shown", "grace")
		gap := Gap{Span: Span{at(of), quantity.Never}, Count: int(of.Get("count").Integer(1, 1<<20, 1))}
		if length := of.Get("for"); length.Given() {
			gap.End = gap.Start.Add(length.Duration(time.Second, longest, time.Second))
		}
		if shown := of.Get("shown"); shown.Given() {
			gap.Shown = gap.Start.Add(shown.Duration(time.Second, longest, time.Second))
			gap.Grace = of.Get("grace").Duration(0, time.Hour, 30*time.Second)
			if gap.Shown < gap.End {
				shown.Wrong("is shorter than the gap; want what its host says, which is the gap's length or more")
			}
		} else if grace := of.Get("grace"); grace.Given() {
			grace.Wrong("is given, and nobody is preempted at a gap's end that is shown; add shown or leave it out")
		}
		p.Gaps = append(p.Gaps, gap)
	}
	if !o.Has("gaps") { // room without end
		p.Gaps = []Gap{{Span: Span{0, quantity.Never}, Count: p.Most}}
	}
	for _, x := range o.Get("preempt").List("a list such as [{at: 10m, count: 2, grace: 30s}]", mostLines) {
		of := x.Object("at", "count", "grace", "for")
		p.Preempts = append(p.Preempts, Preemption{At: at(of), Count: int(of.Get("count").Integer(1, mostPilots, 1)),
			Grace: of.Get("grace").Duration(0, time.Hour, 30*time.Second), For: of.Get("for").Duration(0, longest, 0)})
	}
	return p
}

func at(o strict.Object) quantity.Instant {
	return quantity.Instant(o.Get("at").Duration(0, longest, 0))
}

// lengths are whole steps, each longer than the one before.
func lengths(v strict.Value, step time.Duration) (list []time.Duration) {
	for _, e := range v.List("a list of lengths such as [2m, 30m]", 32) {
		found := e.Count()
		d := e.Duration(step, longest, step)
		switch {
		case e.Count() != found:
		case d%step != 0:
			e.Wrong("is %s, and the host counts in steps of %s", strict.FormatDuration(d), strict.FormatDuration(step))
		case len(list) > 0 && d <= list[len(list)-1]:
			e.Wrong("is %s, after %s; want each longer than the one before", strict.FormatDuration(d),
				strict.FormatDuration(list[len(list)-1]))
		default:
			list = append(list, d)
		}
	}
	if v.Listed() && v.Hollow() {
		v.Wrong("is empty; a pool needs a length such as 30m")
	}
	return list
}

// spans reads a list of {from, to}.
func spans(v strict.Value) (list []Span) {
	for _, e := range v.List("a list such as [{from: 1h, to: 2h}]", mostLines) {
		o := e.Object("from", "to")
		s := Span{quantity.Instant(o.Get("from").Duration(0, longest, 0)), quantity.Never}
		if to := o.Get("to"); to.Given() {
			s.End = quantity.Instant(to.Duration(0, longest, 0))
			if s.End <= s.Start {
				to.Wrong("is not after its beginning at %s", strict.FormatDuration(time.Duration(s.Start)))
			}
		}
		list = append(list, s)
	}
	return list
}
