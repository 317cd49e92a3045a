// Package fake is a host in memory, for tests: it runs nothing, and does all that real hosts were seen to do (docs/slurm.md). Its clock
// is the caller's, and what happens there happens by a call.
package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// Step is the host's unit of a length.
const Step = time.Minute

// Grace is how long a pilot runs on after it was preempted.
const Grace = 30 * time.Second

// Host is one. Make it with New. Safe for concurrent use.
type Host struct {
	now func() time.Time

	mu    sync.Mutex
	next  int
	jobs  []*job
	gaps  []provider.Gap
	blind bool
	// silent: it does not answer. deaf: it does what it is told, and its answer is lost. refusal is what it says to who submits; nil: it
	// takes all.
	silent, deaf bool
	refusal      error
}

// job is one copy of a pilot.
type job struct {
	seen  provider.Seen
	mark  string
	pilot provider.Pilot
	// saved: a crash does not lose that it was asked for. killed: it was cancelled while it waited, which a crash forgets.
	saved, killed bool
}

// New makes a host that is blind and takes all. now is its clock.
func New(now func() time.Time) *Host { return &Host{now: now, next: 1, blind: true} }

// Provider of this host whose pilots have a mark.
func (h *Host) Provider(mark string) provider.Provider { return &side{h, mark} }

// Start begins to run the waiting copies of a pilot.
func (h *Host) Start(name string) {
	h.each(name, func(j *job) {
		if j.seen.State == provider.Waiting {
			now := h.now()
			j.seen.State, j.seen.Began, j.seen.End, j.saved = provider.Running, now, now.Add(j.pilot.Length), true
			j.seen.Why, j.seen.Limited = "", false
		}
	})
}

// Limit keeps the waiting copies of a pilot back by a limit of the host's, or not any more.
func (h *Host) Limit(name string, on bool) {
	h.each(name, func(j *job) {
		if j.seen.State == provider.Waiting {
			j.seen.Limited, j.seen.Why = on, "Priority"
			if on {
				j.seen.Why = "QOSGrpNodeLimit"
			}
		}
	})
}

// Doom makes the waiting copies of a pilot such as never start.
func (h *Host) Doom(name string) {
	h.each(name, func(j *job) {
		if j.seen.State == provider.Waiting {
			j.seen.Never, j.seen.Why = true, "QOSMaxWallDurationPerJobLimit"
		}
	})
}

// Requeue puts what runs of a pilot back among what waits, as a host does that has lost sight of having begun it.
func (h *Host) Requeue(name string) {
	h.each(name, func(j *job) {
		if j.seen.State == provider.Running {
			j.seen.State, j.seen.Began, j.seen.End, j.seen.Why = provider.Waiting, time.Time{}, time.Time{}, "Priority"
		}
	})
}

// End ends what runs of a pilot.
func (h *Host) End(name string, failed bool) {
	h.each(name, func(j *job) {
		if j.seen.State != provider.Ended {
			j.seen.State, j.seen.Failed, j.seen.End = provider.Ended, failed, h.now()
		}
	})
}

// EndOne ends one of several copies of a pilot.
func (h *Host) EndOne(name string) {
	one := true
	h.each(name, func(j *job) {
		if one && j.seen.State == provider.Running {
			one, j.seen.State, j.seen.End = false, provider.Ended, h.now()
		}
	})
}

// Preempt takes a running pilot back: it may run on for Grace.
func (h *Host) Preempt(name string) {
	h.each(name, func(j *job) {
		if j.seen.State == provider.Running {
			j.seen.Preempted, j.seen.End = true, h.now().Add(Grace)
		}
	})
}

// Crash loses the submissions that were not saved, gives their ids again, and brings back what was cancelled while it waited.
func (h *Host) Crash() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs = slices.DeleteFunc(h.jobs, func(j *job) bool { return !j.saved && j.seen.State == provider.Waiting })
	h.next = 1
	for _, j := range h.jobs {
		if j.killed {
			j.killed, j.seen.State, j.seen.End, j.seen.Why = false, provider.Waiting, time.Time{}, "Priority"
		}
		var id int
		if _, err := fmt.Sscan(j.seen.ID, &id); err == nil {
			h.next = max(h.next, id+1)
		}
	}
}

// Save makes what was asked for outlive a crash.
func (h *Host) Save() { h.each("", func(j *job) { j.saved = true }) }

// Double runs a second copy of a pilot, as a host does that has lost sight of the first one's machine.
func (h *Host) Double(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, j := range h.jobs {
		if j.pilot.Name == name {
			twin := *j
			twin.seen.ID, h.next = fmt.Sprint(h.next), h.next+1
			h.jobs = append(h.jobs, &twin)
			return
		}
	}
}

// Forget drops what it knows of ended pilots.
func (h *Host) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs = slices.DeleteFunc(h.jobs, func(j *job) bool { return j.seen.State == provider.Ended && !j.killed })
}

// Silence makes it answer nobody, or again.
func (h *Host) Silence(on bool) { h.set(func() { h.silent = on }) }

// Deafen makes it do what it is told and lose the answer, or not any more.
func (h *Host) Deafen(on bool) { h.set(func() { h.deaf = on }) }

// Refuse makes it answer submissions by an error; nil: it takes them again.
func (h *Host) Refuse(err error) { h.set(func() { h.refusal = err }) }

// Show makes it show these gaps from now on, and not be blind.
func (h *Host) Show(gaps ...provider.Gap) { h.set(func() { h.gaps, h.blind = gaps, false }) }

// Pilots are those of all marks that wait or run, in order of name.
func (h *Host) Pilots() (list []provider.Pilot) {
	h.each("", func(j *job) {
		if j.seen.State == provider.Waiting || j.seen.State == provider.Running {
			list = append(list, j.pilot)
		}
	})
	slices.SortStableFunc(list, func(a, b provider.Pilot) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Step ends what is over by its clock.
func (h *Host) Step() {
	h.each("", func(j *job) {
		if j.seen.State == provider.Running && !h.now().Before(j.seen.End) {
			j.seen.State, j.seen.Failed = provider.Ended, false
		}
	})
}

func (h *Host) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// each calls f for the copies of a pilot, or of all.
func (h *Host) each(name string, f func(*job)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, j := range h.jobs {
		if name == "" || j.pilot.Name == name {
			f(j)
		}
	}
}

// side is what one daemon sees of a host.
type side struct {
	host *Host
	mark string
}

// answer does what was asked, unless the host answers nobody.
func (s *side) answer(ctx context.Context, do func() error) error {
	h := s.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return errkind.Errorf(errkind.Unavailable, "fake: %w", err)
	}
	if h.silent {
		return errkind.Errorf(errkind.Unavailable, "fake: the host does not answer")
	}
	err := do()
	if err == nil && h.deaf {
		return errkind.Errorf(errkind.Unavailable, "fake: the host's answer was lost")
	}
	return err
}

// Look implements provider.Provider.
func (s *side) Look(ctx context.Context) (look provider.Look, err error) {
	err = s.answer(ctx, func() error {
		for _, j := range s.host.jobs {
			if j.mark == s.mark {
				look.Seen = append(look.Seen, j.seen)
			}
		}
		slices.SortStableFunc(look.Seen, func(a, b provider.Seen) int { return cmp.Compare(a.Name, b.Name) })
		look.Gaps, look.Blind = slices.Clone(s.host.gaps), s.host.blind
		return nil
	})
	if err != nil {
		look = provider.Look{}
	}
	return look, err
}

// Submit implements provider.Provider.
func (s *side) Submit(ctx context.Context, p provider.Pilot) error {
	if err := p.Check(Step); err != nil {
		return err
	}
	return s.answer(ctx, func() error {
		h := s.host
		if h.refusal != nil {
			return h.refusal
		}
		h.jobs = append(h.jobs, &job{mark: s.mark, pilot: p, seen: provider.Seen{
			Name: p.Name, ID: fmt.Sprint(h.next), State: provider.Waiting, Why: "Priority",
		}})
		h.next++
		return nil
	})
}

// Cancel implements provider.Provider.
func (s *side) Cancel(ctx context.Context, names []string) error {
	return s.answer(ctx, func() error {
		for _, j := range s.host.jobs {
			if j.mark == s.mark && slices.Contains(names, j.pilot.Name) && j.seen.State != provider.Ended {
				j.killed = j.seen.State == provider.Waiting
				j.seen.State, j.seen.End, j.seen.Why = provider.Ended, s.host.now(), "cancelled"
			}
		}
		return nil
	})
}

// Try implements provider.Provider.
func (s *side) Try(ctx context.Context, p provider.Pilot) (trial provider.Trial, err error) {
	if err = p.Check(Step); err != nil {
		return trial, err
	}
	trial.Command = "fake " + p.Name
	err = s.answer(ctx, func() error {
		if trial.Taken = s.host.refusal == nil; !trial.Taken {
			trial.Why = s.host.refusal.Error()
		}
		return nil
	})
	return trial, err
}

// Describe implements provider.Provider.
func (s *side) Describe() string { return strings.TrimSpace("fake: pilots marked " + s.mark) }

// Close implements provider.Provider.
func (s *side) Close() error { return nil }
