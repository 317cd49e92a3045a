package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

// desk is what a supervisor has from one subjob to the next.
type desk struct {
	me   tree.Process
	host *told
	say  io.Writer
	// orders is where orders come from; nil: there is no other than the first.
	orders *os.File
	// stays is the program that waits for its next subjob; nil: none does.
	stays *staying
}

// await supervises the subjobs of one daemon, one after another. orders has a line for each, with the name of its run directory below
// runs, and ends with the daemon, or when that wants no more. What is said: "begun" when the command runs, and "done", or
// "failed", when it is over with all that belongs to it and the next order may come. After "stays", with the bytes of memory that it
// holds, its program waits: "next" and a name is its next subjob, and "dismiss" ends it, as does the end of orders. That it is gone,
// then or by itself, is said as "gone", unless it has begun its next subjob.
func await(runs string, orders *os.File, say io.Writer) error {
	me, host, err := withstand()
	if err != nil {
		return err
	}
	d := desk{me: me, host: host, say: say, orders: orders}
	lines := bufio.NewScanner(orders)
	for {
		for d.stays != nil && !d.stays.waits(orders) {
			d.dismiss()
		}
		if !lines.Scan() {
			break
		}
		name, next := strings.CutPrefix(lines.Text(), nextOrder)
		switch {
		case lines.Text() == dismissOrder || next && d.stays != nil && d.stays.dead():
			d.dismiss()
			continue
		case next && d.stays == nil: // it was said to be gone
			continue
		}
		how := "done"
		if err := d.supervise(shim.Dir(filepath.Join(runs, name))); err != nil {
			how = "failed"
		}
		if d.stays != nil {
			how = fmt.Sprintf("%s%d", staysWord, d.stays.memory)
		}
		_, _ = fmt.Fprintln(say, how) // to nobody, if the daemon is gone
	}
	d.dismiss()
	return lines.Err()
}

// superviseOne runs the subjob of one run directory.
func superviseOne(dir shim.Dir, say io.Writer) error {
	me, host, err := withstand()
	if err != nil {
		return err
	}
	d := desk{me: me, host: host, say: say}
	return d.supervise(dir)
}

// withstand prepares this process for its subjobs, and says which it is, and what its host tells it. The daemon's stop, a closed terminal
// or a service manager must not end one. The init sees to it that the command does not ignore them too.
func withstand() (me tree.Process, host *told, err error) {
	shim.SealDescriptors(3)
	signal.Ignore(unheard()...)
	host = &told{}
	host.listen()
	restoreFileLimit()
	if err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return me, nil, fmt.Errorf("becoming the reaper of orphans: %w", err)
	}
	me, ok := tree.Look(os.Getpid())
	if !ok {
		return me, nil, errors.New("can't see itself in /proc: is it mounted?")
	}
	return me, host, nil
}

// supervise runs the subjob of a run directory to its end, in the program that waits if there is one. It returns nil without having done
// anything if the directory is fenced or was used before. An error is in the directory's log.
func (d *desk) supervise(dir shim.Dir) (err error) {
	stays := d.stays
	d.stays = nil
	start := time.Since(began)
	told := &logFile{path: dir.Log(), flags: os.O_APPEND, mode: 0o600}
	log := slog.New(slog.NewTextHandler(told, nil))
	defer func() {
		if err != nil {
			log.Error(err.Error())
		}
		_ = told.Close()
		if stays != d.stays {
			stays.end() // unless its subjob did
		}
	}()
	lock, err := dir.TryLock()
	if shim.Held(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if done, usedErr := used(dir); done || usedErr != nil {
		return usedErr
	}
	lease, err := dir.ReadLease()
	if err != nil {
		return err
	}
	s := &subjob{dir: dir, lock: lock, lease: lease, log: log, say: d.say, terms: newTerms(&lease), pause: time.Second, host: d.host,
		start: start, stay: stays, orders: d.orders,
		note: shim.Note{PID: d.me.PID, Started: d.me.Started, BootID: shim.BootID(), Thaws: true}}
	s.guard.watcher.Path = lease.Watch
	if err = lock.WriteNote(&s.note); err != nil {
		return err
	}
	defer func() {
		s.terms.close()
		s.guard.watcher.Close()
	}()
	err = s.run()
	if s.stays {
		d.stays = s.stay
	}
	return err
}

// restoreFileLimit gives this process, whose limits a fork inherits, back the limit of open files that it was started with. Go raises it
// at the start of a program, keeps to itself what it was, and takes that back for what package os starts and in an Exec: this one
// starts nothing.
func restoreFileLimit() { _ = syscall.Exec("", nil, nil) }

// used says whether something was started here before, or may not be started any more.
func used(dir shim.Dir) (bool, error) {
	fenced, err := dir.IsFenced()
	if fenced || err != nil {
		return true, err
	}
	if _, err := dir.ReadNote(); !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	return false, nil
}

// run waits for the lease, starts the command, and stays with it.
func (s *subjob) run() error {
	for {
		s.terms.read(s.dir, s.log)
		switch {
		case s.lock.Removed():
			return errRemoved
		case s.terms.stop:
			return s.neverStarted(job.Stopped, "stopped before the start: "+s.terms.why)
		case s.terms.until(s.terms.end) <= 0:
			return s.neverStarted(job.NodeFailed, "the lease was over before the start")
		}
		wait := s.terms.until(s.lease.Start)
		if wait <= 0 {
			break
		}
		time.Sleep(min(wait, tick))
	}
	if outcome, err := s.begin(); err != nil {
		return s.neverStarted(outcome, err.Error())
	}
	if err := s.tell(s.event("start", "")); err != nil {
		s.log.Warn(err.Error())
	}
	if err := s.lock.WriteNote(&s.note); err != nil {
		s.log.Error("the start can't be noted: the command is stopped again", "err", err)
		s.end()
		return s.neverStarted(job.StartFailed, err.Error())
	}
	_, _ = fmt.Fprintln(s.say, "begun") // the daemon, if it is there, looks at the note
	said := s.accompany()
	s.watch.waits.Look(s.watch.began, time.Now(), nil) // asking a group takes no time; nothing else may come before the end
	if s.mayStay(said) {
		return s.leave(said)
	}
	s.part(said)
	s.end()
	return s.finish(said)
}

// begin starts the command, or gives the subjob to the program that waits. An error comes with the outcome of a subjob that was never
// started; nothing of it is left.
func (s *subjob) begin() (outcome job.Outcome, err error) {
	if s.stay != nil {
		return s.goesOn()
	}
	lock := s.lock
	if s.lease.Home() != "" {
		if s.stay, err = newStaying(&s.lease, s.note); err != nil {
			return job.StartFailed, err
		}
		lock = s.stay.lock
	}
	c, err := startChild(s.dir, lock, &s.lease)
	if err != nil {
		if s.stay != nil {
			s.stay.close()
		}
		if errors.Is(err, unix.EBUSY) { // another daemon's control group has its name: the next supervisor has another number
			return job.NodeFailed, err
		}
		return job.StartFailed, err
	}
	s.child = c
	s.note.Init, s.note.InitStarted, s.note.Cgroup = c.init.PID, c.init.Started, string(c.group)
	if err = c.first(&s.lease); err == nil && s.stay != nil {
		s.stay.child = c
		err = s.stay.take(&s.note, s.lease.Token)
	}
	if err == nil && c.talk != nil {
		err = s.give()
	}
	if err != nil {
		s.end()
		return job.StartFailed, err
	}
	s.note.At = s.terms.now()
	s.watch = newWatch(s.dir, &s.lease, c)
	return 0, nil
}

// end kills what is left and returns only when nothing is. While something remains after its patience the mark says so.
func (s *subjob) end() {
	for stuck := false; ; stuck = true {
		left := s.child.end(patience)
		if len(left) == 0 {
			s.gone = s.terms.now()
			if stuck {
				_ = s.dir.SetStuck("")
			}
			break
		}
		text := fmt.Sprintf("%d processes remain after SIGKILL, the first is %d", len(left), left[0].PID)
		s.log.Error(text)
		if err := s.dir.SetStuck(text); err != nil {
			s.log.Error("marking the subjob as stuck", "err", err)
		}
	}
	s.watch.meter.Stores.Close()
	s.child.close()
	if s.lease.Base != "" {
		// The kernel's own files there are of no use, and closed to everybody. The settlement tries again.
		_ = foreign.Remove(s.lease.Place(s.dir).Overlay())
	}
	if s.stay != nil {
		s.stay.close()
	}
}

// finish judges the ended subjob and writes its result.
func (s *subjob) finish(said word) error {
	defer s.saysStoring()()
	r := s.judge(said)
	return s.write(&r)
}

// judge makes the result of a subjob, of what it has left and said. What it has left is made durable.
func (s *subjob) judge(said word) job.Result {
	held := s.child.outgrew
	if held && s.cause == 0 {
		s.cause, s.forced = job.MemoryKilled, true
		s.detail = fmt.Sprintf("the kernel ended it: it wanted more than the %d bytes of memory the slice has", s.lease.Memory)
	}
	if s.cause == 0 && s.host.since(s.start, hearing(said)) { // it may have ended of the same
		s.cause = job.Stopped
	}
	l := &s.lease
	mute := s.mute(said)
	if mute {
		said.Code = shim.YieldCode
	}
	e := shim.Ending{ExitCode: int(said.Code), Signal: int(said.Signal), Cause: s.cause, Forced: s.forced, To: s.terms.to,
		FirstTo: l.Range.To}
	e.Unfit = s.dir.Unmount()
	e.Said, e.Spoke = s.dir.ReadProgress()
	if s.watch.room.over(&e, s.child.logs.noRoom.Load(), s.child.logs.quota.Load()); e.Fills != "" {
		s.detail = "" // Conclude says it, from e.Fills
	}
	r, err := s.dir.Conclude(l, e)
	if err != nil && r.Outcome != job.LimitKilled { // what may be lost with the power must not count
		r.Outcome, r.Progress, r.Checkpoint = job.ExitFailed, l.Range.From, false
		if volume.NoRoom(err) {
			r.Outcome = job.NodeFailed
		}
		r.Detail = fmt.Sprintf("what the subjob wrote can't be made durable: %v", err)
	}
	if mute && r.Outcome == job.Yielded {
		s.unanswered(&r)
	}
	saysWhose(l, &r)
	outgrewDevice(l, &r, shim.Tail(s.dir.Stderr(), 20, 4<<10))
	r.Start, r.End = s.note.At, max(s.note.At, s.gone)
	r.Prepare, r.Unpack = l.Prepared(s.note.At)
	r.Waited = max(0, min(s.watch.waits.Total(), r.Ran()))
	if r.Progress > l.Range.From {
		r.FirstProgress = s.watch.first
	}
	if s.stayed {
		said.MaxRSS = 0 // it knows of what was before too
	}
	r.Peak[trp.Memory] = max(r.Peak[trp.Memory], s.watch.peak(said.MaxRSS, held))
	r.Detail = detail(&r, r.Detail, s.detail, shim.Tail(s.dir.Stderr(), 20, 4<<10))
	r.Startup, r.Stayed = s.startup(), s.stayed
	return r
}

// saysWhose turns a failure into what an adapter says it is by its exit status, where that is none of a unit's.
func saysWhose(l *shim.Lease, r *job.Result) {
	if !l.Adapter.Given() || r.Outcome != job.ExitFailed {
		return
	}
	switch r.ExitCode {
	case adapter.Unready:
		r.Outcome, r.Detail = job.StartFailed, ""
	case adapter.NoRoom: // the disk may have room again by now
		r.Outcome, r.Detail = job.NodeFailed, ""
	}
}

// hearing is how long the word of a host that ends the machine may come after the end of a command that did not do well: hosts tell one
// process after another.
func hearing(said word) time.Duration {
	if said.Signal == 0 && (said.Code == 0 || said.Code == shim.YieldCode) {
		return 0
	}
	return 100 * time.Millisecond
}

// soon is how long storing what a subjob has left may take before the note says that it is.
const soon = 500 * time.Millisecond

// saysStoring notes that no process of the subjob lives, unless the returned stop is called soon: it takes long to make many files durable,
// or to wait for room for a result, and the daemon gives the slice to others meanwhile.
func (s *subjob) saysStoring() (stop func()) {
	done := make(chan struct{})
	var saying sync.WaitGroup
	note := s.note
	note.Gone = s.gone
	saying.Go(func() {
		for wait := soon; ; wait = time.Second {
			select {
			case <-done:
				return
			case <-time.After(wait):
			}
			err := s.lock.WriteNote(&note)
			if err == nil {
				return
			}
			s.log.Warn("noting that what is left is being stored; trying again", "err", err)
		}
	})
	return func() { close(done); saying.Wait() }
}

// detail joins what was observed with the last words of a subjob that did not do well.
func detail(r *job.Result, texts ...string) (all string) {
	well := r.Outcome == job.Done || r.Outcome == job.Yielded
	for i, t := range texts {
		if t == "" || well && i == len(texts)-1 {
			continue
		}
		if all != "" {
			all += "\n"
		}
		all += t
	}
	return all
}

func (s *subjob) neverStarted(o job.Outcome, why string) error {
	return s.write(&job.Result{Outcome: o, ExitCode: -1, Progress: s.lease.Range.From, End: s.terms.now(), Detail: why})
}

// write writes the result, and then records the end. A full disk is waited out for a while: without a result the subjob counts as lost. An
// end that can't be recorded is an error: the executor records it then.
func (s *subjob) write(r *job.Result) error {
	if s.note.At == 0 {
		return s.put(r)
	}
	end := s.event("end", r.Outcome.String())
	end.Since(s.terms.anchor, s.gone) // making its output durable may have taken a while
	err := s.put(r)
	end.Outcome = r.Outcome.String() // put may have made it a forfeit
	if err == nil || s.lock.Removed() {
		err = errors.Join(err, s.tell(end))
	} // otherwise whoever finds it without a result decides how it ended
	return err
}

// resultTries is how often a result is tried to be written, a second apart.
const resultTries = 60

func (s *subjob) put(r *job.Result) (err error) {
	for tries := 1; tries <= resultTries; tries++ {
		if err = s.dir.WriteResult(r, &s.lease); err == nil || s.lock.Removed() {
			return err
		}
		s.log.Error("the result can't be written; trying again", "err", err)
		if !volume.NoRoom(err) || !s.makeRoom(r, tries, err) {
			time.Sleep(s.pause)
		}
	}
	return err
}

// event is what happens now.
func (s *subjob) event(what, outcome string) shim.Event {
	return shim.Event{
		What: what, Token: s.lease.Token.String(), Job: s.lease.Job, Slice: s.lease.Slice, From: s.lease.Range.From, To: s.terms.to,
		PID: s.child.init.PID, Boot: int64(shim.Boottime()), Wall: time.Now(), Outcome: outcome,
	}
}

func (s *subjob) tell(e shim.Event) error {
	if s.lease.Events == "" {
		return nil
	}
	if err := shim.AppendEvent(s.lease.Events, e); err != nil {
		return fmt.Errorf("telling the events file the %s: %w", e.What, err)
	}
	return nil
}

// noDeviceMemory is how programs say at their end that the GPU had no memory left: PyTorch's message and its exception's
// name, the CUDA driver's error and the runtime's.
func noDeviceMemory() []string {
	return []string{"CUDA out of memory", "OutOfMemoryError", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"}
}

// outgrewDevice turns a failure into a memory kill if the program ran on a real GPU and its last words are that the memory
// there was not enough: nobody but the program is told when the GPU refuses it memory. It wanted more than the slice has.
func outgrewDevice(l *shim.Lease, r *job.Result, lastWords string) {
	// An exception that nobody catches ends a C++ program by abort(3).
	itself := r.Signal == 0 || syscall.Signal(r.Signal) == syscall.SIGABRT
	if l.DeviceMemory == 0 || r.Outcome != job.ExitFailed || !itself {
		return
	}
	for _, text := range noDeviceMemory() {
		if strings.Contains(lastWords, text) {
			r.Outcome = job.MemoryKilled
			r.Peak[trp.Memory] = max(r.Peak[trp.Memory], l.DeviceMemory)
			why := fmt.Sprintf("its last words say %q: the %d bytes of the GPU slice were not enough", text, l.DeviceMemory)
			r.Detail = detail(r, r.Detail, why, "")
			return
		}
	}
}

// triesBeforeForfeit is how often writing a result fails for a full disk before the culprit forfeits what it wrote. Until then the daemon
// may have released its reserve file.
const triesBeforeForfeit = 4

// makeRoom frees room for a result that could not be written for want of it, by how often that was tried: first it removes what nobody
// needs, then what the subjob wrote if nothing of it counts, and at last if it is the culprit. It says whether there may be room now.
func (s *subjob) makeRoom(r *job.Result, tries int, want error) bool {
	switch tries {
	case 1:
		s.dir.Strip()
		return true
	case triesBeforeForfeit - 1:
		if r.Progress > s.lease.Range.From || r.Checkpoint || r.Outcome == job.Done || r.Outcome == job.Yielded {
			return false
		}
		if err := s.dir.DiscardFolders(); err != nil {
			s.log.Error("removing what does not count from a full disk", "err", err)
		}
		return true
	case triesBeforeForfeit:
		var seen volume.State
		if volume.OverQuota(want) {
			seen.Limit = volume.HiddenQuota
		}
		why := s.dir.Fills(&s.lease, seen, 0, true)
		if why == "" {
			return false
		}
		if err := s.dir.Forfeit(&s.lease, r, why); err != nil {
			s.log.Error("removing what fills the disk", "err", err)
		}
		return true
	}
	return false
}
