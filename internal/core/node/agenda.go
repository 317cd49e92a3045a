package node

import (
	"cmp"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// agenda is what a step looks at: the slices and leases that have changed, and those whose time has come. Nothing walks all of
// them. What is found in it is what the plain pass over everything finds, in the same order; tests hold the two together.
type agenda struct {
	// alarms says when each lease needs attention next. stirred leases have changed since theirs was set.
	alarms  alarm.Heap[*lease]
	stirred dirty.Set[*lease]
	// pending leases are due and have not begun, because their place is still in use. In order of token.
	pending []*lease
	// unshown slices may have to be offered; renewals are by when gaps come into sight, passings by when a reservation is over, departures
	// by when what others hold is.
	unshown                        dirty.Set[*slice]
	renewals, passings, departures alarm.Heap[*slice]

	// Room for what is looked at.
	lookedAt []*slice
	attended []*lease
	ids      []uint64
}

// stir notes that a lease has changed, and that its alarm is to be set again.
func (n *Node) stir(l *lease) {
	n.stirred.Add(&l.stirred, l)
}

// show notes that a slice has changed, and so what its host bears; reshow that it may have to be offered, showAgain that it is, whatever
// has changed.
func (n *Node) show(s *slice) {
	n.host.stale = true
	n.reshow(s)
}

func (n *Node) reshow(s *slice) {
	n.unshown.Add(&s.dirty, s)
	n.probes.dim(s)
	if n.market != nil {
		n.market.Changed(s.id)
	}
}

func (n *Node) showAgain(s *slice) {
	s.shown = nil
	n.reshow(s)
}

// attention is when a lease needs attention without an input: something is sent again, it is to begin, or its end has passed.
func (n *Node) attention(now quantity.Instant, l *lease) quantity.Instant {
	switch {
	case l.phase == leaseGone:
		return quantity.Never
	case l.retry != 0:
		return l.retry
	case l.vacated() || !n.confirmed:
		return quantity.Never
	case l.issued():
		return l.end.Add(n.cfg.ResultRetry)
	case l.start > now:
		return l.start
	default: // its place is still in use
		return n.tries(now, l)
	}
}

// rearm sets the alarms of leases that have changed. Those that are due to begin are pending.
func (n *Node) rearm(now quantity.Instant) {
	n.stirred.Drain(func(l *lease) {
		n.alarms.Set(&l.slot, l, n.attention(now, l))
		if !l.pending && l.phase == leaseSold && l.start <= now {
			i, _ := slices.BinarySearchFunc(n.pending, l.token, func(l *lease, t job.Token) int { return l.token.Compare(t) })
			n.pending = slices.Insert(n.pending, i, l)
			l.pending = true
		}
	})
}

// due are the leases that need attention now, in order of token; their alarms are set again afterwards. What has begun or is over
// is not pending any more.
func (n *Node) due(now quantity.Instant) []*lease {
	n.rearm(now)
	n.attended = n.attended[:0]
	for l, ok := n.alarms.Due(now); ok; l, ok = n.alarms.Due(now) {
		n.attended = append(n.attended, l)
		n.stir(l)
	}
	n.rearm(now)
	n.pending = slices.DeleteFunc(n.pending, func(l *lease) bool {
		l.pending = l.phase == leaseSold
		return !l.pending
	})
	slices.SortFunc(n.attended, func(a, b *lease) int { return a.token.Compare(b.token) })
	return n.attended
}

// unseen are the slices that may have to be offered, in order of id. They are not noted any more.
func (n *Node) unseen(now quantity.Instant) []*slice {
	for s, ok := n.renewals.Due(now); ok; s, ok = n.renewals.Due(now) {
		n.reshow(s)
	}
	list := append(n.lookedAt[:0], n.unshown.List()...)
	n.unshown.Clear()
	return n.inOrder(list)
}

// expired are the slices on which a reservation is over, in order of id.
func (n *Node) expired(now quantity.Instant) []*slice {
	list := n.lookedAt[:0]
	for s, ok := n.passings.Due(now); ok; s, ok = n.passings.Due(now) {
		list = append(list, s)
	}
	return n.inOrder(list)
}

func (n *Node) inOrder(list []*slice) []*slice {
	slices.SortFunc(list, func(a, b *slice) int { return cmp.Compare(a.id, b.id) })
	n.lookedAt = list
	return list
}

// expire sets the alarm for the reservations of a slice that end by themselves.
func (n *Node) expire(s *slice) {
	first := quantity.Never
	for _, r := range s.time.Closed() {
		if r.Every == 0 && !soft(r.ID) {
			first = min(first, r.End)
		}
	}
	n.passings.Set(&s.passing, s, first)
}

// leasesOn are the leases on a slice that have not ended, in order of token.
func (n *Node) leasesOn(s *slice) (list []*lease) {
	for _, r := range s.time.Sold() {
		if r.Kind == protocol.ForLease {
			list = append(list, n.lease(r.Token))
		}
	}
	slices.SortFunc(list, func(a, b *lease) int { return a.token.Compare(b.token) })
	return list
}

// byToken are all leases, in order of token.
func (n *Node) byToken() []*lease {
	return slices.SortedFunc(maps.Values(n.leases), func(a, b *lease) int { return a.token.Compare(b.token) })
}

// addLease takes a lease in, removeLease takes it out.
func (n *Node) addLease(l *lease) {
	n.leases[l.token] = l
	of := n.ofJob[l.job]
	if of.first == nil {
		of.first = l
	} else {
		of.others = append(of.others, l)
	}
	n.ofJob[l.job] = of
	n.stir(l)
}

func (n *Node) removeLease(l *lease) {
	delete(n.leases, l.token)
	n.wishes.Over(l.token)
	n.stir(l)
	of := n.ofJob[l.job]
	last := len(of.others) - 1
	if last < 0 {
		delete(n.ofJob, l.job)
		return
	}
	if of.first == l {
		of.first = of.others[last]
	} else {
		of.others[slices.Index(of.others, l)] = of.others[last]
	}
	of.others[last] = nil
	of.others = of.others[:last]
	n.ofJob[l.job] = of
}

// some are the leases of one job, in no order: most have one at a node.
type some struct {
	first  *lease
	others []*lease
}

// all of them.
func (s some) all(yield func(*lease) bool) {
	if s.first == nil || !yield(s.first) {
		return
	}
	for _, l := range s.others {
		if !yield(l) {
			return
		}
	}
}

// orNever is an instant that 0 stands for none of.
func orNever(t quantity.Instant) quantity.Instant {
	if t == 0 {
		return quantity.Never
	}
	return t
}
