package adapter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// yield is the exit status of a piece that gives the rest back.
const yield = shim.YieldCode

// unready says why, and is the status for it.
func unready(err error) int {
	fmt.Fprintln(os.Stderr, "sluice:", err)
	return Unready
}

// piece is the subjob's part of its job, by the contract's variables.
type piece struct {
	from, to         int64
	output, progress string
}

func pieceOf(getenv func(string) string) (p piece, err error) {
	number := func(name string) int64 {
		n, failed := strconv.ParseInt(getenv(name), 10, 64)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s is %q; want a number", name, getenv(name)))
		}
		return n
	}
	p = piece{from: number("SLUICE_FROM"), to: number("SLUICE_TO"), output: getenv("SLUICE_OUTPUT_DIR"),
		progress: getenv("SLUICE_PROGRESS_FILE")}
	if p.output == "" || p.progress == "" {
		err = errors.Join(err, errors.New("SLUICE_OUTPUT_DIR or SLUICE_PROGRESS_FILE is not set"))
	}
	return p, err
}

// report replaces the progress file: how many units are done, and for how long the command has gone on since all were. It is not synced:
// what the subjob has written is, before it counts.
func (p *piece) report(done int64, idle time.Duration) error {
	temp := filepath.Join(filepath.Dir(p.progress), ".progress.adapter")
	if err := os.WriteFile(temp, fmt.Appendf(nil, "{\"progress\":%d,\"idle\":%d}\n", p.from+done, idle), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, p.progress)
}

// endAs ends this process as a command ended: by the SIGKILL that ended it, since that says nothing of the unit that was being worked on,
// or with a status that says how. Unready and 85 are words of ours, and a command that knows no contract means neither.
func endAs(state *os.ProcessState) int {
	w, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case ok && w.Signaled() && w.Signal() == syscall.SIGKILL:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case ok && w.Signaled():
		return 128 + int(w.Signal())
	case state.ExitCode() == Unready || state.ExitCode() == yield:
		return 1
	}
	return state.ExitCode()
}
