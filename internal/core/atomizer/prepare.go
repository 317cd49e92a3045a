package atomizer

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Until a start of the job was seen, its first ones are planned with what unpacking its work directory may take: so much
// for each file and each MiB. That is two to five times what a quiet machine with a disk needs.
const (
	unpackFile = time.Millisecond
	unpackMiB  = 20 * time.Millisecond
)

// Prepare is what a start is planned to take at its node before the process begins: what earlier ones of the job took, or,
// where none is known yet, what unpacking its work directory may take. It is 0 where nothing is known and nothing is unpacked.
func (v *View) Prepare() time.Duration {
	l := v.Learned
	switch {
	case v.Spec.Kind == job.Rigid: // its place is planned by its spec alone (RigidLength)
		return Unpacking(&v.Spec.Launch)
	case v.Hopeful && len(l.Prepares) > 0:
		return slices.Min(l.Prepares)
	case v.Hopeful: // unpacking is done once: however long that takes, it must not keep the job out for ever
		return 0
	case l.Prepare > 0:
		return l.Prepare
	}
	return Unpacking(&v.Spec.Launch)
}

// Unpacking is how long unpacking a work directory may take, by its size.
func Unpacking(l *job.Launch) time.Duration {
	const mib = 1 << 20
	return time.Duration(l.Files)*unpackFile + time.Duration((l.Bytes+mib-1)/mib)*unpackMiB
}

// RigidLength is what a lease of a rigid job with a walltime must hold at this speed, above 0: what unpacking takes is not taken
// from the walltime. Whoever plans a place for it and whoever cuts its piece must agree to the nanosecond.
func RigidLength(spec *job.Spec, speed int64) time.Duration {
	return Unpacking(&spec.Launch) + spec.WalltimeAt(speed) + spec.Launch.Grace
}

// startup is what every start pays before its first unit: at its node, in its own process, and for a machine that is late.
func (v *View) startup() time.Duration { return v.Prepare() + v.stretched(v.Spec.Startup) + v.late() }

// late is what a start gets on top after pieces in a row that completed nothing: 1 s, 4 s, 16 s. The margin multiplies run
// times; where a busy machine takes longer to begin a process than short units run, no factor would make up for that.
func (v *View) late() time.Duration {
	fruitless := v.Learned.Failures
	if v.Learned.Busy > 0 { // those that wanted for a processor count with those that were ended from outside
		fruitless += v.Learned.Kills
	}
	if v.Hopeful || fruitless <= 0 {
		return 0
	}
	return time.Second << (2 * min(fruitless-1, 2))
}
