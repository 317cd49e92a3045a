package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// script is a life with everything in it. It returns at the first error, with what was acknowledged and all that may be
// there besides: a batch or a snapshot that was under way.
func script(s Store) (acked *model, maybe []*model, err error) {
	acked = &model{}
	j, err := s.Open(func(string) {})
	if err != nil {
		return acked, nil, err
	}
	defer j.Close()
	if _, err = replay(j); err != nil {
		return acked, nil, err
	}
	n := 0
	for round := range 3 {
		state := bytes.Repeat(fmt.Appendf(nil, "state of round %d, ", round), 40*round+1)
		var begun journal.Snapshot
		var at journal.Position
		for i := range 4 {
			b := batch(n, 1+i)
			next := acked.clone()
			next.append(b)
			if _, err = j.Append(b); err != nil {
				return acked, []*model{next}, err
			}
			acked, n = next, n+len(b)
			if i == 1 {
				if begun, err = j.Snapshot(); err != nil {
					return acked, nil, err
				}
				at = acked.last()
			}
			if i > 1 {
				if _, err := begun.Write(state[(i-2)*len(state)/2 : (i-1)*len(state)/2]); err != nil {
					return acked, nil, err
				}
			}
		}
		next := acked.clone()
		next.cover(at, state)
		if err := begun.Commit(); err != nil {
			return acked, []*model{next}, err
		}
		acked = next
	}
	b := batch(n, 2)
	next := acked.clone()
	next.append(b)
	if _, err := j.Append(b); err != nil {
		return acked, []*model{next}, err
	}
	return next, nil, j.Close()
}

func powerCutAtEveryOperation(t *testing.T, k Kind) {
	s, ok := k(t).(Powered)
	if !ok {
		t.Skip("this kind's power cannot be cut; the code is tested with one whose power can")
	}
	if _, _, err := script(s); err != nil {
		t.Fatal(err)
	}
	total := s.Ops()
	for cut := range total + 1 {
		for seed := range uint64(8) {
			s := k(t).(Powered)
			s.CutAfter(cut)
			acked, maybe, err := script(s)
			if err != nil && cut == total {
				t.Fatalf("not cut at all: %v", err)
			}
			m := survived(t, s.Restart(seed*1000+uint64(cut)), append(maybe, acked), fmt.Sprintf("cut after %d, seed %d", cut, seed))
			for _, p := range acked.at {
				if err := check(m, p); err != nil {
					t.Fatalf("cut after %d, seed %d: an acknowledgement is not kept: %v", cut, seed, err)
				}
			}
			shut(t, m)
		}
	}
}

// survived opens what a power cut left, cuts the power during that as well, and wants one of the models in the end. The
// journal goes on from there.
func survived(t *testing.T, s Powered, models []*model, what string) journal.Journal {
	t.Helper()
	for again := range int64(6) {
		s.CutAfter(again)
		if life(s) == nil {
			break
		}
		s = s.Restart(uint64(again))
	}
	s.CutAfter(-1)
	m := oneOf(t, s, models, what).clone()
	j := mustQuietly(t, s, m)
	add(t, j, m, []byte("on"))
	shut(t, j)
	return mustQuietly(t, s, m)
}

// life opens a journal, reads it, and closes it.
func life(s Store) error {
	j, err := s.Open(func(string) {})
	if err != nil {
		return err
	}
	_, err = replay(j)
	return errors.Join(err, j.Close())
}

// readBack opens a journal and reads what is there.
func readBack(t *testing.T, s Store, what string) (journal.Journal, *held) {
	t.Helper()
	j, err := s.Open(func(string) {})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	h, err := replay(j)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return j, h
}

// oneOf opens and closes the journal, which must be like one of the models, and returns that.
func oneOf(t *testing.T, s Store, models []*model, what string) *model {
	t.Helper()
	j, h := readBack(t, s, what)
	shut(t, j)
	var differ []error
	for _, m := range models {
		err := h.equal(m)
		if err == nil {
			return m
		}
		differ = append(differ, err)
	}
	t.Fatalf("%s: %v", what, errors.Join(differ...))
	return nil
}

// killedAndThenPowerCut: a process is killed at any point; the next one reads what is there and may tell the world, so
// that must outlive a power cut right after.
func killedAndThenPowerCut(t *testing.T, k Kind) {
	s, ok := k(t).(Powered)
	if !ok {
		t.Skip("this kind's power cannot be cut; the code is tested with one whose power can")
	}
	if _, _, err := script(s); err != nil {
		t.Fatal(err)
	}
	for at := range s.Ops() {
		for seed := range uint64(6) {
			what := fmt.Sprintf("killed after %d operations, seed %d", at, seed)
			p := k(t).(Powered)
			p.CutAfter(at)
			acked, maybe, _ := script(p)
			p.Kill()
			_, h := readBack(t, p, what)
			var told *model
			for _, m := range append(maybe, acked) {
				if h.equal(m) == nil {
					told = m
				}
			}
			if told == nil {
				t.Fatalf("%s: %v", what, h.equal(acked))
			}
			oneOf(t, p.Restart(seed), []*model{told}, what+", then the power was cut")
		}
	}
}

// fullDiskAtSync: file systems that find room only when they write may say at a sync that there is none. Then nothing of
// the batch may come back, not even after a power cut.
func fullDiskAtSync(t *testing.T, k Kind) {
	for seed := range uint64(20) {
		s, ok := k(t).(Powered)
		if !ok {
			t.Skip("this kind's syncs cannot fail; the code is tested with one whose syncs can")
		}
		m := &model{}
		j := must(t, s, m)
		add(t, j, m, batch(0, 2)...)
		s.FailSyncs(1, unix.ENOSPC)
		if _, err := j.Append(batch(2, 2)); errkind.Of(err) != errkind.Exhausted {
			t.Fatalf("a sync that found no room: %v", err)
		}
		shut(t, mustQuietly(t, s.Copy(), m))
		oneOf(t, s.Restart(seed), []*model{m}, "a power cut after a sync that found no room")
		add(t, j, m, batch(4, 1)...)
		shut(t, j)
		shut(t, mustQuietly(t, s, m))
	}
}

// failedSyncIsTheEnd: after a sync failed for another reason nobody knows what is on the disk. A second sync that says
// all is well would be a lie, so the journal is not used again.
func failedSyncIsTheEnd(t *testing.T, k Kind) {
	s, ok := k(t).(Powered)
	if !ok {
		t.Skip("this kind's syncs cannot fail; the code is tested with one whose syncs can")
	}
	m := &model{}
	j := must(t, s, m)
	add(t, j, m, batch(0, 2)...)
	s.FailSyncs(1, unix.EIO)
	_, first := j.Append(batch(2, 2))
	_, again := j.Append(batch(2, 2))
	for name, err := range map[string]error{"Append": first, "Append again": again, "Snapshot": Snapshot(j, nil),
		"Check": check(j, m.last())} {
		if errkind.Of(err) != errkind.Unavailable {
			t.Errorf("%s after a failed sync: %v (%v)", name, err, errkind.Of(err))
		}
	}
	shut(t, j)
	maybe := m.clone()
	maybe.append(batch(2, 2))
	shut(t, survived(t, s.Restart(1), []*model{m, maybe}, "after a failed sync"))
}
