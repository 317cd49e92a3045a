package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/volume"
)

// Report replaces the progress file at path. It is not synced: what the subjob has written is, before it counts.
func Report(path string, p shim.Progress) error {
	checkpoint := ""
	if p.Checkpoint {
		checkpoint = `, "checkpoint": true`
	}
	if p.Ended {
		checkpoint += `, "ended": true`
	}
	tried := ""
	if p.Tried != nil {
		text, err := json.Marshal(p.Tried)
		if err != nil {
			return err
		}
		tried = fmt.Sprintf(`, "tried": %s`, text)
	}
	temp := filepath.Join(filepath.Dir(path), ".progress.adapter")
	if err := os.WriteFile(temp, fmt.Appendf(nil, `{"progress": %d, "idle": %d%s%s}`, p.Progress, p.Idle, checkpoint, tried), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// Failed is the exit status of an adapter that can't keep what it should.
func Failed(err error) int {
	if volume.NoRoom(err) {
		return NoRoom
	}
	return 1
}

// EndAs ends this process as a command ended: by the SIGKILL that ended it, since that says nothing of the unit that was being worked on,
// or with the status that it returns, which says how. The statuses that mean something here are 1 then: a command that does not know the
// contract means nothing by them.
func EndAs(w syscall.WaitStatus) int {
	switch {
	case w.Signaled() && w.Signal() == syscall.SIGKILL:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case w.Signaled():
		return 128 + int(w.Signal())
	case w.ExitStatus() == shim.YieldCode || w.ExitStatus() == Unready || w.ExitStatus() == NoRoom:
		return 1
	}
	return w.ExitStatus()
}
