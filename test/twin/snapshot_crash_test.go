package twin_test

import (
	"errors"
	"io"
	"sync"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/wire"
	"sluice.dev/sluice/internal/host"
)

// killer ends the daemon at one operation of its journal, counted over all its lives: an append, or the beginning, a write or
// the commit of a snapshot. It remembers every fact that became durable, whoever was told.
type killer struct {
	t     *testing.T
	after bool
	at    int

	mu        sync.Mutex
	count     int
	committed int
	facts     []protocol.Fact
}

// do is one operation: it is made before the kill, or not at all.
func (k *killer) do(op func() error) error {
	k.mu.Lock()
	k.count++
	here := k.count == k.at
	k.mu.Unlock()
	if here && !k.after {
		return errKilled
	}
	if err := op(); err != nil {
		return err
	}
	if here {
		return errKilled
	}
	return nil
}

type killed struct {
	journal.Journal
	*killer
}

func (j killed) Append(records [][]byte) (p journal.Position, err error) {
	err = j.do(func() (err error) {
		if p, err = j.Journal.Append(records); err != nil {
			return err
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, r := range records {
			if err := wire.DecodeFacts(r, func(f protocol.Fact) error { j.facts = append(j.facts, f); return nil }); err != nil {
				j.t.Error(err)
			}
		}
		return nil
	})
	return p, err
}

func (j killed) Snapshot() (s journal.Snapshot, err error) {
	err = j.do(func() (err error) { s, err = j.Journal.Snapshot(); return err })
	if err != nil && s != nil {
		return nil, errors.Join(err, s.Abort())
	}
	return killedSnapshot{s, j.killer}, err
}

// killedSnapshot is one whose daemon may be killed while it is written: what it had is there then, under another name.
type killedSnapshot struct {
	journal.Snapshot
	*killer
}

func (s killedSnapshot) Write(b []byte) (n int, err error) {
	err = s.do(func() (err error) { n, err = s.Snapshot.Write(b); return err })
	return n, err
}

func (s killedSnapshot) Commit() error {
	return s.do(func() error {
		err := s.Snapshot.Commit()
		if err == nil {
			s.mu.Lock()
			s.committed++
			s.mu.Unlock()
		}
		return err
	})
}

// Abort is not made by who was killed; the next start removes what is left.
func (s killedSnapshot) Abort() error {
	if s.at > 0 && s.reached() {
		return nil
	}
	return s.Snapshot.Abort()
}

func (k *killer) reached() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.count >= k.at }

// TestKilledAroundSnapshots stops the daemon at each append, and at each step of each snapshot that it writes beside them, just
// before and just after it is made: every job finishes, and each unit is committed once.
func TestKilledAroundSnapshots(t *testing.T) {
	t.Parallel()
	plain := killAround(t, 0, false)
	if plain.committed < 5 {
		t.Fatalf("only %d snapshots: the scenario shows nothing", plain.committed)
	}
	for _, after := range []bool{false, true} {
		for k := 1; k <= plain.count; k++ {
			if killAround(t, k, after); t.Failed() {
				t.Fatalf("killed at operation %d of %d, after it was made: %v", k, plain.count, after)
			}
		}
	}
}

func killAround(t *testing.T, at int, after bool) *killer {
	t.Helper()
	jobs := small(t)
	k := &killer{t: t, after: after, at: at}
	l := newLive(t)
	l.journal = func(j journal.Journal) journal.Journal { return killed{j, k} }
	l.options = func(o *host.Options) { o.NoTape, o.SnapshotRecords = true, 4 }
	l.playKilled(t, jobs)
	checkOnce(t, k.facts, jobs)
	l.recovers(t)
	return k
}

// recovers insists that what lies on the disk at the end is a journal that opens without a word.
func (l *live) recovers(t *testing.T) {
	t.Helper()
	l.journal = nil
	j, err := l.openJournal()
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Replay(
		func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err },
		func(journal.Position, []byte) error { return nil })
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
}
