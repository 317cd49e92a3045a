package process

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// TestControlHasWhatWasSetLast: nothing is written before there is a directory, nor where nothing changed, nor after the end; what was
// suspended goes on with a stop, and is suspended no more.
func TestControlHasWhatWasSetLast(t *testing.T) {
	dir, at := shim.Dir(t.TempDir()), quantity.Instant(1_000_000_000)
	c := control{dir: dir, now: func() quantity.Instant { return at }, told: &executor.Answers{}, failed: func(err error) { t.Error(err) }}
	file := func() shim.Control {
		t.Helper()
		got, err := dir.ReadControl()
		if err != nil {
			t.Fatal(err)
		}
		got.Anchor = shim.Anchor{}
		return got
	}
	none := func(when string) {
		t.Helper()
		if _, err := os.Stat(dir.Control()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a file (%v)", when, err)
		}
	}
	end, r := at.Add(time.Minute), job.Range{To: 10}
	c.lease(end, r)
	c.change(protocol.Message{Body: &protocol.Shift{End: end.Add(time.Hour)}})
	c.pass()
	none("before there is a directory")
	c.place()
	c.pass()
	if got, want := file(), (shim.Control{End: end.Add(time.Hour), Range: r}); got != want {
		t.Errorf("a later end: %+v, want %+v", got, want)
	}
	c.change(protocol.Message{Body: &protocol.Shift{End: end.Add(time.Minute)}})
	c.suspend(true, true, "short", time.Second)
	want := shim.Control{End: end.Add(time.Minute), Range: r, Still: at.Add(time.Second), Stood: 1, Short: "short", Watched: true}
	if got := file(); got != want {
		t.Errorf("suspended: %+v, want %+v", got, want)
	}
	c.change(protocol.Message{Body: &protocol.Halt{Text: "enough"}})
	c.suspend(true, false, "short", time.Second)
	want.Still, want.Stood, want.Watched, want.Stop, want.Cause = 0, 2, false, true, "enough"
	if got := file(); got != want {
		t.Errorf("stopped: %+v, want %+v", got, want)
	}
	c.suspend(false, true, "", 0) // the watcher resumes what it has not suspended
	if got := file(); got != want {
		t.Errorf("resumed by the watcher: %+v, want %+v", got, want)
	}
	if err := os.Remove(dir.Control()); err != nil {
		t.Fatal(err)
	}
	c.told.Ended(&job.Result{})
	c.pass()
	none("after the end")
	c = control{dir: dir, now: c.now, told: &executor.Answers{}, failed: c.failed}
	c.lease(end, r)
	c.place()
	c.pass()
	none("where nothing changed")
}
