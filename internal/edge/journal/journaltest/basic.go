package journaltest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
)

func emptyIsEmpty(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	for range 3 {
		j := must(t, s, m)
		if p, err := j.Append(nil); err != nil || p != (journal.Position{}) {
			t.Fatalf("nothing appended: %s, %v", p, err)
		}
		if err := check(j, journal.Position{}); err != nil {
			t.Fatal(err)
		}
		shut(t, j)
	}
}

func recordsComeBack(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	n := 0
	for round := range 6 {
		j := must(t, s, m)
		for i := range round * 4 {
			add(t, j, m, batch(n, 1+i%5)...)
			n += 1 + i%5
		}
		add(t, j, m, nil, []byte{}, []byte{0})
		shut(t, j)
	}
	shut(t, must(t, s, m))
}

// positionsAreTheChain computes the digests on its own.
func positionsAreTheChain(t *testing.T, k Kind) {
	s := k(t)
	j := must(t, s, &model{})
	var digest [32]byte
	for i := range 10 {
		r := fmt.Appendf(nil, "%d", i)
		digest = sha256.Sum256(append(digest[:], r...))
		p, err := j.Append([][]byte{r})
		if err != nil || p != (journal.Position{Seq: uint64(i + 1), Digest: digest}) {
			t.Fatalf("record %d: %s, %v, want %x", i+1, p, err, digest[:6])
		}
	}
	shut(t, j)
}

func snapshotAndTail(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	for i := range 5 {
		j := must(t, s, m)
		add(t, j, m, batch(i*10, 4)...)
		state := fmt.Appendf(nil, "state %d", i)
		for range 2 { // again with nothing new is the same
			if err := Snapshot(j, state); err != nil {
				t.Fatal(err)
			}
			m.snapshot(state)
		}
		for n := range i {
			add(t, j, m, batch(i*10+4+n, 1)...)
		}
		shut(t, j)
	}
	j := must(t, s, m)
	if err := Snapshot(j, []byte{}); err != nil {
		t.Fatal(err)
	}
	m.snapshot([]byte{})
	shut(t, j)
	shut(t, must(t, s, m))
}

// snapshotBeside: a snapshot is of where it was begun, whatever is appended while it is written; until it is committed
// nothing has changed, and what is given up leaves nothing.
func snapshotBeside(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	n := 0
	more := func() {
		t.Helper()
		add(t, j, m, batch(n, 1+n%4)...)
		n += 1 + n%4
	}
	for round := range 12 {
		for range round % 5 {
			more()
		}
		at := m.last()
		begun, err := j.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Snapshot(); errkind.Of(err) != errkind.Invalid {
			t.Fatalf("a second snapshot at a time: %v", err)
		}
		var state []byte
		for i := range round * 5 {
			part := bytes.Repeat([]byte{byte(round), byte(i)}, 10*i)
			state = append(state, part...)
			if _, err := begun.Write(part); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				more()
			}
		}
		shut(t, mustQuietly(t, s.Copy(), m))
		if round%3 == 2 {
			if err := errors.Join(begun.Abort(), begun.Abort()); err != nil {
				t.Fatal(err)
			}
		} else {
			if err := errors.Join(begun.Commit(), begun.Abort()); err != nil {
				t.Fatal(err)
			}
			m.cover(at, append([]byte{}, state...))
		}
		if _, err := begun.Write([]byte("late")); errkind.Of(err) != errkind.Invalid {
			t.Fatalf("a write after the end: %v", err)
		}
		for _, p := range append([]journal.Position{m.stateAt}, m.at...) {
			if err := check(j, p); err != nil {
				t.Fatal(err)
			}
		}
		shut(t, mustQuietly(t, s.Copy(), m))
		if round%4 == 3 {
			shut(t, j)
			j = mustQuietly(t, s, m)
		}
	}
	shut(t, j)
}

// check holds one witness against a journal.
func check(j journal.Journal, p journal.Position) error { return j.Check([]journal.Position{p})[0] }

// manyAreChecked asks for good and wrong ones in one call, doubled and in no order.
func manyAreChecked(t *testing.T, j journal.Journal, good, wrong []journal.Position) {
	t.Helper()
	list := slices.Concat(good, wrong, good)
	bad := make([]bool, len(list))
	for i := range wrong {
		list[len(good)+i].Digest[31] ^= 1
		bad[len(good)+i] = true
	}
	draw := rand.New(rand.NewPCG(1, 2))
	draw.Shuffle(len(list), func(a, b int) { list[a], list[b], bad[a], bad[b] = list[b], list[a], bad[b], bad[a] })
	errs := j.Check(list)
	if len(errs) != len(list) {
		t.Fatalf("%d answers to %d witnesses", len(errs), len(list))
	}
	for i, err := range errs {
		if (err != nil) != bad[i] || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("record %d", list[i].Seq)) {
			t.Fatalf("witness %d of %d, %s: %v, wrong: %v", i, len(list), list[i], err, bad[i])
		}
	}
}

func witnessesAreChecked(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	add(t, j, m, batch(0, 30)...)
	old := m.at[3]
	if err := Snapshot(j, []byte("state")); err != nil {
		t.Fatal(err)
	}
	m.snapshot([]byte("state"))
	for i := range 40 {
		add(t, j, m, batch(30+i*3, 3)...)
	}
	all := func(j journal.Journal) {
		t.Helper()
		for _, p := range append([]journal.Position{old, m.stateAt, {}}, m.at...) {
			if err := check(j, p); err != nil {
				t.Fatalf("%s: %v", p, err)
			}
		}
		wrong := append([]journal.Position{m.stateAt, m.last().Next(nil)}, m.at...)
		for _, p := range wrong {
			p.Digest[31] ^= 1
			if err := check(j, p); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), fmt.Sprintf("record %d", p.Seq)) {
				t.Fatalf("%s: %v, want it to be missed", p, err)
			}
		}
		manyAreChecked(t, j, append([]journal.Position{old, {}}, m.at...), wrong)
	}
	all(j)
	shut(t, j)
	j = must(t, s, m)
	all(j)
	shut(t, j)
}

func callbackEndsReplay(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	add(t, j, m, batch(0, 3)...)
	if err := Snapshot(j, []byte("state")); err != nil {
		t.Fatal(err)
	}
	m.snapshot([]byte("state"))
	add(t, j, m, batch(3, 3)...)
	shut(t, j)
	calls := 0
	stopAt := func(n int) error {
		if calls++; calls == n {
			return errStop
		}
		return nil
	}
	for n := 1; n <= 4; n++ {
		j, err := s.Open(func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		calls = 0
		_, err = j.Replay(func(io.Reader) error { return stopAt(n) }, func(journal.Position, []byte) error { return stopAt(n) })
		if !errors.Is(err, errStop) || calls != n {
			t.Fatalf("ended after %d of %d calls: %v", calls, n, err)
		}
		if _, err := j.Append(batch(0, 1)); err == nil {
			t.Fatal("a journal that was not wholly read can be written")
		}
		shut(t, j)
	}
	shut(t, must(t, s, m))
}

func replayComesFirst(t *testing.T, k Kind) {
	j, err := k(t).Open(func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Append":   second(j.Append(batch(0, 1))),
		"Snapshot": Snapshot(j, nil),
		"Check":    check(j, journal.Position{}),
	} {
		if errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s before Replay: %v", name, err)
		}
	}
	if _, err := replay(j); err != nil {
		t.Fatal(err)
	}
	if _, err := replay(j); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a second Replay: %v", err)
	}
	if _, err := j.Append(batch(0, 1)); err != nil {
		t.Errorf("after a refused second Replay: %v", err)
	}
	shut(t, j)
	if _, err := j.Append(batch(0, 1)); errkind.Of(err) != errkind.Invalid {
		t.Errorf("after Close: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func tooLargeIsRefused(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	add(t, j, m, batch(0, 1)...)
	large := make([]byte, journal.MaxRecord+1)
	for name, b := range map[string][][]byte{
		"record": {[]byte("small"), large},
		"batch":  {large[1:], large[1:], large[1:], large[1:], {1}},
	} {
		if _, err := j.Append(b); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	add(t, j, m, batch(1, 1)...)
	shut(t, j)
	shut(t, must(t, s, m))
}

func secondOpenIsRefused(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	add(t, j, m, batch(0, 1)...)
	_, err := s.Open(func(string) {})
	if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Fatalf("opened twice: %v", err)
	}
	add(t, j, m, batch(1, 1)...)
	shut(t, j)
	shut(t, must(t, s, m))
}

func sizeGrowsAndShrinks(t *testing.T, k Kind) {
	s, m := k(t), &model{}
	j := must(t, s, m)
	onDisk := func() (sum int64) {
		for _, name := range s.Files() {
			sum += int64(len(s.Get(name)))
		}
		return sum
	}
	check := func(records uint64) {
		t.Helper()
		if b, n := j.Size(); b != onDisk() || n != records {
			t.Fatalf("Size says %d bytes and %d records, there are %d and %d", b, n, onDisk(), records)
		}
	}
	check(0)
	for i := range 20 {
		add(t, j, m, batch(i, 10)...)
	}
	check(200)
	if err := Snapshot(j, []byte("state")); err != nil {
		t.Fatal(err)
	}
	m.snapshot([]byte("state"))
	check(0)
	add(t, j, m, batch(0, 3)...)
	check(3)
	shut(t, j)
	j = must(t, s, m)
	check(3)
	// One record that fills a segment, and the state after it: nothing of it stays.
	add(t, j, m, make([]byte, 5000))
	check(4)
	if err := Snapshot(j, []byte("state")); err != nil {
		t.Fatal(err)
	}
	check(0)
	m.snapshot([]byte("state"))
	add(t, j, m, make([]byte, 5000))
	if err := Snapshot(j, []byte("state")); err != nil {
		t.Fatal(err)
	}
	check(0)
	if onDisk() > 2000 {
		t.Fatalf("%d bytes stay after a snapshot: %v", onDisk(), s.Files())
	}
	shut(t, j)
}
