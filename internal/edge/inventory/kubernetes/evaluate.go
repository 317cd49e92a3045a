//go:build kubernetes

package kubernetes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// scene is all input of one machine's evaluation.
type scene struct {
	*machine
	pools          []Pool
	resourceSlices []*resourceSlice
	claims         []*claim // with devices of a pool that is on the machine
	pods           []*pod   // Pods bound to it
	// pod finds any Pod by its key; limits is until when an owner lets its Pods run; class finds DeviceClasses.
	pod    func(key string) *pod
	limits func(types.UID) quantity.Instant
	class  classes
	// likely estimates a Pod's end from earlier Pods of its owner; nil: no estimates.
	likely func(*pod) quantity.Instant
	now    quantity.Instant
}

// stand is the result of an evaluation: a machine's slices by ID, and what others hold of each.
type stand struct {
	slices   []protocol.Slice
	closures map[job.SliceID][]protocol.Reservation
	// pool that each slice is of.
	pool map[job.SliceID]*Pool
	// seats says, for each extended resource, which Pod is taken to hold which number (seat).
	seats map[string]map[int]types.UID
	// leftOut counts devices that can't be offered.
	leftOut omitted
	// published are the drivers' pools, as of when each was last complete.
	published map[pooled]published
	// listed is how many slices of each extended resource are listed, and fell since when the machine has had fewer.
	listed map[string]int64
	fell   map[string]quantity.Instant
	// faults are those reported of slices' GPUs; most slices have none.
	faults map[job.SliceID][]health.State
}

// evaluate computes which slices a machine has and what others hold of them. before is the last result, nil at first.
func (s *scene) evaluate(before *stand) *stand {
	x := &stand{
		closures: map[job.SliceID][]protocol.Reservation{}, pool: map[job.SliceID]*Pool{}, seats: map[string]map[int]types.UID{},
		published: map[pooled]published{},
		listed:    map[string]int64{}, fell: map[string]quantity.Instant{}, leftOut: omitted{}, faults: map[job.SliceID][]health.State{},
	}
	s.evaluatePublished(x, before)
	s.evaluateCounted(x, before)
	slices.SortFunc(x.slices, func(a, b protocol.Slice) int { return cmp.Compare(a.ID, b.ID) })
	x.slices = slices.CompactFunc(x.slices, func(a, b protocol.Slice) bool {
		if a.ID == b.ID {
			x.leftOut.add(x.pool[a.ID], 1, "two devices are called %s", a.ID)
		}
		return a.ID == b.ID
	})
	for i := range x.slices {
		id := x.slices[i].ID
		x.closures[id] = append(x.closures[id], closes(x.pool[id], s.machine)...)
		x.faults[id] = append(slices.Clip(x.faults[id]), s.broken...)
	}
	return x
}

func (s *scene) evaluatePublished(x *stand, before *stand) {
	list, broken := gather(s.resourceSlices, before.published)
	for k := range broken {
		s.omit(x.leftOut, &broken[k])
	}
	for i := range list {
		p := &list[i]
		x.published[p.pooled] = *p
		offered := p.layout(s.machine, s.pools, s.class, x.leftOut)
		for id, r := range p.held(offered, s.stays(p)) {
			x.closures[id] = append(x.closures[id], r)
		}
		for k := range offered {
			x.slices = append(x.slices, offered[k].slice)
			x.pool[offered[k].slice.ID] = offered[k].pool
			x.faults[offered[k].slice.ID] = offered[k].taints
		}
	}
}

// omit counts the machine's devices of a pool that contradicts itself, for the first of our pools that has their class.
func (s *scene) omit(out omitted, c *contradiction) {
	for k := range c.devices {
		for _, i := range s.machine.pools {
			if d := &c.devices[k]; d.machine == s.Name && slices.ContainsFunc(s.pools[i].Classes,
				func(of Class) bool { return matches(&of, c.driver, d) }) {
				out.add(&s.pools[i], 1, "the pool %s of %s %s, and Kubernetes allocates nothing of it", c.pool, c.driver, c.why)
				break
			}
		}
	}
}

// stays are the allocated devices of a pool, by name.
func (s *scene) stays(p *published) map[string]stay {
	has := map[string]stay{}
	for _, c := range s.claims {
		for _, at := range c.has {
			if at.pooled != p.pooled {
				continue
			}
			y := stay{ours: c.ours, end: quantity.Never, who: "claim " + c.Namespace + "/" + c.Name}
			var last quantity.Instant
			for _, key := range c.by {
				t := s.pod(key)
				if t == nil {
					last = quantity.Never
					continue
				}
				y.ours = y.ours && t.ours // a claim's labels prove nothing, its Pod's seal does
				h := s.closure(t)
				last, y.who = max(last, h.End), h.Source
			}
			if len(c.by) > 0 {
				y.end = last
			}
			if old, there := has[at.device]; there && !old.ours { // allocated twice, which should not be: the later end counts
				y.end, y.ours = max(y.end, old.end), false
			}
			has[at.device] = y
		}
	}
	return has
}

// steady is how long slices of an extended resource stay listed, closed, after their number fell: a device plugin that restarts reports
// none for a while.
const steady = time.Minute

// stood is how many slices of a resource to list: as many as before for steady after their number fell.
func (s *scene) stood(name string, x, before *stand) int64 {
	n := s.counts[name]
	if n < before.listed[name] {
		since := cmp.Or(before.fell[name], s.now)
		if s.now < since.Add(steady) {
			n, x.fell[name] = before.listed[name], since
		}
	}
	if n > 0 {
		x.listed[name] = n
	}
	return n
}

func (s *scene) evaluateCounted(x *stand, before *stand) {
	done := map[string]bool{}
	for _, i := range s.machine.pools {
		for k := range s.pools[i].Resources {
			r := &s.pools[i].Resources[k]
			n := s.stood(r.Name, x, before)
			if done[r.Name] || n == 0 {
				continue
			}
			done[r.Name] = true
			list, why := counted(r, s.machine, n)
			if why != "" {
				x.leftOut.add(&s.pools[i], int(n), "%s", why)
				continue
			}
			others := map[types.UID]*pod{}
			var asking []*pod
			ours := map[int]bool{}
			for _, t := range s.pods {
				switch {
				case t.ours && slices.ContainsFunc(list, func(s protocol.Slice) bool { return s.ID == t.slice }):
					for n := range list {
						ours[n] = ours[n] || list[n].ID == t.slice
					}
				case t.need.asks[r.Name] > 0: // also ours, on a slice that is not listed any more
					others[t.UID], asking = t, append(asking, t)
				}
			}
			slices.SortFunc(asking, func(a, b *pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
			x.seats[r.Name] = seat(len(list), before.seats[r.Name], asking, func(t *pod) int64 { return t.need.asks[r.Name] }, ours)
			for k := s.counts[r.Name]; k < int64(len(list)); k++ {
				id := list[k].ID
				x.closures[id] = append(x.closures[id], protocol.Reservation{Kind: protocol.ForMaintenance, End: quantity.Never,
					Source: "node " + s.Name + " has fewer of " + r.Name + " than a moment ago"})
			}
			for n, s2 := range list {
				x.slices, x.pool[s2.ID] = append(x.slices, s2), &s.pools[i]
				if uid, taken := x.seats[r.Name][n]; taken {
					x.closures[s2.ID] = append(x.closures[s2.ID], s.closure(others[uid]))
				}
			}
		}
	}
}

// closure is the reservation that a Pod makes on its devices.
func (s *scene) closure(t *pod) protocol.Reservation {
	return protocol.Reservation{Kind: protocol.ForForeign, End: s.until(t), Source: cmp.Or(t.kind, "pod") + " " + t.Namespace + "/" +
		t.Name}
}

// until is when a Pod is gone: at its stated latest, else as estimated.
func (s *scene) until(t *pod) quantity.Instant {
	end := t.ends(s.limits)
	if end != quantity.Never || s.likely == nil || t.ours || t.life.forever {
		return end
	}
	return s.likely(t)
}
