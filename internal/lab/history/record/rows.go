package record

import (
	"hash/fnv"
	"io"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/kubernetes"
)

const (
	unseen     = "a Pod that was gone when somebody looked again"
	unseenDone = "taken as ended when it was seen last: it ended somewhere in a time in which nobody looked"
	claims     = "a Pod whose devices are those of a DRA claim"
	claimsDone = "left out: the record has no claims"
	apart      = "a Pod with claims of DRA beside its devices"
	apartDone  = "it holds the devices that it asks for by number alone"
)

// Close makes rows of the Pods, and says which nodes there were.
func (c *cluster) Close() {
	slices.Sort(c.looks)
	c.looks = slices.Compact(c.looks)
	for _, t := range c.tails {
		c.was(&t.Host, t.from, min(t.until, max(c.next(t.seen), t.from)))
	}
	fleet := kubernetes.NewFleet(c.book, func(name string) *kubernetes.Node {
		if n := c.hosts[name]; n != nil {
			return &n.Node
		}
		return nil
	})
	for _, uid := range slices.Sorted(maps.Keys(c.pods)) {
		c.row(fleet, c.pods[uid])
	}
	for _, row := range fleet.Shared() {
		c.book.Add(&row)
	}
	for _, name := range slices.Sorted(maps.Keys(c.hosts)) {
		c.describe(fleet, name, c.hosts[name])
	}
}

// row puts a Pod into the book.
func (c *cluster) row(fleet *kubernetes.Fleet, p *pod) {
	id := p.Namespace + "/" + p.Name
	if p.seen == 0 { // in no look that is whole
		p.seen = p.told
	}
	want := map[string]int64{}
	for resource, n := range p.Devices { //sluice:sorted each for itself
		if n > 0 && kubernetes.Device(resource) {
			want[resource] = n
		}
	}
	switch {
	case p.Name == "": // it is known to have left, and nothing else
		return
	case kubernetes.Fills(p.PriorityClass):
		c.book.Samples().Odd(kubernetes.Own, kubernetes.OwnDone, "Pod "+id)
		return
	case len(want) == 0:
		if p.Claims {
			c.book.Samples().Odd(claims, claimsDone, "Pod "+id)
		}
		return
	case p.Claims:
		c.book.Samples().Odd(apart, apartDone, "Pod "+id)
	}
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, p.UID) // it has no errors
	space := c.book.Name([]byte(p.Namespace))
	row := history.Row{Raw: sum.Sum64(), Elapsed: history.Unknown, Run: history.Run{ID: id, Submit: quantity.Never,
		Eligible: quantity.Never, Start: quantity.Never, End: quantity.Never, User: space, Partition: space,
		Job: c.book.Name([]byte(p.Name))}}
	if p.Created > 0 {
		row.Submit, row.Eligible = instant(p.Created), instant(p.Created)
	}
	if p.Node == "" {
		if row.State = history.Pending; p.Over() || p.leftIn != quantity.Never || c.next(p.seen) != quantity.Never {
			row.State = history.Cancelled
		}
		row.Load = fleet.Load("", want, row)
		c.book.Add(&row)
		return
	}
	if row.Start = p.bound; p.Scheduled > 0 {
		row.Start = instant(p.Scheduled)
	}
	row.End, row.State = c.end(p, id)
	row.End = max(row.End, row.Start)
	row.Index = uint64(row.Start)
	row.Place = c.book.Place([]int32{c.book.Node([]byte(p.Node))})
	if row.Load = fleet.Load(p.Node, want, row); row.Load != 0 {
		c.book.Add(&row)
	}
}

// end is when a Pod gave its devices back, and how it ended.
func (c *cluster) end(p *pod, id string) (quantity.Instant, history.State) {
	state := history.Unclear
	switch p.Phase {
	case "Succeeded":
		state = history.Completed
	case "Failed":
		state = history.Failed
	}
	switch {
	case p.Ended > 0:
		return instant(p.Ended), state
	case p.over != quantity.Never && c.watched(p.over):
		return p.over, state
	case p.leftIn != quantity.Never && c.watched(p.leftIn):
		return p.left, state
	case p.over == quantity.Never && p.leftIn == quantity.Never:
		next := c.next(p.seen)
		if next == quantity.Never { // it was there when somebody looked last
			return c.last(), history.Running
		}
		if next.Sub(p.seen) <= Missed*c.every {
			return next, state
		}
	}
	c.book.Samples().Odd(unseen, unseenDone, "Pod "+id)
	return p.seen, state
}

// watched says whether somebody looked shortly before a look.
func (c *cluster) watched(look quantity.Instant) bool {
	i, _ := slices.BinarySearch(c.looks, look)
	return i > 0 && look.Sub(c.looks[i-1]) <= Missed*c.every
}

// next is the first look behind an instant, Never if there is none.
func (c *cluster) next(t quantity.Instant) quantity.Instant {
	i, _ := slices.BinarySearch(c.looks, t+1)
	if i == len(c.looks) {
		return quantity.Never
	}
	return c.looks[i]
}

// last is the last look.
func (c *cluster) last() quantity.Instant {
	if len(c.looks) == 0 {
		return 0
	}
	return c.looks[len(c.looks)-1]
}

// describe says what a node has, and when not.
func (c *cluster) describe(fleet *kubernetes.Fleet, name string, n *host) {
	away := func(why history.Why, from, to quantity.Instant) {
		c.book.Absent(history.AwayRow{Nodes: []string{name}, Away: history.Away{From: from, To: to, Why: why}})
	}
	kinds := fleet.Tell(name)
	for _, x := range n.cordoned {
		away(history.Drained, x.From, x.To)
	}
	for _, x := range n.closed {
		away(history.Down, x.From, x.To)
	}
	for resource, none := range n.none { //sluice:sorted one has devices
		for _, x := range none {
			if kinds == 1 && n.Devices[resource] > 0 {
				away(history.Down, x.From, x.To)
			}
		}
	}
	from := quantity.Instant(0)
	for _, x := range n.there {
		if c.next(from-1) < x.From { // somebody looked, and it was not there
			away(history.Down, from, x.From)
		}
		from = x.To
	}
	if c.next(from-1) != quantity.Never {
		away(history.Down, from, quantity.Never)
	}
}
