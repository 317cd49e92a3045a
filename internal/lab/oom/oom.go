// Package oom has the tools that others use where a host's memory runs out, to compare Airlock with in the simulator: each as documented,
// with its own defaults, sensor and period. A killer sees a host as its tool does and names what it ends; the world (lab/sim) does it.
package oom

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Process is one subjob as killers see it. Nobody has told them what it is worth, but for what its own kind of scheduler would have:
// Request, Priority, Owner and Retriable.
type Process struct {
	// ID tells processes apart, in the order in which they were granted.
	ID uint64
	// Resident is what it has in memory, Swapped what of it lies in swap.
	Resident, Swapped quantity.Amount
	// Request is what was planned for it, Owner the job that it is of.
	Request   quantity.Amount
	Priority  int32
	Owner     string
	Retriable bool
	// Start is when it was granted.
	Start quantity.Instant
	// Ending: it was told to end, and is still there.
	Ending bool
}

// size is what it has in all, which is what the kernel counts.
func (p *Process) size() quantity.Amount { return p.Resident + p.Swapped }

// Host is a host at one look.
type Host struct {
	// Capacity of its memory, and what of it is available: free, or page cache that can be dropped.
	Capacity, Available quantity.Amount
	// Unowned is memory that is no process's and can't be dropped.
	Unowned quantity.Amount
	// Swap in all, and what is free of it.
	Swap, SwapFree quantity.Amount
	// Pressure is PSI's "full" over ten seconds: the share of time in which all processes were stalled for want of memory, in parts per
	// thousand.
	Pressure int64
	// Scanned: something was reclaimed since the last look of the world.
	Scanned bool
	// Processes in order of ID.
	Processes []Process
}

// Kill is one process that is ended, by its place.
type Kill struct {
	Process int
	// Term is SIGTERM: it may leave a checkpoint. Otherwise it is SIGKILL.
	Term bool
}

// Killer is one tool on one host. It remembers what the tool remembers.
type Killer interface {
	// Look says whom it ends. It is called with every look of the world, which is more often than the tool looks.
	Look(now quantity.Instant, h *Host) []Kill
	// Badness is the kernel's score of a process under this tool: it sets oom_score_adj, or leaves it at 0. Where the memory ends the
	// kernel ends the highest, whoever else is there.
	Badness(h *Host, p *Process) int64
}

// kernel is its OOM killer where nobody has set anything: oom_badness() is what a process has in memory and in swap, and oom_score_adj is
// 0 (mm/oom_kill.c; Documentation/filesystems/proc.rst, 3.1 of Linux).
type kernel struct{}

// Look implements Killer.
func (*kernel) Look(quantity.Instant, *Host) []Kill { return nil }

// Badness implements Killer.
func (*kernel) Badness(_ *Host, p *Process) int64 { return int64(p.size()) }

// every says whether a tool that looks every so often looks now: looks are on a grid, so that no storm is met by one at its first moment.
type every struct{ next quantity.Instant }

func (e *every) due(now quantity.Instant, period time.Duration) bool {
	if now < e.next {
		return false
	}
	e.next = now - now%quantity.Instant(period) + quantity.Instant(period)
	return true
}

// most is the place of the process that is greatest by an order, of those that count; -1: there is none.
func most(h *Host, counts func(*Process) bool, order func(a, b *Process) int) int {
	best := -1
	for i := range h.Processes {
		if p := &h.Processes[i]; counts(p) && (best < 0 || order(p, &h.Processes[best]) > 0) {
			best = i
		}
	}
	return best
}

// larger compares by what the kernel counts.
func larger(a, b *Process) int { return cmp.Compare(a.size(), b.size()) }

func anybody(*Process) bool { return true }
