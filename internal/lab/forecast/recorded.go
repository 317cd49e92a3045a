package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// Recorded is the log of a history, which names its devices.
func Recorded(h *history.History) *Log {
	l := &Log{From: h.From, To: h.To}
	for i, d := range h.Devices {
		node, kind := &h.Nodes[d.Node], h.Kinds[d.Kind].Name
		l.Devices = append(l.Devices, Device{
			Name: fmt.Sprintf("%s/%s/%05d", node.Name, kind, i-int(node.First)), Partition: partition(h, i), Kind: kind, Busy: taken(h, i),
		})
	}
	slices.SortFunc(l.Devices, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	l.Said = append(l.Said, fmt.Sprintf("The record: %d runs on %d GPUs or slices of %d nodes over %d whole days.", len(h.Runs),
		len(h.Devices), len(h.Nodes), l.Days()))
	l.Said = append(l.Said, h.Assumptions...)
	for _, o := range h.Oddities {
		l.Said = append(l.Said, fmt.Sprintf("%s (%d times): %s.", o.Name, o.Count, o.Done))
	}
	return l
}

// taken is when a device can't be filled.
func taken(h *history.History, device int) (busy []Span) {
	for _, x := range h.Held[device] {
		run := &h.Runs[x.Run]
		asked := run.Eligible
		if asked == quantity.Never {
			asked = run.Submit
		}
		if s := (Span{max(x.From, h.From), min(x.To, h.To), min(asked, x.From), false}); s.From < s.To {
			busy = append(busy, s)
		}
	}
	have := slices.Collect(h.Idle(device, true))
	for g := range h.Idle(device, false) {
		at := g.From
		for _, x := range have {
			if x.To <= g.From || x.From >= g.To {
				continue
			}
			if x.From > at {
				busy = append(busy, Span{at, x.From, at, true})
			}
			at = x.To
		}
		if at < g.To {
			busy = append(busy, Span{at, g.To, at, true})
		}
	}
	slices.SortFunc(busy, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return busy
}

// partition is the one whose jobs held a device longest, or else the first that its node is in.
func partition(h *history.History, device int) string {
	held := map[history.Name]time.Duration{}
	for _, x := range h.Held[device] {
		held[h.Runs[x.Run].Partition] += x.To.Sub(x.From)
	}
	best := history.Name(0)
	for name, long := range held { //sluice:sorted of equal ones the first by name
		if name != 0 && (best == 0 || long > held[best] || long == held[best] && h.Name(name) < h.Name(best)) {
			best = name
		}
	}
	if in := h.Nodes[h.Devices[device].Node].Partitions; best == 0 && len(in) > 0 {
		return in[0]
	}
	return h.Name(best)
}
