//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/edge/cluster"
)

// What is offered, as files and objects say it.
type (
	Pool     = cluster.Pool
	Class    = cluster.Class
	Resource = cluster.Resource
	Closing  = cluster.Closing
)

// reservation is what a calendar's entry makes on each slice.
func reservation(c *Closing) protocol.Reservation {
	return protocol.Reservation{
		Kind: protocol.ForServing, Start: c.Start, End: c.End, Every: c.Every,
		Truncate: true, Calendar: c.Calendar,
	}
}

const (
	defaultNotice = 30 * time.Second
	// mostPools bounds Options.Pools.
	mostPools = 64
	// mostClosings bounds a calendar: a node keeps at most 64 holds of a slice apart, others' included, and closes the slice for good from
	// the first beyond them.
	mostClosings = 32
)

// checkPools reports all errors of pools at once.
func checkPools(pools []Pool) error {
	var problems []error
	problem := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	problem(len(pools) > mostPools, "%d pools; want at most %d", len(pools), mostPools)
	for i, p := range pools {
		name := fmt.Sprintf("pool %d (%q)", i+1, p.Name)
		problem(len(p.Classes)+len(p.Resources) == 0, "%s names neither device classes nor extended resources", name)
		problem(p.Notice < 0, "%s: notice is %v; it can't be negative", name, p.Notice)
		for _, c := range p.Classes {
			problem(c.Name == "" || c.Driver == "", "%s: a class needs its name and its driver, and has %q and %q", name, c.Name, c.Driver)
			problem(c.Memory < 0 || c.Speed < 0 || c.Speed > 1000, "%s: class %s: memory %d is negative, or speed %d is not from 0 to 1000",
				name, c.Name, c.Memory, c.Speed)
		}
		for _, r := range p.Resources {
			problem(!strings.Contains(r.Name, "/"), "%s: %q is no extended resource: those have a domain in front, as nvidia.com/gpu has",
				name, r.Name)
			problem(r.Memory < 0 || r.Speed < 0 || r.Speed > 1000,
				"%s: resource %s: memory %d is negative, or speed %d is not from 0 to 1000", name, r.Name, r.Memory, r.Speed)
		}
		problem(len(p.Calendar) > mostClosings, "%s: its calendar has %d entries; want at most %d", name, len(p.Calendar), mostClosings)
		for _, c := range p.Calendar {
			length, r := c.End.Sub(c.Start), reservation(&c)
			problem(length <= 0, "%s: calendar %q ends at %s, which is not after its start at %s", name, c.Name,
				c.End.Time().Format(time.RFC3339),
				c.Start.Time().Format(time.RFC3339))
			problem(c.Every != 0 && !timeline.Sound(&r), "%s: calendar %q repeats every %v and lasts %v; "+
				"want it shorter than what it repeats after", name, c.Name, c.Every, length)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "pools of the cluster: %w", errors.Join(problems...))
}
