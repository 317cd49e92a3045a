// Package config reads what people write: the job file and the daemon's file of queues. Both are strict YAML (so JSON
// too): unknown and doubled keys are errors, and one error lists every problem with its file, line, column, key path,
// what is wrong and what would be right. Nothing is half-accepted.
//
// It turns text into checked values and back. It must not know who reads the file: no network, no daemon, no clock.
package config

const (
	// MaxJobs is how many jobs one file may hold.
	MaxJobs = 1000
	// APIVersion is the only version of the files that is read today.
	APIVersion = "sluice.dev/v1alpha1"
	// JobKind is the kind of a job file.
	JobKind = "Job"
)
