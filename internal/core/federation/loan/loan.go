// Package loan is how the home of a gang that is too large for its zone has several zones keep places for it, all of them or none: whom it
// asks, in which order, how long it holds what it has while it waits for the rest, and when all is there. It is soft and pure: what is
// durable comes after it, when the nodes hold and the home has its claim. A home that dies forgets its loans, and they end by themselves.
package loan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// Stands is how long a zone keeps what it has lent after its home's last message, renewal how often a home sends one.
	Stands  = 10 * time.Second
	renewal = 3 * time.Second
	// Patience is how long a gang that holds places waits for the next one.
	Patience = 10 * time.Second
	// Slack is how much longer than the gang needs its places are, for messages and for clocks that differ.
	Slack = 5 * time.Second
	// gain is how much earlier all must be able to begin before a place that is kept is moved.
	gain = 2 * time.Second
	// silence is how many times in a row a zone is asked without an answer.
	silence     = 3
	longestRest = time.Minute
)

// Office is what a gang has said and done. Its home has one for each gang.
type Office interface {
	// AskGate asks which zones could lend; Borrow asks one of them.
	AskGate(seq uint64, without []job.ZoneID)
	Borrow(zone job.ZoneID, l protocol.Loan)
	// Begin asks the nodes for the places that are kept, from now on for length. The implementer reports the result (Gang.Ended).
	Begin(now quantity.Instant, parts []*protocol.Lending, length time.Duration, speed int64)
	// Need is how long the gang runs on slices of this speed, NoEnd without an end.
	Need(speed int64) time.Duration
}

// State of a gang.
type State uint8

const (
	// Idle: nothing is asked and nothing held.
	Idle State = iota
	// Seeking: its gate is asked whom to ask.
	Seeking
	// Offering: zones are asked what they would lend.
	Offering
	// Keeping: they are asked to keep it, one after the other, or all do until it begins.
	Keeping
	// Begun: the nodes are asked.
	Begun
	// Resting: it comes again after a while.
	Resting
)

// Gang is one gang as its home seeks places for it.
type Gang struct {
	retry time.Duration
	self  job.ZoneID
	width int

	state State
	seq   uint64
	next  quantity.Instant
	// since when it seeks, or waits for the zone that is asked to keep.
	since quantity.Instant
	asks  int
	rests int
	// lenders that it plans with, with their latest offers, and without those that can lend nothing.
	lenders []protocol.Lender
	without []job.ZoneID
	parts   []part
	// start from when on places are wanted, length how long. moved is when an earlier one was last asked for.
	start  quantity.Instant
	length time.Duration
	moved  quantity.Instant
	why    string
}

// part is the part of a loan that one zone is asked for.
type part struct {
	zone   job.ZoneID
	slices int
	// keeping: it was told to keep a place, and may do so. told: it was last told the present terms. kept: it keeps a place by these terms.
	keeping, told, kept bool
	// asked is the number of the first question under these terms, said when it was last asked and silent how often in a row without an
	// answer.
	asked  uint64
	said   quantity.Instant
	silent int
	got    *protocol.Lending
}

// New is a gang of width slices whose home is zone self. Unanswered messages are resent each retry.
func New(self job.ZoneID, width int, retry time.Duration) *Gang {
	return &Gang{self: self, width: width, retry: retry}
}

// State of the gang.
func (g *Gang) State() State { return g.state }

// Next is when to look again; Never if there is nothing to do.
func (g *Gang) Next() quantity.Instant {
	if g.state == Idle {
		return quantity.Never
	}
	return g.next
}

// number is the next message's: larger than all before, those of an earlier life of the home too.
func (g *Gang) number(now quantity.Instant) uint64 {
	g.seq = max(g.seq+1, uint64(max(0, now)))
	return g.seq
}

// Seek begins, with nothing held.
func (g *Gang) Seek(now quantity.Instant, o Office) {
	g.state, g.asks, g.parts = Seeking, 0, nil
	g.ask(now, o)
}

func (g *Gang) ask(now quantity.Instant, o Office) {
	o.AskGate(g.number(now), slices.Clone(g.without))
	g.next = now.Add(g.retry << min(g.asks, 6))
	g.asks++
	g.why = "its gate is asked which zones could lend it slices"
}

// Named records which zones could lend.
func (g *Gang) Named(now quantity.Instant, l *protocol.LenderList, o Office) {
	if g.state != Seeking || l.Seq != g.seq {
		return
	}
	g.lenders = homeFirst(g.self, l.Zones)
	g.offer(now, o)
}

// offer asks zones that together are large enough what they would lend.
func (g *Gang) offer(now quantity.Instant, o Office) {
	g.parts = split(g.width, g.lenders)
	if g.parts == nil {
		all := 0
		for _, l := range g.lenders {
			all += l.Slices
		}
		g.without = nil // who did not answer may now
		g.rest(now, fmt.Sprintf("the %d zones that could lend have %d of its %d slices", len(g.lenders), all, g.width), o)
		return
	}
	g.state, g.length = Offering, max(g.length, o.Need(reference))
	g.askAll(now, o)
}

// reference is a speed where none is known yet.
const reference = 1000

func (g *Gang) askAll(now quantity.Instant, o Office) {
	for i := range g.parts {
		g.borrow(now, &g.parts[i], o)
	}
	g.wake(now)
}

// borrow sends a zone the present terms, again if need be.
func (g *Gang) borrow(now quantity.Instant, p *part, o Office) {
	n := g.number(now)
	if !p.told {
		p.told, p.kept, p.got, p.asked, p.silent = true, false, nil, n, 0
	}
	p.keeping = g.state != Offering
	p.said = now
	p.silent++
	l := protocol.Loan{Seq: n, Slices: p.slices, Length: padded(g.length), Keep: p.keeping}
	if p.keeping {
		l.NotBefore = g.start
	}
	o.Borrow(p.zone, l)
}

func padded(d time.Duration) time.Duration {
	if d == protocol.NoEnd {
		return d
	}
	return d + Slack
}

// Lent records a zone's answer.
func (g *Gang) Lent(now quantity.Instant, zone job.ZoneID, l *protocol.Lending, o Office) {
	i := slices.IndexFunc(g.parts, func(p part) bool { return p.zone == zone })
	if i < 0 || g.state != Offering && g.state != Keeping {
		return
	}
	p := &g.parts[i]
	if !p.told || l.Seq < p.asked || p.got != nil && l.Seq <= p.got.Seq {
		return
	}
	if l.Kept && (len(l.Slices) != p.slices || l.Speed <= 0 || l.End <= l.Start) {
		return // nonsense, of which nobody may begin
	}
	p.got, p.silent = l, 0
	if g.state == Offering {
		g.weigh(now, o)
		return
	}
	if l.Kept != p.kept {
		p.kept, g.since = l.Kept, now
	}
	g.keep(now, o)
}

// weigh compares what the zones would lend, once all have answered.
func (g *Gang) weigh(now quantity.Instant, o Office) {
	start, short := now, false
	for i := range g.parts {
		p := &g.parts[i]
		if p.got == nil {
			return
		}
		if p.got.Could < p.slices {
			short = true
			for k := range g.lenders {
				if g.lenders[k].Zone == p.zone {
					g.lenders[k].Slices = p.got.Could
				}
			}
		}
		start = max(start, p.got.Start)
	}
	switch {
	case short:
		g.offer(now, o)
		return
	case g.lengthens(o):
		g.retell()
		g.askAll(now, o)
		return
	}
	for i := range g.parts {
		if p := &g.parts[i]; p.got.Start == 0 {
			g.without = append(g.without, p.zone) // others may have one
			g.rest(now, fmt.Sprintf("zone %s has no place for %d slices of it now: %s", p.zone, p.slices, p.got.Why), o)
			return
		}
	}
	g.state, g.start, g.since = Keeping, start, now
	g.retell()
	g.keep(now, o)
}

// lengthens records how long the gang runs on the slowest slice that is lent, and reports whether that is longer than was asked for.
func (g *Gang) lengthens(o Office) bool {
	was := g.length
	if speed := g.speed(); speed > 0 {
		g.length = max(g.length, o.Need(speed))
	}
	return g.length > was
}

// speed is the speed of the slowest lent slice; 0: none is lent.
func (g *Gang) speed() (least int64) {
	for i := range g.parts {
		if l := g.parts[i].got; l != nil && l.Speed > 0 && (least == 0 || l.Speed < least) {
			least = l.Speed
		}
	}
	return least
}

// retell sends the terms to every zone again.
func (g *Gang) retell() {
	for i := range g.parts {
		g.parts[i].told, g.parts[i].kept = false, false
	}
}

// keep asks the first zone that does not keep its part yet, and begins once all do and their time has come.
func (g *Gang) keep(now quantity.Instant, o Office) {
	defer g.wake(now)
	for i := range g.parts {
		p := &g.parts[i]
		if p.kept && p.told {
			continue
		}
		if !p.told {
			g.since = now
			g.borrow(now, p, o)
		}
		g.why = fmt.Sprintf("zone %s is asked to keep %d slices", p.zone, p.slices)
		if p.got != nil && p.got.Why != "" {
			g.why = fmt.Sprintf("zone %s does not keep %d slices yet: %s", p.zone, p.slices, p.got.Why)
		}
		return
	}
	first, last := quantity.Instant(0), quantity.Never
	for i := range g.parts {
		first, last = max(first, g.parts[i].got.Start), min(last, g.parts[i].got.End)
	}
	need := o.Need(g.speed())
	switch from := max(now, first); {
	case !holds(from, last, need):
		g.length, g.start = max(g.length, need), from
		g.retellBut(need)
		g.keep(now, o)
	case first <= now:
		var lent []*protocol.Lending
		for i := range g.parts {
			lent = append(lent, g.parts[i].got)
		}
		g.state, g.since, g.why = Begun, now, "the nodes are asked"
		o.Begin(now, lent, need, g.speed())
	case g.sooner(now):
		g.keep(now, o)
	default:
		g.why = "they are kept, and begin together"
	}
}

// holds reports whether something that takes need fits from one instant to another.
func holds(from, to quantity.Instant, need time.Duration) bool {
	if need == protocol.NoEnd {
		return to == quantity.Never
	}
	return to == quantity.Never || to.Sub(from) >= need
}

// retellBut sends the terms again to the zones whose places do not hold for need from the start on.
func (g *Gang) retellBut(need time.Duration) {
	all := true
	for i := range g.parts {
		if p := &g.parts[i]; p.got.Start > g.start || !holds(g.start, p.got.End, need) {
			p.told, p.kept, all = false, false, false
		}
	}
	if all { // none is to blame alone
		g.retell()
	}
}

// sooner asks for an earlier start, if all zones could have it.
func (g *Gang) sooner(now quantity.Instant) bool {
	start := now
	for i := range g.parts {
		if e := g.parts[i].got.Earliest; e == 0 {
			return false
		} else if start = max(start, e); start.Add(gain) >= g.start {
			return false
		}
	}
	if g.moved != 0 && now.Sub(g.moved) < renewal {
		return false
	}
	g.start, g.moved = start, now
	g.retell()
	return true
}

// wake sets when to look again.
func (g *Gang) wake(now quantity.Instant) {
	if g.state != Offering && g.state != Keeping && g.state != Begun {
		return
	}
	g.next = quantity.Never
	for i := range g.parts {
		if p := &g.parts[i]; g.saysAgain(p) {
			g.next = min(g.next, p.said.Add(g.pace(p)))
		}
	}
	if g.state == Keeping {
		if i := slices.IndexFunc(g.parts, func(p part) bool { return !p.kept }); i >= 0 {
			g.next = min(g.next, g.since.Add(Patience))
		} else {
			for i := range g.parts {
				if start := g.parts[i].got.Start; start > now {
					g.next = min(g.next, start)
				}
			}
		}
	}
	g.next = max(g.next, now+1)
}

// saysAgain reports whether a zone is sent the same again: until it has answered, and as long as it is to keep something.
func (g *Gang) saysAgain(p *part) bool {
	if g.state == Offering {
		return p.got == nil
	}
	return p.keeping
}

// pace is the time until a zone is sent the same again.
func (g *Gang) pace(p *part) time.Duration {
	if p.kept && p.silent == 0 || g.state == Begun {
		return renewal
	}
	return g.retry
}

// Tick does what is due.
func (g *Gang) Tick(now quantity.Instant, o Office) {
	if g.state == Idle || now < g.next {
		return
	}
	if g.state == Seeking {
		g.ask(now, o)
		return
	}
	if g.state == Resting {
		g.state = Idle
		return
	}
	for i := range g.parts {
		p := &g.parts[i]
		if !g.saysAgain(p) || now < p.said.Add(g.pace(p)) {
			continue
		}
		if p.silent >= silence && g.state != Begun {
			g.without = append(g.without, p.zone)
			g.rest(now, fmt.Sprintf("zone %s does not answer", p.zone), o)
			return
		}
		g.borrow(now, p, o)
	}
	if g.state == Keeping {
		if i := slices.IndexFunc(g.parts, func(p part) bool { return !p.kept }); i >= 0 && now.Sub(g.since) >= Patience {
			g.rest(now, g.why+"; what other zones kept was given back meanwhile", o)
			return
		}
		g.keep(now, o)
		return
	}
	g.wake(now)
}

// rest gives all back and comes again after a while, which doubles each time.
func (g *Gang) rest(now quantity.Instant, why string, o Office) {
	g.giveBack(now, false, o)
	g.state, g.why = Resting, why
	g.next = now.Add(min(longestRest, g.retry<<min(g.rests, 10)))
	g.rests++
	g.without = g.without[:min(len(g.without), protocol.MostLenders)]
}

// giveBack tells all zones that keep something that it is not needed any more.
func (g *Gang) giveBack(now quantity.Instant, taken bool, o Office) {
	for i := range g.parts {
		if p := &g.parts[i]; p.said != 0 {
			o.Borrow(p.zone, protocol.Loan{Seq: g.number(now), Taken: taken})
		}
	}
	g.parts, g.length = nil, 0
	g.moved = 0
}

// Ended records how the nodes answered: all took it, or one refused.
func (g *Gang) Ended(now quantity.Instant, taken bool, o Office) {
	if g.state != Begun {
		return
	}
	if taken {
		g.giveBack(now, true, o)
		g.state, g.rests, g.without = Idle, 0, nil
		return
	}
	g.rest(now, "a node refused a place that its zone had kept", o)
}

// Drop gives up: the gang is not to be placed now, or needs no other zone.
func (g *Gang) Drop(now quantity.Instant, o Office) {
	g.giveBack(now, false, o)
	g.state, g.rests, g.without = Idle, 0, nil
}

// Sentence is how far it is, for people.
func (g *Gang) Sentence(now quantity.Instant) string {
	var at []string
	for i := range g.parts {
		at = append(at, fmt.Sprintf("%d of zone %s", g.parts[i].slices, g.parts[i].zone))
	}
	text := g.why
	if len(at) > 0 {
		text = strings.Join(at, ", ") + ": " + text
	}
	switch {
	case g.state == Keeping && g.start > now:
		text += fmt.Sprintf(", in %v", g.start.Sub(now).Round(time.Second))
	case g.state == Resting:
		text += fmt.Sprintf("; zones are asked again in %v", g.next.Sub(now).Round(time.Second))
	}
	return text
}

// split is how many slices a gang takes of which zone, of as few zones as hold it: the zone with the fewest that suffice for the rest, else
// the one with most; on a tie the first (homeFirst). In order of zone id; nil if all together have too few.
func split(width int, lenders []protocol.Lender) (parts []part) {
	left := slices.Clone(lenders)
	for want := width; want > 0; {
		best := -1
		for i := range left {
			if left[i].Slices > 0 && (best < 0 || fit(left[i].Slices, want) < fit(left[best].Slices, want)) {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		n := min(want, left[best].Slices)
		parts = append(parts, part{zone: left[best].Zone, slices: n})
		want -= n
		left = slices.Delete(left, best, best+1)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.zone, b.zone) })
	return parts
}

// fit ranks how well a zone with has slices serves want: the fewest that suffice first, else the most.
func fit(has, want int) int {
	if has >= want {
		return has - want
	}
	return want - has + 1<<30
}

// homeFirst moves a zone to the front of others, if it is one of them.
func homeFirst(self job.ZoneID, lenders []protocol.Lender) []protocol.Lender {
	out := make([]protocol.Lender, 0, len(lenders))
	for _, first := range []bool{true, false} {
		for _, l := range lenders {
			if (l.Zone == self) == first {
				out = append(out, l)
			}
		}
	}
	return out
}
