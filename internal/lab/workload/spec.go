package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Name is a valid name of a job that sorts as the workload is ordered.
func (j *Job) Name() job.ID {
	var b [20]byte
	d := strconv.AppendInt(b[:0], j.Number, 10)
	const name = "j0000000000"
	if len(d) >= len(name) {
		return job.ID("j" + string(d))
	}
	return job.ID(name[:len(name)-len(d)] + string(d))
}

// Specs makes of workload jobs what a gate is given. The zero value has the program's defaults. It is for one goroutine.
type Specs struct {
	// Continue lets a running subjob be given the window that follows its own.
	Continue bool
	// OverheadMax is o_max in parts per thousand; 0 is job.DefaultOverheadMax.
	OverheadMax int
	// TauMin of every divisible job; 0 is the rule of the core (job.TauMin).
	TauMin time.Duration
	// Grace is the time between SIGTERM and SIGKILL, part of every lease.
	Grace time.Duration
	// Cold: no program stays between subjobs.
	Cold bool
	// Agents bid for external jobs. Otherwise these answer for themselves like all others, as in mechanisms that do not negotiate.
	Agents bool

	// least keeps the thresholds of compiled profiles by their amounts. A threshold does not depend on where phases end, so
	// jobs of any length share it.
	least map[string][][]quantity.Amount
	key   []byte
}

// profilesKept bounds the cache. Beyond it all are forgotten: a workload with more shapes than that repeats none.
const profilesKept = 4096

// Spec is the job under this name as the gate accepts it. A rigid job is one unit, whatever its Units: its need is that of
// the whole run, by the profile's own way of combining its phases. Divisible jobs have Units of Declared/Units each,
// rounded up. The spec is never written to again. An error is of kind Invalid and lists all that is wrong with the job.
func (c *Specs) Spec(j *Job, name job.ID) (*job.Spec, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	table, err := c.compile(j)
	if err != nil {
		return nil, fmt.Errorf("job %d of the workload: %w", j.Number, err)
	}
	s := &job.Spec{
		Name: name, Queue: j.Queue, Priority: j.Priority, Kind: j.Kind,
		Total: j.Units, Unit: "unit", Grid: j.Grid, Parallelism: 1, Slices: 1,
		Speeds: j.Speeds, MaxFailures: job.DefaultMaxFailures, OverheadMax: c.OverheadMax,
		Theta: j.Theta, Profile: j.Profile, Safe: table, Deadline: j.Deadline, Worth: job.DefaultWorth, Template: j.Template,
		Launch: job.Launch{Command: []string{"simulated"}, Grace: c.Grace},
	}
	if s.OverheadMax == 0 {
		s.OverheadMax = job.DefaultOverheadMax
	}
	if s.Deadline == 0 {
		s.Deadline = quantity.Never
	}
	if j.Kind == job.Rigid {
		need := table.LeastOver(0, j.Units, trp.Unscaled)
		s.Total, s.Grid, s.Slices, s.Topology, s.Walltime, s.Patience = 1, 1, j.Slices, j.Topology, j.Declared, j.Patience
		s.Profile = trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{UpTo: 1, Amount: need}}}
		s.Safe = trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{need}}}
		return s, nil
	}
	if j.Declared > 0 {
		s.PerUnit = max(1, time.Duration(quantity.MulDiv(int64(j.Declared), 1, j.Units))) // 0 is none
	}
	s.Restore, s.Checkpoint, s.Startup = j.Restore, j.Checkpoint, j.Startup
	s.Resident = j.Process.Resident && !c.Cold
	s.Continue = c.Continue && !s.Resident // as a job file has it
	if s.TauMin = c.TauMin; s.TauMin == 0 {
		s.TauMin = job.TauMin(s.Restore, s.Checkpoint, s.OverheadMax)
	}
	s.External = j.External && c.Agents
	if j.Kind == job.Items {
		s.Parallelism = j.Parallelism
	}
	return s, nil
}

// Span turns a piece [from, to) of the job's spec into units of its memory: the same for divisible jobs, all of it for a
// rigid one.
func (j *Job) Span(from, to int64) (int64, int64) {
	if j.Kind == job.Rigid {
		return from * j.Units, to * j.Units
	}
	return from, to
}

// compile is trp.Compile with a memory.
func (c *Specs) compile(j *Job) (trp.Table, error) {
	if j.Profile.Form != trp.Phases {
		return trp.Compile(j.Profile, j.Units, j.Theta)
	}
	c.key = binary.AppendVarint(c.key[:0], j.Theta)
	c.key = append(c.key, byte(j.Profile.Combine))
	for _, p := range j.Profile.Phases {
		c.key = binary.AppendVarint(binary.AppendVarint(c.key, int64(p.Mean)), int64(p.SD))
	}
	least, known := c.least[string(c.key)]
	if !known || !rising(j.Profile.Phases, j.Units) {
		table, err := trp.Compile(j.Profile, j.Units, j.Theta)
		if err != nil {
			return trp.Table{}, err
		}
		if c.least == nil || len(c.least) >= profilesKept {
			c.least = map[string][][]quantity.Amount{}
		}
		c.least[string(c.key)] = table.Least
		return table, nil
	}
	bounds := make([]int64, len(j.Profile.Phases))
	for i, p := range j.Profile.Phases {
		bounds[i] = p.UpTo
	}
	return trp.Table{Bounds: bounds, Least: least}, nil
}

// rising says whether the ends of the phases are what Compile accepts; the rest of its checks is about the key.
func rising(phases []trp.Phase, total int64) bool {
	last := int64(0)
	for _, p := range phases {
		if p.UpTo <= last {
			return false
		}
		last = p.UpTo
	}
	return last == total
}

// check finds what a source must not give.
func (j *Job) check() error {
	var list []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Errorf(format, args...))
		}
	}
	want(j.Kind >= job.Items && j.Kind <= job.Rigid, "kind %d; want items, steps or rigid", j.Kind)
	want(j.Units >= 1, "%d units; want at least 1", j.Units)
	want(j.Grid >= 1 && j.Grid <= max(j.Units, 1), "a grid of %d; want 1 to the %d units", j.Grid, j.Units)
	want(j.Work > 0, "a work of %s; want more than 0", j.Work)
	want(j.Declared > 0 || j.Declared == 0 && !j.External,
		"a declared time of %s; want more than 0 (or 0 for a job that declares none, and no agent bids for)", j.Declared)
	want(j.Slices == 1 || j.Slices > 1 && j.Kind == job.Rigid, "%d slices; want 1, or more for a rigid job", j.Slices)
	want(j.Parallelism == 1 || j.Parallelism > 1 && j.Kind == job.Items, "a parallelism of %d; want 1, or more for items", j.Parallelism)
	want(!j.External || j.Kind != job.Rigid, "an agent of a rigid job; want none")
	want(j.Restore >= 0 && j.Checkpoint >= 0 && j.Startup >= 0, "restore %s, checkpoint %s, startup %s; want none below 0", j.Restore,
		j.Checkpoint, j.Startup)
	want(!j.Process.Resident || j.Kind != job.Rigid, "a program that stays, of a rigid job; want none: it has one subjob")
	want(j.Process.Saves == 0 || j.Process.Saves > 0 && j.Kind == job.Steps && j.Process.Saves%max(1, j.Grid) == 0,
		"a checkpoint after every %d units; want a multiple of the grid, of steps", j.Process.Saves)
	n := len(j.Memory.Phases)
	want(n > 0 && rising(j.Memory.Phases, j.Units), "%d phases of true memory; want ends that rise to the %d units", n, j.Units)
	if len(list) == 0 {
		return nil
	}
	return &errkind.Error{Kind: errkind.Invalid, Err: fmt.Errorf("job %d of the workload: %w", j.Number, errors.Join(list...))}
}
