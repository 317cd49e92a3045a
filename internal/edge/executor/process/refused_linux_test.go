package process

import (
	"errors"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// TestWhatCanNotBeStoredDoesNotCount: such a result ends its subjob as a passed limit, with nothing done.
func TestWhatCanNotBeStoredDoesNotCount(t *testing.T) {
	res := refused(&job.Result{Outcome: job.Done, Progress: 10, Checkpoint: true, Detail: "fine"}, 3, errors.New("too many files"))
	if res.Outcome != job.LimitKilled || res.Progress != 3 || res.Checkpoint ||
		res.Detail != "what it has left can't be stored, and does not count: too many files; fine" {
		t.Errorf("%+v", res)
	}
}
