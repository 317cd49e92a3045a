package supervisor

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// The end of a lease comes before everything else and in constant time. To look at thousands of processes takes seconds, and a subjob may
// have made one look take as long as it likes: so a timer kills meanwhile, and what is asked of the kernel then does not depend on how much
// there is to kill.

// stay looks after the command until it has ended by itself or was killed; said is what the init knows of its end.
func (s *subjob) stay() (said word) {
	for {
		until := time.Now().Add(min(s.watch.every(), s.next()))
		for wait := time.Duration(1); wait > 0; {
			wait = time.Until(until)
			if w := s.child.hear(wait); w.Kind != 0 {
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

// killed is the end of what is killed.
var killed = word{Code: -1, Signal: int32(syscall.SIGKILL)} //nolint:gochecknoglobals // read-only by use

// round looks at all of the tree and keeps it to its terms. It says whether it is to be killed.
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

// isDue says whether something is due by the clock that is said to the processes.
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
		tree.Ask(members, syscall.SIGTERM)
	}
	s.thaw(members)
}
