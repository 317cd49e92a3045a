package process_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
)

func TestLateSupervisorFindsTheFence(t *testing.T) {
	// A daemon that dies between making the run directory and the supervisor's first look at it.
	b := newBench(t, func(o *process.Options) { o.ShimPath = slowShim(t) })
	b.do(lease(time.Minute, "touch", filepath.Join(b.o.DataDir, "ran")))
	b.await("the run directory", func() bool { _, err := b.dir().ReadLease(); return err == nil })
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	found := b.open()
	if len(found) != 1 || found[0].Alive || found[0].Result == nil ||
		found[0].Result.Outcome != job.NodeFailed || found[0].Result.Start != 0 {
		t.Fatalf("found %+v, want a start that its node failed", found)
	}
	// Now the supervisor comes.
	self, _ := os.Executable()
	if out, err := exec.Command(self, supervisor.Supervise, string(b.dir())).CombinedOutput(); err != nil {
		t.Fatalf("late supervisor: %v: %s", err, out)
	}
	if _, err := b.dir().ReadNote(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the late supervisor took the directory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.o.DataDir, "ran")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the late supervisor started the command: %v", err)
	}
}

// slowShim is a supervisor that answers the probe and never gets to supervising.
func slowShim(t *testing.T) string {
	self, _ := os.Executable()
	path := filepath.Join(t.TempDir(), "slow")
	text := "#!/bin/sh\n[ $1 = probe ] && exec " + self + " \"$@\"\nexec sleep 2\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecondSupervisorStartsNothing(t *testing.T) {
	b := newBench(t, nil)
	b.run(lease(time.Minute, "sh", "-c", "echo once >>$SLUICE_OUTPUT_DIR/runs"), job.Done)
	self, _ := os.Executable()
	if out, err := exec.Command(self, supervisor.Supervise, string(b.dir())).CombinedOutput(); err != nil {
		t.Fatalf("second supervisor: %v: %s", err, out)
	}
	if got, _ := os.ReadFile(filepath.Join(b.dir().Output(), "runs")); string(got) != "once\n" {
		t.Errorf("the command ran as often as %q says", got)
	}
}

func TestStepsResumeFromTheCommittedCheckpoint(t *testing.T) {
	b := newBench(t, nil)
	first := lease(time.Minute, self(t, "steps", "4", "85")...)
	first.Body.(*protocol.Work).Spec.Kind = job.Steps
	if r := b.run(first, job.Yielded); r.Progress != 4 || !r.Checkpoint {
		t.Fatalf("first: %+v, want progress 4 with its checkpoint", r)
	}
	// The next one starts before the first is settled: it waits for the checkpoint.
	second := lease(time.Minute, "sh", "-c",
		`cat $SLUICE_RESUME_DIR/state; touch $SLUICE_RESUME_DIR/x 2>/dev/null && echo writable; echo new >$SLUICE_CHECKPOINT_DIR/state; exit 0`)
	w := second.Body.(*protocol.Work)
	second.Token.Seq, w.Range, w.Plan.Resume, w.Spec.Kind = 2, job.Range{From: 4, To: 8}, token, job.Steps
	b.do(second)
	b.do(protocol.Message{Kind: protocol.Settle, Token: token, Job: "j", Body: &protocol.Settlement{Range: job.Range{From: 0, To: 4},
		Committed: true}})
	heard := map[protocol.Kind]protocol.Message{} // Settled comes at any point between them
	for len(heard) < 3 {
		select {
		case m := <-b.said:
			heard[m.Kind] = m
		case <-time.After(patience):
			t.Fatalf("heard only %v", heard)
		}
	}
	if r := heard[protocol.Exited].Body.(*protocol.Conclusion).Result; r.Outcome != job.Done || r.Progress != 8 || !r.Checkpoint {
		t.Fatalf("second: %+v, want all done with its checkpoint", r)
	}
	out, _ := folders.LogPath(b.o.DataDir, "j", second.Token, true)
	if got, _ := os.ReadFile(out); string(got) != "4" {
		t.Errorf("the second subjob read %q from its checkpoint, want 4 and nothing writable", got)
	}
	b.commit(second)
	left, err := os.ReadDir(filepath.Join(b.o.DataDir, "checkpoints", "j"))
	if err != nil || len(left) != 1 || left[0].Name() != "1-2" {
		t.Errorf("checkpoints kept: %v, %v; want the newest alone", left, err)
	}
}

// TestACheckpointStaysWhileASubjobReadsIt, though others have come since: what was sold again may be done before the subjob that was
// given up has ended. So it is with a daemon that has only found that one.
func TestACheckpointStaysWhileASubjobReadsIt(t *testing.T) {
	b := newBench(t, nil)
	first := lease(time.Minute, self(t, "steps", "4", "85")...)
	first.Body.(*protocol.Work).Spec.Kind = job.Steps
	b.run(first, job.Yielded)
	b.do(protocol.Message{Kind: protocol.Settle, Token: token, Job: "j", Body: &protocol.Settlement{Range: job.Range{From: 0, To: 4},
		Committed: true}})
	b.next(protocol.Settled)
	resumes := func(n int, command ...string) protocol.Message {
		m := nth(n, command...)
		m.Body.(*protocol.Work).Range, m.Body.(*protocol.Work).Plan.Resume, m.Body.(*protocol.Work).Spec.Kind = job.Range{From: 4, To: 8},
			token, job.Steps
		return m
	}
	slow := resumes(2, "sh", "-c", "until [ -e $TMPDIR/go ]; do sleep 0.02; done; cat $SLUICE_RESUME_DIR/state; echo new "+
		">$SLUICE_CHECKPOINT_DIR/state")
	b.do(slow)
	b.next(protocol.Started)
	for n := 3; n <= 4; n++ {
		m := resumes(n, self(t, "steps", "8", "0")...)
		b.run(m, job.Done)
		b.commit(m)
		left, err := filepath.Glob(filepath.Join(b.o.DataDir, "checkpoints", "j", "*"))
		if err != nil || len(left) != 2 || filepath.Base(left[0]) != "1-1" || filepath.Base(left[1]) != m.Token.String() {
			t.Fatalf("when subjob %d has committed checkpoints %v are left, want that which is read and its own", n, left)
		}
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
		b.open()
	}
	must(os.WriteFile(filepath.Join(b.at(slow.Token).Tmp(), "go"), nil, 0o600))
	b.exited(job.Done)
	if got := shim.Tail(b.at(slow.Token).Stdout(), 1, 100); got != "4" {
		t.Errorf("it read %q, want 4", got)
	}
}

func TestSettleUnpublishedWorkIsKeptApart(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.Retain.Lost = 1 })
	b.run(lease(time.Minute, "sh", "-c", "echo words; echo data >$SLUICE_OUTPUT_DIR/f; exit 1"), job.ExitFailed)
	b.settle(false, job.Range{})
	if got, err := os.ReadFile(filepath.Join(b.o.DataDir, "kept", "j.1-1", "output", "f")); string(got) != "data\n" {
		t.Errorf("kept output: %q, %v", got, err)
	}
	if outs, err := b.ex.Outputs("j"); err != nil || len(outs) != 0 {
		t.Errorf("published %v, %v; want nothing", outs, err)
	}
	out, _ := folders.LogPath(b.o.DataDir, "j", token, false)
	if got, _ := os.ReadFile(out); string(got) != "words\n" {
		t.Errorf("log %q after settling", got)
	}
	b.do(protocol.Message{Kind: protocol.Purge, Job: "j"})
	b.await("the purge", func() bool {
		jobs, err := b.stored()
		kept, _ := os.ReadDir(filepath.Join(b.o.DataDir, "kept"))
		return err == nil && len(jobs) == 0 && len(kept) == 0
	})
}

// stored are the jobs that have any files.
func (b *bench) stored() (jobs []job.ID, err error) {
	err = b.ex.Stored(func(j job.ID) error { jobs = append(jobs, j); return nil })
	return jobs, err
}

func TestOutputs(t *testing.T) {
	b := newBench(t, nil)
	b.run(lease(time.Minute, "sh", "-c", "mkdir $SLUICE_OUTPUT_DIR/d; echo 1234 >$SLUICE_OUTPUT_DIR/d/f"), job.Done)
	b.settle(true, job.Range{From: 0, To: 10})
	outs, err := b.ex.Outputs("j")
	if err != nil || len(outs) != 1 {
		t.Fatalf("outputs %v, %v", outs, err)
	}
	o := outs[0]
	if o.Token != token || o.Range != (job.Range{From: 0, To: 10}) || o.Bytes != 5 || len(o.Files) != 1 || o.Files[0] != "d/f" {
		t.Errorf("output %+v", o)
	}
	if _, err := os.Stat(filepath.Join(o.Path, "d/f")); err != nil {
		t.Error(err)
	}
}

// TestOutputsOfAGang: what every member wrote is listed, each by its own subjob, whether the first wrote something or not.
func TestOutputsOfAGang(t *testing.T) {
	b := newBench(t, nil)
	for _, member := range []int{10, 2, 1} {
		m := lease(time.Minute, "sh", "-c", "echo $SLUICE_MEMBER >$SLUICE_OUTPUT_DIR/who; echo x >$SLUICE_CHECKPOINT_DIR/x")
		m.Token.Seq = uint64(member + 1)
		m.Body.(*protocol.Work).Plan.Member, m.Body.(*protocol.Work).Plan.Members = member, 11
		b.do(m)
		if r := b.ended(m.Token); r.Outcome != job.Done {
			t.Fatalf("member %d: %v: %s", member, r.Outcome, r.Detail)
		}
		b.commit(m)
	}
	outs, err := b.ex.Outputs("j")
	if err != nil || len(outs) != 3 {
		t.Fatalf("outputs %+v, %v: want those of members 1, 2 and 10", outs, err)
	}
	for i, member := range []int{1, 2, 10} {
		o := outs[i]
		if o.Member != member || o.Token.Seq != uint64(member+1) || o.Range != (job.Range{From: 0, To: 10}) ||
			len(o.Files) != 1 || o.Files[0] != "who" {
			t.Errorf("member %d: %+v", member, o)
		}
		if data, err := os.ReadFile(filepath.Join(o.Path, "who")); err != nil || string(data) != fmt.Sprintln(member) {
			t.Errorf("member %d wrote %q, %v", member, data, err)
		}
	}
	// A daemon of before has put them there without a word whose they are.
	must(os.RemoveAll(filepath.Join(filepath.Dir(outs[0].Path), ".subjobs")))
	if outs, err = b.ex.Outputs("j"); err != nil || len(outs) != 3 || outs[0].Member != 1 || !outs[0].Token.Zero() {
		t.Errorf("outputs %+v, %v", outs, err)
	}
}

func TestExtensionReachesTheProgram(t *testing.T) {
	b := newBench(t, nil)
	m := lease(20*time.Second, "sh", "-c", `until grep -q '"to":20' $SLUICE_LEASE_FILE; do sleep 0.02; done
		echo '{"progress":20}' >$SLUICE_PROGRESS_FILE.new && mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE`)
	m.Body.(*protocol.Work).Spec.Total = 20
	b.do(m)
	b.next(protocol.Started)
	b.do(protocol.Message{Kind: protocol.Deadline, Token: token, Body: &protocol.Shift{End: m.Body.(*protocol.Work).End.Add(time.Minute),
		Range: job.Range{From: 0, To: 20}}})
	if r := b.exited(job.Done); r.Progress != 20 {
		t.Errorf("progress %d, want 20", r.Progress)
	}
	var terms struct{ Deadline time.Time }
	data, _ := os.ReadFile(b.dir().Terms())
	if err := json.Unmarshal(data, &terms); err != nil ||
		m.Body.(*protocol.Work).End.Add(time.Minute).Time().Sub(terms.Deadline) > time.Millisecond {
		t.Errorf("lease file %s, %v: want the new deadline", data, err)
	}
}

// pack makes a tar.gz of the given headers; every file holds its own name, and noise up to its size.
func pack(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	noise := rand.NewChaCha8([32]byte{})
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = max(h.Size, int64(len(h.Name)))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			_, _ = w.Write([]byte(h.Name))
			_, _ = io.CopyN(w, noise, h.Size-int64(len(h.Name)))
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestSnapshotIsAPrivateCopy(t *testing.T) {
	b := newBench(t, nil)
	stored, err := b.ex.PutWorkdir(pack(t, tar.Header{Name: "a/b/f", Typeflag: tar.TypeReg},
		tar.Header{Name: "data", Linkname: "/tmp", Typeflag: tar.TypeSymlink}), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	m := lease(time.Minute, "sh", "-c", "cat b/f; readlink ../data; echo changed >b/f")
	m.Body.(*protocol.Work).Spec.Launch.Workdir, m.Body.(*protocol.Work).Spec.Launch.Subdir = stored.ID, "a"
	b.run(m, job.Done)
	if out := shim.Tail(b.dir().Stdout(), 10, 1000); out != "a/b/f/tmp" {
		t.Errorf("the program saw %q", out)
	}
	if err := b.ex.PruneWorkdirs(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if there, err := b.ex.HasWorkdir(stored.ID); err != nil || !there {
		t.Errorf("a young snapshot was pruned: %v", err)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.WorkdirLimit = 100 })
	long := strings.Repeat("x", 99)
	for name, c := range map[string]struct {
		data []byte
		want errkind.Kind
	}{
		"not a tar.gz": {[]byte("hello"), errkind.Invalid},
		"parent":       {pack(t, tar.Header{Name: "../x", Typeflag: tar.TypeReg}), errkind.Invalid},
		"absolute":     {pack(t, tar.Header{Name: "/etc/x", Typeflag: tar.TypeReg}), errkind.Invalid},
		"hard link":    {pack(t, tar.Header{Name: "x", Linkname: "../../etc/passwd", Typeflag: tar.TypeLink}), errkind.Invalid},
		"device":       {pack(t, tar.Header{Name: "x", Typeflag: tar.TypeChar}), errkind.Invalid},
		"too large": {pack(t, tar.Header{Name: long, Typeflag: tar.TypeReg}, tar.Header{Name: "yy", Typeflag: tar.TypeReg}),
			errkind.Exhausted},
		"packed": {bytes.Repeat([]byte{1}, 2000), errkind.Exhausted},
	} {
		if _, err := b.ex.PutWorkdir(c.data, 1000); errkind.Of(err) != c.want {
			t.Errorf("%s: %v (%v), want %v", name, err, errkind.Of(err), c.want)
		}
	}
	// A link is no way out for what follows it: that shows when it is unpacked.
	stored, err := b.ex.PutWorkdir(pack(t, tar.Header{Name: "out", Linkname: b.o.DataDir, Typeflag: tar.TypeSymlink},
		tar.Header{Name: "out/f", Typeflag: tar.TypeReg}), 1000)
	if err != nil {
		t.Fatal(err)
	}
	m := lease(time.Minute, "true")
	m.Body.(*protocol.Work).Spec.Launch.Workdir = stored.ID
	b.do(m)
	b.exited(job.StartFailed)
	if _, err := os.Stat(filepath.Join(b.o.DataDir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was written through a link: %v", err)
	}
}

// open lets everybody through to a directory: those of tests are the tester's own.
func open(t testing.TB, dir string) {
	t.Helper()
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o011 != 0o011 && os.Chmod(dir, info.Mode().Perm()|0o011) != nil {
			t.Fatalf("opening %s: %v", dir, err)
		}
	}
}

func TestMappedUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a subjob as another user")
	}
	b := newBench(t, func(o *process.Options) {
		o.User = func(string) (*shim.User, error) { return &shim.User{Name: "nobody", UID: 65534, GID: 65534}, nil }
	})
	open(t, b.o.DataDir)
	r := b.run(lease(time.Minute, "sh", "-c", `id -u; cat ../lease.json 2>/dev/null; grep NoNewPrivs /proc/self/status
		echo x >$SLUICE_OUTPUT_DIR/f && echo x >$SLUICE_CHECKPOINT_DIR/f && echo x >f && echo '{"progress":10}' >$SLUICE_PROGRESS_FILE; cat $SLUICE_LEASE_FILE`), job.Done)
	out := shim.Tail(b.dir().Stdout(), 20, 4000)
	if !strings.HasPrefix(out, "65534\nNoNewPrivs:\t1\n{\"deadline\"") {
		t.Errorf("the program saw %q (result %+v)", out, r)
	}
}
