package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/oom"
)

// Storm is memory that nobody has foreseen.
type Storm struct {
	At   quantity.Instant
	Node job.NodeID
	// Shape is whose it is and how it comes.
	Shape Shape
	Size  quantity.Amount
	// For is how long it takes to be there in full, or stays.
	For time.Duration
}

// Shape of a storm.
type Shape uint8

// The shapes. One process is struck by the first four: the next one with each storm, in order of token, or one that is drawn.
const (
	// Leak: it grows by Size evenly for For, and keeps that.
	Leak Shape = iota
	// Jump: Size is there at once, and gone after For.
	Jump
	// Sawtooth: four times in For it grows to Size and is gone again.
	Sawtooth
	// ForkBomb: it doubles its part of Size every tenth of For, and keeps that.
	ForkBomb
	// Many: all that run there grow evenly for For, by Size together, and keep that.
	Many
	// Tmpfs: Size grows evenly for For and is gone; it is no process's, and who has written it is not known.
	Tmpfs
	// PageCache: the same of files that were read. Where memory is short the kernel drops it, so that all of it is available and no sensor
	// counts it.
	PageCache

	Shapes = iota
)

// ShapeNames are the shapes as a scenario writes them.
func ShapeNames() []string {
	return []string{"leak", "jump", "sawtooth", "fork-bomb", "many", "tmpfs", "page-cache"}
}

// extra is what a storm has taken when it has blown for so long; over: it is gone, or as large as it gets.
func (s *Storm) extra(blown time.Duration) (size quantity.Amount, over bool) {
	even := quantity.Amount(quantity.MulDiv(int64(s.Size), int64(min(blown, s.For)), int64(s.For)))
	switch over = blown >= s.For; s.Shape {
	case Jump, Tmpfs, PageCache:
		if over {
			return 0, true
		}
		if s.Shape == Jump {
			return s.Size, false
		}
		return even, false
	case Sawtooth:
		if over {
			return 0, true
		}
		tooth := s.For / 4
		return quantity.Amount(quantity.MulDiv(int64(s.Size), int64(blown%max(1, tooth)), int64(max(1, tooth)))), false
	case ForkBomb:
		return s.Size >> max(0, 10-int(blown*10/s.For)), over
	default:
		return even, over
	}
}

// gust is a storm as it strikes one run, or a host: it blows only while that runs.
type gust struct {
	*Storm
	share int64 // its part of the size, one of several
	blown time.Duration
	// of is the unit of its job that the run was in when it was struck, for the times-th time; 0 times: it was in none.
	of    int64
	times int
}

// A storm that strikes one process is of the work that it strikes: who begins that unit again, because it was not complete when the
// process was ended, is struck again, three times in all. Else ending who grows would mend it, as it does not where a leak is in a program
// or in its data.

// relapse is a storm that strikes each subjob that runs a unit of a job.
type relapse struct {
	*Storm
	job   job.ID
	unit  int64
	times int
}

// relapsed bounds how many times a storm strikes.
const relapsed = 3

func (g *gust) size() quantity.Amount {
	size, _ := g.extra(g.blown)
	return size / quantity.Amount(g.share)
}

// HostMemory is the memory of each node's host, which its slices share, and the storms there. A subjob uses what its job truly uses in its
// present phase; a storm adds to that. It is looked at in beats, from the start of a storm until all is calm again: between storms it is
// not reported, and ends nothing.
type HostMemory struct {
	// Capacity of every host, and its swap: Room, at most Pace a second in or out.
	Capacity, Room, Pace quantity.Amount
	// Hot: nothing of a process is cold, as where it is pinned for devices; else a quarter is.
	Hot bool
	// Beat between two looks of the sensors, and of the kernel. Default 100 ms.
	Beat time.Duration
	// Killer acts in place of the nodes, which get no reports; nil: they act. The kernel does where the memory ends, in any case.
	Killer *oom.Kind
	// PriorityFirst is the order by which a kill is judged: priority before class.
	PriorityFirst bool
	// OutgrownAlike: the order ignores which subjobs have outgrown their plan.
	OutgrownAlike bool
	Storms        []Storm
	// Spread: each storm comes later by a time up to this, and strikes a process, both drawn by the seed. 0: at its time, and each process
	// in turn.
	Spread time.Duration
}

// check lists everything that is wrong.
func (h *HostMemory) check() (errs []error) {
	if h == nil {
		return nil
	}
	if h.Capacity <= 0 || h.Room < 0 || h.Pace < 0 || h.Beat < 0 || h.Spread < 0 {
		errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: host memory: capacity %d must be above 0, room %d, pace %d, "+
			"beat %v and spread %v not below", h.Capacity, h.Room, h.Pace, h.Beat, h.Spread))
	}
	for i, s := range h.Storms {
		if s.Size <= 0 || s.For <= 0 || s.Shape >= Shapes {
			errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: storm %d: size %d and for %v must be above 0, and shape %d "+
				"below %d", i, s.Size, s.For, s.Shape, Shapes))
		}
	}
	return errs
}
