package bidder

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// learned is what an agent knows from its own subjobs: how long a unit takes, and how far the declared memory is off. It is
// simpler than what a home learns: the slowest of the last runs, and a step at every memory kill.
type learned struct {
	protocol.Learned
	// bids of the last rounds, and of them those that were awarded and have not concluded.
	bids []bid
	won  []bid
	// largest memory of a slice that was ever on offer.
	largest quantity.Amount
	// caution is how many times the room is left that the agent plans to use, in parts per thousand; 0: it uses all. A
	// scheduler that has seen it take longer than it said makes its variants longer than they are, and then they do not fit.
	caution int64
}

// bid is a variant with what its window was like.
type bid struct {
	protocol.Variant
	round    uint64
	speed    int64
	capacity quantity.Amount
	first    bool
}

const (
	// keptBids and keptWon bound what is remembered; older ones teach nothing.
	keptBids, keptWon = 1024, 256
	// Margins on a declared and on an observed time of a unit, and what a missed deadline multiplies it by, in parts per
	// thousand.
	declaredMargin, observedMargin, missedMargin, mostMargin = 1250, 1050, 1500, 16_000
	// The least raise of the profile after a memory kill, and the headroom over the peak, in parts per thousand.
	memoryStep, memoryHeadroom = 1150, 1100
	// How caution grows with a round in which all was denied, and falls with one in which something was sold.
	moreCaution, lessCaution, mostCaution = 1500, 950, 8000
)

// room is how much of a window the agent uses.
func (l *learned) room(window time.Duration) time.Duration {
	if l.caution <= 1000 {
		return window
	}
	return time.Duration(quantity.MulDiv(int64(window), 1000, l.caution))
}

// said remembers what was bid.
func (l *learned) said(c *protocol.Call, variants []protocol.Variant) {
	for i := range c.Windows {
		l.largest = max(l.largest, c.Windows[i].Capacity[trp.Memory])
	}
	for i := range variants {
		v := &variants[i]
		w := slices.IndexFunc(c.Windows, func(a protocol.Advert) bool { return a.Window == v.Window })
		if w < 0 || len(l.bids) >= keptBids {
			continue
		}
		l.bids = append(l.bids, bid{*v, c.Round, c.Windows[w].Speed, c.Windows[w].Capacity[trp.Memory], c.First})
	}
}

// told records what became of the bids of a round, or of a subjob.
func (l *learned) told(spec *job.Spec, round uint64, notices []protocol.Notice) {
	stood, denied := false, false
	for i := range notices {
		n := &notices[i]
		at := slices.IndexFunc(l.bids, func(b bid) bool { return b.round == round && b.Window == n.Window && b.ID == n.Variant })
		switch n.Kind {
		case protocol.Awarded:
			l.caution = quantity.MulDiv(l.caution, lessCaution, 1000)
			stood = true
			if at >= 0 {
				if len(l.won) >= keptWon {
					l.won = slices.Delete(l.won, 0, 1)
				}
				l.won = append(l.won, l.bids[at])
			}
		case protocol.Planned, protocol.Lost:
			stood = true
		case protocol.Denied: // what it has won already is denied for a good reason
			denied = denied || at >= 0 && !slices.ContainsFunc(l.won, func(b bid) bool { return b.Range.Overlaps(l.bids[at].Range) })
		case protocol.Concluded:
			if i := slices.IndexFunc(l.won, func(b bid) bool {
				return b.Window == n.Window || !n.Range.Empty() &&
					b.Range.From == n.Range.From
			}); i >= 0 {
				l.concluded(spec, &l.won[i], n)
				l.won = slices.Delete(l.won, i, i+1)
			}
		}
	}
	if denied && !stood {
		l.caution = min(mostCaution, quantity.MulDiv(max(1000, l.caution), moreCaution, 1000))
	}
	// A round is reported as a whole: its bids are settled.
	l.bids = slices.DeleteFunc(l.bids, func(b bid) bool { return b.round < round })
}

// concluded learns from a subjob that has ended.
func (l *learned) concluded(spec *job.Spec, b *bid, n *protocol.Notice) {
	if l.Margin == 0 {
		l.Margin = declaredMargin
	}
	whole := n.Outcome == job.Done || n.Outcome == job.Yielded || n.Outcome == job.DeadlineKilled
	if units := n.Range.Len(); whole && units > 0 && n.Ran > 0 {
		overhead := spec.Startup
		if !b.first && spec.Kind == job.Steps {
			overhead += spec.Restore
		}
		if n.Range.To < spec.Total {
			overhead += spec.Checkpoint
		}
		work := n.Ran - min(overhead, n.Ran/2)
		l.Rates = append(l.Rates, max(1, time.Duration(quantity.MulDiv(int64(work), max(1, b.speed), 1000*units))))
		if extra := len(l.Rates) - protocol.MaxRates; extra > 0 {
			l.Rates = slices.Delete(l.Rates, 0, extra)
		}
		l.Rate, l.Margin = slices.Max(l.Rates), observedMargin
	}
	switch n.Outcome {
	case job.DeadlineKilled:
		l.Margin = min(mostMargin, quantity.MulDiv(l.Margin, missedMargin, 1000))
	case job.MemoryKilled:
		l.killed(spec, b, n)
	default: // it says nothing more of time and memory
	}
}

// killed raises the profile so far that what outgrew its slice is not bid there again; with its headroom no further than the
// largest slice holds, unless it was killed there.
func (l *learned) killed(spec *job.Spec, b *bid, n *protocol.Notice) {
	before := max(l.MemoryScale, trp.Unscaled)
	scale := quantity.MulDiv(before, memoryStep, 1000)
	least, peak := int64(spec.Safe.LeastOver(b.Range.From, b.Range.To, trp.Unscaled)), int64(spec.Safe.Peak(trp.Unscaled))
	if least > 0 && peak > 0 {
		scale = max(scale, quantity.MulDiv(int64(n.Peak[trp.Memory]), memoryHeadroom, least))
		if b.capacity < l.largest {
			refused, holds := quantity.MulDiv(int64(b.capacity), 1000, least)+1, quantity.MulDiv(int64(l.largest), 1000, peak)-1
			scale = min(scale, max(before, refused, holds))
		}
	}
	l.MemoryScale = scale
}
