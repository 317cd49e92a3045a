package place

import (
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/planner"
)

// draw picks a node uniformly among those with room, then one of its pools with room.
func (r *rater) draw(v *view, s *prng.Stream) (int, rating) {
	rank := v.column.nth(s.IntN(v.column.fit))
	n, t := &r.state.Nodes[r.order[rank]], &v.piece
	way, room := rating{}, 0
	for i := range n.Pools {
		if q := &n.Pools[i]; t.Classes>>q.Class&1 != 0 && q.Room(t.Share, t.Devices) {
			// Each pool replaces those before it with the chance that makes all alike.
			if room++; room == 1 || s.IntN(room) == 0 {
				way.pool = i
			}
		}
	}
	return rank, way
}

// drawDevice picks one uniformly among the devices of a pool that a share fits on.
func (r *rater) drawDevice(q *Pool, t *planner.Task, s *prng.Stream) planner.Device {
	room := int32(0)
	for _, l := range q.Levels[q.Least(t.Share):] {
		room += l.Count
	}
	n := s.IntN(int(room))
	for _, d := range q.Devices {
		if r.state.Left(d) < t.Share {
			continue
		}
		if n == 0 {
			return d
		}
		n--
	}
	panic("place: a level counts a device that is not there")
}
