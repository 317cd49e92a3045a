package supply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// All sentences about a pool are made here.

// blocked is why nothing may be asked for now, whatever waits; empty: it may.
func (p *plan) blocked() string {
	switch {
	case p.pool.Paused != "":
		return "the pool is paused: " + p.pool.Paused
	case p.s.Silent != "" && p.s.Seen == 0:
		return "the host has not answered yet: " + p.s.Silent
	case p.s.Silent != "":
		return fmt.Sprintf("the host has not answered for %s: %s", brief(p.now.Sub(p.s.Seen)), p.s.Silent)
	case p.s.Seen == 0:
		return "the host has not answered yet"
	case p.streak.n > 0 && p.streak.until > p.now:
		return p.streak.text(p.now)
	case p.limit.n > 0 && p.limit.until > p.now:
		return p.limit.limited(p.now)
	}
	return ""
}

// fate is what became of a pilot that failed.
func (h How) fate() string {
	switch h {
	case Refused:
		return "was refused"
	case Vanished:
		return "was lost"
	default:
		return "failed"
	}
}

// text says how often the host failed, how, and until when nothing is asked of it.
func (t *streak) text(now quantity.Instant) string {
	times := "once"
	if t.n > 1 {
		times = fmt.Sprintf("%d times in a row", t.n)
	}
	why := ""
	if t.why != "" {
		why = ": " + t.why
	}
	return fmt.Sprintf("asking failed %s, and no pilot has joined since; the last %s%s; the next is asked for in %s", times,
		t.how.fate(), why, brief(t.until.Sub(now)))
}

// limited says that the host takes no more, and until when nothing is asked of it.
func (t *streak) limited(now quantity.Instant) string {
	why := ""
	if t.why != "" {
		why = ": " + t.why
	}
	return fmt.Sprintf("the host takes no more for now%s; the next is asked for once one of the pool's has ended, "+
		"or in %s", why, brief(t.until.Sub(now)))
}

// why is what was done, or why nothing was.
func (p *plan) why(o *Order, demand []Demand, wanted int, blocked string) string {
	var did []string
	if len(o.Ask) > 0 {
		did = append(did, "asked for "+lengths(o.Ask)+" for "+p.jobs())
	}
	if n := len(o.Cancel); n > 0 {
		did = append(did, "gave back "+givenBack(o.Cancel))
	}
	if len(o.Ask) == 0 {
		did = append(did, "nothing is asked for: "+p.nothing(demand, wanted, blocked))
	}
	return strings.Join(did, "; ")
}

// nothing is why nothing is asked for.
func (p *plan) nothing(demand []Demand, wanted int, blocked string) string {
	switch {
	case p.pool.Paused != "" || p.s.Silent != "" || p.s.Seen == 0:
		return blocked
	case len(demand) == 0:
		return "no job waits for what its pilots have"
	case wanted > 0 && blocked != "":
		return blocked
	case wanted > 0:
		return fmt.Sprintf("the pool has %s, as many as it may have, and those that are not needed are not gone yet",
			pilots(len(p.pilots)))
	case p.unfit != nil:
		return p.noGap()
	case p.most:
		return fmt.Sprintf("the pool has %s, as many as it may have", pilots(p.pool.Most))
	case p.soon:
		return "what waits is served by the slices that there are, and by pilots on their way"
	}
	return "nothing is left to do for the jobs that wait"
}

// noGap is why no gap holds a new pilot for the job with the shortest least piece.
func (p *plan) noGap() string {
	need := fmt.Sprintf("the least piece of job %s needs a pilot of %s: %s of work, %s until a pilot has joined and %s to hand over",
		p.unfit.Job, brief(p.unfit.piece()+p.cost), brief(p.unfit.piece()), brief(p.start), brief(p.cost-p.start))
	if p.s.Blind {
		return fmt.Sprintf("the longest pilot may be %s, and %s", brief(p.longest), need)
	}
	longest := time.Duration(0)
	for _, g := range p.s.Gaps {
		if g.Start <= p.now && g.End > p.now && g.Count > 0 {
			longest = max(longest, g.End.Sub(p.now))
		}
	}
	text := ""
	switch {
	case longest == 0:
		text = "the host shows no room for a pilot now"
	case longest < p.shortest:
		text = fmt.Sprintf("the longest gap that the host shows is %s, and a pilot is at least %s", brief(longest), brief(p.shortest))
	case p.fits(longest):
		text = "all gaps that are long enough have a pilot that is asked for or waits"
	case longest > p.longest:
		text = fmt.Sprintf("the longest pilot may be %s, and %s", brief(p.longest), need)
	default:
		text = fmt.Sprintf("the longest gap that the host shows is %s, and %s", brief(longest), need)
	}
	if next := p.nextGap(); next != quantity.Never {
		text += "; the next gap begins in " + brief(next.Sub(p.now))
	}
	return text
}

// fits reports whether a gap holds a pilot for the job with the shortest least piece, if nobody else is in it.
func (p *plan) fits(gap time.Duration) bool {
	step := max(p.pool.Step, 1)
	return min(max(0, gap-p.wait)/step*step, p.longest)-p.cost >= p.unfit.piece()
}

// nextGap is when the next gap begins; Never: none is known.
func (p *plan) nextGap() quantity.Instant {
	next := quantity.Never
	for _, g := range p.s.Gaps {
		if g.Start > p.now && g.Count > 0 {
			next = min(next, g.Start)
		}
	}
	return next
}

// jobs names those that new pilots are for.
func (p *plan) jobs() string {
	var names []string
	for _, a := range p.asks {
		if name := string(a.job.Job); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 1:
		return "job " + names[0]
	case 2:
		return "jobs " + names[0] + " and " + names[1]
	}
	return fmt.Sprintf("job %s and %d more", names[0], len(names)-1)
}

// lengths says how many pilots of which lengths, the longest first.
func lengths(of []time.Duration) string {
	sorted := slices.Clone(of)
	slices.SortFunc(sorted, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	var parts []string
	for i := 0; i < len(sorted); {
		n := 0
		for i+n < len(sorted) && sorted[i+n] == sorted[i] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%s of %s", pilots(n), brief(sorted[i])))
		i += n
	}
	return list(parts)
}

// givenBack says how many, and why.
func givenBack(of []Cancel) string {
	if len(of) == 1 {
		return of[0].Name + ", " + of[0].Why
	}
	same := !slices.ContainsFunc(of, func(c Cancel) bool { return c.Why != of[0].Why })
	if same {
		return fmt.Sprintf("%s: of each %s", pilots(len(of)), of[0].Why)
	}
	return pilots(len(of)) + " that are not needed"
}

// list joins parts by commas and "and".
func list(parts []string) string {
	if n := len(parts) - 1; n > 0 {
		return strings.Join(parts[:n], ", ") + " and " + parts[n]
	}
	return strings.Join(parts, "")
}

func pilots(n int) string {
	if n == 1 {
		return "1 pilot"
	}
	return fmt.Sprintf("%d pilots", n)
}
