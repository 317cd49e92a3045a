package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// Recorded is the log of a history.
func Recorded(h *history.History) *Log {
	l := &Log{From: h.From, To: h.To}
	for i, d := range h.Devices {
		node, kind := &h.Nodes[d.Node], h.Kinds[d.Kind].Name
		l.Devices = append(l.Devices, Device{
			Name: fmt.Sprintf("%s/%s/%05d", node.Name, kind, i-int(node.First)), Partition: partition(h, i), Kind: kind, Busy: taken(h, i),
		})
	}
	ran := 0
	for i := range h.Runs {
		if h.Runs[i].Ran() {
			ran++
		}
	}
	slices.SortFunc(l.Devices, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	of := ""
	if !h.Anywhere {
		of = fmt.Sprintf(" or slices of %d nodes", len(h.Nodes))
	}
	l.Said = append(l.Said, fmt.Sprintf("The record: %d runs on %d GPUs%s over %d whole days.", ran, len(h.Devices), of, l.Days()))
	for _, x := range h.Assumptions {
		l.Said = append(l.Said, sentence(x))
	}
	for _, o := range h.Oddities {
		l.Said = append(l.Said, sentence(fmt.Sprintf("%s (%d times): %s", o.Name, o.Count, o.Done)))
	}
	return l
}

// sentence of words that begin small and end without a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// taken is when a device can't be filled.
func taken(h *history.History, device int) (busy []Span) {
	for _, x := range h.Held[device] {
		run := &h.Runs[x.Run]
		asked := run.Eligible
		if asked == quantity.Never {
			asked = run.Submit
		}
		if s := (Span{max(x.From, h.From), x.To, min(asked, x.From), false}); s.From < s.To {
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

// partition is the one whose jobs held a device longest, or else the first that its node is in. Where the log does not say on which devices
// jobs ran a device has none.
func partition(h *history.History, device int) string {
	if h.Anywhere {
		return ""
	}
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
