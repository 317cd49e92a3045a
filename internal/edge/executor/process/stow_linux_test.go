package process_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/durable/power"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// leaves is a program that leaves an output and a checkpoint, and has done all.
const leaves = `mkdir "$SLUICE_OUTPUT_DIR/sub"; echo done > "$SLUICE_OUTPUT_DIR/sub/said"; echo ten > "$SLUICE_CHECKPOINT_DIR/at"
echo '{"progress": 10, "checkpoint": true}' > "$SLUICE_PROGRESS_FILE.new"; mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"`

// chained is a lease of a chain of steps.
func chained(t job.Token, from, to int64, script string) protocol.Message {
	m := lease(time.Minute, "sh", "-c", script)
	w := m.Body.(*protocol.Work)
	m.Token, w.Range = t, job.Range{From: from, To: to}
	w.Spec.Kind, w.Spec.Total = job.Steps, 30
	return m
}

// gate is a store whose writes wait, or fail.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil: open
	err    error
	// waiting: somebody stands before it.
	waiting atomic.Bool
}

func (g *gate) before(step, _ string) error {
	if step != "write" && step != "create" {
		return nil
	}
	g.mu.Lock()
	closed, err := g.closed, g.err
	g.mu.Unlock()
	if closed != nil {
		g.waiting.Store(true)
		<-closed
	}
	return err
}

func (g *gate) set(closed chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.err = closed, err
}

// stowing is a bench with a store for what subjobs leave.
func stowing(t *testing.T, g *gate) (*bench, *files.Dir) {
	s := newStore(t, g.before)
	return newBench(t, func(o *process.Options) { o.Store, o.Keep = s, true }), s
}

// result is what the store has of a subjob, unpacked; nil if it has nothing.
func result(t *testing.T, s store.Store, token job.Token) map[string]string {
	t.Helper()
	for name, refs := range names(t, s) {
		if !strings.HasPrefix(name, "jobs/") || !strings.HasSuffix(name, "/j/"+token.String()) {
			continue
		}
		all := map[string]string{}
		for role, d := range refs {
			r, err := s.Open(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			into := filepath.Join(t.TempDir(), "x")
			if _, _, err := tree.Restore(r, into, tree.Limits{Bytes: 1 << 30, Entries: 1000}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"sub/said", "at"} {
				if data, err := os.ReadFile(filepath.Join(into, name)); err == nil {
					all[role+":"+name] = string(data)
				}
			}
		}
		return all
	}
	return nil
}

func whole() map[string]string {
	return map[string]string{"output:sub/said": "done\n", "checkpoint:at": "ten\n"}
}

// TestAResultIsToldOnceItsOutputIsStored: while the store takes nothing, nothing is told; what is told then is in the store, and here as
// without one.
func TestAResultIsToldOnceItsOutputIsStored(t *testing.T) {
	var g gate
	b, s := stowing(t, &g)
	open := make(chan struct{})
	g.set(open, nil)
	m := chained(token, 0, 10, leaves)
	b.do(m)
	b.next(protocol.Started)
	b.await("the upload", g.waiting.Load)
	if _, err := b.dir().ReadResult(); err != nil {
		t.Errorf("the result is not there: %v", err)
	}
	select {
	case said := <-b.said:
		t.Fatalf("it says %+v before the output is stored", said)
	default:
	}
	if all := names(t, s); len(all) > 0 {
		t.Errorf("named before it is there: %v", all)
	}
	g.set(nil, nil)
	close(open)
	if res := b.exited(job.Done); res.Progress != 10 || !res.Checkpoint {
		t.Errorf("%+v", res)
	}
	if all := result(t, s, token); !maps.Equal(all, whole()) {
		t.Errorf("the store has %v", all)
	}
	b.commit(m)
	if text, err := os.ReadFile(filepath.Join(b.o.DataDir, "output", "j", "000000000000-000000000010", "sub", "said")); err != nil ||
		string(text) != "done\n" {
		t.Errorf("published: %q, %v", text, err)
	}
	if all := result(t, s, token); !maps.Equal(all, whole()) {
		t.Errorf("the store has %v of what is committed", all)
	}
}

// TestARestartStoresWhatWasCutOff: the daemon goes while it uploads; the next one does, and then tells the result. One that goes after
// that finds it done.
func TestARestartStoresWhatWasCutOff(t *testing.T) {
	var g gate
	b, s := stowing(t, &g)
	open := make(chan struct{})
	g.set(open, nil)
	m := chained(token, 0, 10, leaves)
	b.do(m)
	b.next(protocol.Started)
	b.await("the upload", g.waiting.Load)
	g.set(nil, unix.EIO) // what is under way ends with it
	close(open)
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	if all := names(t, s); len(all) > 0 {
		t.Fatalf("named before it was whole: %v", all)
	}
	found := b.open() // the store is still away
	if len(found) != 1 || !found[0].Alive || found[0].Result != nil {
		t.Fatalf("found %+v, want it as one that is not over", found)
	}
	if said := b.next(protocol.Unhealthy).Body.(*protocol.Condition); !said.Unhealthy {
		t.Errorf("it says %+v", said)
	}
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	g.set(nil, nil)
	for range 2 {
		found = b.open()
		if len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.Done {
			t.Fatalf("found %+v, want it with its result", found)
		}
		if all := result(t, s, token); !maps.Equal(all, whole()) {
			t.Errorf("the store has %v", all)
		}
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
	}
	b.open()
	b.commit(m)
}

// TestAStoreThatIsFullIsTheNodesTrouble: the node is told why it can start nothing, the result when there is room, and no job has failed.
func TestAStoreThatIsFullIsTheNodesTrouble(t *testing.T) {
	for what, err := range map[string]error{"full": unix.ENOSPC, "closed": unix.EACCES, "away": unix.ENOTCONN} {
		t.Run(what, func(t *testing.T) {
			var g gate
			b, s := stowing(t, &g)
			m := chained(token, 0, 10, leaves)
			g.set(nil, &os.PathError{Op: "write", Path: "x", Err: err})
			b.do(m)
			b.next(protocol.Started)
			said := b.next(protocol.Unhealthy).Body.(*protocol.Condition)
			if !said.Unhealthy || !strings.Contains(said.Text, "can't be stored") {
				t.Errorf("it says %+v", said)
			}
			for until := time.Now().Add(patience); !b.storing.Load(); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(until) {
					t.Fatal("it does not say that it stores what was left")
				}
			}
			g.set(nil, nil)
			var kinds []protocol.Kind
			for len(kinds) < 2 {
				select {
				case m := <-b.said:
					kinds = append(kinds, m.Kind)
					if m.Kind == protocol.Exited && m.Body.(*protocol.Conclusion).Result.Outcome != job.Done {
						t.Errorf("it ends %+v", m.Body.(*protocol.Conclusion).Result)
					}
					if a, ok := m.Body.(*protocol.Condition); ok && a.Unhealthy {
						kinds = kinds[:len(kinds)-1] // told once more, in other words
					}
				case <-time.After(patience):
					t.Fatalf("heard only %v", kinds)
				}
			}
			if !slices.Contains(kinds, protocol.Exited) || !slices.Contains(kinds, protocol.Unhealthy) {
				t.Errorf("heard %v", kinds)
			}
			if all := result(t, s, token); !maps.Equal(all, whole()) {
				t.Errorf("the store has %v", all)
			}
		})
	}
}

// TestWhatDoesNotCountLeavesTheStore: the name of a result that was refused goes when it is settled, an old checkpoint's when there is a
// newer one, and all of a job's with the job.
func TestWhatDoesNotCountLeavesTheStore(t *testing.T) {
	var g gate
	b, s := stowing(t, &g)
	b.run(chained(token, 0, 10, leaves), job.Done)
	b.settle(false, job.Range{})
	if all := names(t, s); len(all) > 0 {
		t.Errorf("a loser has left %v", all)
	}
	second, third := job.Token{Epoch: 1, Seq: 2}, job.Token{Epoch: 1, Seq: 3}
	for _, at := range []job.Token{second, third} {
		m := chained(at, 0, 10, leaves)
		if at == third {
			m = chained(at, 10, 20, strings.Replace(leaves, "10", "20", 1))
		}
		b.run(m, job.Done)
		b.commit(m)
	}
	if all := result(t, s, second); !maps.Equal(all, map[string]string{"output:sub/said": "done\n"}) {
		t.Errorf("the store has of the first %v", all)
	}
	if all := result(t, s, third); !maps.Equal(all, whole()) {
		t.Errorf("the store has of the second %v", all)
	}
	b.purge(2)
	if all := names(t, s); len(all) > 0 {
		t.Errorf("a job that is gone has left %v", all)
	}
}

// TestACheckpointComesFromTheStore: a machine that does not have the checkpoint gets it, whole or not at all.
func TestACheckpointComesFromTheStore(t *testing.T) {
	s := newStore(t)
	b := newBench(t, func(o *process.Options) { o.Store, o.Keep, o.OutputLimit = s, true, 1 }) // the job's own limit is another
	first := chained(token, 0, 10, leaves)
	first.Body.(*protocol.Work).Spec.Launch.OutputLimit = 1 << 20
	b.run(first, job.Done)
	b.commit(first)
	place := filepath.Join(b.o.DataDir, "checkpoints", "j")
	lose := func() {
		t.Helper()
		if err := os.Chmod(filepath.Join(place, token.String()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(place); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	next := func(seq uint64) protocol.Message {
		m := chained(job.Token{Epoch: 1, Seq: seq}, 10, 20,
			`cat "$SLUICE_RESUME_DIR/at"; echo x > "$SLUICE_RESUME_DIR/new" && exit 3; exit 0`)
		w := m.Body.(*protocol.Work)
		w.Plan.Resume, w.Spec.Total, w.Spec.Launch.OutputLimit = token, 20, 1<<20
		return m
	}
	m := next(2)
	disk := power.Recorder{Root: b.o.DataDir}
	if err := os.WriteFile(disk.Log(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.run(m, job.Done)
	var durable []string
	log, err := disk.History()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range log {
		durable = append(durable, at.Path)
	}
	content, placed := slices.Index(durable, "runs/.fetch-"+m.Token.String()+"/at"), slices.Index(durable, "checkpoints/j")
	if content < 0 || placed < content {
		t.Errorf("what was fetched is not made durable before it has its place: %q", durable)
	}
	if info, err := os.Stat(filepath.Join(place, token.String())); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("it is closed to others and can't be written: %v, %v", info, err)
	}
	if out := shim.Tail(b.at(m.Token).Stdout(), 10, 1000); out != "ten" {
		t.Errorf("the program saw %q", out)
	}
	lose()
	root := strings.TrimPrefix(s.String(), "local:")
	for name, refs := range names(t, s) { // somebody has damaged it there
		if strings.HasSuffix(name, token.String()) {
			d := string(refs["checkpoint"])
			path := filepath.Join(root, "objects", d[:2], d)
			data, err := os.ReadFile(path)
			if err == nil {
				data[len(data)/3] ^= 1
				err = os.Chmod(path, 0o600)
			}
			if err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	b.do(next(3))
	if res := b.exited(job.StartFailed); !strings.Contains(res.Detail, "damaged") {
		t.Errorf("it says %q", res.Detail)
	}
	if left, err := filepath.Glob(filepath.Join(b.o.DataDir, "*", ".fetch-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestAnOldCheckpointLeavesTheStoreLater: what the store does not let go of is tried again with the next one.
func TestAnOldCheckpointLeavesTheStoreLater(t *testing.T) {
	var g gate
	b, s := stowing(t, &g)
	step := func(seq uint64, to string, err error) {
		t.Helper()
		m := chained(job.Token{Epoch: 1, Seq: seq}, 0, 10, leaves)
		w := m.Body.(*protocol.Work)
		n, _ := strconv.ParseInt(to, 10, 64)
		w.Range, w.Spec.Launch.Command[2] = job.Range{From: n - 10, To: n}, strings.ReplaceAll(leaves, "10", to)
		b.run(m, job.Done)
		g.set(nil, err)
		b.commit(m)
		g.set(nil, nil)
	}
	has := func(seq uint64) bool { return result(t, s, job.Token{Epoch: 1, Seq: seq})["checkpoint:at"] != "" }
	step(1, "10", nil)
	step(2, "20", unix.ENOSPC)
	if !has(1) {
		t.Fatal("a store that takes nothing has changed a name")
	}
	step(3, "30", nil)
	if has(1) || has(2) || !has(3) {
		t.Errorf("the store has checkpoints of the first %v, the second %v, the third %v", has(1), has(2), has(3))
	}
	if list, err := os.ReadDir(filepath.Join(b.o.DataDir, "checkpoints", "j")); err != nil || len(list) != 1 {
		t.Errorf("here are %v, %v", list, err)
	}
}

// TestACheckpointComesFromTheStoreToAnybody: a daemon that is not root may not move what it can't write to.
func TestACheckpointComesFromTheStoreToAnybody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root: the test above says it")
	}
	asNobody(t, "TestACheckpointComesFromTheStore")
}

// asNobody runs a test of this program as a user who owns nothing.
func asNobody(t *testing.T, name string) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "anybody") //nolint:usetesting // one that others can get to
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("install", "-m", "755", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "tmp"), 0o700),
		os.Chown(filepath.Join(dir, "tmp"), nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^"+name+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+filepath.Join(dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
