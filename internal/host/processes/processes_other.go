//go:build !linux

package processes

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/host"
)

// New makes Options.Executor for subjobs that are processes of this machine, which needs Linux: it says so.
func New(o process.Options) func(host.Env) (executor.Executor, host.Files, error) {
	return func(host.Env) (executor.Executor, host.Files, error) {
		_, err := process.New(o)
		return nil, nil, err
	}
}

// Ours finds nothing here.
func Ours(job.SliceID, int) bool { return false }
