package twin_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host"
)

// counting is a journal that counts its syncs.
type counting struct {
	journal.Journal
	syncs *int
}

func (j counting) Append(records [][]byte) (journal.Position, error) {
	*j.syncs++
	return j.Journal.Append(records)
}

// TestWhatActorsTellEachOtherIsSyncedTogether: of a subjob's life three things come from outside (it began, it ended, its output is in
// its place), and the facts of each, whoever decides them, have one sync at most.
func TestWhatActorsTellEachOtherIsSyncedTogether(t *testing.T) {
	syncs := 0
	jobs := small(t)
	l := newLive(t)
	l.journal = func(j journal.Journal) journal.Journal { return counting{j, &syncs} }
	l.options = func(o *host.Options) { o.NoTape = true }
	synctest.Test(t, func(t *testing.T) {
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		for _, a := range jobs {
			l.submit(t, a)
			time.Sleep(time.Second)
		}
		if !l.finished(len(jobs), time.Hour) {
			t.Error("not finished within an hour")
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	steps, ended := 0, 0
	for _, f := range l.logged(t) {
		switch f.Kind {
		case protocol.LeaseMade, protocol.Claimed, protocol.SubjobStarted, protocol.SubjobEnded, protocol.Committed, protocol.ResultSettled,
			protocol.LeaseGone, protocol.OutputPublished:
			steps++
		}
		if f.Kind == protocol.SubjobEnded {
			ended++
		}
	}
	const other = 8 // boot, submissions, the jobs' ends
	if ended == 0 || syncs > 3*ended+other {
		t.Errorf("%d syncs for %d subjobs of %d steps, want at most 3 each and %d", syncs, ended, steps, other)
	}
}
