// Package aftermath finishes subjobs whose supervisor is gone: it finds out how each ended, kills the processes left, and writes the
// result if there is none.
package aftermath

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/syncs"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

// Node holds what all subjobs of one node share.
type Node struct {
	DataDir, BootID string
	// Names syncs the names of run directories.
	Names *syncs.Shared
	Now   func() quantity.Instant
	Log   *slog.Logger
}

// Aftermath is the end of one subjob. All but TellBehind belongs to the subjob's goroutine until there is a result, and to the settling
// goroutine from then on.
type Aftermath struct {
	Node  *Node
	Dir   shim.Dir
	Token job.Token
	Lease *shim.Lease
	// Storing reports that the subjob's output is being stored, until the function that it returns is called.
	Storing func(progress int64) (stop func())
	// Reclaimed returns why the machine's watcher ended it; empty: it did not.
	Reclaimed func() string

	// Latest: this daemon gave its program, which stays, no other subjob since. Stays: its supervisor has said that the program waits for
	// another.
	Latest, Stays bool

	// Damage is why its lease could not be read; empty: it was read.
	Damage string
	// Unseen: its supervisor was dead already when this daemon started, so no daemon saw it die.
	Unseen bool

	// named is the sync of the run directory's name, nil if none was asked for; well: the result was synced by its writer.
	named *syncs.Sync
	well  bool
	// told: the end is in the events file, or does not belong there.
	told bool
	// gone is when the processes that outlived a dead supervisor were killed; 0: there were none.
	gone quantity.Instant
	// locked: this executor holds the lock of the run directory, so a process that has the note open there is not its supervisor.
	locked bool
	// hit is the outcome of the limit that it hit before its supervisor died, 0 for none; hitWords describes it.
	hit      job.Outcome
	hitWords string
}

// Patience is how long SIGKILL may take before processes are reported to remain.
const Patience = 2 * time.Second

// Remain is the error that processes of a dead supervisor's subjob remain, with their description.
type Remain string

func (r Remain) Error() string { return string(r) }

// Name begins to sync the name of the run directory; it is waited for only before the result is told.
func (a *Aftermath) Name() { a.named = a.Node.Names.Ask() }

// Seen notes that its supervisor is done with it; well: it has synced the result and told the events file the end.
func (a *Aftermath) Seen(well bool) { a.well, a.told = well, well }

// write writes a result that the executor has made.
func (a *Aftermath) write(res *job.Result) error {
	err := a.Dir.WriteResult(res, a.Lease)
	a.well = err == nil
	return err
}

// Ended returns the result in the run directory. If there is none it makes one: it forbids further starts there, kills what remains, and
// counts the progress that the progress file states. An error that is shim.Held means that a supervisor lives.
func (a *Aftermath) Ended() (res job.Result, err error) {
	lock, err := a.Dir.TryLock()
	switch {
	case Damaged(err):
		res, err = a.condemn(err.Error())
	case err != nil:
		return res, err
	default:
		a.locked = true
		defer func() {
			a.locked = false
			_ = lock.Close()
		}()
		if err = a.vacate(); err != nil {
			return res, err
		}
		if res, err = a.Dir.ReadResult(); Damaged(err) {
			res, err = a.makeResult()
		} else if err == nil && a.Damage != "" {
			res, err = a.condemn(a.Damage)
		}
	}
	if err != nil {
		return res, err
	}
	a.tellEnd(&res)
	return res, a.lasting()
}

// vacate makes sure that no program lives that stays, and has this subjob or had it last. Its supervisor holds the lock of the home for as
// long as it lives, which may be longer than the subjob. What waits since a subjob of an earlier daemon is not this one's to end.
func (a *Aftermath) vacate() error {
	home := a.Lease.Home()
	if home == "" || a.Stays || a.well || a.Lease.Outlived(a.Node.BootID) {
		return nil
	}
	if _, err := a.Dir.ReadResult(); err == nil && !a.Latest {
		return nil
	}
	if note, err := home.ReadNote(); err == nil && !a.Latest && note.Subjob != a.Token.String() {
		return nil // it went on to another subjob, which is ended by itself
	}
	program := Aftermath{Node: a.Node, Dir: home, Token: a.Lease.Stay.First, Lease: a.Lease}
	err := program.EndHome()
	if a.hit == 0 {
		a.hit, a.hitWords = program.hit, program.hitWords
	}
	return err
}

// EndHome ends what is left of a program that stays, whose home Dir is. An error that is shim.Held means that its supervisor lives, or its
// init.
func (a *Aftermath) EndHome() error {
	lock, err := a.Dir.TryLock()
	switch {
	case err == nil:
		a.locked = true
		defer func() {
			a.locked = false
			_ = lock.Close()
		}()
	case !Damaged(err): // a damaged home, or none, has no lock; what lives has its mark
		return err
	}
	return a.EndRest(a.Noted())
}

// lasting makes sure that an existing result survives a power cut. Its supervisor has synced it, unless it died just then; the names of
// run directories share one parent, and are synced for many at once.
func (a *Aftermath) lasting() error {
	if !a.well {
		if err := shim.SyncDir(string(a.Dir)); err != nil {
			return err
		}
	}
	if a.named == nil {
		a.named = a.Node.Names.Ask()
	}
	err := a.named.Wait()
	if err != nil {
		a.named = nil // asked again with the next try
	}
	return err
}

// makeResult makes the result of a subjob whose supervisor is gone and has left none. The caller holds the lock. Without a note no program
// was started: the daemon or the supervisor died before that, which is the node's failure.
func (a *Aftermath) makeResult() (res job.Result, err error) {
	if a.Damage != "" {
		return a.condemn(a.Damage)
	}
	if a.Lease.Outlived(a.Node.BootID) {
		note, _ := a.Dir.ReadNote() // as far as it survived a power cut
		return a.lost(note)
	}
	fenced := a.Dir.Fence()
	note, err := a.Dir.ReadNote()
	if fenced != nil && (err != nil || !volume.NoRoom(fenced)) { // in one with a note nothing is started a second time
		return res, fmt.Errorf("fencing a run directory: %w", fenced)
	}
	switch none := errors.Is(err, fs.ErrNotExist); {
	case none && a.lostNote():
		return a.condemn(filepath.Base(a.Dir.Note()) + " is gone")
	case none:
		why := "the supervisor ended before the start"
		if a.Unseen {
			why = "the daemon stopped before the start"
		}
		if said := shim.Tail(a.Dir.Log(), 5, 1<<10); said != "" {
			why += ": " + said
		}
		res = job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: a.Lease.Range.From, End: a.Node.Now(), Detail: why}
		return res, a.write(&res)
	case Damaged(err):
		return a.condemn(err.Error())
	case err != nil:
		return res, err
	}
	if err := a.EndRest(note); err != nil {
		return res, err
	}
	return a.lost(note)
}

// lost writes the result of a subjob whose supervisor died. If the subjob had hit a limit, that limit is the outcome. Else it is the node's
// failure if the machine was restarted, no daemon saw the death, or the program had ended before; and else the job's, since Sluice kills no
// supervisor while its daemon runs, but the program may have.
func (a *Aftermath) lost(note shim.Note) (job.Result, error) {
	control, err := a.Dir.ReadControl()
	to := a.Lease.Range.To
	if err == nil {
		to = max(to, control.Range.To)
	}
	e := shim.Ending{ExitCode: -1, Cause: job.Lost, Forced: true, To: to, FirstTo: a.Lease.Range.To}
	detail := "the supervisor died: somebody has killed it, perhaps the program itself"
	here := note.BootID == shim.BootID() && !a.Lease.Outlived(a.Node.BootID)
	switch {
	case !here:
		e.Cause, detail = job.NodeFailed, "the machine was restarted; what the subjob had written was not yet synced and does not count"
	case a.Unseen:
		e.Cause, detail = job.NodeFailed, "the supervisor died while no daemon was there"
	case note.Gone != 0: // all processes of the program had ended
		e.Cause, detail = job.NodeFailed, "the supervisor died while it stored what the subjob had left"
	}
	switch why := a.Reclaimed(); {
	case why != "":
		e.Cause, detail = job.Stopped, why+"; "+detail
	case a.hit != 0:
		e.Cause, detail = a.hit, a.hitWords+"; "+detail
	}
	var res job.Result
	if here {
		e.Unfit = a.Dir.Unmount()
		e.Said, e.Spoke = a.Dir.ReadProgress()
		stop := a.Storing(a.Lease.Range.From)
		res, err = a.Dir.Conclude(a.Lease, e)
		stop()
		if err != nil {
			return job.Result{}, fmt.Errorf("making what a lost subjob wrote durable: %w", err)
		}
	} else {
		res = shim.Judge(a.Lease, e)
	}
	if damage := a.Dir.Damaged(); damage != "" { // the supervisor may have died of it
		res.Outcome, res.Progress, res.Checkpoint, res.Detail = job.LimitKilled, a.Lease.Range.From, false, damage
	}
	if res.Outcome == job.LimitKilled && res.Detail != "" {
		detail = res.Detail + "; " + detail
	}
	res.Start, res.End, res.Detail = note.At, max(note.At, a.Node.Now()), detail
	if res.Outcome == job.MemoryKilled {
		res.Peak[trp.Memory] = max(res.Peak[trp.Memory], a.Lease.Memory)
	}
	res.Prepare, res.Unpack = a.Lease.Prepared(note.At)
	if said := shim.Tail(a.Dir.Stderr(), 20, 4<<10); said != "" {
		res.Detail += "\n" + said
	}
	return res, a.write(&res)
}

// In single-user mode a program can change everything in its run directory, Sluice's own files too: put a folder where the result belongs,
// replace the lease, remove the note. Its processes are then found by the marks in their environment, by their control groups, and by the
// note if that can be read. They are killed, and the damage counts as the subjob's own failure.

// Damaged reports whether err means that a run directory, or a file in it, is missing or is not what Sluice wrote there.
func Damaged(err error) bool {
	switch {
	case err == nil, shim.Held(err), faults.OfNode(err):
		return false
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO):
		return true
	}
	k := errkind.Of(err)
	return k == errkind.Corrupt || k == errkind.Invalid
}

// Noted reads the supervisor's note. If it can't be read, the subjob is taken to have run since the machine was started last.
func (a *Aftermath) Noted() shim.Note {
	note, err := a.Dir.ReadNote()
	if err != nil {
		note = shim.Note{BootID: shim.BootID()}
	}
	return note
}

// lostNote reports whether a supervisor was started here whose note is gone.
func (a *Aftermath) lostNote() bool {
	if last, err := a.lastEvent(); err == nil && last != "" || a.Dir.Damaged() != "" {
		return true
	}
	all, _ := a.alive(shim.Note{})
	return len(all) > 0
}

// condemn kills the processes of a subjob whose run directory is damaged, repairs the directory so that it can be settled, and writes the
// result.
func (a *Aftermath) condemn(what string) (res job.Result, err error) {
	note := a.Noted()
	if err := a.EndRest(note); err != nil {
		return res, err
	}
	if err := a.restore(); err != nil {
		return res, fmt.Errorf("restoring a damaged run directory: %w", err)
	}
	if l, err := a.Dir.ReadLease(); err == nil { // the result may have the lease where lease.json is damaged
		*a.Lease = l
	}
	if err := a.Dir.Fence(); err != nil {
		return res, fmt.Errorf("fencing a run directory: %w", err)
	}
	res = job.Result{Outcome: job.LimitKilled, ExitCode: -1, Progress: a.Lease.Range.From, Detail: shim.DamagedBy(what)}
	res.Start, res.End = note.At, max(note.At, a.Node.Now())
	if said := shim.Tail(a.Dir.Stderr(), 20, 4<<10); said != "" {
		res.Detail += "\n" + said
	}
	return res, a.write(&res)
}

// restore makes the run directory a writable directory again, and removes what is no plain file in the place of Sluice's own files.
func (a *Aftermath) restore() error {
	dir := string(a.Dir)
	_ = a.Dir.Unmount() // whether output can be published does not matter: nothing counts
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.Mkdir(dir, 0o711)
	case err != nil:
		return err
	case !info.IsDir():
		return errors.Join(foreign.Remove(dir), os.Mkdir(dir, 0o711))
	}
	foreign.Free(dir)
	for _, path := range []string{a.Dir.Note(), a.Dir.OlderLock(), a.Dir.Control(), a.Dir.Result(), a.Dir.Stuck()} {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			if err := foreign.Remove(path); err != nil {
				return fmt.Errorf("removing %s: %w", filepath.Base(path), err)
			}
		}
	}
	return nil
}

// EndRest kills the processes left of a subjob whose supervisor is dead. The error is Remain if some processes do not end.
func (a *Aftermath) EndRest(note shim.Note) error {
	if a.hit == 0 { // now, as the groups are removed with the last process
		a.hit, a.hitWords = limitHit(a.groups(note, nil))
	}
	if left := a.killRest(note); len(left) > 0 {
		return Remain(fmt.Sprintf("%d processes remain after SIGKILL, the first is %d", len(left), left[0].PID))
	}
	a.gone = a.Node.Now()
	return nil
}

// limitHit returns which limit a subjob has hit, by the kernel's counts in its control groups; 0: none. That limit is its outcome even if
// something else killed it and its supervisor afterwards.
func limitHit(groups []tree.Group) (job.Outcome, string) {
	switch {
	case slices.ContainsFunc(groups, tree.Group.OutOfMemory):
		return job.MemoryKilled, "the kernel ended some of it: it wanted more than the memory of its slice"
	case slices.ContainsFunc(groups, tree.Group.OutOfProcesses):
		return job.LimitKilled, "it wanted more processes than it may have"
	}
	return 0, ""
}

// killRest kills the processes that a dead supervisor left, and describes those that do not end.
func (a *Aftermath) killRest(note shim.Note) []tree.Process {
	if note.BootID != shim.BootID() {
		return nil // the machine was restarted: nothing of it can be left
	}
	_, groups := a.alive(note)
	for _, g := range groups {
		if err := g.Kill(); err != nil {
			a.Node.Log.Warn("killing a control group", "subjob", a.Token.String(), "err", err)
		}
	}
	left := tree.End(func() []tree.Process {
		all, _ := a.alive(note)
		return all
	}, Patience)
	if len(left) == 0 {
		for _, g := range groups {
			_ = g.Remove()
		}
	}
	return left
}

// groups returns the control groups of the subjob: the one in its supervisor's note, and those of known, which are processes of it.
func (a *Aftermath) groups(note shim.Note, known []tree.Process) (all []tree.Group) {
	if group := tree.Group(note.Cgroup); group != "" {
		all = append(all, group)
	} else if note.PID != 0 { // the supervisor may have died before it noted the group
		all = append(all, a.Lease.Group(note.PID))
	}
	for _, p := range known {
		if group := tree.GroupOf(p.PID, a.grouped()); group != "" && !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all
}

// grouped is the subjob's name in that of its control group.
func (a *Aftermath) grouped() string {
	if a.Lease.Home() != "" {
		return a.Lease.Grouped().String()
	}
	return a.Token.String()
}

// alive finds the living processes of the subjob, and their control groups, without its supervisor's help. Without a note the supervisor
// may still live: then it is among them, with all its descendants.
func (a *Aftermath) alive(note shim.Note) (all []tree.Process, groups []tree.Group) {
	all = tree.Marked(a.Dir.Mark())
	if note.PID == 0 {
		for _, holder := range tree.Holding(a.Dir.Note(), a.locked) {
			for _, below := range tree.Below(holder.PID) {
				all = append(all, below.Process)
			}
			all = append(all, holder)
		}
	}
	groups = a.groups(note, all)
	for _, g := range groups {
		all = append(all, g.Members()...)
	}
	init := tree.Process{PID: note.Init, Started: note.InitStarted}
	if init.PID != 0 && init.Alive() {
		all = append(all, init)
	}
	return all, groups
}

// tellEnd appends the end of a subjob to the events file, after its result: the supervisor, or an executor that made the result, may have
// died before it did so. The caller holds the lock, so nobody else appends it meanwhile. A failed append is tried again before the run
// directory is put away, and at the next start: a result never waits for it.
func (a *Aftermath) tellEnd(res *job.Result) {
	l := a.Lease
	if a.told || l.Events == "" {
		return
	}
	last, err := a.lastEvent()
	note, _ := a.Dir.ReadNote() // who has none was not started, unless the power was cut
	if err == nil && (last == "start" || last == "" && note.At != 0) {
		to := l.Range.To
		if c, failed := a.Dir.ReadControl(); failed == nil {
			to = max(to, c.Range.To)
		}
		end := shim.Event{
			What: "end", Token: a.Token.String(), Job: l.Job, Slice: l.Slice, From: l.Range.From, To: to,
			PID: note.Init, Boot: int64(shim.Boottime()), Wall: time.Now(), Outcome: res.Outcome.String(),
		}
		end.Since(shim.AnchorAt(a.Node.Now()), cmp.Or(note.Gone, a.gone))
		err = shim.AppendEvent(l.Events, end)
	}
	if err != nil {
		a.Node.Log.Warn("telling the events file", "err", err)
	}
	a.told = err == nil
}

// TellBehind appends the end of a subjob that has its result to the events file, if that failed with the result. A living supervisor does
// it itself.
func (a *Aftermath) TellBehind(res *job.Result) {
	if a.told || a.Lease.Events == "" {
		return
	}
	lock, err := a.Dir.TryLock()
	if err != nil {
		if !shim.Held(err) && !errors.Is(err, fs.ErrNotExist) {
			a.Node.Log.Warn("telling the events file", "err", err)
		}
		return
	}
	defer func() { _ = lock.Close() }()
	a.tellEnd(res)
}

// lastEvent returns the last event of the subjob in the events files.
func (a *Aftermath) lastEvent() (string, error) {
	last, err := shim.LastEvent(a.Lease.Events, a.Token.String())
	if last == "" && err == nil { // it may have begun before the file did
		last, err = shim.LastEvent(folders.OldEvents(a.Node.DataDir), a.Token.String())
	}
	return last, err
}
