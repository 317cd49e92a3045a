package zone

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// slice is one slice as the zone knows it: the node's last view and the windows announced from it.
type slice struct {
	id      job.SliceID
	view    *protocol.SliceView
	epoch   uint32
	windows []window
	// stale: the node refused something decided on this view; nothing is asked of it until then or until a view comes that
	// differs.
	stale quantity.Instant
}

// window is one advertised gap.
type window struct {
	id         uint64
	start, end quantity.Instant
	until      protocol.ReservationKind
	// generation of changes up to which every job has been asked; 0 for a window not announced yet.
	generation uint64
	// answers and asked count the interested jobs and those that were asked, in the last full round.
	answers, asked int
	// short, unsafe, barred and busy count why jobs were not interested in the last full round.
	short, unsafe, barred, busy int
}

// offered takes in a node's view of a slice. A view older than the one at hand is dropped.
func (z *Zone) offered(in *protocol.Message) {
	v := in.View
	i := slices.IndexFunc(z.slices, func(s *slice) bool { return s.id == v.Slice.ID })
	if i < 0 {
		z.slices = append(z.slices, &slice{id: v.Slice.ID, view: v, epoch: in.Epoch})
		slices.SortFunc(z.slices, func(a, b *slice) int {
			return cmp.Or(cmp.Compare(a.view.Slice.Capacity[trp.Memory], b.view.Slice.Capacity[trp.Memory]), cmp.Compare(a.id, b.id))
		})
	} else {
		s := z.slices[i]
		if in.Epoch < s.epoch || in.Epoch == s.epoch && v.Version <= s.view.Version {
			return
		}
		if s.stale != 0 && !sameView(s.view, v) {
			s.stale = 0
		}
		s.view, s.epoch = v, in.Epoch
	}
	z.plans = slices.DeleteFunc(z.plans, func(p plan) bool {
		return p.slice == v.Slice.ID && slices.ContainsFunc(v.Reserved, func(r protocol.Reservation) bool {
			return r.Kind == protocol.ForRigid && r.Job == p.job && r.Start == p.start && r.End == p.end
		})
	})
}

// sameView says whether two views lead to the same decisions. The start of the first gap moves with the clock.
func sameView(a, b *protocol.SliceView) bool {
	return a.Usable == b.Usable && slices.Equal(a.Reserved, b.Reserved) && slices.EqualFunc(a.Gaps, b.Gaps, func(g, h protocol.Gap) bool {
		return g.End == h.End && g.Until == h.Until
	})
}

// speed is how fast a job runs on the slice, in parts per thousand; 0 if it can not.
func (s *slice) speed(spec *job.Spec) int64 {
	return spec.SpeedOn(s.view.Slice.Profile, s.view.Slice.Speed)
}

// slice finds a slice by its id; nil if no node has offered it.
func (z *Zone) slice(id job.SliceID) *slice {
	for _, s := range z.slices {
		if s.id == id {
			return s
		}
	}
	return nil
}

// free is the slice's time that is not sold: the node's gaps without the claims, asks and plans that its view can not
// know of yet. A job's own reservation counts as free for it.
func (z *Zone) free(s *slice, now quantity.Instant, own job.ID, out []protocol.Gap) []protocol.Gap {
	out = out[:0]
	if !s.view.Usable || s.stale > now {
		return out
	}
	for _, g := range s.view.Gaps {
		if g.Start = max(g.Start, now); g.Start < g.End {
			out = append(out, g)
		}
	}
	if own != "" {
		for _, r := range s.view.Reserved {
			if r.Kind == protocol.ForRigid && r.Job == own && r.End > now {
				out = join(out, protocol.Gap{Start: max(r.Start, now), End: r.End})
			}
		}
	}
	for _, st := range z.busy {
		for i := range st.Claims {
			if c := &st.Claims[i]; c.Slice == s.id || slices.Contains(c.Also, s.id) {
				out = carve(out, c.Start, c.End, protocol.ForLease)
			}
		}
	}
	for _, a := range z.asks {
		if a.slice == s || slices.Contains(a.also, s.id) {
			out = carve(out, a.piece.start, a.piece.end, protocol.ForLease)
		}
	}
	for _, p := range z.plans {
		if p.slice == s.id && p.job != own {
			out = carve(out, p.start, p.end, protocol.ForRigid)
		}
	}
	return out
}

// carve takes [start, end) out of ordered gaps.
func carve(gaps []protocol.Gap, start, end quantity.Instant, kind protocol.ReservationKind) []protocol.Gap {
	for i := 0; i < len(gaps); i++ {
		g := gaps[i]
		switch {
		case g.End <= start || end <= g.Start:
		case start <= g.Start && g.End <= end:
			gaps = slices.Delete(gaps, i, i+1)
			i--
		case start <= g.Start:
			gaps[i].Start = end
		case g.End <= end:
			gaps[i].End, gaps[i].Until = start, kind
		default:
			gaps[i].End, gaps[i].Until = start, kind
			g.Start = end
			gaps = slices.Insert(gaps, i+1, g)
			i++
		}
	}
	return gaps
}

// join adds a stretch to ordered gaps and merges what touches.
func join(gaps []protocol.Gap, g protocol.Gap) []protocol.Gap {
	i, _ := slices.BinarySearchFunc(gaps, g.Start, func(a protocol.Gap, t quantity.Instant) int { return cmp.Compare(a.Start, t) })
	gaps = slices.Insert(gaps, i, g)
	for i = max(0, i-1); i+1 < len(gaps); {
		if gaps[i].End < gaps[i+1].Start {
			i++
			continue
		}
		if gaps[i+1].End >= gaps[i].End {
			gaps[i].End, gaps[i].Until = gaps[i+1].End, gaps[i+1].Until
		}
		gaps = slices.Delete(gaps, i+1, i+2)
	}
	return gaps
}

// announce derives the slice's windows from its free time. A window that only lost time at its front because the clock
// moved on keeps its id and its answers; one that was cut by a grant or grew is announced anew.
func (z *Zone) announce(s *slice, now quantity.Instant, gaps []protocol.Gap) {
	old := s.windows
	var next []window
	for _, g := range gaps {
		if g.End.Sub(g.Start) < z.cfg.MinWindow {
			continue
		}
		w := window{start: g.Start, end: g.End, until: g.Until}
		i := slices.IndexFunc(old, func(o window) bool {
			return o.end == g.End && o.until == g.Until && (o.start == g.Start || o.start <= now && g.Start <= now)
		})
		if i >= 0 {
			w = old[i]
			w.start = g.Start
		} else {
			z.nextWindow++
			w.id = z.nextWindow
		}
		next = append(next, w)
	}
	s.windows = next
}
