package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

// Lease is lease.json: everything the supervisor needs to know. It holds the job's environment, so it is mode 0600.
type Lease struct {
	executor.Part
	// Start and End by the node's clock; Anchor ties that clock to the kernel's. End may be Never.
	Start, End quantity.Instant
	Anchor     Anchor
	Grace      time.Duration
	// BootID names the start of the machine under which the lease was given out; empty where an older version wrote it. Under
	// another one nothing of the subjob runs, and only a result that is there counts.
	BootID string
	// Asked is when the start was asked for, Unpacked when the work directory was there if that had to be unpacked first, by the
	// node's clock; 0 if it had not.
	Asked, Unpacked quantity.Instant
	executor.Program
	// User to run as; nil for the supervisor's own.
	User *User

	// Memory of the process tree in bytes; 0 where it is not to be measured (a real GPU's memory is not the host's).
	Memory quantity.Amount
	// DeviceMemory is what the slice has where Memory is 0 because it is a real GPU's; in bytes.
	DeviceMemory quantity.Amount
	// LogLimit caps stdout and stderr together, OutputLimit output and checkpoint directory together; in bytes, at least 1.
	LogLimit, OutputLimit int64
	Limits                Limits
	// Copied is what of Dir.Work was copied there, and is no doing of the subjob's.
	Copied foreign.Usage
	// Free is what the subjob's user could write on the file system of the run directory when its start was prepared. If that fills up, it
	// tells whether the subjob is the culprit (see Dir.Fills).
	Free Free `json:",omitzero"`
	// Joined: the machine has joined a cluster, in which others have room. Who fills its disk within his limits met the machine's bound and
	// not his own.
	Joined    bool `json:",omitempty"`
	Isolation Isolation
	// Events is the file that gets starts and ends.
	Events string
	// Rank is what it is worth where memory is short, Planned its probable peak, 0: not known. They are here so that a restarted daemon
	// tells the machine's watcher the same. Watch is how that watcher is found (survival/watch); empty: nobody suspends it.
	Rank    protocol.Rank
	Planned quantity.Amount `json:",omitempty"`
	Watch   string          `json:",omitempty"`
	// Stay: its program takes its subjobs from its standard input; nil: it is started for this one alone.
	Stay *Stay `json:",omitempty"`

	executor.Origin
}

// Outlived says whether the machine was started anew since the lease was given out, where now names its present start: then nothing
// of the subjob runs.
func (l *Lease) Outlived(now string) bool { return l.BootID != "" && l.BootID != now }

// Group is the control group of the subjob under the supervisor that is this process; none where its node makes none.
func (l *Lease) Group(supervisor int) tree.Group {
	return tree.GroupIn(l.Isolation.Cgroup, fmt.Sprintf("%s-%d", l.Grouped(), supervisor))
}

// Grouped names the subjob by which the control group of its program is named.
func (l *Lease) Grouped() job.Token {
	if l.Home() != "" {
		return l.Stay.First
	}
	return l.Token
}

// Prepared is what was gone of the lease's time when the command started, at, and the part of it that unpacking took. The time
// counts from the lease's start, or from when the start was asked for if that was later.
func (l *Lease) Prepared(at quantity.Instant) (all, unpack time.Duration) {
	if at == 0 || l.Asked == 0 {
		return 0, 0
	}
	from := max(l.Start, l.Asked)
	all = max(0, at.Sub(from))
	if l.Unpacked != 0 {
		unpack = min(all, max(0, l.Unpacked.Sub(from)))
	}
	return all, unpack
}

// Control is control.json.
type Control struct {
	// End and Range replace the lease's; Anchor is taken with them.
	End    quantity.Instant
	Range  job.Range
	Anchor Anchor
	// Stop asks to end now, Now without the grace. Cut says that End is earlier than was promised.
	Stop, Cut bool
	Now       bool `json:",omitempty"`
	Cause     string
	// Still is until when the subjob is suspended at the latest, 0 if it is not; Stood counts how often it was told to be, and Short is
	// why.
	Still quantity.Instant `json:",omitempty"`
	Stood int              `json:",omitempty"`
	Short string           `json:",omitempty"`
	// Watched: the machine's watcher suspended it, and it is resumed when the watcher ends.
	Watched bool `json:",omitempty"`
}

// Note is a line of shim.json.
type Note struct {
	// PID of the supervisor, Started its start time in clock ticks since boot (field 22 of /proc/PID/stat): together they
	// name a process that a reused number does not match.
	PID     int
	Started uint64
	// BootID of the machine: after a restart of it neither means anything, nor was anything written surely kept.
	BootID string
	// At is when the command was started by the node's clock; 0 while it was not.
	At quantity.Instant
	// Gone is when nothing of it lived any more, if what it has left took a while to be stored since; 0 before, and where it did not.
	Gone quantity.Instant `json:",omitempty"`
	// Init and InitStarted are the same for the process the command hangs below; 0 before.
	Init        int
	InitStarted uint64
	// Cgroup of this subjob; empty for none.
	Cgroup string
	// Thaws: its supervisor resumes it when nobody is left that suspended it. Those of older versions don't, and their subjobs are never
	// suspended.
	Thaws bool `json:",omitempty"`
	// Subjob, in a home, is the one that the program has, or had last.
	Subjob string `json:",omitempty"`
}

// Progress is what the program says in its progress file.
type Progress struct {
	// Progress is the unit up to which work is complete.
	Progress int64
	// Checkpoint: the checkpoint directory holds a whole checkpoint belonging to it.
	Checkpoint bool
	// Idle is the time that no unit has cost, in nanoseconds, as an adapter knows it. Nobody else's word counts.
	Idle time.Duration
	// Ended: the program has done all of a chain whose length nobody knew. It counts from an adapter alone, too.
	Ended bool
	// Tried is what it has found out of trials, MostScores at most. It counts from an adapter alone, too.
	Tried *job.Tried `json:",omitempty"`
}

// MostScores bounds the scores that a subjob tells.
const MostScores = 1000

// progressLimit bounds how much of a progress file is read, in bytes.
const progressLimit = 64 << 10

// ReadProgress reads the program's progress file. A file that is missing, too long, not a plain file or not JSON says
// nothing: it is the program's, and whatever it holds may not hurt.
func (d Dir) ReadProgress() (p Progress, ok bool) {
	data, err := foreign.ReadFile(d.Progress(), progressLimit)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return Progress{}, false
	}
	return p, true
}

// WriteTerms writes the program's lease file: how far it may work and until when, by the machine's wall clock.
func (d Dir) WriteTerms(to int64, deadline quantity.Instant) error {
	return d.writeTerms(to, deadline, putFile)
}

func (d Dir) writeTerms(to int64, deadline quantity.Instant, write func(path string, data []byte, mode os.FileMode) error) error {
	err := write(d.Terms(), fmt.Appendf(nil, "{\"deadline\":%q,\"to\":%d}\n", Deadline(deadline), to), 0o644)
	if err != nil {
		return fmt.Errorf("writing %s: %w", d.Terms(), err)
	}
	return nil
}

// Begin writes the files that a subjob begins with into a run directory that is not in its place yet: nobody sees a half of them.
func (d Dir) Begin(l *Lease) error {
	return errors.Join(d.writeTerms(l.Range.To, l.Anchor.Shown(l.End), makeFile), writeJSON(d.Lease(), l, makeFile))
}

// Deadline is an instant as programs read it: RFC 3339 in UTC, cut to milliseconds (which never makes it later); empty if
// there is none.
func Deadline(t quantity.Instant) string {
	if t == quantity.Never {
		return ""
	}
	return t.Time().Format("2006-01-02T15:04:05.000Z07:00")
}

// foreign refuses what lies at a path if it is of another subjob than the run directory: a directory may have been an earlier one's,
// and a power cut may bring back what that had in it.
func (d Dir) foreign(path string, of job.Token) error {
	own, err := job.ParseToken(filepath.Base(string(d)))
	if err != nil || own == of {
		return nil //nolint:nilerr // it is no run directory in its place, then
	}
	return &fs.PathError{Op: "reading what is left of subjob " + of.String() + " in", Path: path, Err: fs.ErrNotExist}
}

// ReadLease reads lease.json, or what the result says of the lease where a power cut has taken that file.
func (d Dir) ReadLease() (l Lease, err error) {
	if err = readJSON(d.Lease(), &l); err == nil {
		err = d.foreign(d.Lease(), l.Token)
	}
	if err == nil {
		return l, nil
	}
	if r, failed := d.readResult(); failed == nil && r.Lease != nil {
		return *r.Lease, nil
	}
	return l, err
}

// ReadControl reads control.json; an error that is fs.ErrNotExist means that nothing has changed.
func (d Dir) ReadControl() (c Control, err error) { return c, readJSON(d.Control(), &c) }

// OpenControl reads control.json, and returns it open: as long as it is, no other file that is put in its place can be taken for it.
func (d Dir) OpenControl() (c Control, f *os.File, err error) {
	if f, err = OpenPlain(d.Control(), os.O_RDONLY, 0); err != nil {
		return c, nil, err
	}
	data, err := io.ReadAll(f)
	if err == nil {
		err = parse(d.Control(), data, &c)
	}
	if err != nil {
		_ = f.Close()
		return c, nil, err
	}
	return c, f, nil
}

// WriteControl writes control.json.
func (d Dir) WriteControl(c *Control) error { return writeJSON(d.Control(), c, putFile) }

// ReadNote reads the last whole line of shim.json; an error that is fs.ErrNotExist means that no supervisor was here, or that it has
// written nothing yet, and so started nothing.
func (d Dir) ReadNote() (n Note, err error) {
	data, err := readFile(d.Note())
	if err != nil {
		return n, err
	}
	end := bytes.LastIndexByte(data, '\n')
	if end < 0 {
		return n, &fs.PathError{Op: "reading a line of", Path: d.Note(), Err: fs.ErrNotExist}
	}
	return n, parse(d.Note(), data[bytes.LastIndexByte(data[:end], '\n')+1:end], &n)
}

// SyncWork makes what the subjob wrote to its checkpoint and output directories durable, with the names of these, and says how many
// files the checkpoint has. A result may only be written after it.
func (d Dir) SyncWork() (files int, err error) {
	files, none, err := foreign.Sync(d.Checkpoint())
	if err != nil {
		return files, err
	}
	_, nothing, err := foreign.Sync(d.Output())
	if err == nil && !(none && nothing) { // a result that is there must not be without them
		err = SyncDir(string(d))
	}
	return files, err
}

// result is result.json. It says what the lease was too: no other file of the run directory need outlast a power cut.
type result struct {
	job.Result
	Lease *Lease
}

func (d Dir) readResult() (r result, err error) {
	if err = readJSON(d.Result(), &r); err == nil && r.Lease != nil {
		err = d.foreign(d.Result(), r.Lease.Token)
	}
	return r, err
}

// ReadResult reads result.json; an error that is fs.ErrNotExist means that there is none yet.
func (d Dir) ReadResult() (job.Result, error) {
	r, err := d.readResult()
	return r.Result, err
}

// WriteResult writes result.json, the only file that is made durable here. Whoever tells the result syncs the folder that the run
// directory is in before.
func (d Dir) WriteResult(r *job.Result, l *Lease) error {
	return writeJSON(d.Result(), result{*r, l}, keepFile)
}

// WriteLog replaces the supervisor's own log.
func (d Dir) WriteLog(data []byte) error { return putFile(d.Log(), data, 0o600) }

// errHeld: somebody else holds the lock: a supervisor lives, or an init that has not noticed yet that it died.
var errHeld = errors.New("the run directory is locked: its supervisor lives, or what it began")

// Held says whether err of TryLock means that somebody holds the lock.
func Held(err error) bool { return errors.Is(err, errHeld) }

// Lock is the right to act on a run directory. Its holder may look for a note, a fence or a result and act on it: nobody else can then
// write them.
type Lock struct {
	// note is shim.json, older the file that supervisors of older versions lock, where there is one.
	note, older *os.File
}

// TryLock takes the run directory's lock without waiting. The kernel gives it back when all who hold it have closed it or died.
func (d Dir) TryLock() (*Lock, error) {
	l := &Lock{}
	var err error
	if l.note, err = tryLock(d.Note(), os.O_RDWR|os.O_APPEND|os.O_CREATE); err != nil {
		return nil, err
	}
	if l.older, err = tryLock(d.OlderLock(), os.O_RDWR); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = l.note.Close()
		return nil, err
	}
	return l, nil
}

func tryLock(path string, how int) (*os.File, error) {
	f, err := OpenPlain(path, how, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, err
	}
	return f, nil
}

// Close gives the lock back.
func (l *Lock) Close() error {
	err := l.note.Close()
	if l.older != nil {
		err = errors.Join(err, l.older.Close())
	}
	return err
}

// Share is the lock for a process that is to hold it too, as a descriptor from the given number on: it is given back when all have
// closed it.
func (l *Lock) Share(from int) (*os.File, error) {
	fd, err := unix.FcntlInt(l.note.Fd(), unix.F_DUPFD_CLOEXEC, from)
	if err != nil {
		return nil, fmt.Errorf("sharing the lock of a run directory: %w", err)
	}
	return os.NewFile(uintptr(fd), l.note.Name()), nil
}

// WriteNote adds a line to shim.json. The last one counts.
func (l *Lock) WriteNote(n *Note) error {
	line, err := json.Marshal(n)
	if err == nil {
		_, err = l.note.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", l.note.Name(), err)
	}
	return nil
}

// Removed says whether the run directory was removed meanwhile.
func (l *Lock) Removed() bool {
	var st unix.Stat_t
	return unix.Fstat(int(l.note.Fd()), &st) == nil && st.Nlink == 0
}

// Fence makes sure that nothing is ever started in the run directory. The caller holds the lock.
func (d Dir) Fence() error {
	err := putFile(d.Fenced(), []byte("nothing may start here any more\n"), 0o600)
	if volume.NoRoom(err) { // an empty one says the same, and takes no room
		var f *os.File
		if f, err = os.OpenFile(d.Fenced(), os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			err = f.Close()
		}
	}
	return err
}

// IsFenced says whether Fence was called.
func (d Dir) IsFenced() (bool, error) { return exists(d.Fenced()) }

// SetStuck writes or removes the mark that processes remain.
func (d Dir) SetStuck(text string) error {
	if text == "" {
		err := os.Remove(d.Stuck())
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	return putFile(d.Stuck(), []byte(text), 0o600)
}

// ReadStuck returns what SetStuck wrote, empty if nothing stands.
func (d Dir) ReadStuck() string {
	data, err := foreign.ReadFile(d.Stuck(), progressLimit)
	if err != nil {
		return ""
	}
	return string(data)
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// notice is the form of notice.json. Uptime is Until by the kernel's clock, in seconds since the machine was started as
// /proc/uptime and CLOCK_BOOTTIME have them, so that a program knows what is left to it even if somebody sets the wall clock.
type notice struct {
	Sequence int64   `json:"sequence"`
	Kind     string  `json:"kind"`
	Until    string  `json:"until"`
	Uptime   float64 `json:"uptime"`
	Why      string  `json:"why"`
}

// WriteNotice tells the program what was done to it.
func (d Dir) WriteNotice(n executor.Notice, a Anchor) error {
	up := (a.Boot + n.Until.Sub(a.Wall)).Truncate(time.Millisecond)
	data, err := json.Marshal(notice{n.Sequence, n.Kind, Deadline(a.Shown(n.Until)), float64(up.Milliseconds()) / 1000, n.Why})
	if err == nil {
		err = tryFile(d.Notice(), append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", d.Notice(), err)
	}
	return nil
}

// RemoveNotice withdraws the program's notice.
func (d Dir) RemoveNotice() error {
	if err := os.Remove(d.Notice()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Free is what a user could write on a file system: there at all, and by the quotas of the user and of its group. Zero is unknown, or no
// such quota.
type Free struct {
	Disk  foreign.Usage `json:",omitzero"`
	User  foreign.Usage `json:",omitzero"`
	Group foreign.Usage `json:",omitzero"`
}
