package watch

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival/all"
)

// TestMain has the test program be a watcher, a daemon, or a subjob, where a test starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Verb:
			os.Exit(Main(os.Args[2:], all.Detect))
		case "daemon":
			os.Exit(daemon(os.Args[2], os.Args[3]))
		case "init":
			os.Exit(initOf(os.Args[2]))
		case "grow":
			grow(os.Args[2])
		}
	}
	os.Exit(m.Run())
}

// initOf is a subjob's init: it waits for the one that does something.
func initOf(file string) int {
	cmd := exec.Command("/proc/self/exe", "grow", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if cmd.Run() != nil {
		return 1
	}
	return 0
}

// grow counts in a file for as long as it runs, and takes more and more memory while the file's second word says so.
func grow(file string) {
	w := counters(file)
	var held [][]byte
	for {
		atomic.AddUint64(&w[0], 1)
		if want := int(atomic.LoadUint64(&w[1])); len(held) < want {
			page := make([]byte, 1<<20)
			for i := 0; i < len(page); i += 4096 {
				page[i] = 1
			}
			held = append(held, page)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func counters(file string) []uint64 {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Truncate(4096)
	}
	if err != nil {
		panic(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(m))), 512)
}

// real is a subjob of real processes.
type real struct {
	t    *testing.T
	row  Row
	w    []uint64
	init *exec.Cmd
}

func start(t *testing.T, seq uint64) *real {
	t.Helper()
	file := filepath.Join(t.TempDir(), "counters")
	s := &real{t: t, w: counters(file), init: exec.Command("/proc/self/exe", "init", file)}
	if err := s.init.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, m := range tree.Below(s.init.Process.Pid) {
			_ = m.Signal(syscall.SIGKILL)
		}
		_ = s.init.Process.Kill()
		_ = s.init.Wait()
	})
	p, ok := tree.Look(s.init.Process.Pid)
	if !ok {
		t.Fatal("it is not there")
	}
	s.row = Row{Token: job.Token{Epoch: 1, Seq: seq}, Start: quantity.At(time.Now()), Class: airlock.Lasting, Init: p.PID,
		InitStarted: p.Started}
	s.goes()
	return s
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s never came", what)
		}
	}
}

// goes waits until it runs.
func (s *real) goes() {
	s.t.Helper()
	n := atomic.LoadUint64(&s.w[0])
	await(s.t, "a subjob that runs", func() bool { return atomic.LoadUint64(&s.w[0]) > n+2 })
}

// stands says whether all of it is suspended.
func (s *real) stands() bool {
	all := tree.Below(s.init.Process.Pid)
	for _, m := range all {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(m.PID) + "/stat")
		if err != nil || !strings.Contains(string(stat), ") T ") {
			return false
		}
	}
	return len(all) > 0
}

// tight lines are passed by every machine, so that who grows is to be suspended. The timer is long.
func tight() airlock.Config {
	return airlock.Config{Calm: 1, Severe: 2, Emergency: 1000, Brink: time.Nanosecond, Timer: time.Hour, Yield: time.Minute,
		Least: 1}.WithDefaults()
}

func options(t *testing.T, path string, c airlock.Config) Options {
	return Options{
		Path: path, Program: "/proc/self/exe", Kind: "tree", Config: c, Now: func() quantity.Instant { return quantity.At(time.Now()) },
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// region is where a test has one: in memory, if it can.
func regionPath(t *testing.T) string {
	t.Helper()
	path := Path(t.TempDir())
	t.Cleanup(func() {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left behind", path)
			_ = os.Remove(path)
		}
	})
	return path
}

func keep(t *testing.T, o Options) *Keeper {
	t.Helper()
	k, err := Keep(o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pid is the watcher's, once it can be relied upon.
func (k *Keeper) pid(t *testing.T, not int) (pid int) {
	t.Helper()
	var b Board
	await(t, "a watcher", func() bool {
		pid = int(k.f.head.load(headPID))
		return k.Board(&b) && pid != not
	})
	return pid
}

// set changes the lines.
func (k *Keeper) set(c airlock.Config, rows ...Row) {
	k.mu.Lock()
	k.o.Config, k.table.Wall = c, 0
	k.mu.Unlock()
	k.Publish(rows)
}

// storm has a subjob grow, until it is suspended.
func (s *real) storm() {
	s.t.Helper()
	atomic.StoreUint64(&s.w[1], 2000)
	await(s.t, "it to be suspended", s.stands)
	atomic.StoreUint64(&s.w[1], 0)
}

// TestAWatcherIsKilledInAStorm: the next one resumes everything, and what a killed one did is told.
func TestAWatcherIsKilledInAStorm(t *testing.T) {
	s := start(t, 1)
	o, heard := options(t, regionPath(t), tight()), atomic.Int64{}
	o.Changed = func() { heard.Add(1) }
	k := keep(t, o)
	k.Publish([]Row{s.row})
	pid := k.pid(t, 0)
	await(t, "the daemon to hear that it begins", func() bool { return heard.Load() > 0 })
	before := heard.Load()
	s.storm()
	await(t, "the daemon to hear what it does", func() bool { return heard.Load() > before })
	k.set(airlock.Config{}, s.row) // there is room: who comes next leaves it alone
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next := k.pid(t, pid)
	s.goes()
	var told []string
	if lost := k.Acts(func(a *Act) { told = append(told, a.Step.String()) }); lost != 0 || len(told) == 0 || told[0] != "suspend" {
		t.Fatalf("told %v, lost %d", told, lost)
	}
	if k.Acts(func(a *Act) { t.Fatalf("told again: %v", a) }); next == pid {
		t.Fatal("it is the same one")
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(next, 0); err == nil {
		t.Fatal("it outlives its daemon's orderly end")
	}
	s.goes()
}

// TestAnOrderlyEndHasEverythingGoOn, in mid-storm.
func TestAnOrderlyEndHasEverythingGoOn(t *testing.T) {
	s := start(t, 1)
	k := keep(t, options(t, regionPath(t), tight()))
	k.Publish([]Row{s.row})
	k.pid(t, 0)
	s.storm()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	s.goes()
}

// daemon keeps a watcher of one subjob, until it is killed.
func daemon(path, subjob string) int {
	var r Row
	c := tight()
	if _, err := fmt.Sscan(subjob, &r.Init, &r.InitStarted, &r.Start, &c.Timer); err != nil {
		return 2
	}
	r.Token, r.Class = job.Token{Epoch: 1, Seq: 1}, airlock.Lasting
	c.Yield = time.Second
	k, err := Keep(Options{Path: path, Program: "/proc/self/exe", Kind: "tree", Config: c,
		Now: func() quantity.Instant { return quantity.At(time.Now()) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	k.Publish([]Row{r})
	select {}
}

// daemonOf starts a daemon of one subjob, whose entries end within a time.
func daemonOf(t *testing.T, s *real, path string, timer time.Duration) (*exec.Cmd, *File) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "daemon", path, fmt.Sprint(s.row.Init, s.row.InitStarted, int64(s.row.Start), int64(timer)))
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var f *File
	await(t, "the region, and a watcher that has seen the subjob", func() bool {
		var err error
		if f == nil {
			if f, err = OpenThere(path); err != nil {
				return false
			}
		}
		words, _, ok := f.board.read(make([]uint64, boardWords))
		var b Board
		return ok && b.decode(words) && len(b.Stands) == 1 && f.head.load(headLife) == b.Life
	})
	t.Cleanup(func() { _ = f.Close() })
	return cmd, f
}

// TestADaemonIsKilledInAStorm: its watcher goes on, by itself: who is suspended is ended when its timer is over, and a daemon that comes
// back finds it said. A watcher that nothing is left for ends.
func TestADaemonIsKilledInAStorm(t *testing.T) {
	s, path := start(t, 1), regionPath(t)
	cmd, f := daemonOf(t, s, path, 4*time.Second)
	watcher := int(f.head.load(headPID))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if f.lives(placeDaemon) || !f.lives(placeWatcher) {
		t.Fatal("the daemon lives, or its watcher does not")
	}
	atomic.StoreUint64(&s.w[1], 2000)
	if err := s.init.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	await(t, "the end of a watcher that has nothing to do", func() bool { return !f.lives(placeWatcher) })
	if err := syscall.Kill(watcher, 0); err == nil {
		await(t, "its process to go", func() bool { return syscall.Kill(watcher, 0) != nil })
	}
	k := keep(t, options(t, path, airlock.Config{}))
	var told []Act
	lost := k.Acts(func(a *Act) { told = append(told, *a) })
	if last := len(told) - 1; lost != 0 || last < 1 || told[0].Step != airlock.Suspend || told[last].Step != airlock.Reclaim ||
		told[last].Cause != airlock.Overtime || told[last].Token != s.row.Token {
		t.Fatalf("lost %d, and told %v", lost, told)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestADaemonThatComesBackBeginsANewLife: everything is resumed, whatever the watcher of the one before had done. While that one lives
// nobody else is its daemon.
func TestADaemonThatComesBackBeginsANewLife(t *testing.T) {
	s, path := start(t, 1), regionPath(t)
	cmd, f := daemonOf(t, s, path, time.Hour)
	pid := int(f.head.load(headPID))
	s.storm()
	if _, err := Keep(options(t, path, airlock.Config{})); errkind.Of(err) != errkind.Conflict {
		t.Fatalf("two daemons keep one watcher: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !s.stands() {
		t.Fatal("its watcher has not gone on")
	}
	k := keep(t, options(t, path, airlock.Config{}))
	if k.pid(t, 0) == pid {
		t.Fatal("it is the same watcher")
	}
	var b Board
	if !k.Board(&b) || len(b.Stands) != 1 || b.Stands[0].Entries == 0 {
		t.Fatalf("before it is told anything it has %+v", b.Stands)
	}
	k.Publish([]Row{s.row})
	s.goes()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestARegionThatIsRemoved is made anew: what tidies up behind users takes it along. Its watcher resumes all, since no supervisor finds
// it any more.
func TestARegionThatIsRemoved(t *testing.T) {
	s, path := start(t, 1), regionPath(t)
	k := keep(t, options(t, path, tight()))
	k.Publish([]Row{s.row})
	pid := k.pid(t, 0)
	w := Witness{Path: path}
	defer w.Close()
	s.storm()
	k.mu.Lock()
	k.o.Config = airlock.Config{}
	k.mu.Unlock()
	await(t, "a witness to see that it is suspended", func() bool { // which is said after it is done
		st, ok := w.Stand(s.row.Token)
		return w.Lives() && ok && st.Entries == 1
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Stand(s.row.Token); ok {
		t.Fatal("a witness sees what was removed")
	}
	s.goes()
	var b Board
	await(t, "the next watcher, with the subjob", func() bool { return k.Board(&b) && k.PID() != pid && len(b.Stands) == 1 })
	if !w.Lives() {
		t.Fatal("a witness does not see the next one")
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Lives() || (&Witness{}).Lives() {
		t.Fatal("a witness sees one that has ended, or none")
	}
}

// TestTheEndOfARegionThatIsRemoved is no error, and what has its name by now is another's.
func TestTheEndOfARegionThatIsRemoved(t *testing.T) {
	for _, another := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "watch")
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if another {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k := &Keeper{o: Options{Path: path}, f: f, done: make(chan struct{})}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); (err == nil) != another {
			t.Errorf("another has the name (%v), and after the end: %v", another, err)
		}
	}
}

// TestDirectoriesOfOneNameHaveRegionsOfTheirOwn: those of containers that share memory and not their files.
func TestDirectoriesOfOneNameHaveRegionsOfTheirOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	make := func() string {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return Path(dir)
	}
	one := make()
	if Path(dir) != one {
		t.Fatal("one directory has two regions")
	}
	if filepath.Dir(one) == dir {
		t.Skip("this machine has no place in memory: regions lie in their directories")
	}
	if err := os.Rename(dir, dir+" of another"); err != nil {
		t.Fatal(err)
	}
	if make() == one {
		t.Error("two directories have one region")
	}
}

// TestAWitnessSeesAWatcherKilled, at once, and what it had done.
func TestAWitnessSeesAWatcherKilled(t *testing.T) {
	s, path := start(t, 1), regionPath(t)
	cmd, f := daemonOf(t, s, path, time.Hour)
	w := Witness{Path: path}
	defer w.Close()
	s.storm()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !w.Lives() {
		t.Fatal("its daemon is dead, and so is a watcher to a witness")
	}
	if err := syscall.Kill(int(f.head.load(headPID)), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "its end", func() bool { return !w.Lives() })
	if st, ok := w.Stand(s.row.Token); !ok || st.State != airlock.Suspending && st.State != airlock.Suspended {
		t.Fatalf("what it had done is %+v", st)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestAWatcherWithNothingToTellLeavesNothing: its daemon was killed and nothing of it is left.
func TestAWatcherWithNothingToTellLeavesNothing(t *testing.T) {
	s, path := start(t, 1), regionPath(t)
	cmd, f := daemonOf(t, s, path, time.Hour)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := s.init.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of a watcher that has nothing to do", func() bool { return !f.lives(placeWatcher) })
	if _, err := os.Stat(path); err == nil {
		t.Fatal("its region is left, and there is nothing to tell")
	}
}
