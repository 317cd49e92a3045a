package oom

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// earlyoom is earlyoom 1.9 with its defaults (its MANPAGE.md, and main.c and kill.c for what that leaves open): where available memory and
// free swap are both at or below 10% it sends SIGTERM to the process with the highest oom_score, at or below 5% SIGKILL. Shares of memory
// are of what processes could have (a tmpfs takes of it). It looks ten times a second, less often the farther it is from its lines: as if
// memory filled at 6,000 MiB/s and swap at 800. Whom it has signalled it waits for, ten seconds at most, and follows SIGTERM by SIGKILL if
// the lower lines are reached meanwhile.
type earlyoom struct {
	next quantity.Instant
	// victim is waited for since then; 0: nobody is.
	victim uint64
	since  quantity.Instant
	killed bool
}

// Look implements Killer.
func (e *earlyoom) Look(now quantity.Instant, h *Host) []Kill {
	if now < e.next {
		return nil
	}
	user := h.Capacity - h.Unowned
	below := func(permille int64) bool {
		return h.Available <= share(user, permille) && h.SwapFree <= share(h.Swap, permille)
	}
	if e.since != 0 {
		i := most(h, func(p *Process) bool { return p.ID == e.victim }, larger)
		switch {
		case i < 0 || now.Sub(e.since) >= 10*time.Second:
			e.since = 0
		case !e.killed && below(50):
			e.killed = true
			return []Kill{{Process: i}}
		default:
			return nil
		}
	}
	ms := max(0, h.Available-share(user, 100))>>10/6000 + max(0, h.SwapFree-share(h.Swap, 100))>>10/800 // KiB, and KiB in a millisecond
	e.next = now.Add(time.Duration(max(100, min(1000, ms))) * time.Millisecond)
	if !below(100) {
		return nil
	}
	i := most(h, anybody, func(a, b *Process) int { return cmp.Or(larger(a, b), cmp.Compare(a.Resident, b.Resident)) })
	if i < 0 {
		return nil
	}
	e.victim, e.since, e.killed = h.Processes[i].ID, now, below(50)
	return []Kill{{Process: i, Term: !e.killed}}
}

// Badness implements Killer.
func (*earlyoom) Badness(_ *Host, p *Process) int64 { return int64(p.size()) }

// share of an amount in parts per thousand.
func share(of quantity.Amount, permille int64) quantity.Amount {
	return quantity.Amount(quantity.MulDiv(int64(of), permille, 1000))
}
