package shim

import (
	"encoding/json"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Event is one line of the events file: a command was started or its tree is gone. Supervisors write it without the
// daemon, so that a test can hold the journal against what really ran.
type Event struct {
	// What is "start" or "end".
	What     string
	Token    string
	Job      job.ID
	Slice    job.SliceID
	From, To int64
	// PID of the process the command hangs below.
	PID int
	// Boot is CLOCK_BOOTTIME in nanoseconds, Wall the wall clock.
	Boot    int64
	Wall    time.Time
	Outcome string
}

// AppendEvent appends one line with one write, so that lines of several supervisors don't mix.
func AppendEvent(path string, e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
