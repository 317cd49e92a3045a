//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// Pool says which devices of a cluster are offered, and when. A machine may belong to several; a device belongs to the first that matches
// it.
type Pool struct {
	Name string
	// Nodes are labels that a machine must have; none: all machines.
	Nodes map[string]string
	// Classes of DRA devices, the preferred first: where devices share counters, those of the first class that fit are offered.
	Classes []Class
	// Resources are extended resources, as device plugins publish them.
	Resources []Resource
	// Tolerates are the keys of taints that our Pods have tolerations for.
	Tolerates []string
	// Calendar is when the pool is closed. Nothing is placed beyond the begin of a closing, and what runs then is cut short.
	Calendar []Closing
	// Notice is how long before its slice is reclaimed a subjob is told. Default 30 s. Keeps: nothing of the pool is given back.
	Notice time.Duration
	Keeps  bool
}

// Class is a DeviceClass as it is used for subjobs.
type Class struct {
	// Name of the DeviceClass, and the Driver of its devices.
	Name, Driver string
	// Attributes that a device must have, by names without a domain: type: mig, profile: 1g.10gb.
	Attributes map[string]string
	// Memory in bytes, for devices that do not publish theirs, and Speed in parts per thousand of a whole GPU; 0: by model and profile. A
	// device of unknown memory is left out.
	Memory quantity.Amount
	Speed  int64
}

// Resource is an extended resource.
type Resource struct {
	// Name as in Pods' requests: nvidia.com/mig-1g.10gb.
	Name string
	// Model of the GPUs and Profile of the slices; empty: by the machine's labels and the resource's name.
	Model, Profile string
	// Memory in bytes and Speed in parts per thousand; 0: by model and profile.
	Memory quantity.Amount
	Speed  int64
}

// Closing is an interval in which a pool is closed, repeated each Every (0: once), or as a calendar says: then it is the
// first occurrence.
type Closing struct {
	Name       string
	Start, End time.Time
	Every      time.Duration
	Calendar   civil.Calendar
}

// reservation is what a calendar's entry makes on each slice.
func (c *Closing) reservation() protocol.Reservation {
	return protocol.Reservation{
		Kind: protocol.ForServing, Start: quantity.At(c.Start), End: quantity.At(c.End), Every: c.Every,
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
			length, r := c.End.Sub(c.Start), c.reservation()
			problem(length <= 0, "%s: calendar %q ends at %s, which is not after its start at %s", name, c.Name, c.End.Format(time.RFC3339),
				c.Start.Format(time.RFC3339))
			problem(c.Every != 0 && !timeline.Sound(&r), "%s: calendar %q repeats every %v and lasts %v; "+
				"want it shorter than what it repeats after", name, c.Name, c.Every, length)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "pools of the cluster: %w", errors.Join(problems...))
}
