// Package config reads what people write: the job file and the daemon's file of queues. Both are strict YAML (so JSON
// too): unknown and doubled keys are errors, and one error lists every problem with its file, line, column, key path,
// what is wrong and what would be right. Nothing is half-accepted.
//
// It turns text into checked values and back. It must not know who reads the file: no network, no daemon, no clock.
package config

const (
	// MaxFileBytes is the largest job file or daemon file that is read: 1 MiB.
	MaxFileBytes = 1 << 20
	// MaxJobs is how many jobs one file may hold.
	MaxJobs = 1000
	// APIVersion is the only version of the files that is read today.
	APIVersion = "sluice.dev/v1alpha1"
	// JobKind is the kind of a job file.
	JobKind = "Job"

	maxDepth    = 16      // of nested lists and mappings; ours need 5
	maxNodes    = 200_000 // of one document; a full ensemble (4096 runs of 40 phases) still fits
	maxProblems = 50      // more are counted, not listed
)
