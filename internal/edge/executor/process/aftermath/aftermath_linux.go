// Package aftermath finds out how a subjob has ended whose supervisor is gone, ends what is left of it, and makes its result where it
// has none.
package aftermath

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process/syncs"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

// Node is what the subjobs of one node have in common.
type Node struct {
	DataDir, BootID string
	// Names syncs the names of run directories.
	Names *syncs.Shared
	Now   func() quantity.Instant
	Log   *slog.Logger
}

// Aftermath of one subjob. All but TellBehind is of the goroutine that stays with the subjob, until there is a result; then of who settles it.
type Aftermath struct {
	Node  *Node
	Dir   shim.Dir
	Token job.Token
	Lease *shim.Lease
	// Storing says that what the subjob has left is being stored, until what it returns is called.
	Storing func(progress int64) (stop func())
	// Reclaimed is why the machine's watcher had ended it; empty: it had not.
	Reclaimed func() string

	// Damage is why its lease could not be read; empty: it was read.
	Damage string
	// Unseen: its supervisor was dead already when this daemon started, so no daemon saw it die.
	Unseen bool

	// named is the sync of the run directory's name, nil if none was asked for; well: whoever wrote the result has synced it.
	named *syncs.Sync
	well  bool
	// told: the end is known to stand in the events file, or not to belong there.
	told bool
	// gone is when the processes that outlived a dead supervisor had been killed; 0: there were none to kill.
	gone quantity.Instant
	// locked: this executor holds the lock of the run directory, so a process that has the note open there is not its supervisor.
	locked bool
	// hit is the outcome of the limit that it had hit before its supervisor died, 0 for none, and hitWords says how.
	hit      job.Outcome
	hitWords string
}

// Patience is how long SIGKILL may take before it is said that processes remain.
const Patience = 2 * time.Second

// Remain says that processes of a dead supervisor's subjob remain, in words.
type Remain string

func (r Remain) Error() string { return string(r) }

// Name has the name of the run directory synced; nobody waits for it before the result is told.
func (a *Aftermath) Name() { a.named = a.Node.Names.Ask() }

// Seen says that its supervisor is done with it, and has seen to its result and its end in the events file if all went well.
func (a *Aftermath) Seen(well bool) { a.well, a.told = well, well }

// Ended returns the result in the run directory. If there is none it makes one: nothing may start there any more, what
// remains is killed, and what the progress file says counts. An error that is shim.Held means that a supervisor lives.
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

// lasting makes sure that a power cut can't take a result that is there. Its supervisor has synced it, unless it died just then;
// the name of the run directory is everybody's, and synced for many at once.
func (a *Aftermath) lasting() error {
	if planted.In(planted.TellBeforeLasting) {
		return nil
	}
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
		note, _ := a.Dir.ReadNote() // what is left of it after a power cut
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

// EndRest kills what is left of a subjob whose supervisor is dead. The error is Remain if some processes do not end.
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

// limitHit says which limit a subjob has hit, by the kernel's counts in its control groups; 0: none. That limit is its outcome even if
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

// write writes a result that the executor has made.
func (a *Aftermath) write(res *job.Result) error {
	err := a.Dir.WriteResult(res, a.Lease)
	a.well = err == nil
	return err
}

// killRest ends what a dead supervisor left and returns what does not end.
func (a *Aftermath) killRest(note shim.Note) []tree.Process {
	if note.BootID != shim.BootID() {
		return nil // the machine was restarted: nothing of it can be left
	}
	if planted.In(planted.OrphanTree) {
		return nil
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

// groups are the control groups of the subjob: the one in its supervisor's note, and those of known, which are processes of it.
func (a *Aftermath) groups(note shim.Note, known []tree.Process) (all []tree.Group) {
	if group := tree.Group(note.Cgroup); group != "" {
		all = append(all, group)
	} else if note.PID != 0 { // the supervisor may have died before it noted the group
		all = append(all, a.Lease.Group(note.PID))
	}
	for _, p := range known {
		if group := tree.GroupOf(p.PID, a.Token.String()); group != "" && !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all
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
