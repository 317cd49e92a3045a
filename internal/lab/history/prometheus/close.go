package prometheus

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/kubernetes"
)

const (
	unseen      = "a Pod that was gone when samples came back"
	unseenDone  = "taken as ended with the last sample: it ended somewhere in a time that was not recorded"
	claims      = "a Pod whose devices are those of a DRA claim"
	claimsDone  = "left out: kube-state-metrics names a Pod's claims, and not what they hold"
	homeless    = "a Pod with devices that never was on a node"
	holdsNone   = "it held nothing"
	silentHours = "a time in which kube-state-metrics was not sampled"
	silentDone  = "what ran goes on; what is free then is not counted as idle"
)

// Close makes rows of the Pods, and says which nodes there were.
func (r *record) Close() {
	if len(r.grid) == 0 {
		if r.failure != "" && !r.book.Samples().Rows() {
			r.book.Problem("Prometheus answered with an error: %s: ask again, for less time or with a longer step", r.failure)
		}
		return
	}
	c := closing{record: r, step: r.step(), fleet: kubernetes.NewFleet(r.book, func(name string) *kubernetes.Node {
		if n := r.nodes[name]; n != nil {
			return &n.Node
		}
		return nil
	})}
	ran := c.runs()
	if r.book.Samples().Rows() {
		if len(ran) > 0 {
			r.book.Problem("the Prometheus dump has Pods that held GPUs, and other files have jobs: they are of several clusters, give " +
				"those of one")
		}
		return // the samples stand beside another scheduler's log
	}
	if r.failure != "" && len(ran) == 0 {
		r.book.Problem("Prometheus answered with an error: %s: ask again, for less time or with a longer step", r.failure)
	}
	for i := range ran {
		r.book.Add(&ran[i])
	}
	c.describe()
	c.holes()
	c.say()
	r.book.Samples().Covers(instant(r.grid[0]), instant(r.grid[len(r.grid)-1]))
}

// closing makes rows.
type closing struct {
	*record
	// step of the samples in milliseconds.
	step  int64
	fleet *kubernetes.Fleet
	// starts and ends that are known to a step only, of so many in all.
	roughStarts, roughEnds, starts, ends int
}

func instant(ms int64) quantity.Instant {
	return quantity.Instant(ms) * quantity.Instant(time.Millisecond)
}

// behind is the first instant behind the last sample of a span, Never if there is none.
func (c *closing) behind(x span) quantity.Instant {
	if next, ok := c.grid.next(x.last, c.step); ok {
		return instant(next)
	}
	return quantity.Never
}

// runs are those of all Pods that held devices.
func (c *closing) runs() (out []history.Row) {
	for _, key := range slices.Sorted(maps.Keys(c.record.pods)) {
		p := c.record.pods[key]
		want := p.devices()
		if p.fills {
			c.book.Samples().Odd(kubernetes.Own, kubernetes.OwnDone, "Pod "+p.namespace+"/"+p.name)
			continue
		}
		if len(want) == 0 {
			if p.claims {
				c.book.Samples().Odd(claims, claimsDone, "Pod "+p.namespace+"/"+p.name)
			}
			continue
		}
		if len(p.on) == 0 {
			c.book.Samples().Odd(homeless, holdsNone, "Pod "+p.namespace+"/"+p.name)
			continue
		}
		sum := fnv.New64a()
		_, _ = io.WriteString(sum, key) // it has no errors
		for _, name := range slices.Sorted(maps.Keys(p.on)) {
			lives := c.grid.joined(p.on[name], c.step)
			if p.unique {
				lives = spans{{lives[0].first, lives[len(lives)-1].last}}
			}
			for _, life := range lives {
				row := c.run(p, life)
				row.Raw, row.Index = sum.Sum64(), uint64(life.first)
				row.Place = c.book.Place([]int32{c.book.Node([]byte(name))})
				if row.Load = c.fleet.Load(name, want, row); row.Load != 0 {
					out = append(out, row)
				}
			}
		}
	}
	return append(out, c.fleet.Shared()...)
}

// devices are how many of each resource a Pod holds: all containers together, or more while it is set up, as Kubernetes counts.
func (p *pod) devices() map[string]int64 {
	apps, inits, aside := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for key, w := range p.apps { //sluice:sorted sums do not depend on the order
		apps[key.resource] += w.count()
	}
	for key, w := range p.inits { //sluice:sorted neither do these
		if p.sidecars[key.container] {
			aside[key.resource] += w.count()
		} else {
			inits[key.resource] = max(inits[key.resource], w.count())
		}
	}
	out := map[string]int64{}
	for _, of := range []map[string]int64{apps, inits, aside} {
		for resource := range of { //sluice:sorted each for itself
			if n := max(apps[resource], inits[resource]) + aside[resource]; n > 0 {
				out[resource] = min(n, kubernetes.Most)
			}
		}
	}
	return out
}

// run is a Pod's time on a node, of which it was seen there in a span.
func (c *closing) run(p *pod, life span) history.Row {
	row := history.Row{Elapsed: history.Unknown, Run: history.Run{
		ID: p.namespace + "/" + p.name, Submit: quantity.Never, Eligible: quantity.Never, Partition: c.book.Name([]byte(p.namespace)),
		Job: c.book.Name([]byte(p.name)),
	}}
	if at, _, ok := p.created.within(life); ok {
		row.Submit, row.Eligible = instant(at), instant(at)
	}
	start, exact := life.first, false
	for _, told := range []stamps{p.scheduled, p.started} { // devices are taken when it is bound to its node
		if at, _, ok := told.within(life); ok && at <= life.first+c.step {
			start, exact = at, true
			break
		}
	}
	c.starts++
	if !exact && life.first >= c.grid[0]+c.step {
		c.roughStarts++
	}
	row.Start = instant(start)
	end, exact, state := c.end(p, life, start)
	row.End, row.State = instant(max(end, start)), state
	if state != history.Running {
		c.ends++
		if !exact {
			c.roughEnds++
		}
	}
	return row
}

// end is when a Pod gave its devices back, in milliseconds, whether that is exact, and how it ended. kube_pod_completion_time is when the
// last of its containers that are over ended, which others may outlive or a restart undo: it counts for Pods that are over alone.
func (c *closing) end(p *pod, life span, start int64) (at int64, exact bool, state history.State) {
	next, more := c.grid.next(life.last, c.step)
	for _, over := range p.over {
		if over.last < life.first || over.first > life.last && (!more || over.first > next) {
			continue
		}
		at, state = max(over.first, life.first), history.Completed
		if p.lost {
			state = history.Failed
		}
		if told, _, ok := p.completed.within(span{at, max(over.last, at)}); ok && told >= start && told <= at+c.step {
			return told, true, state
		}
		return at, false, state
	}
	told, seen, ok := p.completed.within(life)
	last := ok && told >= start && (seen == life.last || !c.phases)
	switch {
	case last && (more || !c.phases): // it was over when it was seen last
		return told, true, history.Completed
	case !more:
		return life.last, true, history.Running
	case next-life.last > c.hole():
		c.book.Samples().Odd(unseen, unseenDone, "Pod "+p.namespace+"/"+p.name)
		return life.last, false, history.Unclear
	}
	return next, false, history.Unclear
}

// hole is how far samples are apart at least if some between them are missing.
func (c *closing) hole() int64 { return 2*c.step + c.step/2 }

// describe says which there were, with what, and when not.
func (c *closing) describe() {
	for _, name := range slices.Sorted(maps.Keys(c.record.nodes)) {
		n := c.record.nodes[name]
		if len(n.there) == 0 {
			continue
		}
		used := c.fleet.Tell(name)
		c.away(name, history.Drained, n.cordoned)
		c.away(name, history.Down, n.closed)
		if used == 1 {
			for resource, none := range n.none { //sluice:sorted one has devices
				if n.Devices[resource] > 0 {
					c.away(name, history.Down, none)
				}
			}
		}
		c.missing(name, c.grid.joined(n.there, c.step))
	}
}

// away notes that a node is not to be had while something was sampled.
func (c *closing) away(name string, why history.Why, when spans) {
	for _, x := range c.grid.joined(when, c.step) {
		c.book.Absent(history.AwayRow{Nodes: []string{name}, Away: history.Away{From: instant(x.first), To: c.behind(x), Why: why}})
	}
}

// missing notes when a node was not there at all.
func (c *closing) missing(name string, there spans) {
	from := instant(c.grid[0])
	for _, x := range there {
		if instant(x.first) > from {
			c.book.Absent(history.AwayRow{Nodes: []string{name}, Away: history.Away{From: from, To: instant(x.first), Why: history.Down}})
		}
		from = c.behind(x)
	}
	if from != quantity.Never {
		c.book.Absent(history.AwayRow{Nodes: []string{name}, Away: history.Away{From: from, To: quantity.Never, Why: history.Down}})
	}
}

// holes notes when nothing was sampled.
func (c *closing) holes() {
	for i := 1; i < len(c.grid); i++ {
		if from, to := c.grid[i-1], c.grid[i]; to-from > c.hole() {
			c.book.Samples().Odd(silentHours, silentDone, stamped(from)+" to "+stamped(to))
			c.book.Absent(history.AwayRow{All: true, Away: history.Away{From: instant(from + c.step), To: instant(to),
				Why: history.Unrecorded}})
		}
	}
}

func stamped(ms int64) string { return instant(ms).Time().Format(time.RFC3339) }

// say notes what is taken for true.
func (c *closing) say() {
	step := time.Duration(c.step) * time.Millisecond
	if c.roughStarts+c.roughEnds > 0 {
		c.book.Assume(fmt.Sprintf("of %d starts of Pods %d, and of %d ends %d, are known to the %s between samples alone: "+
			"a Pod is taken to hold its devices from the sample that first has it to the one that has it no more, and one that came and "+
			"went between two is missing", c.starts, c.roughStarts, c.ends, c.roughEnds, step))
	}
}
