package shim

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
)

func TestFilesComeBackAsWritten(t *testing.T) {
	d := Dir(t.TempDir())
	l := Lease{Part: executor.Part{Token: job.Token{Epoch: 3, Seq: 4}, Job: "j", Range: job.Range{From: 1, To: 2}}, End: quantity.Never,
		Program: executor.Program{Env: []string{"A=b\nc"}}, User: &User{UID: 7}}
	l.Witness.Digest[31] = 9
	if err := d.Begin(&l); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadLease(); err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("lease %+v, %v\nwant %+v", got, err, l)
	}
	if info, err := os.Stat(d.Lease()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("lease.json %v, %v: it holds the job's environment", info.Mode(), err)
	}
	for name, read := range map[string]func() error{
		"control": func() error { _, err := d.ReadControl(); return err },
		"note":    func() error { _, err := d.ReadNote(); return err },
		"result":  func() error { _, err := d.ReadResult(); return err },
	} {
		if err := read(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing %s: %v, want fs.ErrNotExist", name, err)
		}
	}
	if err := os.WriteFile(d.Result(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadResult(); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), d.Result()) {
		t.Errorf("damaged result: %v, want it named", err)
	}
}

func TestPrepared(t *testing.T) {
	const s = quantity.Instant(time.Second)
	for _, c := range []struct {
		name                       string
		start, asked, unpacked, at quantity.Instant
		all, unpack                time.Duration
	}{
		{"asked for at its start", 100 * s, 100 * s, 0, 101 * s, time.Second, 0},
		{"asked for late: that is nobody's start", 100 * s, 105 * s, 0, 106 * s, time.Second, 0},
		{"asked for ahead: nothing of its time was gone", 100 * s, 90 * s, 95 * s, 100 * s, 0, 0},
		{"asked for ahead, and still unpacking at its start", 100 * s, 99 * s, 102 * s, 103 * s, 3 * time.Second, 2 * time.Second},
		{"unpacked first", 100 * s, 100 * s, 102 * s, 103 * s, 3 * time.Second, 2 * time.Second},
		{"it never started", 100 * s, 100 * s, 102 * s, 0, 0, 0},
		{"made by a version that does not say", 100 * s, 0, 0, 101 * s, 0, 0},
	} {
		l := Lease{Start: c.start, Asked: c.asked, Unpacked: c.unpacked}
		if all, unpack := l.Prepared(c.at); all != c.all || unpack != c.unpack {
			t.Errorf("%s: %v with %v of unpacking, want %v and %v", c.name, all, unpack, c.all, c.unpack)
		}
	}
}

func TestTermsAreForPrograms(t *testing.T) {
	d := Dir(t.TempDir())
	for _, end := range []quantity.Instant{quantity.At(time.Date(2030, 1, 2, 3, 4, 5, 678999999, time.UTC)), quantity.Never} {
		if err := d.WriteTerms(20, end); err != nil {
			t.Fatal(err)
		}
		var got struct {
			To       int64  `json:"to"`
			Deadline string `json:"deadline"`
		}
		data, _ := os.ReadFile(d.Terms())
		if err := json.Unmarshal(data, &got); err != nil || got.To != 20 {
			t.Errorf("terms %s: %v", data, err)
		}
		want := "2030-01-02T03:04:05.678Z"
		if end == quantity.Never {
			want = ""
		}
		if got.Deadline != want {
			t.Errorf("deadline %q, want %q", got.Deadline, want)
		}
	}
}

func TestProgressFileMayHoldAnything(t *testing.T) {
	d := Dir(t.TempDir())
	if err := os.Mkdir(d.ProgressDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(string(d), "secret")
	if err := os.WriteFile(secret, []byte(`{"progress":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		make func() error
		want Progress
		ok   bool
	}{
		"missing":   {make: func() error { return nil }},
		"empty":     {make: func() error { return os.WriteFile(d.Progress(), nil, 0o600) }},
		"text":      {make: func() error { return os.WriteFile(d.Progress(), []byte("half"), 0o600) }},
		"fraction":  {make: func() error { return os.WriteFile(d.Progress(), []byte(`{"progress":1.5}`), 0o600) }},
		"directory": {make: func() error { return os.Mkdir(d.Progress(), 0o700) }},
		"link":      {make: func() error { return os.Symlink(secret, d.Progress()) }},
		"pipe":      {make: func() error { return syscall.Mkfifo(d.Progress(), 0o600) }},
		"huge":      {make: func() error { return os.WriteFile(d.Progress(), make([]byte, progressLimit+1), 0o600) }},
		"good": {
			make: func() error {
				return os.WriteFile(d.Progress(), []byte(`{"progress": 7, "checkpoint": true, "loss": 0.1}`), 0o600)
			}, want: Progress{Progress: 7, Checkpoint: true}, ok: true,
		},
	} {
		if err := errors.Join(os.RemoveAll(d.Progress()), c.make()); err != nil {
			t.Fatal(err)
		}
		if p, ok := d.ReadProgress(); p != c.want || ok != c.ok {
			t.Errorf("%s: read as %+v, %v", name, p, ok)
		}
	}
}

// TestTheLastWholeLineOfTheNoteCounts: whoever reads it while a line is being written, or after the disk was full, finds the one before.
func TestTheLastWholeLineOfTheNoteCounts(t *testing.T) {
	d := Dir(t.TempDir())
	l, err := d.TryLock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if _, err := d.ReadNote(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty note: %v, want none", err)
	}
	for i := range 3 {
		if err := l.WriteNote(&Note{PID: i + 1}); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(d.Note())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.Note(), append(whole, `{"PID":9`...), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := d.ReadNote(); err != nil || n.PID != i+1 {
			t.Errorf("with half a line behind: %+v, %v; want that of %d", n, err, i+1)
		}
		if err := os.Truncate(d.Note(), int64(len(whole))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(d.Note(), 5); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadNote(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a line alone: %v, want none", err)
	}
}

// TestALockOfAnOlderVersionCounts: its supervisor has locked another file, and lives.
func TestALockOfAnOlderVersionCounts(t *testing.T) {
	d := Dir(t.TempDir())
	f, err := os.Create(d.OlderLock())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := d.TryLock(); !Held(err) {
		t.Errorf("%v, want it held", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := d.TryLock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if f, err = os.Open(d.OlderLock()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("an older supervisor that comes late gets its lock: %v", err)
	}
}

// TestWhatIsOfAnotherSubjobIsNotThere: a directory that was used again shows it after a power cut.
func TestWhatIsOfAnotherSubjobIsNotThere(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "1-2"))
	if err := os.Mkdir(string(d), 0o700); err != nil {
		t.Fatal(err)
	}
	old, own := Lease{Part: executor.Part{Token: job.Token{Epoch: 1, Seq: 1}, Job: "old"}},
		Lease{Part: executor.Part{Token: job.Token{Epoch: 1, Seq: 2}, Job: "own"}}
	if err := errors.Join(d.Begin(&old), d.WriteResult(&job.Result{Outcome: job.Done}, &old)); err != nil {
		t.Fatal(err)
	}
	if l, err := d.ReadLease(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("lease %+v, %v; want none", l, err)
	}
	if r, err := d.ReadResult(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("result %+v, %v; want none", r, err)
	}
	if err := d.WriteResult(&job.Result{Outcome: job.Done}, &own); err != nil {
		t.Fatal(err)
	}
	if l, err := d.ReadLease(); err != nil || l.Job != "own" {
		t.Errorf("lease %+v, %v; want the one that the result has", l, err)
	}
}

func TestLockIsTheKernels(t *testing.T) {
	d := Dir(t.TempDir())
	f, err := d.TryLock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.TryLock(); !Held(err) {
		t.Errorf("second lock: %v, want it held", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, err = d.TryLock()
	if err != nil {
		t.Fatalf("after its holder let go: %v", err)
	}
	_ = f.Close()
	if fenced, err := d.IsFenced(); fenced || err != nil {
		t.Errorf("fenced: %v, %v", fenced, err)
	}
	if err := d.Fence(); err != nil {
		t.Fatal(err)
	}
	if fenced, err := d.IsFenced(); !fenced || err != nil {
		t.Errorf("fenced: %v, %v", fenced, err)
	}
}

func TestAnchorIgnoresTheWallClock(t *testing.T) {
	// The node's clock may be anything: what counts is the time since the anchor was taken.
	a := AnchorAt(quantity.At(time.Unix(1000, 0)))
	end := a.Wall.Add(time.Second)
	if d := a.Until(end); d <= 0 || d > time.Second {
		t.Errorf("%v to the end, want just under a second", d)
	}
	old := Anchor{Wall: a.Wall, Boot: a.Boot - 2*time.Second}
	if d := old.Until(end); d > -time.Second {
		t.Errorf("%v to an end that has passed", d)
	}
	if d := a.Until(quantity.Never); d < 100*365*24*time.Hour {
		t.Errorf("%v to Never", d)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct {
		text  string
		lines int
		size  int64
		want  string
	}{
		{"", 3, 100, ""},
		{"a\nb\nc\n\n", 2, 100, "b\nc"},
		{"a\nb", 5, 100, "a\nb"},
		{"long line\nlast", 5, 8, "last"},
		{"one long line", 5, 4, "line"},
		{"\xff\xfe", 5, 100, "\uFFFD"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Tail(path, c.lines, c.size); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	if got := Tail(path+"x", 1, 1); got != "" {
		t.Errorf("missing file: %q", got)
	}
}

// TestProgramsAreToldByTheirMachinesClock: leases are by the node's, which may be another's; one that never ends does by neither.
func TestProgramsAreToldByTheirMachinesClock(t *testing.T) {
	wall := quantity.At(time.Unix(1_000_000, 0))
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		d, until := Dir(t.TempDir()), wall.Add(time.Minute)
		a := Anchor{Wall: wall.Add(ahead), Boot: 100 * time.Second, Ahead: ahead}
		if err := d.WriteNotice(executor.Notice{Sequence: 1, Kind: executor.NoticeYield, Until: until.Add(ahead)}, a); err != nil {
			t.Fatal(err)
		}
		if err := d.Begin(&Lease{End: until.Add(ahead), Anchor: a}); err != nil {
			t.Fatal(err)
		}
		want := Deadline(until)
		if said, err := os.ReadFile(d.Notice()); err != nil || !strings.Contains(string(said), want) ||
			!strings.Contains(string(said), `"uptime":160,`) {
			t.Errorf("ahead by %v: the notice says %s, %v; want %s", ahead, said, err, want)
		}
		if said, err := os.ReadFile(d.Terms()); err != nil || !strings.Contains(string(said), want) {
			t.Errorf("ahead by %v: the lease file says %s, %v; want %s", ahead, said, err, want)
		}
		if a.Shown(quantity.Never) != quantity.Never {
			t.Errorf("ahead by %v: a lease without an end ends at %v", ahead, a.Shown(quantity.Never))
		}
	}
	if a := AnchorAt(quantity.At(time.Now().Add(time.Hour))); (a.Ahead - time.Hour).Abs() > time.Minute {
		t.Errorf("a node an hour ahead is said to be %v", a.Ahead)
	}
}
