package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

const (
	// glance is how often a run directory is looked at.
	glance = 100 * time.Millisecond
	// overdue is how long after its lease's end a supervisor's tree may be seen to live before both are killed: it has two seconds of patience
	// with processes that don't die. Looks are counted and not the clock: after a pause of the machine it is long past the end, and no
	// supervisor has had a moment to act on it.
	overdue = 10 * time.Second
	// patience is how long SIGKILL may take before it is said that processes remain.
	patience = 2 * time.Second
	// patienceOfLooks bounds a look at a subjob's memory: its end is seen between two looks.
	patienceOfLooks = 300 * time.Millisecond
	// mostApart is how far apart the tries to end what remains of a dead supervisor's subjob get: each looks at every process of the machine.
	mostApart = 10 * time.Second
)

// watch stays with a subjob until its supervisor is gone, and then says how it ended. again: nothing of it has begun, since the
// supervisor, which had looked after others, was gone before it heard of it.
func (r *run) watch(s *pool.Supervisor) (again bool) {
	rep := reporter{r: r, next: time.Now().Add(r.e.o.Report), meter: tree.Meter{Patience: patienceOfLooks}}
	defer func() { rep.meter.Stores.Close() }()
	glances := time.NewTicker(glance)
	defer glances.Stop()
	late := 0 // looks since its lease is over
	for begun := s.Begun; ; {
		if planted.In(planted.SellBeforeGone) {
			if res, err := r.dir.ReadResult(); err == nil {
				r.over(res)
				return false
			}
		}
		select {
		case <-r.e.done:
			return false
		case <-s.Gone:
			if s.Used && !s.Well && r.untouched() {
				return true
			}
			r.well, r.told = s.Well, s.Well
			if len(s.Last) > 0 {
				_ = r.dir.WriteLog(s.Last)
			}
			r.look(&rep)
			r.conclude()
			return false
		case <-begun:
			begun = nil
		case <-glances.C:
		}
		r.look(&rep)
		if r.e.o.now() <= r.end() {
			late = 0
			continue
		}
		if late++; late > int(overdue/glance) && r.neglected() {
			r.e.o.Logger.Error("a subjob lives past its lease: killing its supervisor, and the subjob by it", "subjob", r.token.String())
			_ = s.Kill()
		}
	}
}

// untouched says whether no supervisor has looked at the run directory.
func (r *run) untouched() bool {
	_, err := os.Lstat(r.dir.Note())
	return errors.Is(err, fs.ErrNotExist)
}

// look says what is new: that it started, that it is stuck, how far it is.
func (r *run) look(rep *reporter) {
	note, err := r.dir.ReadNote()
	if err != nil {
		return // it is about to start
	}
	stuck := r.dir.ReadStuck()
	r.mu.Lock()
	if note.At != 0 && !r.said {
		r.started, r.said = note.At, true
		r.answer(protocol.Message{Kind: protocol.Started, Body: r.beginning(note.At)})
	}
	if stuck != "" && r.stuck == "" {
		r.stuck = stuck
		r.answer(protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: stuck}})
	}
	started := r.started != 0
	r.mu.Unlock()
	r.hold(note)
	if started {
		rep.report(note)
	}
}

// neglected says whether processes of the subjob live and nothing was said about it. A supervisor that is only waiting
// to write its result is left alone.
func (r *run) neglected() bool {
	note, err := r.dir.ReadNote()
	r.mu.Lock()
	defer r.mu.Unlock()
	init := tree.Process{PID: note.Init, Started: note.InitStarted}
	return err == nil && r.stuck == "" && init.PID != 0 && init.Alive()
}

// reporter says now and then how far a subjob is and what it uses.
type reporter struct {
	r     *run
	next  time.Time
	meter tree.Meter
	// stored: the meter knows what of its memory is no process's.
	stored bool
}

func (p *reporter) report(note shim.Note) {
	if time.Now().Before(p.next) {
		return
	}
	begun := time.Now()
	defer func() { p.next = begun.Add(max(p.r.e.o.Report, 20*time.Since(begun))) }() // of thousands of processes a look takes long
	w := p.r.work()
	seen := &protocol.Observation{Slice: w.Slice, Progress: w.Range.From, At: p.r.e.o.now()}
	if said, ok := p.r.dir.ReadProgress(); ok && said.Progress > seen.Progress {
		seen.Progress = said.Progress
	}
	if note.Gone != 0 {
		seen.Storing, seen.Vacant = true, true
		p.r.answer(protocol.Message{Kind: protocol.Report, Body: seen})
		return
	}
	if l := &p.r.lease; l.Isolation.Own && l.Memory > 0 && !p.stored && note.At != 0 {
		p.meter.Stores, p.stored = tree.OpenStores(note.Init), true
	}
	if p.r.lease.Memory > 0 {
		seen.Demand[trp.Memory] = quantity.Amount(p.meter.Measure(tree.Below(note.Init)))
	} else {
		seen.Demand[trp.Memory] = p.r.onDevice(tree.Below(note.Init))
	}
	p.r.answer(protocol.Message{Kind: protocol.Report, Body: seen})
}

// conclude finds out how a subjob whose supervisor is gone has ended. It returns when its last process is gone.
func (r *run) conclude() {
	until, apart := time.Now().Add(patience), glance
	for !r.e.isClosed() {
		res, err := r.ended()
		wait := glance
		switch {
		case err == nil:
			r.tellStored(res)
			return
		case shim.Held(err) && time.Now().Before(until):
			wait = time.Millisecond // an init that is just dying
		case shim.Held(err):
			r.remains("the init of the subjob remains, though its supervisor is gone")
		case errors.Is(err, errRemain):
			wait, apart = apart, min(2*apart, mostApart)
		default:
			r.e.o.Logger.Error("finding out how a subjob ended; trying again", "subjob", r.token.String(), "err", err)
			if faults.OfNode(err) {
				r.trouble = err
				r.e.suspect(&r.start)
			}
			wait = time.Second
		}
		select {
		case <-time.After(wait):
		case <-r.e.done:
		}
	}
}

// errRemain says that processes of a dead supervisor's subjob remain.
var errRemain = errors.New("processes remain after SIGKILL")

// ended returns the result in the run directory. If there is none it makes one: nothing may start there any more, what
// remains is killed, and what the progress file says counts. An error that is shim.Held means that a supervisor lives.
func (r *run) ended() (res job.Result, err error) {
	lock, err := r.dir.TryLock()
	switch {
	case damaged(err):
		res, err = r.condemn(err.Error())
	case err != nil:
		return res, err
	default:
		r.locked = true
		defer func() {
			r.locked = false
			_ = lock.Close()
		}()
		if res, err = r.dir.ReadResult(); damaged(err) {
			res, err = r.makeResult()
		} else if err == nil && r.damage != "" {
			res, err = r.condemn(r.damage)
		}
	}
	if err != nil {
		return res, err
	}
	r.tellEnd(&res)
	return res, r.lasting()
}

// lasting makes sure that a power cut can't take a result that is there. Its supervisor has synced it, unless it died just then;
// the name of the run directory is everybody's, and synced for many at once.
func (r *run) lasting() error {
	if planted.In(planted.TellBeforeLasting) {
		return nil
	}
	if !r.well {
		if err := shim.SyncDir(string(r.dir)); err != nil {
			return err
		}
	}
	if r.named == nil {
		r.named = r.e.names.Ask()
	}
	err := r.named.Wait()
	if err != nil {
		r.named = nil // asked again with the next try
	}
	return err
}

// makeResult makes the result of a subjob whose supervisor is gone and has left none. The caller holds the lock. Without a note no program
// was started: the daemon or the supervisor died before that, which is the node's failure.
func (r *run) makeResult() (res job.Result, err error) {
	if r.damage != "" {
		return r.condemn(r.damage)
	}
	if r.lease.Outlived(r.e.bootID) {
		note, _ := r.dir.ReadNote() // what is left of it after a power cut
		return r.lost(note)
	}
	fenced := r.dir.Fence()
	note, err := r.dir.ReadNote()
	if fenced != nil && (err != nil || !volume.NoRoom(fenced)) { // in one with a note nothing is started a second time
		return res, fmt.Errorf("fencing a run directory: %w", fenced)
	}
	switch none := errors.Is(err, fs.ErrNotExist); {
	case none && r.lostNote():
		return r.condemn(filepath.Base(r.dir.Note()) + " is gone")
	case none:
		why := "the supervisor ended before the start"
		if r.unseen {
			why = "the daemon stopped before the start"
		}
		if said := shim.Tail(r.dir.Log(), 5, 1<<10); said != "" {
			why += ": " + said
		}
		res = job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: r.lease.Range.From, End: r.e.o.now(), Detail: why}
		return res, r.write(&res)
	case damaged(err):
		return r.condemn(err.Error())
	case err != nil:
		return res, err
	}
	if err := r.endRest(note); err != nil {
		return res, err
	}
	return r.lost(note)
}

// endRest kills what is left of a subjob whose supervisor is dead. errRemain: some processes do not end.
func (r *run) endRest(note shim.Note) error {
	if r.hit == 0 { // now, as the groups are removed with the last process
		r.hit, r.hitWords = limitHit(r.groups(note, nil))
	}
	if left := r.killRest(note); len(left) > 0 {
		r.remains(fmt.Sprintf("%d processes remain after SIGKILL, the first is %d", len(left), left[0].PID))
		return errRemain
	}
	r.gone = r.e.o.now()
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

// remains says once that something of the subjob can't be ended.
func (r *run) remains(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stuck == "" {
		r.stuck = why
		r.answer(protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: why}})
	}
}

// write writes a result that the executor has made.
func (r *run) write(res *job.Result) error {
	err := r.dir.WriteResult(res, &r.lease)
	r.well = err == nil
	return err
}

// killRest ends what a dead supervisor left and returns what does not end.
func (r *run) killRest(note shim.Note) []tree.Process {
	if note.BootID != shim.BootID() {
		return nil // the machine was restarted: nothing of it can be left
	}
	if planted.In(planted.OrphanTree) {
		return nil
	}
	_, groups := r.alive(note)
	for _, g := range groups {
		if err := g.Kill(); err != nil {
			r.e.o.Logger.Warn("killing a control group", "subjob", r.token.String(), "err", err)
		}
	}
	left := tree.End(func() []tree.Process {
		all, _ := r.alive(note)
		return all
	}, patience)
	if len(left) == 0 {
		for _, g := range groups {
			_ = g.Remove()
		}
	}
	return left
}

// groups are the control groups of the subjob: the one in its supervisor's note, and those of known, which are processes of it.
func (r *run) groups(note shim.Note, known []tree.Process) (all []tree.Group) {
	if group := tree.Group(note.Cgroup); group != "" {
		all = append(all, group)
	} else if note.PID != 0 { // the supervisor may have died before it noted the group
		all = append(all, r.lease.Group(note.PID))
	}
	for _, p := range known {
		if group := tree.GroupOf(p.PID, r.token.String()); group != "" && !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all
}

// alive finds the living processes of the subjob, and their control groups, without its supervisor's help. Without a note the supervisor
// may still live: then it is among them, with all its descendants.
func (r *run) alive(note shim.Note) (all []tree.Process, groups []tree.Group) {
	all = tree.Marked(mark(r.dir))
	if note.PID == 0 {
		for _, holder := range tree.Holding(r.dir.Note(), r.locked) {
			for _, below := range tree.Below(holder.PID) {
				all = append(all, below.Process)
			}
			all = append(all, holder)
		}
	}
	groups = r.groups(note, all)
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
func (r *run) lost(note shim.Note) (job.Result, error) {
	control, err := r.dir.ReadControl()
	to := r.lease.Range.To
	if err == nil {
		to = max(to, control.Range.To)
	}
	e := shim.Ending{ExitCode: -1, Cause: job.Lost, Forced: true, To: to, FirstTo: r.lease.Range.To}
	detail := "the supervisor died: somebody has killed it, perhaps the program itself"
	here := note.BootID == shim.BootID() && !r.lease.Outlived(r.e.bootID)
	switch {
	case !here:
		e.Cause, detail = job.NodeFailed, "the machine was restarted; what the subjob had written was not yet synced and does not count"
	case r.unseen:
		e.Cause, detail = job.NodeFailed, "the supervisor died while no daemon was there"
	case note.Gone != 0: // all processes of the program had ended
		e.Cause, detail = job.NodeFailed, "the supervisor died while it stored what the subjob had left"
	}
	switch {
	case r.reclaimed():
		e.Cause, detail = job.Stopped, shortOfMemory+"; "+detail
	case r.hit != 0:
		e.Cause, detail = r.hit, r.hitWords+"; "+detail
	}
	var res job.Result
	if here {
		e.Unfit = r.dir.Unmount()
		e.Said, e.Spoke = r.dir.ReadProgress()
		stop := r.saysStoring(r.lease.Range.From)
		res, err = r.dir.Conclude(&r.lease, e)
		stop()
		if err != nil {
			return job.Result{}, fmt.Errorf("making what a lost subjob wrote durable: %w", err)
		}
	} else {
		res = shim.Judge(&r.lease, e)
	}
	if damage := r.dir.Damaged(); damage != "" { // the supervisor may have died of it
		res.Outcome, res.Progress, res.Checkpoint, res.Detail = job.LimitKilled, r.lease.Range.From, false, damage
	}
	if res.Outcome == job.LimitKilled && res.Detail != "" {
		detail = res.Detail + "; " + detail
	}
	res.Start, res.End, res.Detail = note.At, max(note.At, r.e.o.now()), detail
	if res.Outcome == job.MemoryKilled {
		res.Peak[trp.Memory] = max(res.Peak[trp.Memory], r.lease.Memory)
	}
	res.Prepare, res.Unpack = r.lease.Prepared(note.At)
	if said := shim.Tail(r.dir.Stderr(), 20, 4<<10); said != "" {
		res.Detail += "\n" + said
	}
	return res, r.write(&res)
}
