// Package adapter runs a command that does not know the contract of subjobs, and keeps the contract for it: it is an ordinary program of a
// subjob, in the supervisor's binary so that it is wherever subjobs are, and the command is its child.
//
// Standard library and golang.org/x/sys only, as for all of sluice-shim.
package adapter

import (
	"encoding/json"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/contract"
)

const (
	// Verb is the first argument: adapt SETTINGS PROGRAM COMMAND [ARG...].
	Verb = "adapt"
	// Answers is the file of the answers in the output directory.
	Answers = "answers"
	// Unready is the exit status when it is no unit that is to blame.
	Unready = contract.Unready
	// NoRoom is the exit status when the disk had no room for what the adapter keeps.
	NoRoom = contract.NoRoom
)

// Settings are what an adapter is told beside the contract's variables.
type Settings struct {
	job.Adapter
	// Root is the work directory; the command may start in a directory below it.
	Root string
	// Grace is the time between SIGTERM and SIGKILL, Total how many units the job has.
	Grace time.Duration
	Total int64
	// Bars are what is known of a sweep's trials.
	Bars []job.Bar `json:",omitempty"`
	// Room is how many bytes the subjob may leave.
	Room int64
}

// Arguments are those of the adapter's process for a command whose program lies at path.
func (s Settings) Arguments(path string, command []string) ([]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return append([]string{"sluice-shim", Verb, string(text), path}, command...), nil
}
