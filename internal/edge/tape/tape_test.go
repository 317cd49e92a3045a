package tape

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/wire"
)

var zone = protocol.Address{Role: protocol.Zone, ID: "z"}

func header(boot string) Header {
	return Header{Boot: boot, Version: "1.2.3", Commit: "abc", Started: 77, Config: []byte(`{"zone":"z"}`)}
}

// write puts n calls on a tape and returns what a reader must see.
func write(w *Writer, n int) []Entry {
	f := protocol.Fact{Kind: protocol.JobClosed, Actor: protocol.Address{Role: protocol.Gate}, Job: "old", At: 4, Body: &protocol.Final{}}
	w.Recovered(wire.AppendFact(nil, &f))
	w.RecoverCall(zone, 80)
	w.Digest(5)
	want := []Entry{{Kind: Recovered, Fact: f}, {Kind: RecoverCall, Actor: zone, Now: 80}, {Kind: Digest, Digest: 5}}
	for i := range n {
		m := protocol.Message{Kind: protocol.Report, To: zone, Job: "some-name-to-fill-a-segment",
			Body: &protocol.Observation{Progress: int64(i)}}
		now := quantity.Instant(100 + i)
		w.StepCall(zone, now, &m)
		w.Digest(uint64(i))
		want = append(want, Entry{Kind: StepCall, Actor: zone, Now: now, Message: m}, Entry{Kind: Digest, Digest: uint64(i)})
	}
	return want
}

// failer is what testing and rapid have in common.
type failer interface {
	Helper()
	Error(args ...any)
}

func readAll(t failer, dir, boot string) ([]Entry, error) {
	t.Helper()
	r, err := Open(dir, boot)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all []Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

func noTrouble(t *testing.T) func(error) { return func(err error) { t.Error(err) } }

func TestRoundTripOverSegments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tape")
	w := NewWriter(dir, header("boot-1"), Limits{Segment: 2000}, noTrouble(t))
	want := write(w, 200)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := segments(dir)
	if err != nil || len(names) < 5 {
		t.Fatalf("segments %q, %v: want several", names, err)
	}
	got, err := readAll(t, dir, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %d entries that differ from the %d written", len(got), len(want))
	}
	r, err := Open(dir, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Header(); h.Version != "1.2.3" || h.Commit != "abc" || h.Started != 77 || string(h.Config) != `{"zone":"z"}` {
		t.Errorf("header %+v", h)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestALargeStateIsLeftOut: the inputs behind it are kept, and what is missing is said.
func TestALargeStateIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, header("boot-1"), Limits{Segment: 2000, Cap: 8000}, noTrouble(t))
	f := protocol.Fact{Kind: protocol.JobHomed, Job: "a-job-with-a-name"}
	for range 1000 {
		w.Recovered(wire.AppendFact(nil, &f))
	}
	w.RecoverCall(zone, 80)
	w.Digest(5)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, dir, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	facts, rest := 0, got
	for len(rest) > 0 && rest[0].Kind == Recovered {
		facts, rest = facts+1, rest[1:]
	}
	want := []Entry{{Kind: Lost, Missing: uint64(1000 - facts)}, {Kind: RecoverCall, Actor: zone, Now: 80}, {Kind: Digest, Digest: 5}}
	if facts < 10 || facts > 400 || !reflect.DeepEqual(rest, want) {
		t.Errorf("%d facts, then %+v", facts, rest)
	}
}

func TestCapDropsTheOldest(t *testing.T) {
	dir := t.TempDir()
	for _, boot := range []string{"boot-1", "boot-2"} {
		w := NewWriter(dir, header(boot), Limits{Segment: 2000, Cap: 8000}, noTrouble(t))
		write(w, 300)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var total int64
	names, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		info, err := os.Stat(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > 8000+200 {
		t.Errorf("%d bytes of tape, the cap is 8000", total)
	}
	boots, err := Boots(dir)
	if err != nil || !reflect.DeepEqual(boots, []string{"boot-2"}) {
		t.Errorf("boots %q, %v", boots, err)
	}
	got, err := readAll(t, dir, "boot-2")
	if err != nil || len(got) == 0 || got[0].Kind != Lost || got[0].Missing == 0 {
		t.Fatalf("%v; a tape without its beginning must say so first", err)
	}
	if uint64(len(got)-1)+got[0].Missing != 603 {
		t.Errorf("%d entries and %d missing, want 603 together", len(got)-1, got[0].Missing)
	}
	if _, err := Open(dir, "boot-1"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a dropped boot: got %v, want kind not found", err)
	}
}

// TestTornTail cuts the last segment at every length: what was whole before is read, and nothing else.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, header("b"), Limits{}, noTrouble(t))
	want := write(w, 5)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentPath(dir, "b", 0)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(200, len(data)-1).Draw(t, "length")
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t, dir, "b")
		if err != nil || len(got) >= len(want) || (len(got) > 0 && !reflect.DeepEqual(got, want[:len(got)])) {
			t.Fatalf("cut at %d of %d: %d entries, %v", n, len(data), len(got), err)
		}
	})
}

func TestDamageIsNamed(t *testing.T) {
	dir := t.TempDir()
	w := NewWriter(dir, header("b"), Limits{}, noTrouble(t))
	write(w, 50)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentPath(dir, "b", 0)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 4
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(t, dir, "b"); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("got %v, want kind corrupt", err)
	}
}

// TestGap takes the folder away while writing: the writer reports it, goes on later, and the reader says what is missing.
func TestGap(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "tape")
	troubles := 0
	w := NewWriter(dir, header("b"), Limits{Segment: 400}, func(error) { troubles++ })
	m := protocol.Message{Kind: protocol.Tick, To: zone}
	step := func(at quantity.Instant) { w.StepCall(zone, at, &m); w.Digest(1) }
	step(1)
	w.Flush()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		step(quantity.Instant(2 + i))
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	step(quantity.Instant(0).Add(2 * retry))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if troubles != 1 {
		t.Errorf("%d reports of trouble, want 1", troubles)
	}
	got, err := readAll(t, dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	var missing uint64
	for _, e := range got {
		missing += e.Missing
	}
	if last := got[len(got)-2]; missing == 0 || last.Now != quantity.Instant(2*retry) {
		t.Errorf("%d missing, the last call is at %d", missing, last.Now)
	}
	if n := uint64(len(got)) - 1 + missing; n != 84 {
		t.Errorf("%d records seen and missing, 84 were written", n)
	}
}

func FuzzReader(f *testing.F) {
	dir := f.TempDir()
	w := NewWriter(dir, header("b"), Limits{}, nil)
	write(w, 3)
	w.StepCall(zone, 9, &protocol.Message{Kind: protocol.Result, Token: job.Token{Epoch: 1, Seq: 2},
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Done}}})
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(segmentPath(dir, "b", 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(segmentPath(dir, "b", 0), data, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, _ := readAll(t, dir, "b")
		if len(entries) > len(data) {
			t.Fatalf("%d entries out of %d bytes", len(entries), len(data))
		}
	})
}
