package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// MaxSnapshot is the largest packed work directory that Submit takes, in bytes.
const MaxSnapshot = 64 << 20

// Processes makes Options.Executor for subjobs that are processes of this machine. Deliver, Slice and Use of o are set here.
func Processes(o process.Options) func(Env) (executor.Executor, Files, error) {
	return func(e Env) (executor.Executor, Files, error) {
		o.Deliver, o.Slice, o.Use = e.Deliver, e.Slice, e.Use
		x, err := process.New(o)
		if err != nil {
			return nil, nil, err
		}
		return x, &processFiles{Executor: x, dir: o.DataDir}, nil
	}
}

// processFiles are the files of the process kind as the host wants them.
type processFiles struct {
	*process.Executor
	dir string
}

// PutSnapshot implements Files.
func (f *processFiles) PutSnapshot(tarGz []byte) (executor.Snapshot, error) {
	return f.Executor.PutSnapshot(tarGz, MaxSnapshot)
}

// Outputs implements Files.
func (f *processFiles) Outputs(name job.ID) ([]status.Output, error) {
	list, err := f.Executor.Outputs(name)
	out := make([]status.Output, len(list))
	for i, o := range list {
		out[i] = status.Output(o)
	}
	return out, err
}

// OpenLogs implements Files. Logs lie with the run while it is not settled, and elsewhere afterwards; an open file is not
// disturbed by the move. Two looks, since the move may fall between the first and the second place.
func (f *processFiles) OpenLogs(name job.ID, token job.Token) ([]io.ReadSeekCloser, error) {
	for _, running := range []bool{true, false, true} {
		stdout, stderr := process.LogPath(f.dir, name, token, running)
		files, err := openAll(stdout, stderr)
		if len(files) > 0 || err != nil {
			return files, err
		}
	}
	return nil, errkind.Errorf(errkind.NotFound, "nothing is kept of subjob %v of job %s: it never started, or its logs are older than what is kept", token, name)
}

// openAll opens those of the files that exist.
func openAll(paths ...string) ([]io.ReadSeekCloser, error) {
	var files []io.ReadSeekCloser
	for _, p := range paths {
		f, err := os.Open(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			for _, open := range files {
				err = errors.Join(err, open.Close())
			}
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// OursByMark says whether a process belongs to a subjob: it or one of its parents carries the mark that every subjob's
// environment has. It serves as Options.Ours with Processes. A process that can't be looked into is not ours.
func OursByMark(_ job.SliceID, pid int) bool {
	const deepest = 64
	for range deepest {
		if pid <= 1 {
			return false
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && (bytes.HasPrefix(env, []byte("SLUICE_SUBJOB=")) || bytes.Contains(env, []byte("\x00SLUICE_SUBJOB="))) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		// The command's name is in parentheses and may hold anything; the parent is the second field after it.
		var state string
		var parent int
		if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent); err != nil {
			return false
		}
		pid = parent
	}
	return false
}
