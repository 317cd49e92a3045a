package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// residents are the programs that stay between subjobs. Invariant: of a slice at most one waits, and a node that was told that it does is
// told once when it is gone.
type residents struct {
	e *Executor

	mu sync.Mutex
	// all have the first subjob of each for its name; an entry goes when nothing of the program is left.
	all map[job.Token]*resident
}

// resident is one such program, from before its start until nothing of it is left.
type resident struct {
	e     *Executor
	first job.Token
	home  shim.Dir
	slice job.SliceID
	// job and spec are those that it was started for.
	job  job.ID
	spec *job.Spec
	// lease is that of its first subjob.
	lease shim.Lease

	// What follows is guarded by the mu of residents.

	// began is when it was started.
	began quantity.Instant
	// waits: it waits for its next subjob, since the one of last. taken is closed when it has that.
	waits *pool.Resident
	last  *run
	taken chan struct{}
	// told: its node knows that it waits; asked: it is to end.
	told, asked bool
	// gone is closed when nothing of it is left.
	gone chan struct{}
}

// enter finds the program that a subjob goes on in: one that waits on its slice and was started for the same. Any other one that waits
// there is ended first. Without any a subjob whose program stays gets a new one; nil: its program does not stay.
func (rs *residents) enter(r *run) (res *resident, waits *pool.Resident) {
	w := r.work()
	user, err := rs.e.o.User(w.Spec.Queue) // another than before, if the queue was given to another
	for _, slice := range append([]job.SliceID{w.Slice}, w.Also...) {
		rs.mu.Lock()
		old := rs.on(slice)
		if old != nil && !old.asked && slice == w.Slice && err == nil && reflect.DeepEqual(user, old.lease.User) &&
			job.SameProgram(r.start.Job, w.Spec, old.job, old.spec) {
			waits = old.waits
			old.last.told.Stays(nil)
			old.waits, old.told = nil, false
			close(old.taken)
			rs.mu.Unlock()
			return old, waits
		}
		rs.mu.Unlock()
		rs.vacate(slice)
	}
	if !w.Spec.Resident || w.Plan.Resident {
		return nil, nil
	}
	res = &resident{e: rs.e, first: r.token, home: shim.HomeIn(rs.e.s.In("runs"), r.token), slice: w.Slice, job: r.start.Job, spec: w.Spec,
		gone: make(chan struct{})}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all[r.token] = res
	return res, nil
}

// vacate ends the program that waits on a slice, if one does, and returns when it is gone.
func (rs *residents) vacate(slice job.SliceID) {
	rs.mu.Lock()
	old := rs.on(slice)
	if old != nil {
		old.dismiss()
	}
	rs.mu.Unlock()
	if old == nil {
		return
	}
	select {
	case <-old.gone:
	case <-rs.e.done:
	}
}

// clear ends what waits on the slices of a subjob that does not begin.
func (rs *residents) clear(r *run) {
	w := r.work()
	for _, slice := range append([]job.SliceID{w.Slice}, w.Also...) {
		rs.vacate(slice)
	}
}

// on is the program that waits on a slice, nil if none does. rs.mu is held.
func (rs *residents) on(slice job.SliceID) *resident {
	for _, res := range rs.all {
		if res.slice == slice && res.waits != nil {
			return res
		}
	}
	return nil
}

// waiting reports whether a program waits that has stayed after a subjob.
func (rs *residents) waiting(t job.Token) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.after(t) != nil
}

// part ends the program that waits since a subjob, if one does.
func (rs *residents) part(t job.Token) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if res := rs.after(t); res != nil {
		res.dismiss()
	}
}

// after is the program that waits since a subjob, nil if none does. rs.mu is held.
func (rs *residents) after(t job.Token) *resident {
	for _, res := range rs.all {
		if res.waits != nil && res.last.token == t {
			return res
		}
	}
	return nil
}

// dismiss carries out a request to end the program that has stayed after a subjob. If that is gone already, or unknown, it is answered at
// once.
func (rs *residents) dismiss(m protocol.Message) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if res := rs.after(m.Token); res != nil {
		res.told = true
		res.dismiss()
		return
	}
	rs.e.box.Post(protocol.Message{Kind: protocol.Dismissed, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
}

// dismiss ends a program that waits, by force if its supervisor does not. The mu of residents is held.
func (res *resident) dismiss() {
	if res.asked {
		return
	}
	res.asked = true
	res.waits.Dismiss()
	time.AfterFunc(overdue, res.waits.Kill)
}

// stayed notes that the program waits for another subjob, since r. It is told with the result of r, and looked after from now on.
func (res *resident) stayed(r *run, waits *pool.Resident) {
	rs := &res.e.residents
	rs.mu.Lock()
	defer rs.mu.Unlock()
	taken := make(chan struct{})
	res.waits, res.last, res.taken, res.told = waits, r, taken, false
	if res.began == 0 {
		res.began = r.told.State().Began
	}
	res.e.tasks.Go(func() {
		select {
		case <-taken:
		case <-res.e.done:
		case <-waits.Gone:
			res.over(waits.Well)
		}
	})
}

// tell tells the result of the subjob of r, with the program that has stayed after it, if it has.
func (rs *residents) tell(r *run, result *job.Result) {
	device := r.holds()
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if res := rs.after(r.token); res != nil && !res.asked {
		res.told = true
		memory := quantity.Amount(res.waits.Memory)
		if r.lease.DeviceMemory != 0 {
			memory = device
		}
		r.told.Stays(&protocol.Resident{Number: res.spec.Residence(res.job), Memory: memory, Since: res.began})
	}
	r.told.Ended(result)
}

// holds is what the subjob's program holds of its device's memory while it waits: the most it had, where that can't be told.
func (r *run) holds() quantity.Amount {
	if r.lease.DeviceMemory == 0 || !r.after.Stays {
		return 0
	}
	var used quantity.Amount
	if note, err := r.dir.ReadNote(); err == nil {
		used = r.onDevice(tree.Below(note.Init))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(used, r.onGPU)
}

// over returns when nothing is left of a program that waits no more, or the executor is closed. Its node is told, if it knew of it. well:
// its supervisor has said that nothing is.
func (res *resident) over(well bool) {
	if !well && !res.vacated(func(why string) {
		res.e.o.Logger.Error("a program that stayed can't be ended; its slice is not used until it is gone", "home", string(res.home),
			"why", why)
	}) {
		return
	}
	rs := &res.e.residents
	rs.mu.Lock()
	r := res.last
	if r != nil {
		r.told.Stays(nil)
		if res.told {
			r.told.Send(protocol.Dismissed, nil)
		}
	}
	res.waits = nil
	rs.mu.Unlock()
	res.leave()
}

// leave removes what there is of a program of which nothing lives.
func (res *resident) leave() {
	rs := &res.e.residents
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.all[res.first] != res {
		return
	}
	delete(rs.all, res.first)
	res.e.originals.Release(res.first)
	_ = res.home.Unmount()
	old := res.e.s.In("runs", ".old-"+res.first.String()) // another program of that subjob may be about to make its home
	if err := os.Rename(string(res.home), old); err != nil {
		old = string(res.home)
	}
	close(res.gone)
	res.e.tasks.Go(func() { rs.remove(shim.Dir(old)) })
}

// remove removes a home of which nothing lives.
func (rs *residents) remove(home shim.Dir) {
	_ = home.Unmount()
	if err := foreign.Remove(string(home)); err != nil {
		rs.e.o.Logger.Warn("removing the home of a program that stayed; it is tried again at the next start", "err", err)
	}
}

// vacated ends what is left of the program and its supervisor, and returns true when nothing is; false: the executor was closed. stuck
// hears, once, that something does not end.
func (res *resident) vacated(stuck func(why string)) bool {
	a := aftermath.Aftermath{Node: &res.e.after, Dir: res.home, Token: res.first, Lease: &res.lease}
	said := false
	for since, pause := time.Now(), time.Millisecond; !res.e.isClosed(); pause = min(2*pause, time.Second) {
		why, over := vacate(&a, time.Since(since) > overdue)
		if over {
			return true
		}
		if !said && time.Since(since) > overdue+aftermath.Patience {
			stuck(why)
			said = true
		}
		executor.Pause(res.e.done, pause)
	}
	return false
}

// vacate ends what is left of a program that stays, whose home a has. kill: its supervisor too, which otherwise has the time to do it.
func vacate(a *aftermath.Aftermath, kill bool) (why string, over bool) {
	note, noted := a.Dir.ReadNote()
	if noted == nil && note.BootID != shim.BootID() {
		return "", true
	}
	err := a.EndHome()
	if err == nil {
		return "", true
	}
	if s := (tree.Process{PID: note.PID, Started: note.Started}); shim.Held(err) && kill && noted == nil && s.Alive() {
		_ = s.Signal(syscall.SIGKILL)
	}
	return err.Error(), false
}

// furnish makes the home of a program for the first of its subjobs.
func (res *resident) furnish(r *run, user *shim.User) error {
	home := res.home
	if err := errors.Join(foreign.Remove(string(home)), os.Mkdir(string(home), 0o700)); err != nil {
		return err
	}
	for _, d := range []string{home.Work(), home.Tmp()} {
		if err := errors.Join(os.Mkdir(d, 0o700), shim.Give(d, user)); err != nil {
			return err
		}
	}
	return r.workDir(home, user)
}

// settle writes down what the home's program has been started for. From then on it can be found.
func (res *resident) settle(l *shim.Lease) error {
	res.lease = *l
	if err := res.home.Begin(l); err != nil {
		return err
	}
	return os.Chmod(string(res.home), 0o711) //sluice:trusted runs/ is the daemon's alone
}

// find ends the programs of earlier daemons that wait for a subjob: no daemon gives them any more. One that has a subjob is left to its
// supervisor, which ends it with that. One that can't be ended is reported as stuck, by a token that no subjob has.
func (rs *residents) find(entries []os.DirEntry) (found []executor.Found) {
	e := rs.e
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, entry := range entries {
		first, ok := shim.HomeOf(entry.Name())
		if !ok {
			continue
		}
		res := &resident{e: e, first: first, home: shim.Dir(e.s.In("runs", entry.Name()))}
		l, err := res.home.ReadLease()
		if err != nil { // it was being made, so nothing was started in it, or it is damaged: its processes have its mark
			l = shim.Lease{Part: executor.Part{Token: first}, Stay: &shim.Stay{Home: string(res.home), First: first}}
		}
		res.lease = l
		all.Go(func() {
			if res.found() {
				return
			}
			e.o.Logger.Error("a program that stayed does not end; its slice is not used until it does", "home", string(res.home))
			mu.Lock()
			defer mu.Unlock()
			found = append(found, executor.Found{Witness: l.Witness, Found: protocol.Found{Token: res.stray(), Job: l.Job,
				Slice: e.o.Present(l.Slice), Stuck: true}})
		})
	}
	all.Wait()
	return found
}

// homePatience is how long a boot waits for the end of the programs that wait: each has a second to end by itself.
const homePatience = 6 * time.Second

// stray is the token by which the program is reported as stuck. That of a subjob of its own may be needed for what that has left.
func (res *resident) stray() job.Token {
	return job.Token{Epoch: res.first.Epoch, Seq: res.first.Seq | 1<<63} // no node counts so far
}

// found ends a program of an earlier daemon, unless it has a subjob. False: it does not end; that it has is told then.
func (res *resident) found() bool {
	e, l := res.e, &res.lease
	a := aftermath.Aftermath{Node: &e.after, Dir: res.home, Token: res.first, Lease: l}
	for since := time.Now(); time.Since(since) < homePatience; time.Sleep(5 * time.Millisecond) {
		if res.busy() {
			return true
		}
		if _, over := vacate(&a, time.Since(since) > homePatience/2); over {
			e.residents.remove(res.home)
			return true
		}
	}
	r := e.newRun(res.stray())
	r.of(e.startOf(l))
	r.told.Stuck(fmt.Sprintf("a program that stayed on %s does not end", l.Slice))
	e.mu.Lock()
	e.runs[r.token] = r
	e.mu.Unlock()
	e.tasks.Go(func() {
		if res.vacated(func(string) {}) {
			e.residents.remove(res.home)
			r.told.Ended(&job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: l.Range.From, End: e.o.now(),
				Detail: "a program that had stayed outlived its daemon"})
		}
	})
	return false
}

// busy reports whether the program has a subjob that is not over.
func (res *resident) busy() bool {
	note, err := res.home.ReadNote()
	if err != nil || note.BootID != shim.BootID() {
		return false
	}
	t, err := job.ParseToken(note.Subjob)
	if err != nil {
		return false
	}
	dir := res.e.s.Run(t)
	if _, err = os.Lstat(string(dir)); err != nil {
		return false
	}
	_, err = dir.ReadResult()
	return err != nil
}
