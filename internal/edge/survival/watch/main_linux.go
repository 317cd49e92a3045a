package watch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
)

// Verb is the first argument of the program that is a watcher: Verb REGION KIND BASE.
const Verb = "watch"

// Lacks are what a watcher has to do without.
type Lacks uint64

const (
	// Locked: not all of its memory is locked, and it may have to wait for the disk.
	Locked Lacks = 1 << iota
	// Spared: the kernel's OOM killer does not spare it.
	Spared
	// Ahead: it does not come before others where there is little processor time.
	Ahead
)

// String says it to people; empty: nothing.
func (l Lacks) String() string {
	var all []string
	for i, text := range []string{"its memory is not all locked (CAP_IPC_LOCK, or a larger RLIMIT_MEMLOCK)",
		"the kernel's OOM killer does not spare it (CAP_SYS_RESOURCE)", "it has no higher priority (CAP_SYS_NICE)"} {
		if l&(1<<i) != 0 {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

// Main is a watcher's whole life, and returns its exit status. open opens the kind of survival that is wanted.
func Main(args []string, open func(kind, base string) (survival.Survival, string, error)) int {
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "sluice-shim watch: want REGION KIND BASE; sluice starts it")
		return 2
	}
	if err := run(args[0], args[1], args[2], open); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-shim watch:", err)
		return 1
	}
	return 0
}

// wakes is the signal that makes a watcher look at once.
const wakes = syscall.SIGUSR1

// succession is how long a watcher waits for the one before it.
const succession = 2 * time.Second

func run(path, kind, base string, open func(kind, base string) (survival.Survival, string, error)) error {
	// Its end is in the region, or SIGKILL. What stops the daemon, or a terminal, must not leave the machine alone.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR2, syscall.SIGPIPE)
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, wakes)
	f, err := OpenThere(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for until := time.Now().Add(succession); ; time.Sleep(time.Millisecond) {
		mine, failed := f.lock(placeWatcher)
		if failed != nil {
			return fmt.Errorf("locking %s: %w", path, failed)
		}
		if mine {
			break
		}
		if time.Now().After(until) {
			return errors.New("another watcher lives")
		}
	}
	sense, why, err := open(kind, base)
	if err != nil {
		return err
	}
	if sense == nil {
		return errors.New("nothing can be sensed here: " + why)
	}
	defer func() { _ = sense.Close() }()
	me, _ := tree.Look(os.Getpid())
	debug.SetGCPercent(50)
	lacks := f.protect()
	id := uint64(boottime())
	w := newWatcher(f.region, sense, findInit, id)
	own := nameNumber(w.can.Kind)
	if last := f.head.load(headKind); last != 0 && last != own {
		w.thaw = thawBoth
	}
	f.head.store(headKind, own)
	w.bell = bell()
	f.head.store(headPID, uint64(me.PID))
	f.head.store(headStarted, me.Started)
	f.head.store(headLacks, uint64(lacks))
	w.look(clocks()) // whatever was suspended is resumed
	f.head.store(headLife, id)
	w.ring() // it can be relied upon from now on
	go func() {
		for range woken {
			sense.Wake()
		}
	}()
	f.stay(w)
	signal.Stop(woken)
	w.close()
	f.head.store(headLife, 0)
	return nil
}

// bell is the pipe on which a watcher signals a changed board: the descriptor behind the usual three; -1: its parent gave none.
func bell() int {
	const fd = 3
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO || unix.SetNonblock(fd, true) != nil {
		return -1
	}
	unix.CloseOnExec(fd)
	return fd
}

// stay looks until its end is wanted, or the daemon is dead and nothing is left to watch, or nobody else finds the region any more.
func (f *File) stay(w *watcher) {
	for around := time.Duration(0); f.head.load(headOrder) == 0; {
		boot, awake := clocks()
		patience := w.look(boot, awake)
		if boot-around >= time.Second {
			around = boot
			if f.removed() { // neither a daemon nor a supervisor could find it: to them nobody lives here
				return
			}
			if !f.lives(placeDaemon) && w.deserted() {
				if !w.matters() { // a daemon that begins just now finds it gone, and makes it anew
					_ = os.Remove(f.path)
				}
				return
			}
		}
		if patience > 0 {
			w.sense.Await(patience)
		}
	}
}

// protect asks the kernel to keep this process in memory and alive, as far as it may.
func (f *File) protect() (lacks Lacks) {
	// Not all at once: the runtime has far more address space than it uses. What it comes to use stays.
	const onFault = 4 // MCL_ONFAULT
	if unix.Mlockall(unix.MCL_CURRENT|unix.MCL_FUTURE|onFault) != nil {
		lacks |= Locked
	}
	// The program itself is needed whole, and the region.
	if lockProgram() != nil || unix.Mlock(f.mapped) != nil {
		lacks |= Locked
	}
	if os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) != nil {
		lacks |= Spared
	}
	if unix.Setpriority(unix.PRIO_PROCESS, 0, -10) != nil {
		lacks |= Ahead
	}
	runtime.LockOSThread()
	return lacks
}

// lockProgram locks what is mapped of this program's file.
func lockProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		line := lines.Text()
		var from, to uintptr
		if !strings.HasSuffix(line, " "+program) {
			continue
		}
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_MLOCK, from, to-from, 0); errno != 0 {
			return errno
		}
	}
	return nil
}
