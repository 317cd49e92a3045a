// Package processes makes the executor of a host whose subjobs are processes of this machine, and gives it their files.
package processes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/host/gather"
)

// maxWorkdir is the largest packed work directory that is stored, in bytes.
const maxWorkdir = 64 << 20

// New makes Options.Executor for subjobs that are processes of this machine. Deliver, Slice, Present and Use of o are set here.
func New(o process.Options) func(host.Env) (executor.Executor, host.Files, error) {
	return func(e host.Env) (executor.Executor, host.Files, error) {
		o.Deliver, o.Slice, o.Present, o.Use = e.Deliver, e.Slice, e.Present, e.Use
		x, err := process.New(o)
		if err != nil {
			return nil, nil, err
		}
		return x, &files{kept: x, executor: x, dir: o.DataDir}, nil
	}
}

// kept is what the executor answers itself.
type kept interface {
	TakeWorkdir(id string) (executor.Workdir, error)
	HasWorkdir(id string) (bool, error)
	LogsSince() time.Time
	Stored(each func(job.ID) error) error
	PruneWorkdirs(keep func(id string) bool) error
	PruneUnpacked(live func(id string) bool) error
}

// files are the files of the process kind as the host wants them.
type files struct {
	kept
	executor *process.Executor
	dir      string
}

// PutWorkdir implements Files.
func (f *files) PutWorkdir(tarGz []byte) (executor.Workdir, error) {
	return f.executor.PutWorkdir(tarGz, maxWorkdir)
}

// Gathered implements host.Gathers.
func (f *files) Gathered() gather.Store { return f.executor.Remote }

// Outputs implements Files.
func (f *files) Outputs(name job.ID) ([]status.Output, error) {
	list, err := f.executor.Outputs(name)
	out := make([]status.Output, len(list))
	for i, o := range list {
		out[i] = status.Output{Token: o.Token, Range: o.Range, Member: o.Member, Path: o.Path, Files: o.Files, Bytes: o.Bytes}
	}
	return out, err
}

// OpenLogs implements Files: stdout and stderr; one that was never written to is empty.
func (f *files) OpenLogs(name job.ID, token job.Token) ([]io.ReadSeekCloser, error) {
	runOut, runErr := folders.LogPath(f.dir, name, token, true)
	keptOut, keptErr := folders.LogPath(f.dir, name, token, false)
	stdout, err := openLog(runOut, keptOut)
	if err != nil {
		return nil, err
	}
	stderr, err := openLog(runErr, keptErr)
	switch {
	case err != nil:
		if stdout != nil {
			_ = stdout.Close() // only read
		}
		return nil, err
	case stdout == nil && stderr == nil:
		return nil, errkind.Errorf(errkind.NotFound, "nothing is kept of subjob %v of job %s: it never started, or its logs are older "+
			"than what is kept", token, name)
	case stdout == nil:
		stdout = unwritten{}
	case stderr == nil:
		stderr = unwritten{}
	}
	return []io.ReadSeekCloser{stdout, stderr}, nil
}

// openLog opens a log, nil if there is none. It lies with the run while that is not settled, and elsewhere afterwards; an open file
// is not disturbed by the move. Two looks at the first place, since the move may fall between the first and the second.
func openLog(running, kept string) (io.ReadSeekCloser, error) {
	for _, path := range []string{running, kept, running, kept} {
		f, err := os.Open(path)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, nil
}

// unwritten is a log that was never written to.
type unwritten struct{}

func (unwritten) Read([]byte) (int, error)       { return 0, io.EOF }
func (unwritten) Seek(int64, int) (int64, error) { return 0, nil }
func (unwritten) Close() error                   { return nil }

// Ours reports whether a process belongs to a subjob: it or one of its parents carries the mark that every subjob's
// environment has. It serves as Options.Ours with Processes. A process that can't be looked into is not ours.
func Ours(_ job.SliceID, pid int) bool {
	const deepest = 64
	for range deepest {
		if pid <= 1 {
			return false
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		for _, mark := range [][]byte{[]byte("SLUICE_SUBJOB="), []byte("SLUICE_RESIDENT=")} {
			if err == nil && (bytes.HasPrefix(env, mark) || bytes.Contains(env, append([]byte{0}, mark...))) {
				return true
			}
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
