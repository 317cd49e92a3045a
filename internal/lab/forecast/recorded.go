package forecast

import (
	"cmp"
	"fmt"
	"iter"
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
		node, kind := &h.Nodes[d.Node], &h.Kinds[d.Kind]
		l.Devices = append(l.Devices, Device{
			Name: fmt.Sprintf("%s/%s/%05d", node.Name, kind.Name, i-int(node.First)), Partition: partition(h, i), Kind: kind.Name,
			Weight: kind.Weight, Memory: kind.Memory, Busy: taken(h, i),
		})
	}
	measured(h, l)
	ran := 0
	for i := range h.Runs {
		if h.Runs[i].Ran() {
			ran++
		}
	}
	slices.SortFunc(l.Devices, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
	of := ""
	if !h.Anywhere {
		of = " or slices of " + history.Many(len(h.Nodes), "node")
	}
	l.Said = append(l.Said, fmt.Sprintf("The record: %s on %s%s over %s.", history.Many(ran, "run"),
		history.Many(len(h.Devices), "GPU"), of, history.Many(l.Days(), "whole day")))
	for _, x := range h.Assumptions {
		l.Said = append(l.Said, sentence(x))
	}
	for _, o := range h.Oddities {
		l.Odd = append(l.Odd, Odd{Says: o.Name, Count: o.Count, Done: o.Done, Places: o.Places})
	}
	return l
}

// sentence for people.
func (o *Odd) sentence() string {
	at := ""
	if len(o.Places) > 0 {
		at = ", at " + strings.Join(o.Places, ", ")
	}
	return sentence(fmt.Sprintf("%s (%d times%s): %s", o.Says, o.Count, at, o.Done))
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
		if s := (Span{x.From, x.To, min(asked, x.From), Job}); s.From < s.To && h.From < s.To {
			busy = append(busy, s)
		}
	}
	away := h.Nodes[h.Devices[device].Node].Away
	shut := func(from, to quantity.Instant) {
		if from >= to {
			return
		}
		for len(away) > 0 && away[0].To <= from {
			away = away[1:]
		}
		why := Away
		for k := 0; k < len(away) && away[k].From <= from; k++ {
			if away[k].Why == history.Reserved && away[k].To > from {
				why = Reserved
			}
		}
		busy = append(busy, Span{from, to, from, why})
	}
	have, stop := iter.Pull(h.Idle(device, true))
	defer stop()
	x, more := have()
	for g := range h.Idle(device, false) {
		at := g.From
		for ; more && x.From < g.To; x, more = have() {
			shut(at, x.From)
			at = x.To
		}
		shut(at, g.To)
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
