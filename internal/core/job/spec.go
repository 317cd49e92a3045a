// Package job is what a person submits and how far it has come: the spec, ranges of work, progress with its claims,
// and the verdicts a job can end with. It decides nothing.
package job

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Level is how far the slices of one gang may lie apart. The levels of a cluster are nested: a rack has nodes, a block has racks, a zone
// has blocks, the cluster has zones.
type Level uint8

const (
	// SameNode: all slices are of one node. The default.
	SameNode Level = iota
	// SameRack: of nodes of one rack.
	SameRack
	// SameBlock: of nodes of one block.
	SameBlock
	// SameZone: of any nodes of the job's home.
	SameZone
	// SameCluster: of any nodes of several zones, if the job's home is too small for it.
	SameCluster
)

var levelNames = [...]string{"node", "rack", "block", "zone", "cluster"}

// String is the level's name in job files and for people.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return "unknown"
}

// Levels are the names of the levels, the closest first.
func Levels() []string { return levelNames[:] }

// SpeedOn is how fast a job runs on slices of one profile ("3g.40gb"), in parts per thousand of the reference that its run
// times are declared for; from 0, where it can not run, to 10000.
type SpeedOn struct {
	Profile  string
	Permille int64
}

// SpeedOn is the job's speed on a slice of this profile and speed, in parts per thousand: what its owner declared for the
// profile, else the slice's own. 0 means that it can not run there.
func (s *Spec) SpeedOn(profile string, slice int64) int64 {
	for i := range s.Speeds {
		if s.Speeds[i].Profile == profile {
			return s.Speeds[i].Permille
		}
	}
	return slice
}

// longestTime keeps sums of a few times within 63 bits: 146 years.
const longestTime = time.Duration(math.MaxInt64 / 2)

// WalltimeAt is the walltime of a rigid job where it runs at this speed, in parts per thousand and above 0. Without Speeds
// the walltime is meant literally, whatever the slice.
func (s *Spec) WalltimeAt(speed int64) time.Duration {
	if len(s.Speeds) == 0 {
		return s.Walltime
	}
	return min(longestTime, time.Duration(quantity.MulDiv(int64(s.Walltime), 1000, speed)))
}

// ID names a job. It is the name the person gave it, unique in a cluster for as long as the job is retained.
type ID string

// Kind says where a job may be cut.
type Kind uint8

const (
	// Items are independent units: any range may run, several at once.
	Items Kind = iota + 1
	// Steps are one chain of checkpoints: each piece starts where the last ended.
	Steps
	// Rigid jobs are not divisible and have a walltime: all that is left runs at once.
	Rigid
)

// OnBadItem decides what becomes of an items job when one unit alone keeps failing.
type OnBadItem uint8

const (
	// BadItemFails ends the job Failed. The default.
	BadItemFails OnBadItem = iota
	// BadItemSkips records the unit as skipped and goes on.
	BadItemSkips
)

// Overrun is what happens to a rigid job that reaches its walltime.
type Overrun uint8

const (
	// OverrunKills ends it at its walltime. The default.
	OverrunKills Overrun = iota
	// OverrunExtends moves the end as long as nothing else is reserved behind it.
	OverrunExtends
)

// Spec is a job as accepted: checked, defaults filled, profile compiled. It never changes afterwards and is shared by
// pointer; nobody writes to it. Jobs that are alike share one (Pool).
type Spec struct {
	// Name is what its owner calls the job that this spec is submitted for; empty in a spec that was accepted, beside which the
	// job's name stands.
	Name     ID
	Queue    string
	Priority int32
	Kind     Kind

	// Total is the amount of work in units; 1 for rigid jobs. At least 1.
	Total int64
	// Unit is what one unit is called, for people.
	Unit string
	// PerUnit is the declared run time of one unit at speed 1; 0 for rigid jobs, and where none was declared (Untimed).
	PerUnit time.Duration
	// Grid: cut points are multiples of it (or Total). At least 1.
	Grid int64
	// Parallelism is how many subjobs may run at once: items only, else 1.
	Parallelism int
	// Restore is r, the cost of starting from a checkpoint; Checkpoint is k, the cost of leaving one (SJA).
	Restore, Checkpoint time.Duration
	// Startup is what a process of a divisible job takes from its start to the beginning of its first unit; every piece
	// pays it but one that continues.
	Startup time.Duration
	// Walltime bounds a rigid job; with Speeds it is the time at speed 1. 0 means none was given: nothing is sold behind it.
	Walltime time.Duration
	// Speeds are how fast the job runs on the kinds of slices its owner has measured, each profile once; on others it runs
	// at the slice's own speed. What is learned of the run time applies on top.
	Speeds []SpeedOn
	// Slices a rigid job holds at once. At least 1.
	Slices int
	// Topology is how far these may lie apart.
	Topology  Level
	OnOverrun Overrun
	OnBadItem OnBadItem
	// MaxFailures is how many times in a row subjobs may end without progress before the job is Failed; those that ran at once are
	// one. Default 3.
	MaxFailures int

	// Theta is the accepted chance that a piece's peak passes its slice's capacity, in parts per million. Default 10000.
	Theta int64
	// Profile is what was declared; Safe is what decisions use: the profile compiled at Theta.
	Profile trp.Profile
	Safe    trp.Table
	// TauMin is the shortest useful run (adr 0005): derived from Restore, Checkpoint and OverheadMax unless given.
	TauMin time.Duration
	// OverheadMax is o_max in parts per thousand: (r+k)/wall may not exceed it. Default 100.
	OverheadMax int
	// Deadline the owner gave, for policy deadline; Never if none.
	Deadline quantity.Instant
	// Patience is how long it looks for a place at most, after which it is worth nothing (an F-task); 0: it waits. Rigid jobs of one slice
	// only.
	Patience time.Duration
	// Saves: a rigid job leaves checkpoints, so that a run which is not done counts as far as its last one, and the next goes on there.
	Saves bool
	// External: the job's own agent proposes its subjobs; PerUnit is then an estimate for people.
	External bool
	// Worth is what the job values in a variant.
	Worth Worth
	// Options are other ways to run it that its owner agrees to.
	Options []Option
	// Template names jobs that behave alike, so that what one taught serves the next; empty: none.
	Template string
	// Owner is the user who has submitted it, by the name that the daemon knows; empty: not known, as of jobs from before there was one and
	// of those that another system submits. Only who lets the user in sets it: no job file does.
	Owner string

	// Continue: a running subjob may be given the window that follows its own; the program rereads its lease file.
	Continue bool
	// Resident: its program stays between subjobs and takes one after another from its standard input, its start paid once
	// (Residence).
	Resident bool

	Launch Launch
}

// Worth are the job's own weights of a variant's features, in parts per thousand that add up to 1000 (JASDA, arXiv 2510.14599, job-side
// scoring): the share of its remaining work, the urgency of its deadline, and a small share of restore and checkpoint.
type Worth struct{ Progress, Laxity, Overhead int64 }

// DefaultWorth is what a job values if it does not say.
//
//nolint:gochecknoglobals // read-only by use; Go has no constant structs
var DefaultWorth = Worth{Progress: 600, Laxity: 200,
	Overhead: 200}

// Extends reports whether a job that reaches its walltime goes on.
func (s *Spec) Extends() bool { return s.Kind == Rigid && s.OnOverrun == OverrunExtends }

// Option is another way to run a job, such as a batch size or a precision. It changes results, so only the owner can offer it. The subjob
// gets its name and environment.
type Option struct {
	Name string
	// Speed and Memory are shares of the job without options, in parts per thousand.
	Speed, Memory int64
	Env           []string
}

// Launch is how a subjob's process is started; the core carries it and does not look inside.
type Launch struct {
	// Command is the argument vector; at least one element.
	Command []string
	// Adapter runs the command where that does not know the contract of subjobs.
	Adapter Adapter
	// Env adds KEY=VALUE entries to the subjob's environment.
	Env []string
	// Image is the image of a subjob's container, where subjobs are containers (an executor of kind kubernetes); ignored elsewhere.
	Image string
	// Workdir names the stored copy of the work directory taken at submission; empty for none.
	Workdir string
	// Files and Bytes are its size unpacked, directories counted as files; 0 where it is not known.
	Files, Bytes int64
	// Subdir is where in the work directory the command starts.
	Subdir string
	// WarnSignal is sent WarnBefore ahead of the deadline; 0 for none.
	WarnSignal int
	WarnBefore time.Duration
	// Grace is the time between SIGTERM and SIGKILL; the lease's end includes it.
	Grace time.Duration
	// LogLimit and OutputLimit cap what one subjob may write, in bytes; 0 means the daemon's default.
	LogLimit, OutputLimit int64
	// Umask is the command's file mode creation mask: its submitter's, unless the job file names one.
	Umask Umask
}

// Umask is a file mode creation mask, Bits from 0 to 0777. The zero value names none: jobs from before there was one, and calls of the API
// that give none.
type Umask struct {
	Named bool
	Bits  uint16
}

// Mask is the mask that a command starts with: 022, as systems come, where none is named.
func (u Umask) Mask() uint16 {
	if u.Named {
		return u.Bits
	}
	return 0o022
}

// Divisible reports whether the job may be cut at all.
func (s *Spec) Divisible() bool { return s.Kind == Items || s.Kind == Steps }

// OpenTotal is the total of a chain of which nobody knows how long it is: no job that says its total has as much. It is over when its
// program has ended by itself and well.
const OpenTotal = 1_000_000_000_001

// Open reports whether nobody knows how long the job is.
func (s *Spec) Open() bool { return s.Kind == Steps && s.Total == OpenTotal }

// Untimed reports whether the job is cut by the run time of a unit and declares none: a first piece is measured.
func (s *Spec) Untimed() bool { return s.Divisible() && !s.External && s.PerUnit == 0 }

// Resumes reports whether the job's next piece goes on from the checkpoint of its last.
func (s *Spec) Resumes() bool { return s.Kind == Steps || s.Saves }

// Option is the job's option of this name, nil if it has none.
func (s *Spec) Option(name string) *Option {
	for i := range s.Options {
		if s.Options[i].Name == name {
			return &s.Options[i]
		}
	}
	return nil
}

const (
	// DefaultTheta is the accepted chance that a piece passes its slice's memory, in parts per million.
	DefaultTheta = 10_000
	// DefaultOverheadMax is o_max, in parts per thousand.
	DefaultOverheadMax = 100
	// DefaultMaxFailures is how many waves of subjobs in a row may end without progress.
	DefaultMaxFailures = 3
)

// TauMin is the least useful run of a job that gives none: max(floor, (r+k)(1-o)/o) with o the largest share of overhead
// in parts per thousand, from 1 to 1000, and a floor of 1 s; 0 when r = k = 0 (adr 0005). Negative costs count as 0.
func TauMin(restore, checkpoint time.Duration, overheadMax int) time.Duration {
	cost := max(restore, 0) + max(checkpoint, 0)
	if cost == 0 {
		return 0
	}
	o := int64(min(max(overheadMax, 1), 1000))
	return max(time.Second, time.Duration(quantity.MulDiv(int64(cost), 1000-o, o)))
}
