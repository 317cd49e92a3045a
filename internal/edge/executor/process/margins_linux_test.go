package process

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// TestMargins: what storing took the last times comes off a lease's end, within bounds.
func TestMargins(t *testing.T) {
	var m margins
	want := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	want("of a job that was never stored", m.of("j", job.Steps, time.Hour), 0)
	m.took("j", 100*time.Millisecond)
	want("of what takes no time", m.of("j", job.Steps, time.Hour), 0)
	m.took("j", 20*time.Second)
	want("after 20 s", m.of("j", job.Steps, time.Hour), 30*time.Second)
	want("of a short lease", m.of("j", job.Steps, time.Minute), 15*time.Second)
	want("of a rigid job", m.of("j", job.Rigid, time.Hour), 0)
	want("of another job", m.of("k", job.Steps, time.Hour), 0)
	m.took("j", time.Second)
	want("after one that was quick", m.of("j", job.Steps, time.Hour), 22500*time.Millisecond)
	m.forget("j")
	want("of a job that is gone", m.of("j", job.Steps, time.Hour), 0)
	for i := range mostMargins + 10 {
		m.took(job.ID(fmt.Sprint(i)), time.Minute)
	}
	if len(m.all) > mostMargins {
		t.Errorf("%d jobs are remembered", len(m.all))
	}
}

// TestWhatCanNotBeStoredDoesNotCount: such a result ends its subjob as a passed limit, with nothing done.
func TestWhatCanNotBeStoredDoesNotCount(t *testing.T) {
	res := refused(&job.Result{Outcome: job.Done, Progress: 10, Checkpoint: true, Detail: "fine"}, 3, errors.New("too many files"))
	if res.Outcome != job.LimitKilled || res.Progress != 3 || res.Checkpoint || res.Detail != "what it has left can't be stored, and does not count: too many files; fine" {
		t.Errorf("%+v", res)
	}
}
