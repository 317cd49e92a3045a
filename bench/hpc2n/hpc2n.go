// Package hpc2n reads the log of a cluster whose gaps benchmarks fill: HPC2N, from the Parallel Workloads Archive.
package hpc2n

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/swf"
)

const (
	// Nodes that the cluster had.
	Nodes = 120
	// CPUs of each.
	CPUs = 2
)

// Each calls do with each job that ran, in order of submission, and when that was, since the log began. data is the folder of traces. What
// do is given it must not keep.
func Each(data string, do func(at time.Duration, j *trace.JobRecord)) error {
	path := filepath.Join(data, "swf", "hpc2n.swf.gz")
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r trace.Record
	for reader := swf.Format().Open(f, path); ; {
		err = reader.Next(&r)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case r.Kind == trace.Job && r.Job.Duration > 0 && r.Job.GPUs > 0:
			do(r.At, &r.Job)
		}
	}
}
