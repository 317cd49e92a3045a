package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

// Kind makes empty stores of one kind of journal.
type Kind func(t testing.TB) Store

// Store is the place of one journal, and what can happen to it.
type Store interface {
	// Open opens the journal; notice gets what it mends without a loss. Segments are small, so that a test has several.
	Open(notice func(string)) (journal.Journal, error)
	// Files lists the files that hold the journal, locks left out; Get reads one, Rot replaces its content behind the
	// journal's back (nil: removes it).
	Files() []string
	Get(name string) []byte
	Rot(name string, content []byte)
	// SetRoom makes the disk full after n more bytes; negative: never.
	SetRoom(n int64)
	// Copy is a place with the same files, without limits, for a trial that may damage them.
	Copy() Store
}

// Powered is a store whose power can be cut. A kind without it passes the suite without these tests.
type Powered interface {
	Store
	// CutAfter cuts the power in the middle of the operation after the n next ones that change something.
	CutAfter(n int64)
	// Ops counts operations that changed something.
	Ops() int64
	// FailSyncs lets the next n syncs of files fail with err and sync nothing.
	FailSyncs(n int, err error)
	// Kill ends the process that has the journal open: what it wrote is there, what it did not sync is not durable.
	Kill()
	// Restart is the place after the power cut; seed draws which unsynced data is left.
	Restart(seed uint64) Powered
}

// model is what a correct journal holds.
type model struct {
	state   []byte
	stateAt journal.Position
	records [][]byte
	at      []journal.Position // of records
}

func (m *model) last() journal.Position {
	if n := len(m.at); n > 0 {
		return m.at[n-1]
	}
	return m.stateAt
}

func (m *model) append(batch [][]byte) {
	for _, r := range batch {
		m.at = append(m.at, m.last().Next(r))
		m.records = append(m.records, r)
	}
}

func (m *model) snapshot(state []byte) { m.cover(m.last(), state) }

// cover is a snapshot of the state as of an earlier record.
func (m *model) cover(at journal.Position, state []byte) {
	n := at.Seq - m.stateAt.Seq
	m.stateAt, m.state = at, state
	m.records, m.at = m.records[n:], m.at[n:]
}

func (m *model) clone() *model {
	c := *m
	c.records, c.at = slices.Clone(m.records), slices.Clone(m.at)
	return &c
}

// held is what a journal replayed.
type held struct {
	model
	snapshots int
	end       journal.Position
}

func replay(j journal.Journal) (*held, error) {
	h := &held{}
	end, err := j.Replay(func(state io.Reader) (err error) {
		h.snapshots++
		h.state, err = io.ReadAll(state)
		return err
	}, func(p journal.Position, data []byte) error {
		h.records = append(h.records, bytes.Clone(data))
		h.at = append(h.at, p)
		return nil
	})
	h.end = end
	return h, err
}

// equal says how what was replayed differs from m, or nothing.
func (h *held) equal(m *model) error {
	if (m.state != nil) != (h.snapshots == 1) || !bytes.Equal(h.state, m.state) {
		return fmt.Errorf("%d snapshots, the last %q, want %q", h.snapshots, h.state, m.state)
	}
	if len(h.records) != len(m.records) {
		return fmt.Errorf("%d records, want %d", len(h.records), len(m.records))
	}
	for i := range h.records {
		if !bytes.Equal(h.records[i], m.records[i]) || h.at[i] != m.at[i] {
			return fmt.Errorf("record %d is %q at %s, want %q at %s", i, h.records[i], h.at[i], m.records[i], m.at[i])
		}
	}
	if h.end != m.last() {
		return fmt.Errorf("it ends at %s, want %s", h.end, m.last())
	}
	return nil
}

// must opens a journal and replays it, and wants exactly m.
func must(t *testing.T, s Store, m *model) journal.Journal {
	t.Helper()
	j, err := s.Open(func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	h, err := replay(j)
	if err == nil {
		err = h.equal(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// mustQuietly is must, and wants nothing mended.
func mustQuietly(t *testing.T, s Store, m *model) journal.Journal {
	t.Helper()
	var notices []string
	j, err := s.Open(func(text string) { notices = append(notices, text) })
	if err != nil {
		t.Fatal(err)
	}
	h, err := replay(j)
	if err == nil {
		err = h.equal(m)
	}
	if err != nil || len(notices) > 0 {
		t.Fatalf("%v, and mended %q", err, notices)
	}
	return j
}

func add(t *testing.T, j journal.Journal, m *model, batch ...[]byte) {
	t.Helper()
	got, err := j.Append(batch)
	if err != nil {
		t.Fatal(err)
	}
	m.append(batch)
	if got != m.last() {
		t.Fatalf("Append returned %s, want %s", got, m.last())
	}
}

// Snapshot writes a whole snapshot, in two pieces; what fails is given up.
func Snapshot(j journal.Journal, state []byte) error {
	s, err := j.Snapshot()
	if err != nil {
		return err
	}
	half := len(state) / 2
	for _, part := range [][]byte{state[:half], state[half:]} {
		if _, err = s.Write(part); err != nil {
			break
		}
	}
	if err == nil {
		err = s.Commit()
	}
	if err != nil {
		return errors.Join(err, s.Abort())
	}
	return nil
}

func shut(t *testing.T, j journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// batch makes n records whose content tells where they belong.
func batch(from, n int) [][]byte {
	b := make([][]byte, n)
	for i := range b {
		b[i] = fmt.Appendf(nil, "record %d %s", from+i, bytes.Repeat([]byte{'x'}, (from+i)*7%40))
	}
	return b
}

// outcome is what became of a journal that something happened to.
type outcome struct {
	// refused is the error that Open or Replay named the damage with; otherwise held and notices.
	refused error
	held    *held
	notices []string
	j       journal.Journal
}

// reopen opens what may be damaged, and fails only if the store panics or fails in a way that says nothing.
func reopen(t *testing.T, s Store) outcome {
	t.Helper()
	o := outcome{}
	j, err := s.Open(func(text string) { o.notices = append(o.notices, text) })
	if err == nil {
		o.j = j
		o.held, err = replay(j)
	}
	if err != nil {
		o.refused = err
		if errkind.Of(err) != errkind.Corrupt {
			t.Fatalf("damage was not called damage: %v (%v)", err, errkind.Of(err))
		}
		if o.j != nil {
			if err := o.j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return o
}

var errStop = errors.New("stop")
