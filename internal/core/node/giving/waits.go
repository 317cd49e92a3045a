package giving

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/core/status"
)

// mostWaits bounds the waits that are kept once they are over. The oldest go first.
const mostWaits = 256

// waits is how long those who wished for devices waited for subjobs to be gone. Soft, and for people: nothing follows from it.
type waits struct {
	// heard is when a wish was first heard, begun are those whose place takes devices from subjobs. Both only of wishes that are there.
	heard map[reclaim.ID]quantity.Instant
	begun map[reclaim.ID]status.HostWait
	over  []status.HostWait
	count uint64
}

// hear notes a wish.
func (w *waits) hear(now quantity.Instant, id reclaim.ID) {
	if w.heard == nil {
		w.heard, w.begun = map[reclaim.ID]quantity.Instant{}, map[reclaim.ID]status.HostWait{}
	}
	if _, known := w.heard[id]; !known {
		w.heard[id] = now
	}
}

// drop notes that a wish is there no more. One that was served has its devices.
func (w *waits) drop(now quantity.Instant, id reclaim.ID, served bool) {
	if served {
		w.end(now, id)
	}
	delete(w.heard, id)
	delete(w.begun, id)
}

// note begins the waits of wishes for which subjobs were chosen, and ends those of places that are free.
func (w *waits) note(list []candidate, k *reclaim.Keeper, machines []string) {
	for _, c := range list {
		from, known := w.heard[c.place.Wish]
		if _, begun := w.begun[c.place.Wish]; begun || !known {
			continue
		}
		w.begun[c.place.Wish] = status.HostWait{Wish: string(c.place.Wish), Who: reclaim.NameOf(c.place.Who), Job: c.Job,
			Pool: reclaim.PoolOf(k, c.place.Machine, c.slice), From: from}
	}
	for _, m := range machines {
		for _, p := range k.On(m) {
			if at := p.Freed(); at != 0 {
				w.end(at, p.Wish)
			}
		}
	}
}

// end ends a wait that has begun. A wish has one: what it waits for after that is not what subjobs had when it came.
func (w *waits) end(now quantity.Instant, id reclaim.ID) {
	x, begun := w.begun[id]
	if !begun || x.Number != 0 {
		return
	}
	w.count++
	x.Number, x.Until = w.count, now
	w.begun[id] = x
	if len(w.over) == mostWaits {
		w.over = slices.Delete(w.over, 0, 1)
	}
	w.over = append(w.over, x)
}

// since are those that are over with numbers above after; nil: none.
func (w *waits) since(after uint64) []status.HostWait {
	if w.count <= after {
		return nil
	}
	i, _ := slices.BinarySearchFunc(w.over, after+1, func(x status.HostWait, n uint64) int { return cmp.Compare(x.Number, n) })
	return slices.Clone(w.over[i:])
}
