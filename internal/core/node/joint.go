package node

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// The host's memory, where it is known: what runs on all slices together is within it with the chance that is accepted, as what runs on one is within
// that by theta. Nothing of it is durable but the leases' peaks: a node that starts again has learned no correlation, and counts all peaks as one.

// hostMemory is what the node holds its leases against.
type hostMemory struct {
	joint.Limit
	learner joint.Learner
	// stale: leases or holds have changed since what the slices bear was found. passes is the next time that one of them is past its end, from when on it
	// counts until further notice; 0: none will be.
	stale  bool
	passes quantity.Instant
	// tenants of all slices, made anew when it is needed.
	tenants []tenant
	gap     []protocol.Gap // room for the first gap of a slice
}

// tenant is a lease or a hold on one slice.
type tenant struct {
	token      job.Token
	slice      job.SliceID
	start, end quantity.Instant
	peak       trp.Peak
}

// eighths is how finely it is said what a slice bears: the classes of slices that are alike stay few, and what changes by little changes nothing.
const eighths = 8

// correlation of the peaks on the host.
func (h *hostMemory) correlation() int64 {
	if h.Given {
		return h.Correlation
	}
	return h.learner.Correlation()
}

// peakOf is a peak, or the demand as its mean where no more is known. So as long as the demands are within the memory, no more is risked than all
// thetas together.
func peakOf(p trp.Peak, demand trp.Vector) trp.Peak {
	if p == (trp.Peak{}) {
		return trp.Peak{Mean: demand[trp.Memory]}
	}
	return p
}

// hosted says whether a slice's memory is the host's: a device has its own, and what is sold of it says nothing of the host's.
func (s *slice) hosted() bool { return s.desc.Device == "" }

// hosted is on how many of these slices a piece takes of the host's memory.
func (n *Node) hosted(id job.SliceID, also []job.SliceID) (pieces int) {
	if s := n.slice(id); s == nil || s.hosted() {
		pieces++
	}
	for _, id := range also {
		if s := n.slice(id); s == nil || s.hosted() {
			pieces++
		}
	}
	return pieces
}

// occupy appends who has a slice now or later, but for one. Who is past its end, and not confirmed gone, has it until further notice.
func (n *Node) occupy(now quantity.Instant, but job.Token, list []tenant) []tenant {
	for _, s := range n.slices {
		if !s.hosted() {
			continue
		}
		for _, r := range s.time.Sold() {
			if r.Token == but {
				continue
			}
			t := tenant{token: r.Token, slice: s.id, start: r.Start, end: r.End}
			if l := n.lease(r.Token); l != nil {
				t.peak = peakOf(l.peak, l.demand)
			} else if i, found := n.findGrant(r.Token); found {
				t.peak = n.grants[i].peak
			} else {
				continue
			}
			if t.end <= now {
				t.end = quantity.Never
			}
			list = append(list, t)
		}
	}
	return list
}

// tenancy is the same in room of the node's own, good until the next time.
func (n *Node) tenancy(now quantity.Instant, but job.Token) []tenant {
	n.host.tenants = n.occupy(now, but, n.host.tenants[:0])
	return n.host.tenants
}

// fullest is the load within [from, to) that needs most memory, with so many more pieces of a peak. It changes only where somebody begins.
func (h *hostMemory) fullest(from, to quantity.Instant, list []tenant, peak trp.Peak, pieces int) (most joint.Load) {
	need := quantity.Amount(-1)
	at := func(t quantity.Instant) {
		var l joint.Load
		for i := range list {
			if x := &list[i]; x.start <= t && t < x.end {
				l.Add(x.peak)
			}
		}
		for range pieces {
			l.Add(peak)
		}
		if m := h.Need(&l, h.correlation()); m > need {
			most, need = l, m
		}
	}
	at(from)
	for i := range list {
		if x := &list[i]; x.start > from && x.start < to {
			at(x.start)
		}
	}
	return most
}

// overcrowds says why the host has not the memory for so many more pieces of a peak within [from, to), beside all but one; empty if it has, or if it is not
// known how much it has.
func (n *Node) overcrowds(now, from, to quantity.Instant, peak trp.Peak, pieces int, but job.Token) string {
	h := &n.host
	if !h.Counted() || pieces == 0 {
		return ""
	}
	load := h.fullest(max(now, from), to, n.tenancy(now, but), peak, pieces)
	if h.Need(&load, h.correlation()) <= h.Memory {
		return ""
	}
	return h.Explain(&load, h.correlation())
}

// bear finds what each slice may be offered with, if that may have changed: what is spare from its first gap on, whoever comes then, in eighths. So
// nobody asks for what would be refused, unless somebody else was faster.
func (n *Node) bear(now quantity.Instant) {
	h := &n.host
	if !h.Counted() || !h.stale && (h.passes == 0 || now < h.passes) || !n.confirmed {
		return
	}
	h.stale, h.passes = false, 0
	list := n.tenancy(now, job.Token{})
	for i := range list {
		if end := list[i].end; end != quantity.Never && (h.passes == 0 || end < h.passes) {
			h.passes = end
		}
	}
	for _, s := range n.slices {
		if !s.hosted() {
			continue
		}
		from := now
		if n.host.gap, _ = s.time.Gaps(now, n.cfg.Horizon, n.cfg.MinGap, n.host.gap[:0]); len(n.host.gap) > 0 {
			from = max(now, n.host.gap[0].Start)
		}
		load := h.fullest(from, quantity.Never, list, trp.Peak{}, 0)
		if bears := inEighths(h.Spare(&load, h.correlation()), s.desc.Capacity[trp.Memory]); bears != s.desc.Bears || s.desc.Host != h.Memory {
			s.desc.Host, s.desc.Bears = h.Memory, bears
			n.reshow(s)
			if n.market != nil && s.known {
				n.market.Place(&s.desc)
			}
		}
	}
}

// inEighths is an amount as whole eighths of a capacity, the capacity at most.
func inEighths(a, capacity quantity.Amount) quantity.Amount {
	if a >= capacity {
		return capacity
	}
	k := quantity.Amount(eighths - 1)
	for ; k > 0 && eighth(capacity, k) > a; k-- {
	}
	return eighth(capacity, k)
}

func eighth(capacity, k quantity.Amount) quantity.Amount {
	return capacity/eighths*k + capacity%eighths*k/eighths
}

// learn takes in how far the peak of a subjob that ends now was from what was foreseen, if it came to the end of its range: only then was that the peak
// of all of it.
func (n *Node) learn(now quantity.Instant, l *lease, r *job.Result) {
	if h := &n.host; h.Counted() && n.hosted(l.slice, nil) > 0 && l.seen() && r.Outcome == job.Done && h.learner.Observe(l.at, now, l.peak, r.Peak[trp.Memory]) {
		h.stale = true
	}
}

// crowded is why a slice is offered with less than it has, for people; empty if it is not.
func (n *Node) crowded(now quantity.Instant, s *slice) string {
	h := &n.host
	if !h.Counted() || !s.hosted() || s.desc.Bears >= s.desc.Capacity[trp.Memory] {
		return ""
	}
	load := h.fullest(now, now+1, n.occupy(now, job.Token{}, nil), trp.Peak{}, 0)
	return h.Offers(&load, h.correlation(), s.desc.Bears, s.desc.Capacity[trp.Memory])
}
