package supervisor

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	watcher "sluice.dev/sluice/internal/edge/survival/watch"
)

// subjob is the subjob that this process supervises now.
type subjob struct {
	dir   shim.Dir
	lock  *shim.Lock
	lease shim.Lease
	note  shim.Note
	log   *slog.Logger
	// say is where the daemon listens, if it is there.
	say io.Writer

	terms terms
	child *child
	// stay is its program where that has other subjobs too: stayed before this one, stays after it. orders is where the next comes from.
	stay          *staying
	stayed, stays bool
	orders        *os.File
	watch         watch
	// walk is when to look at all of its processes.
	walk duty
	// cause is what it is being ended for; asked: SIGTERM was sent; forced: SIGKILL.
	cause         job.Outcome
	asked, forced bool
	warned        quantity.Instant // the end it was warned of
	// host is what this process is told from outside, start when the subjob began for it.
	host  *told
	start time.Duration
	board board
	guard guard
	// pause is how long it waits between two tries to write its result.
	pause  time.Duration
	detail string
	// gone is when nothing of it lived any more.
	gone quantity.Instant
}

// errRemoved: nobody can learn of the subjob any more, or stop it, and what it writes is lost.
var errRemoved = errors.New("somebody has removed the run directory")

// A subjob stays suspended only while its suspender lives: the machine's watcher, or a daemon that has noted until when. Otherwise its
// supervisor resumes it.

const (
	// unattended is how long a subjob may be suspended with nobody who answers for it: its suspender may be about to note it.
	unattended = 3 * time.Second
	// lookout is how often to check for that while no watcher lives.
	lookout = 500 * time.Millisecond
)

// guard knows who answers for a suspended subjob.
type guard struct {
	watcher watcher.Witness
	// lived: a watcher did when it was last looked.
	lived bool
	// since is when it was first seen suspended with nobody to answer for it; next is when to look again.
	since, next time.Time
}

// unattended resumes a subjob that nobody answers for any more. What a watcher had done ends with it.
func (s *subjob) unattended(members []tree.Member) {
	g := &s.guard
	if g.watcher.Path == "" || s.asked { // one that is to end is resumed anyway
		return
	}
	if g.watcher.Lives() {
		g.lived, g.since = true, time.Time{}
		return
	}
	if g.lived {
		g.lived = false
		s.goOn(members)
		return
	}
	now := time.Now()
	if now.Before(g.next) {
		return
	}
	g.next = now.Add(lookout)
	switch noted := s.terms.still != 0 && !s.terms.watched; {
	case noted || !tree.Suspended(s.child.group, members):
		g.since = time.Time{}
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) >= unattended:
		g.since = time.Time{}
		s.log.Warn("the subjob was suspended and nobody answered for it: it goes on")
		s.goOn(members)
	}
}

// goOn resumes it, and notes that.
func (s *subjob) goOn(members []tree.Member) {
	s.terms.still = 0
	if err := tree.Thaw(s.child.group, members); err != nil {
		s.log.Error("having the subjob go on", "err", err)
	}
}

// reclaimed finds out whether it was the machine's watcher that ended it: that is no failure of its own. The watcher says so before it
// does it.
func (s *subjob) reclaimed(said word) {
	if said.Kind != silent {
		return
	}
	if stand, ok := s.guard.watcher.Stand(s.lease.Token); ok && stand.State == airlock.Reclaiming {
		s.cause, s.forced, s.detail = job.Stopped, true, "the machine was short of memory: its watcher ended it, since "+
			stand.Cause.String()
	}
}

// relent resumes a subjob that is suspended for longer than was noted: its suspender is gone.
func (s *subjob) relent(now quantity.Instant, members []tree.Member) {
	if t := &s.terms; t.still != 0 && now >= t.still {
		s.goOn(members)
	}
}

// thaw resumes the command once it was asked to end, whoever suspended it, and however late: a suspended command can't end in order. The
// signal is sent first, so that it is the first thing that the command finds.
func (s *subjob) thaw(members []tree.Member) {
	if !s.asked || s.forced {
		return
	}
	if err := tree.Thaw(s.child.group, members); err != nil {
		s.log.Error("having the subjob go on, to end", "err", err)
	}
}

// board is the program's notice of what was done to it. A file that can't be written costs the subjob nothing: signals and its end come as
// ever, and the file is tried again.
type board struct {
	// now is the present notice, of the kind "" none; its Sequence counts the notices so far.
	now executor.Notice
	// pending: the file does not say it yet, and is tried again at this time.
	pending bool
	again   time.Time
	said    bool
}

// noticeRetry is how long a file that could not be written is left alone.
const noticeRetry = 500 * time.Millisecond

// tell writes one notice, or none, to the file.
func (b *board) tell(kind string, until quantity.Instant, why string, dir shim.Dir, a shim.Anchor, log *slog.Logger) {
	if n := (executor.Notice{Sequence: b.now.Sequence, Kind: kind, Until: until, Why: why}); n != b.now {
		if kind != "" {
			n.Sequence++
		}
		b.now, b.pending, b.again = n, true, time.Time{}
	}
	if !b.pending || time.Now().Before(b.again) {
		return
	}
	var err error
	if b.now.Kind == "" {
		err = dir.RemoveNotice()
	} else {
		err = dir.WriteNotice(b.now, a)
	}
	b.pending, b.again = err != nil, time.Now().Add(noticeRetry)
	if err != nil && !b.said {
		log.Warn("the program can't be told what was done to it: it has signals alone", "err", err)
	}
	b.said = err != nil
}

// notify tells the program what holds of all that was done to it. What more may be done to a running subjob is a case here, with its kind.
func (s *subjob) notify() {
	kind, until, why, t := "", quantity.Instant(0), "", &s.terms
	switch {
	case s.asked:
		kind, until, why = executor.NoticeYield, t.kill(s.lease.Grace), "its lease ends"
	case t.still != 0:
		kind, until, why = executor.NoticeSuspended, t.end, t.short
	case t.cut:
		kind, until = executor.NoticeTruncated, t.end
	case t.stood:
		kind, until, why = executor.NoticeResumed, t.end, "there is room for it again"
	}
	if kind == executor.NoticeTruncated || kind == executor.NoticeYield && (t.stop || t.cut) {
		why = cmp.Or(t.why, "its node ends it")
	}
	s.board.tell(kind, until, why, s.dir, t.anchor, s.log)
}

// The end of a lease comes before everything else and in constant time. To look at thousands of processes takes seconds, and a subjob may
// have made one look take as long as it likes: so a timer kills meanwhile, and what is asked of the kernel then does not depend on how much
// there is to kill.

// accompany looks after the command until it has ended by itself or was killed; said is what the init knows of its end.
func (s *subjob) accompany() (said word) {
	for {
		until := time.Now().Add(min(s.watch.every(), s.next()))
		for wait := time.Duration(1); wait > 0; {
			wait = time.Until(until)
			w := s.child.hear(wait)
			if s.child.talk != nil {
				w = s.answered(w)
			}
			if w.Kind != 0 {
				if s.child.wasStruck() {
					s.over()
				}
				s.ended(w)
				s.reclaimed(w)
				return w
			}
		}
		if s.lock.Removed() {
			s.cause, s.forced, s.detail = job.Stopped, true, errRemoved.Error()
			if _, err := os.Lstat(string(s.dir)); err == nil { // the executor removes the whole directory: this was the program
				s.cause, s.detail = job.LimitKilled, shim.DamagedBy(filepath.Base(s.dir.Note())+" is gone")
			}
			return killed
		}
		s.terms.read(s.dir, s.log)
		if s.over() || !s.walk.due() && !s.isDue() {
			if s.forced {
				return killed
			}
			continue
		}
		if s.guarded(s.round) {
			return killed
		}
	}
}

// killed is the end of a killed process.
var killed = word{Code: -1, Signal: int32(syscall.SIGKILL)} //nolint:gochecknoglobals // read-only by use

// round looks at all of the tree and keeps it to its terms. It returns whether the tree is to be killed.
func (s *subjob) round() bool {
	members := tree.Below(s.child.init.PID)
	s.walk.done(tick / 5)
	s.walk.next = s.walk.next.Add(min(0, mostApart-time.Until(s.walk.next))) // sooner, for its limits' sake
	if cause, text := s.watch.look(members, s.terms.now()); cause != 0 {
		s.cause, s.forced, s.detail = cause, true, text
		return true
	}
	s.hold(members)
	return s.over()
}

// mostApart is how far apart two rounds are at most, however long they take.
const mostApart = time.Second

// guarded does what may take long, with the end of the lease kept: should that come meanwhile, a timer kills.
func (s *subjob) guarded(do func() bool) bool {
	timer := time.AfterFunc(s.terms.until(s.terms.kill(s.lease.Grace)), s.child.strike)
	defer timer.Stop()
	return do()
}

// over says whether the subjob's time is over, and why.
func (s *subjob) over() bool {
	if s.terms.now() < s.terms.kill(s.lease.Grace) && !s.child.wasStruck() {
		return false
	}
	s.blame()
	s.asked, s.forced = true, true
	return true
}

// blame says what the subjob is ended for by the clock.
func (s *subjob) blame() {
	switch {
	case s.terms.stop || s.terms.cut:
		if s.cause == 0 || s.cause == job.DeadlineKilled {
			s.cause = job.Stopped
		}
	case s.cause == 0:
		s.cause = job.DeadlineKilled
	}
}

// isDue reports whether something is due by the clock of which the processes are told.
func (s *subjob) isDue() bool { return s.next() <= 0 }

// ended looks at what a command leaves behind that has failed by itself.
func (s *subjob) ended(said word) {
	if s.cause != 0 || said.Code == 0 && said.Signal == 0 || s.watch.tasks <= 0 {
		return
	}
	if text := s.watch.refused(tree.Below(s.child.init.PID)); text != "" {
		s.cause, s.detail = job.LimitKilled, text
	}
}

// next is how long it is to the next moment that something is due by the clock.
func (s *subjob) next() time.Duration {
	kill, term := s.terms.kill(s.lease.Grace), s.terms.term(s.lease.Grace)
	d := s.terms.until(kill)
	if !s.asked {
		d = min(d, s.terms.until(term))
	}
	if s.lease.WarnSignal != 0 && s.warned != s.terms.end {
		d = min(d, s.terms.until(s.terms.end.Add(-s.lease.WarnBefore)))
	}
	return d
}

// addressed are those of the subjob who are asked to end: all, or an adapter alone, which then decides what its command hears.
func (s *subjob) addressed(members []tree.Member) []tree.Member {
	if !s.lease.Adapter.Given() {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m tree.Member) bool { return m.Parent != s.child.init.PID })
}

// hold keeps the command to its terms: warn, ask. What is to be killed is over.
func (s *subjob) hold(members []tree.Member) {
	now, t := s.terms.now(), &s.terms
	if s.lease.WarnSignal != 0 && s.warned != t.end && now >= t.end.Add(-s.lease.WarnBefore) {
		s.warned = t.end
		tree.Warn(members, syscall.Signal(s.lease.WarnSignal))
	}
	ask := !s.asked && now >= t.term(s.lease.Grace)
	if ask || s.asked {
		s.asked = true
		s.blame()
	}
	s.relent(now, members)
	s.unattended(members)
	s.notify() // before the signal, which may make it look
	if ask {
		tree.Ask(s.addressed(members), syscall.SIGTERM)
	}
	s.thaw(members)
}
