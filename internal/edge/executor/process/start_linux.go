package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/process/rooms"
	"sluice.dev/sluice/internal/edge/executor/process/workdirs"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/journal"
)

// launch prepares the run directory, starts the supervisor and watches it.
func (r *run) launch(witness journal.Position) {
	now := r.e.o.now()
	fail := func(outcome job.Outcome, why string) {
		r.over(job.Result{Outcome: outcome, ExitCode: -1, Progress: r.work().Range.From, End: now, Detail: why})
	}
	if r.work().End <= now {
		r.e.residents.clear(r) // its node takes what waits there for the subjob's

		fail(job.NodeFailed, "the lease was over before the start") // whatever was late, it was not the job
		return
	}
	for again := true; again; {
		res, waits := r.e.residents.enter(r)
		if res == nil && r.work().Plan.Resident {
			fail(job.NodeFailed, executor.GoneResident)
			return
		}
		r.resident, r.after.Latest = res, true
		if err := r.prepare(witness, waits != nil); err != nil {
			if r.room != nil {
				_ = foreign.Remove(string(r.room.Dir())) // the next attempt, or Find, removes what is left
			}
			outcome := job.StartFailed
			if faults.OfNode(err) {
				outcome = job.NodeFailed
			}
			if !r.vacated(waits) {
				return
			}
			fail(outcome, err.Error())
			return
		}
		r.control.place()
		r.control.pass()
		again = r.follow(waits)
		if !again || r.resident == nil {
			continue
		}
		if !r.vacated(nil) {
			return
		}
		if err := foreign.Remove(string(r.dir)); err != nil { // its lease is of that program
			fail(job.NodeFailed, executor.GoneResident+": "+err.Error())
			return
		}
	}
}

// vacated ends the subjob's program, of which waits may be waiting, and returns true when nothing of it is left; false: the executor was
// closed.
func (r *run) vacated(waits *pool.Resident) bool {
	res := r.resident
	if res == nil {
		return true
	}
	if waits != nil {
		waits.Dismiss()
		time.AfterFunc(overdue, waits.Kill)
	}
	if !res.vacated(r.told.Stuck) {
		return false
	}
	res.leave()
	r.resident = nil
	return true
}

// follow has the subjob started, in the program that waits if there is one, and watches it. again: it has not begun.
func (r *run) follow(waits *pool.Resident) (again bool) {
	for {
		var s *pool.Supervisor
		var err error
		if waits != nil {
			s = waits.Next(r.token.String())
		} else if s, err = r.e.pool.Start(r.token.String()); err != nil {
			if faults.OfNode(err) {
				r.trouble = err
			}
			_ = r.dir.WriteLog([]byte(err.Error() + "\n")) // where its result takes the reason from
			r.conclude()
			return false
		}
		if again = r.watch(s); !again || r.resident != nil {
			return again
		}
	}
}

// furnished gives the subjob a room to begin in. A subjob with a work directory gets a new room: it stays closed to its user while that is
// copied.
func (r *run) furnished(user *shim.User) (*rooms.Room, error) {
	if r.work().Spec.Launch.Workdir == "" || r.resident != nil {
		if old := r.e.rooms.Take(user); old != nil {
			return old, nil
		}
	}
	return rooms.Make(r.e.s.In("runs", ".new-"+r.token.String()), user)
}

// prepare builds the run directory under another name and puts it in place whole. goesOn: its program is there.
func (r *run) prepare(witness journal.Position, goesOn bool) error {
	m, spec := r.start, r.work().Spec
	if spec == nil || len(spec.Launch.Command) == 0 {
		return errkind.Errorf(errkind.Invalid, "subjob %v: no command to start", m.Token)
	}
	user, err := r.e.o.User(spec.Queue)
	if err != nil {
		return fmt.Errorf("queue %q: %w", spec.Queue, err)
	}
	if err = r.e.letThrough(user); err != nil {
		return fmt.Errorf("queue %q: %w", spec.Queue, err)
	}
	if err = r.e.lives.Claim(m.Job, m.Generation.Number()); err != nil {
		return err
	}
	resume, err := r.resume(user)
	if err != nil {
		return err
	}
	if r.room, err = r.furnished(user); err != nil {
		return err
	}
	build := r.room.Dir()
	r.base, r.copied = "", foreign.Usage{}
	switch res := r.resident; {
	case goesOn:
		r.base, r.copied = res.lease.Base, res.lease.Copied
	case res != nil:
		err = res.furnish(r, user)
	default:
		err = r.workDir(build, user)
	}
	if err != nil {
		return err
	}
	if !filepath.IsLocal(filepath.Join(".", spec.Launch.Subdir)) {
		return errkind.Errorf(errkind.Invalid, "subdirectory %q leads out of the work directory", spec.Launch.Subdir)
	}
	lease := r.makeLease(user, resume, witness)
	if err := build.Begin(&lease); err != nil {
		return err
	}
	if r.resident != nil && !goesOn {
		if err := r.resident.settle(&lease); err != nil {
			return err
		}
	}
	if err := os.Chmod(string(build), 0o711); err != nil { //sluice:trusted runs/ is the daemon's alone
		return err
	}
	// A directory of this token that is in the way was made by a daemon that did not live to see it: Find has fenced it.
	if err := os.Rename(string(build), string(r.dir)); err != nil {
		return err
	}
	r.mu.Lock()
	r.lease = lease
	r.mu.Unlock()
	r.after.Name()
	return nil
}

// letThrough opens the way to its own directories for a mapped user: through the data directory, which it still can't
// list, and whose other parts stay closed.
func (e *Executor) letThrough(u *shim.User) error {
	if u == nil {
		return nil
	}
	info, err := os.Stat(e.o.DataDir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o011 != 0o011 {
		if err := os.Chmod(e.o.DataDir, mode|0o011); err != nil { //sluice:trusted it is the daemon's own directory
			return err
		}
	}
	return Reachable(e.s.In("runs"), u)
}

// place is where its program has its work directory and its TMPDIR.
func (r *run) place() shim.Dir {
	if r.resident != nil {
		return r.resident.home
	}
	return r.dir
}

// makeLease writes down what the supervisor needs. Paths are those of the final place.
func (r *run) makeLease(user *shim.User, resume string, witness journal.Position) shim.Lease {
	m, w, o := r.start, r.work(), &r.e.o
	spec := w.Spec
	memory := w.Demand[trp.Memory]
	var devices []string
	simulated := true
	for _, id := range append([]job.SliceID{w.Slice}, w.Also...) {
		s, ok := o.Slice(id)
		if ok && s.Device != "" {
			devices = append(devices, s.Device)
			simulated = false
		}
		if c := s.Capacity[trp.Memory]; ok && c > 0 && id == w.Slice {
			memory = c
		}
	}
	l := shim.Lease{
		Part: executor.Part{Token: m.Token, Job: m.Job, Generation: m.Generation.Number(), Slice: w.Slice, Kind: spec.Kind, Range: w.Range,
			Member: w.Plan.Member, Members: w.Plan.Members, Total: spec.Total, Grid: spec.Grid,
			Saves: spec.Saves, Bars: w.Plan.Bars},
		Start: w.Start, End: w.End, Anchor: shim.AnchorAt(o.now()), BootID: r.e.o.BootID, Grace: spec.Launch.Grace, Asked: r.asked,
		Unpacked: r.unpacked, Copied: r.copied, Free: shim.FreeAt(o.DataDir, user), Joined: o.Joined.Owner != "",
		Program: executor.Program{WarnSignal: spec.Launch.WarnSignal, WarnBefore: spec.Launch.WarnBefore, Command: spec.Launch.Command,
			Adapter: spec.Launch.Adapter,
			WorkDir: filepath.Join(r.place().Work(), spec.Launch.Subdir), Umask: spec.Launch.Umask, Base: r.base, Resume: resume},
		User:     user,
		LogLimit: cmp.Or(spec.Launch.LogLimit, o.LogLimit), OutputLimit: cmp.Or(spec.Launch.OutputLimit, o.OutputLimit), Limits: o.Limits,
		Isolation: r.e.iso, Events: folders.Events(o.DataDir), Rank: w.Rank, Watch: r.e.sensor.watcher.path,
		Origin: executor.Origin{Witness: witness, Node: m.From, Executor: m.To},
	}
	if simulated { // the memory of a real GPU is not the host's: what holds a subjob to it is the slice
		l.Memory, l.Planned = memory, w.Demand[trp.Memory]
	} else {
		l.DeviceMemory = memory
	}
	own, option := spec.Launch.Env, spec.Option(w.Plan.Option)
	if option != nil {
		own = slices.Concat(own, option.Env) // of two entries of one name the last counts
	}
	l.Env = append(environment(own, &l, r.dir, memory, strings.Join(devices, ",")), rendezvous(own, &w.Plan)...)
	if res := r.resident; res != nil {
		l.Stay = &shim.Stay{Home: string(res.home), First: res.first, Checkpoints: r.e.s.In("checkpoints"), Memory: memory}
		l.Env = shim.ResidentEnv(environment(own, &l, res.home, memory, strings.Join(devices, ",")), res.home)
	}
	if option != nil {
		l.Env = append(l.Env, "SLUICE_OPTION="+option.Name)
	}
	return l
}

// environment is the whole of the command's environment: the job's own, and the contract's, which nobody overrides.
func environment(own []string, l *shim.Lease, dir shim.Dir, memory quantity.Amount, devices string) []string {
	home := os.Getenv("HOME")
	if l.User != nil || home == "" {
		home = l.WorkDir
	}
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "TMPDIR=" + dir.Tmp()}
	for _, e := range own {
		if !strings.HasPrefix(e, "SLUICE_") && !strings.HasPrefix(e, "CUDA_VISIBLE_DEVICES=") {
			env = append(env, e)
		}
	}
	env = append(env,
		"SLUICE_JOB="+string(l.Job),
		"SLUICE_SUBJOB="+l.Token.String(),
		"SLUICE_FROM="+strconv.FormatInt(l.Range.From, 10),
		"SLUICE_TO="+strconv.FormatInt(l.Range.To, 10),
		"SLUICE_DEADLINE="+shim.Deadline(l.Anchor.Shown(l.End)),
		"SLUICE_MEMORY_BYTES="+strconv.FormatInt(int64(memory), 10),
		"SLUICE_CHECKPOINT_DIR="+dir.Checkpoint(),
		"SLUICE_OUTPUT_DIR="+dir.Output(),
		dir.Mark(),
		"SLUICE_LEASE_FILE="+dir.Terms(),
		"SLUICE_NOTICE_FILE="+dir.Notice(),
		// Empty rather than unset: a subjob of a slice without a device must not see one.
		"CUDA_VISIBLE_DEVICES="+devices,
	)
	if l.Members > 0 {
		env = append(env, "SLUICE_MEMBER="+strconv.Itoa(l.Member), "SLUICE_MEMBERS="+strconv.Itoa(l.Members))
	}
	if l.Resume != "" {
		env = append(env, "SLUICE_RESUME_DIR="+l.Resume)
	}
	return env
}

// rendezvous is what a member of a gang is told of where the others are: in the contract's variables, and in those that torch reads by
// itself, unless the job gives these.
func rendezvous(own []string, p *protocol.Plan) (env []string) {
	if p.Port == 0 || len(p.Addresses) == 0 {
		return nil
	}
	first, port := p.Addresses[0], strconv.Itoa(p.Port)
	env = []string{"SLUICE_MEMBER_ADDRESSES=" + strings.Join(p.Addresses, ","), "SLUICE_RENDEZVOUS=" + net.JoinHostPort(first, port)}
	for _, e := range []string{"MASTER_ADDR=" + first, "MASTER_PORT=" + port} {
		name, _, _ := strings.Cut(e, "=")
		if !slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			env = append(env, e)
		}
	}
	return env
}

// resume finds the checkpoint to start from. The subjob that left it was committed, but may be settled only now.
func (r *run) resume(user *shim.User) (string, error) {
	t := r.work().Plan.Resume
	if t.Zero() {
		return "", nil
	}
	path := r.e.s.Checkpoint(r.start.Job, t)
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if r.e.lives.There(r.start.Job, path) {
			return path, nil
		}
		_, err := os.Stat(string(r.e.s.Run(t)))
		if errors.Is(err, fs.ErrNotExist) && r.e.o.Keep {
			return path, r.fetch(t, path, user)
		}
		if errors.Is(err, fs.ErrNotExist) || time.Now().After(until) || r.e.isClosed() {
			return "", errkind.Errorf(errkind.NotFound, "the checkpoint of subjob %v is not at %s", t, path)
		}
	}
}

// workDir gives the run directory that is being built its work directory: what the job was submitted with, for the subjob to
// change as it likes, seen by nobody else.
func (r *run) workDir(build shim.Dir, user *shim.User) error {
	id := r.work().Spec.Launch.Workdir
	if id == "" {
		return nil
	}
	o := r.e.originals
	base, waited, err := o.Get(o.Name(id, user), r.token, func(into string) error {
		return r.e.artifacts.Extract(id, into, user)
	})
	if err != nil {
		return fmt.Errorf("unpacking the work directory: %w", err)
	}
	if waited {
		r.unpacked = r.e.o.now()
	}
	if r.e.iso.Work == shim.WorkOverlay {
		r.base = base
		return errors.Join(os.Mkdir(build.Upper(), 0o700), shim.Give(build.Upper(), user), os.Mkdir(build.Overlay(), 0o700))
	}
	if err := workdirs.Copy(base, build.Work(), user); err != nil {
		return fmt.Errorf("the copy of the work directory: %w", err)
	}
	r.copied.Add(build.Work(), foreign.Usage{})
	return nil
}

// PruneUnpacked removes, in the background, the unpacked work directories that live says no living job needs. They are unpacked
// again if one does.
func (e *Executor) PruneUnpacked(live func(id string) bool) error {
	old, err := e.originals.Prune(live)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return err // the next daemon removes them
	}
	e.tasks.Go(func() {
		for _, path := range old {
			if failed := foreign.Remove(path); failed != nil {
				e.o.Logger.Warn("removing a work directory that was unpacked", "path", path, "err", failed)
			}
		}
	})
	return err
}
