package watch

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// Options of Keep.
type Options struct {
	// Path of the region (Path); Program is sluice-shim; Kind of survival that the watcher opens, and Base, the folder of control groups.
	Path, Program, Kind, Base string
	Config                    airlock.Config
	// Now is the node's clock.
	Now func() quantity.Instant
	// Changed is called, by another goroutine, soon after what is done with a subjob has changed, or the watcher has begun or ended, so
	// that nobody needs to look at the board all the time; nil: somebody does.
	Changed func()
	Log     *slog.Logger
}

// Keeper is the daemon's side: it keeps a watcher alive, tells it what there is, and hears what it does. It is safe for concurrent use.
type Keeper struct {
	o    Options
	f    *File
	done chan struct{}
	over sync.WaitGroup

	mu sync.Mutex
	// table is the last one given; words are its buffer.
	table Table
	words []uint64
	// room for a board; before is what the board said when it began.
	room   []uint64
	before Board
}

const (
	// beat is the interval of the daemon's heartbeat.
	beat = 500 * time.Millisecond
	// hung is after which silence a watcher is killed: it may be frozen itself, and then nobody else can act.
	hung = 10 * time.Second
	// firstPause and lastPause are the time to the next start of a watcher that has ended, which doubles; one that has lived for lastPause
	// begins anew.
	firstPause, lastPause = 50 * time.Millisecond, 10 * time.Second
	// stopWait is how long a watcher may take to end in order.
	stopWait = 2 * time.Second
)

// Keep begins to keep a watcher. One that an earlier daemon has left ends first: everything is resumed, and the next one begins. An error
// is of kind Conflict where another daemon has the region.
func Keep(o Options) (*Keeper, error) {
	f, err := Open(o.Path)
	if err != nil {
		return nil, err
	}
	if err := f.claim(); err != nil {
		_ = f.Close()
		return nil, err
	}
	k := &Keeper{o: o, f: f, done: make(chan struct{}), words: make([]uint64, 0, tableWords), room: make([]uint64, boardWords)}
	k.dismiss()
	if words, _, ok := f.board.read(k.room); !ok || !k.before.decode(words) {
		k.before = Board{}
	}
	k.beat()
	if f.table.last() == 0 { // otherwise the next watcher uses the table of the daemon before until this one gives another
		k.Publish(nil)
	}
	k.over.Go(k.keep)
	return k, nil
}

func (k *Keeper) beat() { k.f.head.store(headBeat, uint64(waketime())) }

// Publish tells the watcher which subjobs there are.
func (k *Keeper) Publish(rows []Row) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return a.Token.Compare(b.Token) })
	rows = rows[:min(len(rows), airlock.MaxTasks)]
	if k.f.table.last() > 0 && k.table.Wall != 0 && slices.Equal(rows, k.table.Rows) {
		return
	}
	k.table = Table{Config: k.o.Config.WithDefaults(), Wall: k.o.Now(), Boot: boottime(), Base: k.o.Base, Rows: rows}
	k.f.table.write(k.table.encode(k.words[:0]))
}

// Board reads what the watcher says, and whether one lives that can be relied upon.
func (k *Keeper) Board(b *Board) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	words, _, ok := k.f.board.read(k.room)
	life := k.f.head.load(headLife)
	return ok && b.decode(words) && life != 0 && b.Life == life && k.f.lives(placeWatcher)
}

// Before is what the board said when this keeper began: what the watchers of earlier daemons had done with each subjob.
func (k *Keeper) Before() Board { return k.before }

// Acts calls each with all acts that were not reported yet, in order, and returns how many of them are lost. Acts that an earlier daemon
// did not receive are included.
func (k *Keeper) Acts(each func(*Act)) (lost uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next, lost := k.f.ring.read(k.f.head.load(headRead), each)
	k.f.head.store(headRead, next)
	return lost
}

// Lacks is what the watcher has to do without.
func (k *Keeper) Lacks() Lacks {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Lacks(k.f.head.load(headLacks))
}

// Lives says whether there is a watcher, from before it first looks: what is done to a subjob while there is none yet, it takes back.
func (k *Keeper) Lives() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.f.lives(placeWatcher)
}

// PID is the watcher's, 0 where none lives.
func (k *Keeper) PID() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.f.lives(placeWatcher) {
		return 0
	}
	return int(k.f.head.load(headPID))
}

// Close ends the watcher, and waits for it. Everything is resumed, so that nothing is left to know: unreported acts are gone with the
// region. A region that was removed before is no error; a file of its name is another's by now.
func (k *Keeper) Close() error {
	close(k.done)
	k.over.Wait()
	var err error
	if !k.f.removed() {
		err = os.Remove(k.o.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, k.f.Close())
}

// dismiss ends the watcher that there is, in order if it can.
func (k *Keeper) dismiss() {
	k.f.head.store(headOrder, 1)
	if k.f.head.load(headLife) != 0 { // and it listens
		k.signal(wakes)
	}
	for until := time.Now().Add(stopWait); k.f.lives(placeWatcher); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			k.kill()
			until = time.Now().Add(stopWait)
		}
	}
}

// kill ends the watcher at once: supervisors resume what is suspended.
func (k *Keeper) kill() { k.signal(syscall.SIGKILL) }

func (k *Keeper) signal(s syscall.Signal) {
	p := tree.Process{PID: int(k.f.head.load(headPID)), Started: k.f.head.load(headStarted)}
	if p.PID > 1 {
		_ = p.Signal(s)
	}
}

// keep restarts the watcher until the end.
func (k *Keeper) keep() {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for pause := firstPause; ; {
		begun := time.Now()
		gone, said, err := k.start()
		if err != nil {
			k.o.Log.Error("starting the watcher of the machine's memory; trying again", "err", err, "pause", pause)
		}
		for alive, ready := err == nil, false; alive; {
			select {
			case <-gone:
				alive = false
				k.o.Log.Warn("the watcher of the machine's memory has ended, and is started again", "said", said(), "pause", pause)
			case <-k.done:
				k.dismiss() // and one that is about to begin finds the order
				<-gone
				return
			case <-beats.C:
				k.beat()
				if life := k.f.head.load(headLife); life != 0 && !ready {
					if ready = true; k.Lacks() != 0 {
						k.o.Log.Warn("the watcher of the machine's memory runs unprotected", "lacks", k.Lacks().String())
					}
				}
				if pulse := time.Duration(k.f.head.load(headPulse)); ready && waketime()-pulse > hung {
					k.o.Log.Error("the watcher of the machine's memory does not answer: killing it", "silent", waketime()-pulse)
					k.kill()
				}
			}
		}
		if time.Since(begun) > lastPause {
			pause = firstPause
		}
		for until := time.After(pause); until != nil; {
			select {
			case <-until:
				until = nil
			case <-beats.C:
				k.beat()
			case <-k.done:
				return
			}
		}
		pause = min(2*pause, lastPause)
	}
}

// start starts a watcher, in a session of its own: what ends the daemon does not end it.
func (k *Keeper) start() (gone chan struct{}, said func() string, err error) {
	var words strings.Builder
	if k.f.removed() {
		if err = k.remake(); err != nil {
			return nil, nil, err
		}
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	news, bell, err := os.Pipe()
	if err != nil {
		_, _ = out.Close(), in.Close()
		return nil, nil, err
	}
	cmd := exec.Command(k.o.Program, Verb, k.o.Path, k.o.Kind, k.o.Base)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = "/", in, in, []*os.File{bell}
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=50"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if k.f.lives(placeWatcher) { // of an earlier daemon, and was about to begin when this one looked
		k.dismiss()
	}
	k.f.head.store(headOrder, 0)
	k.f.head.store(headPulse, uint64(waketime()))
	k.f.head.store(headLife, 0) // an earlier one's, if it was killed
	shim.SealDescriptors(3)
	err = cmd.Start()
	_, _ = in.Close(), bell.Close()
	if err != nil {
		_, _ = out.Close(), news.Close()
		return nil, nil, err
	}
	k.over.Go(func() { k.hear(news) })
	gone = make(chan struct{})
	k.over.Go(func() {
		_, _ = io.Copy(&words, io.LimitReader(out, 16<<10))
		_, _ = io.Copy(io.Discard, out)
		_ = out.Close()
		_ = cmd.Wait()
		close(gone)
	})
	return gone, func() string { return strings.TrimSpace(words.String()) }, nil
}

// hear signals that the board has changed, until the watcher is gone.
func (k *Keeper) hear(news *os.File) {
	var some [64]byte
	for {
		n, err := news.Read(some[:])
		if k.o.Changed != nil {
			k.o.Changed()
		}
		if n == 0 || err != nil {
			_ = news.Close()
			return
		}
	}
}

// remake makes a region anew whose name is gone, and writes the last table there.
func (k *Keeper) remake() error {
	f, err := Open(k.o.Path)
	if err != nil {
		return err
	}
	if err := f.claim(); err != nil {
		_ = f.Close()
		return err
	}
	k.mu.Lock()
	old, rows := k.f, k.table.Rows
	k.f = f
	k.mu.Unlock()
	k.beat()
	k.Publish(rows)
	k.o.Log.Warn("what the watcher of the machine's memory is told was removed, and is made anew", "path", k.o.Path)
	return old.Close()
}
