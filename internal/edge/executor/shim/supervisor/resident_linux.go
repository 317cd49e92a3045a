package supervisor

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// Orders and words beside those of one subjob: see await.
const (
	nextOrder, dismissOrder = "next ", "dismiss"
	staysWord               = "stays "
)

const (
	// dismissal is how long a program that is to end has for that, once its standard input has ended.
	dismissal = time.Second
	// measures is how often the memory of one that waits is looked at, where no kernel holds it to its limit.
	measures = time.Second
)

// staying is a program that stays between subjobs. Its home is locked by its supervisor and its init, as a run directory is by those of any
// other program.
type staying struct {
	home  shim.Dir
	lock  *shim.Lock
	child *child
	// lease is that of its present subjob, or of its last, and note what is noted of it.
	lease shim.Lease
	note  shim.Note
	// memory is what it held when it began to wait, in bytes.
	memory int64
}

// newStaying locks the home of a program that is to be started for a subjob.
func newStaying(l *shim.Lease, note shim.Note) (*staying, error) {
	st := &staying{home: l.Home(), lease: *l}
	var err error
	if st.lock, err = st.home.TryLock(); err != nil {
		return nil, fmt.Errorf("taking the home of a program that stays: %w", err)
	}
	if err = st.take(&note, l.Token); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// take notes in the home which subjob the program has.
func (st *staying) take(note *shim.Note, t job.Token) error {
	st.note = *note
	st.note.Subjob = t.String()
	return st.lock.WriteNote(&st.note)
}

// dead reports whether the program has ended while it waited.
func (st *staying) dead() bool { return st.child.ended || st.child.hear(0).Kind != 0 || st.child.ended }

// waits waits until there is an order, or an end of orders; false: the program has ended meanwhile, or has to.
func (st *staying) waits(orders *os.File) bool {
	c := st.child
	memory := tree.Meter{Limit: int64(st.lease.Memory), Patience: patienceOfLooks}
	for look := time.Now().Add(measures); ; {
		fds := append(c.ears[:], unix.PollFd{Fd: int32(orders.Fd()), Events: unix.POLLIN})
		wait := unix.NsecToTimespec(measures.Nanoseconds())
		_, _ = unix.Ppoll(fds, &wait, nil)
		switch {
		case fds[earWords].Revents|fds[earEnd].Revents != 0:
			return false
		case fds[earNews].Revents != 0:
			if w, _ := c.talk.heard(); w.Kind != 0 { // it answers for a subjob that it does not have: what else it says can't be trusted
				return false
			}
		case fds[len(c.ears)].Revents != 0:
			return true
		}
		if st.lease.Memory == 0 || st.lease.Isolation.KernelMemory || time.Now().Before(look) {
			continue
		}
		if memory.Measure(tree.Below(c.init.PID)) > int64(st.lease.Memory) {
			return false
		}
		look = time.Now().Add(measures)
	}
}

// dismiss ends the program that waits, if there is one, and says so.
func (d *desk) dismiss() {
	if d.stays == nil {
		return
	}
	d.stays.end()
	d.stays = nil
	_, _ = fmt.Fprintln(d.say, "gone")
}

// end ends the program, which may do so by itself for a moment, and returns when nothing of it is left. It is called once at most, and
// does nothing if its subjob has ended it.
func (st *staying) end() {
	if st == nil || st.lock == nil {
		return
	}
	c := st.child
	c.part(dismissal)
	for stuck := false; ; stuck = true {
		left := c.end(patience)
		if len(left) == 0 {
			if stuck {
				_ = st.home.SetStuck("")
			}
			break
		}
		// What reads it is a person.
		_ = st.home.SetStuck(fmt.Sprintf("%d processes remain after SIGKILL, the first is %d", len(left), left[0].PID))
	}
	c.close()
	if st.lease.Base != "" {
		_ = foreign.Remove(st.home.Overlay())
	}
	st.close()
}

// close gives the home back: nothing of the program lives.
func (st *staying) close() {
	if st.lock != nil {
		_ = st.lock.Close()
		st.lock = nil
	}
}

// part ends the program's standard input, and waits for its end, for patience at most.
func (c *child) part(patience time.Duration) {
	if c.talk == nil {
		return
	}
	c.talk.endInput()
	c.ears[earNews].Fd = -1 // no answer counts any more
	for until := time.Now().Add(patience); !c.ended && time.Now().Before(until); {
		c.hear(time.Until(until))
	}
}

// goesOn gives the subjob to the program that waits.
func (s *subjob) goesOn() (outcome job.Outcome, err error) {
	st := s.stay
	c := st.child
	s.child, s.stayed = c, true
	st.lease = s.lease
	c.logs = newLogs(s.dir, s.lease.LogLimit)
	c.talk.begin(c.logs, s.lease.Token.String())
	s.note.Init, s.note.InitStarted, s.note.Cgroup = c.init.PID, c.init.Started, string(c.group)
	if err = c.group.Limit(int64(s.lease.Memory)); err == nil {
		err = st.take(&s.note, s.lease.Token)
	}
	s.watch = newWatch(s.dir, &s.lease, c)
	s.watch.waits.Skip(time.Now(), tree.Below(c.init.PID))
	if err == nil {
		err = s.give()
	}
	if err != nil {
		s.end()
		return job.NodeFailed, fmt.Errorf("the program that stayed can't go on: %w", err)
	}
	s.note.At = s.terms.now()
	return 0, nil
}

// give gives the subjob to its program, by a line. Behind the one of a program that does not stay nothing comes.
func (s *subjob) give() error {
	line, err := s.dir.Piece(&s.lease, s.terms.to, s.terms.anchor.Shown(s.terms.end))
	if err != nil {
		return err
	}
	if err = s.child.talk.tell(line); err != nil && s.stayed {
		return err
	}
	if err != nil { // one that never reads it may do well all the same
		s.log.Warn("the program is not told of its subjob", "err", err)
	}
	if s.stay == nil {
		s.child.talk.endInput()
	}
	return nil
}

// answered is what the init said of a program that stays, w, or that the program has answered: what it said before it ended counts.
func (s *subjob) answered(w word) word {
	if w.Kind != 0 {
		s.child.talk.catchUp(tick)
	} else if s.child.ears[earNews].Revents == 0 {
		return w
	}
	a, text := s.child.talk.heard()
	if a.Kind == 0 {
		return w
	}
	s.detail = text
	return a
}

// mute reports whether a program that was to answer has ended in order instead, and was not asked to: it may never have read of its subjob,
// so that only what it has reported counts.
func (s *subjob) mute(said word) bool {
	return s.lease.Stay != nil && said.Kind == exited && said.Code == 0 && said.Signal == 0 && s.cause == 0
}

// unanswered says of the result of such a program whose fault it is: of one that was there already, and has reported nothing, nobody's.
func (s *subjob) unanswered(r *job.Result) {
	r.ExitCode = 0
	s.detail = "exit 0 without an answer for its subjob: what it has reported counts"
	if r.Progress == s.lease.Range.From {
		r.Outcome = job.ExitFailed
		if s.stayed {
			r.Outcome = job.NodeFailed
		}
	}
}

// mayStay reports whether the program may wait for another subjob, as far as its answer and its lease say.
func (s *subjob) mayStay(said word) bool {
	well := said.Kind == answered && (said.Code == 0 || said.Code == shim.YieldCode)
	return well && s.stay != nil && !s.child.ended && s.cause == 0 && !s.asked && !s.forced && !s.terms.stop && !s.lock.Removed() &&
		!abandoned(s.orders) && !s.host.since(s.start, 0)
}

// abandoned reports whether nobody gives orders any more.
func abandoned(orders *os.File) bool {
	if orders == nil {
		return true
	}
	fds := []unix.PollFd{{Fd: int32(orders.Fd()), Events: unix.POLLIN}}
	_, err := unix.Ppoll(fds, &unix.Timespec{}, nil)
	return err != nil || fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
}

// part lets a program that has answered end by itself, if its lease has time for that.
func (s *subjob) part(said word) {
	if said.Kind == answered && !s.forced {
		s.child.part(min(dismissal, s.terms.until(s.terms.kill(s.lease.Grace))))
	}
}

// leave ends the subjob, and not its program, if what it has left counts: otherwise the program has failed, whatever it says.
func (s *subjob) leave(said word) error {
	s.gone = s.terms.now()
	s.stay.memory = s.watch.meter.Measure(tree.Below(s.child.init.PID))
	s.child.talk.leave()
	// Making it durable may take long, and the slice is another's when the lease is over: then the program does not stay.
	late := time.AfterFunc(s.terms.until(s.terms.kill(s.lease.Grace)), s.child.strike)
	defer late.Stop()
	r := s.judge(said)
	if r.Outcome != job.Done && r.Outcome != job.Yielded {
		s.part(said)
		s.end()
		r.End = s.gone
		return s.write(&r)
	}
	s.watch.meter.Stores.Close()
	err := s.write(&r)
	if s.stays = late.Stop() && err == nil; !s.stays { // nobody learns that it waits
		s.end()
	}
	return err
}

// startup is how long the program took from its start until it was ready for work, 0 if it did not say, or was there already.
func (s *subjob) startup() time.Duration {
	t := s.child.talk
	if t == nil || s.stayed {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready.IsZero() {
		return 0
	}
	return t.ready.Sub(s.child.born)
}
