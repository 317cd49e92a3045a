package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

const (
	// glance is how often a run directory is looked at.
	glance = 100 * time.Millisecond
	// overdue is how long after its lease's end a supervisor's tree may be seen to live before both are killed: it gives processes that
	// don't die two seconds. Looks are counted instead of time: after a pause of the machine the end is long past, and no supervisor has
	// had a chance to act on it.
	overdue = 10 * time.Second
	// patienceOfLooks bounds a look at a subjob's memory: its end is seen between two looks.
	patienceOfLooks = 300 * time.Millisecond
	// mostApart is the longest pause between tries to end what remains of a dead supervisor's subjob: each looks at every process of the
	// machine.
	mostApart = 10 * time.Second
)

// watch follows a subjob until its supervisor is gone, and then reports how it ended. again: the subjob has not begun, since its reused
// supervisor died before it took the order.
func (r *run) watch(s *pool.Supervisor) (again bool) {
	rep := reporter{r: r, next: time.Now().Add(r.e.o.Report), meter: tree.Meter{Patience: patienceOfLooks}}
	defer func() { rep.meter.Stores.Close() }()
	glances := time.NewTicker(glance)
	defer glances.Stop()
	late := 0 // looks since its lease is over
	for begun := s.Begun; ; {
		select {
		case <-r.e.done:
			return false
		case <-s.Gone:
			if (s.Lost || s.Used && !s.Well) && r.untouched() {
				return true
			}
			r.after.Seen(s.Well)
			r.after.Stays = s.Stays != nil && r.resident != nil
			if len(s.Last) > 0 {
				_ = r.dir.WriteLog(s.Last)
			}
			r.look(&rep)
			if r.after.Stays {
				r.resident.stayed(r, s.Stays)
			}
			r.conclude()
			return false
		case <-begun:
			begun = nil
		case <-glances.C:
		}
		r.look(&rep)
		if last, _ := r.control.state(); r.e.o.now() <= last.End {
			late = 0
			continue
		}
		if late++; late > int(overdue/glance) && r.neglected() {
			r.e.o.Logger.Error("a subjob lives past its lease: killing its supervisor, and the subjob by it", "subjob", r.token.String())
			_ = s.Kill()
		}
	}
}

// untouched reports whether no supervisor has taken the run directory up.
func (r *run) untouched() bool {
	_, err := os.Lstat(r.dir.Note())
	return errors.Is(err, fs.ErrNotExist)
}

// look reports news of the subjob: that it started, that it is stuck, its progress.
func (r *run) look(rep *reporter) {
	note, err := r.dir.ReadNote()
	if err != nil {
		return // it is about to start
	}
	stuck := r.dir.ReadStuck()
	r.told.Began(note.At)
	r.told.Stuck(stuck)
	r.still.take(note)
	if r.told.State().Began != 0 {
		rep.report(note)
	}
}

// neglected reports whether processes of the subjob live that were not reported as stuck. A supervisor that is only waiting
// to write its result is left alone.
func (r *run) neglected() bool {
	note, err := r.dir.ReadNote()
	init := tree.Process{PID: note.Init, Started: note.InitStarted}
	return err == nil && r.told.State().Stuck == "" && init.PID != 0 && init.Alive()
}

// reporter reports a subjob's progress and use now and then.
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
	switch l := &p.r.lease; {
	case note.Gone != 0:
		seen.Storing, seen.Vacant = true, true
	case l.Memory > 0:
		if l.Isolation.Own && !p.stored && note.At != 0 {
			p.meter.Stores, p.stored = tree.OpenStores(note.Init), true
		}
		seen.Demand[trp.Memory] = quantity.Amount(p.meter.Measure(tree.Below(note.Init)))
	default:
		seen.Demand[trp.Memory] = p.r.onDevice(tree.Below(note.Init))
	}
	p.r.told.Send(protocol.Report, seen)
}

// conclude finds out how a subjob whose supervisor is gone has ended. It returns when its last process is gone.
func (r *run) conclude() {
	until, apart := time.Now().Add(aftermath.Patience), glance
	for !r.e.isClosed() {
		var remain aftermath.Remain
		res, err := r.after.Ended()
		wait := glance
		switch {
		case err == nil:
			r.leave()
			r.tellStored(res)
			return
		case shim.Held(err) && time.Now().Before(until):
			wait = time.Millisecond // an init that is just dying
		case shim.Held(err):
			r.told.Stuck("the init of the subjob remains, though its supervisor is gone")
		case errors.As(err, &remain):
			r.told.Stuck(string(remain))
			wait, apart = apart, min(2*apart, mostApart)
		default:
			r.e.o.Logger.Error("finding out how a subjob ended; trying again", "subjob", r.token.String(), "err", err)
			if faults.OfNode(err) {
				r.trouble = err
				r.e.suspect(&r.start)
			}
			wait = time.Second
		}
		executor.Pause(r.e.done, wait)
	}
}

// newRun returns a subjob of a run directory, present or to come.
func (e *Executor) newRun(t job.Token) *run {
	r := &run{e: e, dir: e.s.Run(t), token: t}
	r.told.Post, r.told.Token = e.box.Post, t
	r.control.dir, r.control.now, r.control.told = r.dir, e.o.now, &r.told
	r.control.failed = func(err error) {
		e.o.Logger.Error("passing a new end on to the supervisor", "subjob", t.String(), "err", err)
		if faults.OfNode(err) {
			e.suspect(&r.start)
		}
	}
	s := &r.still
	s.o, s.token, s.told, s.lease, s.control = &e.o, t, &r.told, &r.lease, &r.control
	s.watcher, s.room, s.done = &e.sensor.watcher, &e.sensor.pressure.room, e.done
	r.after = aftermath.Aftermath{Node: &e.after, Dir: r.dir, Token: t, Lease: &r.lease, Storing: r.saysStoring, Reclaimed: s.reclaimed}
	return r
}

// leave leaves the home of the subjob's program, unless that waits there for another.
func (r *run) leave() {
	switch home := r.lease.Home(); {
	case home == "" || r.after.Stays:
	case r.resident != nil:
		r.resident.leave()
	default: // an earlier daemon started it; it may have gone on since
		if note, err := home.ReadNote(); err == nil && note.Subjob == r.token.String() {
			r.e.residents.remove(home)
		}
	}
}

// over notes the result and reports it.
func (r *run) over(res job.Result) {
	res = r.still.excused(r.blame(res))
	r.mu.Lock()
	// The supervisor can't see the use of a GPU's memory.
	res.Peak[trp.Memory] = max(res.Peak[trp.Memory], r.onGPU)
	r.mu.Unlock()
	if r.resident == nil {
		r.e.originals.Release(r.token)
	}
	r.e.residents.tell(r, &res)
	r.e.tasks.Go(r.still.release)
	r.e.sensor.watcher.wake()
}

// With Options.Keep a result is told only once its output and checkpoint are in the store, named by the subjob's token (ADR 0049). They
// stay in the run directory, and are published from there as without a store.

// tellStored puts what counts of a result into the store, and then tells it. It returns when that is done or the executor is closed; the
// next daemon then does it again.
func (r *run) tellStored(res job.Result) {
	if r.e.o.Keep {
		defer r.saysStoring(res.Progress)()
	}
	for pause := firstProbe; r.e.o.Keep; pause = min(2*pause, lastProbe) {
		err := r.e.artifacts.Put(r.e.artifacts.Context(), r.dir, &r.lease, &res)
		r.e.artifacts.Waits(r.token, err)
		if err == nil {
			break
		}
		var hopeless faults.Unstorable
		if errors.As(err, &hopeless) {
			r.e.artifacts.Waits(r.token, nil)
			res = refused(&res, r.lease.Range.From, hopeless)
			break
		}
		if r.e.isClosed() {
			return
		}
		r.e.o.Logger.Error("putting what a subjob has left into the store; its result is told once it is there", "subjob", r.token.String(),
			"err", err)
		r.e.suspect(&r.start)
		if executor.Pause(r.e.done, pause) {
			return
		}
	}
	r.over(res)
}

// saysStoring reports repeatedly that no process of the subjob lives and that its output is being stored, until the function that it
// returns is called: its slice is free meanwhile, and its home waits for the result beyond the lease's end.
func (r *run) saysStoring(progress int64) (stop func()) {
	return executor.Every(r.e.o.Report, func() {
		if last, _ := r.control.state(); r.e.o.now() >= last.End { // as long as its result is not told, its node can't end what waits
			r.e.residents.part(r.token)
		}
		r.told.Send(protocol.Report, &protocol.Observation{Slice: r.told.Slice, Progress: progress, At: r.e.o.now(), Storing: true,
			Vacant: !r.e.residents.waiting(r.token)})
	})
}

// soon is how much a daemon's start puts into the store before it goes on, in bytes for each subjob, and patiently how long it waits for
// the store at most.
const (
	soon      = 16 << 20
	patiently = 5 * time.Second
)

// storedSoon puts what counts of a found subjob's result into the store, if that is there already or is little. False: that is done in the
// background, and the result told then.
func (r *run) storedSoon(res *job.Result) bool {
	if foreign.Size(r.dir.Output(), soon)+foreign.Size(r.dir.Checkpoint(), soon) > soon {
		return false
	}
	ctx, cancel := context.WithTimeout(r.e.artifacts.Context(), patiently)
	defer cancel()
	return r.e.artifacts.Put(ctx, r.dir, &r.lease, res) == nil
}

// refused is the result of a subjob whose output can't be stored: none of it counts.
func refused(res *job.Result, from int64, why error) job.Result {
	out := *res
	out.Outcome, out.Progress, out.Checkpoint = job.LimitKilled, from, false
	out.Detail = "what it has left can't be stored, and does not count: " + strings.ToValidUTF8(why.Error(), "?") // it names files
	if res.Detail != "" {
		out.Detail += "; " + res.Detail
	}
	return out
}

// fetch gets a checkpoint that is not on this machine from the store, for a user, and puts it in its place.
func (r *run) fetch(t job.Token, path string, user *shim.User) error {
	build := r.e.s.In("runs", ".fetch-"+r.token.String()) // removed at the next start, if this one is cut off
	err := r.e.artifacts.Fetch(r.start.Job, t, build, user, cmp.Or(r.work().Spec.Launch.OutputLimit, r.e.o.OutputLimit))
	switch {
	case errkind.Of(err) == errkind.NotFound:
		return errkind.Errorf(errkind.NotFound, "the checkpoint of subjob %v is neither at %s nor in the store: %w", t, path, err)
	case errors.As(err, new(faults.Store)):
		return err
	case err == nil:
		err = r.settleIn(build, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("getting the checkpoint of subjob %v: %w", t, err), foreign.Remove(build))
	}
	return nil
}

// settleIn moves a fetched and synced checkpoint to its place, unless one is there by now. It is sealed there: who is not root
// can't move a directory that it can't write to.
func (r *run) settleIn(build, path string) error {
	lock := r.e.lives.Place(r.start.Job)
	lock.Lock()
	defer lock.Unlock()
	folder := filepath.Dir(path)
	err := errors.Join(os.MkdirAll(folder, 0o711), shim.SyncDir(filepath.Dir(folder)))
	if err == nil {
		err = os.Rename(build, path)
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		return foreign.Remove(build)
	}
	if err != nil {
		return err
	}
	if err = foreign.Seal(path); err != nil {
		r.e.o.Logger.Warn("taking the right to write from a checkpoint", "subjob", r.token.String(), "err", err)
	}
	return errors.Join(shim.SyncDir(folder), shim.SyncDir(filepath.Dir(build)))
}

// onDevice returns how much of their slice's own memory the given processes use now; 0 where it can't be measured. It records the peak.
// The device itself refuses more than it has, so there is nothing to enforce.
func (r *run) onDevice(members []tree.Member) (used quantity.Amount) {
	if r.e.o.Use == nil || r.lease.DeviceMemory == 0 {
		return 0
	}
	use, err := r.e.o.Use(r.e.o.Present(r.lease.Slice))
	if err != nil {
		r.e.o.Logger.Debug("what a subjob uses of its GPU can't be told", "subjob", r.token.String(), "err", err)
		return 0
	}
	for _, m := range members {
		used += quantity.Amount(use[m.PID])
	}
	r.mu.Lock()
	r.onGPU = max(r.onGPU, used)
	r.mu.Unlock()
	return used
}
