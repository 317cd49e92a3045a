package supervisor

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

// patienceOfLooks bounds a look at the memory of a tree of thousands: orders are read between two looks.
const patienceOfLooks = 300 * time.Millisecond

// watch looks at what the subjob uses and how far it says it is. Nothing it does takes more than a twentieth of the time.
type watch struct {
	dir shim.Dir
	// place has its work directory and its TMPDIR.
	place   shim.Dir
	from    int64
	limit   quantity.Amount
	output  int64
	scratch foreign.Usage
	// tasks are the processes and threads that it may have, most those that were seen at once; held: the kernel holds it to them, so that
	// a program can end of a process that it was refused before anybody has looked.
	tasks, most int64
	held        bool
	group       tree.Group
	meter       tree.Meter
	// stores is the process whose own places are the subjob's too, 0 if there are none; opened at the first look.
	stores int
	memory duty
	size   duty
	room   diskWatch
	// near: the last look found more than three quarters of the limit, so the next one comes soon.
	near bool
	// first is when progress was first seen to be beyond from; 0 while it was not.
	first quantity.Instant
	seen  os.FileInfo
	// waits is how long it waited for a processor since it began; waiting keeps the looks at that to their share of the time.
	waits   tree.Waits
	began   time.Time
	waiting duty
}

// newWatch watches a subjob whose command has started.
func newWatch(dir shim.Dir, l *shim.Lease, c *child) watch {
	w := watch{
		dir: dir, place: l.Place(dir), from: l.Range.From, limit: l.Memory, output: l.OutputLimit, tasks: l.Limits.Processes,
		held: heldByKernel(l), group: c.group,
		scratch: foreign.Usage{Bytes: l.Limits.Scratch, Files: l.Limits.Files},
		meter:   tree.Meter{Limit: int64(l.Memory), Patience: patienceOfLooks}, size: duty{every: 500 * time.Millisecond},
		room:  diskWatch{dir: dir, lease: l},
		waits: tree.Waits{Group: c.group}, began: time.Now(),
	}
	if w.scratch.Bytes > 0 {
		w.scratch.Bytes += l.Copied.Bytes
	}
	if w.scratch.Files > 0 {
		w.scratch.Files += l.Copied.Files
	}
	if l.Isolation.Own && l.Memory > 0 {
		w.stores = c.init.PID
	}
	return w
}

// look returns what the subjob is to be killed for now, with a text; 0 for nothing.
func (w *watch) look(members []tree.Member, now quantity.Instant) (cause job.Outcome, text string) {
	w.progress(now)
	if w.waiting.due() {
		w.waits.Look(w.began, time.Now(), members)
		w.waiting.done(tick)
	}
	if w.stores != 0 {
		w.meter.Stores, w.stores = tree.OpenStores(w.stores), 0
	}
	if text = w.crowd(members); text != "" {
		return job.LimitKilled, text
	}
	if w.limit > 0 && w.memory.due() {
		used := w.meter.Measure(members)
		w.near = used > int64(w.limit)/4*3
		w.memory.done(w.every())
		if used > int64(w.limit) {
			stored := ""
			if n := w.meter.Stores.Used(); n > 0 {
				stored = fmt.Sprintf(", of them %d in its /tmp and /dev/shm,", n)
			}
			return job.MemoryKilled, fmt.Sprintf("%d processes used %d bytes of memory%s the slice has %d", len(members), used,
				cmp.Or(stored, ","), w.limit)
		}
	}
	if text = w.room.look(members); text != "" {
		return job.LimitKilled, text
	}
	if w.size.due() {
		text = w.written()
		w.size.done(w.size.every)
		if text != "" {
			return job.LimitKilled, text
		}
	}
	return 0, ""
}

// crowd says that there are too many processes, empty if not.
func (w *watch) crowd(members []tree.Member) string {
	if w.tasks <= 0 {
		return ""
	}
	tasks := w.count(members)
	if tasks <= w.tasks && !w.group.OutOfProcesses() {
		return ""
	}
	return w.crowded(tasks)
}

// refused says of a command that has failed, and left members behind, that it had all the processes that it may have; empty if not.
func (w *watch) refused(members []tree.Member) string {
	if w.tasks <= 0 {
		return ""
	}
	w.count(members)
	if !w.group.OutOfProcesses() && (!w.held || w.most+1 < w.tasks) { // the command itself is gone already
		return ""
	}
	return w.crowded(max(w.most, w.tasks))
}

func (w *watch) count(members []tree.Member) (tasks int64) {
	for i := range members {
		tasks += int64(members[i].Threads)
	}
	w.most = max(w.most, tasks)
	return tasks
}

func (w *watch) crowded(tasks int64) string {
	return fmt.Sprintf("it had %d processes and threads and wanted more than the limit of %d: start fewer workers, or raise "+
		"subjobs.processes in the daemon's --config", tasks, w.tasks)
}

// written says that too much was written, empty if not.
func (w *watch) written() string {
	used := foreign.Size(w.dir.Output(), w.output)
	if used <= w.output {
		used += foreign.Size(w.dir.Checkpoint(), w.output-used)
	}
	// Folders that we can't read count as too large: Unfit makes them readable and then decides, as at the end of the subjob.
	if used > w.output && w.dir.Unfit(w.output) != "" {
		return fmt.Sprintf("output and checkpoint hold more than the limit of %d bytes, or folders nested deeper than %d", w.output,
			foreign.MaxDepth)
	}
	if w.scratch == (foreign.Usage{}) {
		return ""
	}
	var scratch foreign.Usage
	for _, root := range []string{w.place.Work(), w.place.Upper(), w.place.Tmp(), w.dir.ProgressDir()} {
		if scratch.Add(root, w.scratch); scratch.Over(w.scratch) {
			return fmt.Sprintf("%d bytes in %d files lie in its work directory and TMPDIR, more than the limit of %d bytes or %d files, "+
				"or folders nested deeper than %d: "+
				"remove what is not needed any more, write results to SLUICE_OUTPUT_DIR, or raise subjobs.scratch and subjobs.files in "+
				"the daemon's --config",
				scratch.Bytes, scratch.Files, w.scratch.Bytes, w.scratch.Files, foreign.MaxDepth)
		}
	}
	return ""
}

// every is how soon the next look at memory is due: what is close to the limit can be far beyond it in a whole tick.
func (w *watch) every() time.Duration {
	if w.near {
		return tick / 5
	}
	return tick
}

func (w *watch) progress(now quantity.Instant) {
	if w.first != 0 {
		return
	}
	info, err := os.Lstat(w.dir.Progress())
	if err != nil || (w.seen != nil && os.SameFile(info, w.seen) && info.ModTime().Equal(w.seen.ModTime())) {
		return
	}
	w.seen = info
	if p, ok := w.dir.ReadProgress(); ok && p.Progress > w.from {
		w.first = now
	}
}

// peak is the largest use seen, or the kernel's figure for one process, which also knows of what came and went between
// two looks.
//
// Where the kernel (held) ended it for its memory it had all of the limit, however little of its growth was seen.
func (w *watch) peak(maxRSS int64, held bool) quantity.Amount {
	if w.limit == 0 {
		return 0
	}
	peak := quantity.Amount(max(w.meter.Peak(), maxRSS))
	if held {
		peak = max(peak, w.limit)
	}
	return peak
}

// duty keeps something that costs time to a share of it.
type duty struct {
	every       time.Duration
	began, next time.Time
}

// due says whether it is time, and notes the beginning.
func (p *duty) due() bool {
	p.began = time.Now()
	return !p.began.Before(p.next)
}

// done sets the next time by how soon it is wanted and what this one took.
func (p *duty) done(every time.Duration) {
	now := time.Now()
	p.next = now.Add(max(every/2, 20*now.Sub(p.began)))
}

const (
	// roomEvery is how often the supervisor looks whether the disk is full. fullLooks in a row must find it full before the culprit is
	// ended: a program may free room itself.
	roomEvery = 500 * time.Millisecond
	fullLooks = 2
	// recently is for how long after the disk was full a failure still counts as caused by that: programs retry before they give up.
	recently = 10 * time.Second
)

// diskWatch observes the file system of a run directory while its subjob runs.
type diskWatch struct {
	dir   shim.Dir
	lease *shim.Lease
	duty  duty
	looks int // in a row that have found it full
	// last is when it was full, short what was, and unlinked how many bytes this subjob had then in open files without a name. fills is how
	// this subjob fills it, "" if it is not the culprit.
	last     time.Time
	short    volume.State
	unlinked int64
	fills    string
}

// look returns why the subjob must be ended for filling the disk, else "".
func (c *diskWatch) look(members []tree.Member) string {
	if c.lease == nil || !c.duty.due() {
		return ""
	}
	defer c.duty.done(roomEvery)
	short, full := c.dir.DiskFull(c.lease)
	if !full {
		c.looks = 0
		return ""
	}
	c.last, c.short, c.unlinked = time.Now(), short, unlinked(string(c.dir), members)
	if c.looks++; c.looks < fullLooks {
		return ""
	}
	c.fills = c.dir.Fills(c.lease, short, c.unlinked, false)
	return c.fills
}

// over fills in what is known of the disk at the end of a subjob whose processes are gone. logged is when its log last met a full disk, in
// Unix nanoseconds, 0 if never: looks may miss a disk that was full for a moment. quota: what it met was a quota.
func (c *diskWatch) over(e *shim.Ending, logged int64, quota bool) {
	e.Fills = c.fills
	if at := time.Unix(0, logged); logged != 0 && at.After(c.last) {
		if c.last = at; quota && c.short.Limit == volume.Whole {
			c.short = volume.State{Limit: volume.HiddenQuota}
		}
	}
	if c.last.IsZero() || time.Since(c.last) > recently {
		return
	}
	e.DiskFull, e.Short, e.Unlinked = true, c.short, c.unlinked
}

// unlinked is how many bytes of disk processes hold in open files without a name, on the file system of a path.
func unlinked(path string, members []tree.Member) (bytes int64) {
	var here, st unix.Stat_t
	if unix.Stat(path, &here) != nil {
		return 0
	}
	seen := map[uint64]bool{}
	for _, m := range members {
		fds := fmt.Sprintf("/proc/%d/fd", m.PID)
		entries, err := os.ReadDir(fds)
		if err != nil {
			continue // it is gone, or not ours to look at
		}
		for _, e := range entries {
			err := unix.Stat(filepath.Join(fds, e.Name()), &st)
			if err == nil && st.Dev == here.Dev && st.Nlink == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG && !seen[st.Ino] {
				seen[st.Ino] = true
				bytes += st.Blocks * 512
			}
		}
	}
	return bytes
}
