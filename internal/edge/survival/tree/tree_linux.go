package tree

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/sense"
)

// Name of the kind.
const Name = "tree"

const (
	// Buffers of a walk, and of the processes that were stopped before it was told to.
	room, remembered = 64, 32
	// rounds of a Suspend: a stopped process makes no child any more, so each round finds what the one before had just missed.
	rounds = 8
	// pause between two looks of Settle.
	pause = time.Millisecond
)

type kind struct {
	*sense.Host
	can survival.Capability
}

// Open opens the kind. group is a control group that all subjobs are in, empty for that of this process: its limit counts.
func Open(group string) (survival.Survival, error) {
	h, err := sense.OpenHost(group)
	if err != nil {
		return nil, errkind.Errorf(errkind.Unsupported, "survival: %w", err)
	}
	k := &kind{Host: h, can: survival.Capability{Level: survival.FreezeOnly, Kind: Name, Why: "processes are stopped by signal, and " +
		"keep their memory: moving it out needs control groups"}}
	if err := probe(); err != nil {
		k.can.Level, k.can.Why = survival.Observe, "this kernel can't signal a process that may be gone meanwhile (pidfd): "+err.Error()
	}
	return k, nil
}

func probe() error {
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.PidfdSendSignal(fd, 0, nil, 0)
}

func (k *kind) Capability() survival.Capability { return k.can }

func (k *kind) Sense(now time.Duration, m *survival.Memory) error { return k.Host.Sense(now, false, m) }

func (k *kind) Close() error {
	k.Host.Close()
	return nil
}

func (k *kind) Take(s survival.Subjob) (survival.Hold, error) {
	h := &hold{s: s, can: k.can.Level > survival.Observe, walker: sense.NewWalker(room), stood: make([]sense.Process, 0, remembered)}
	if s.Init <= 0 || !h.lives() {
		return nil, survival.Fail(&s, "taking", unix.ESRCH)
	}
	return h, nil
}

type hold struct {
	s      survival.Subjob
	can    bool
	walker *sense.Walker
	growth survival.Rate
	// stood are processes that somebody else had stopped when it was told to suspend: they are not continued. told: it was.
	stood []sense.Process
	told  bool
}

// lives says whether the init is the one that it was.
func (h *hold) lives() bool { return h.walker.Lives(h.s.Init, h.s.InitStarted) }

// below are its processes; none if it is gone.
func (h *hold) below() []sense.Process {
	if !h.lives() {
		return nil
	}
	return h.walker.Below(h.s.Init)
}

func (h *hold) Measure(now time.Duration, u *survival.Use) error {
	*u = survival.Use{}
	for _, p := range h.below() {
		resident, swapped := h.walker.Memory(p.PID)
		u.Resident += resident
		u.Parked += swapped
	}
	u.Growth = h.growth.Add(now, int64(u.Resident))
	return nil
}

func (h *hold) Suspend() error {
	if !h.can {
		return errkind.Errorf(errkind.Unsupported, "suspending subjob %v: nothing can be stopped here", h.s.Token)
	}
	if !h.told {
		h.told, h.stood = true, h.stood[:0]
		for _, p := range h.below() {
			if p.Stopped() && len(h.stood) < cap(h.stood) {
				h.stood = append(h.stood, p)
			}
		}
	}
	for range rounds {
		if more, err := h.stop(); err != nil || !more {
			return err
		}
	}
	return nil
}

// stop stops the processes that run, and reports whether there were any.
func (h *hold) stop() (more bool, err error) {
	all := h.below()
	if len(all) == 0 {
		return false, survival.Fail(&h.s, "suspending", unix.ESRCH)
	}
	var refused error
	for i := range all {
		if all[i].Stopped() {
			continue
		}
		there, err := h.walker.Signal(&all[i], syscall.SIGSTOP)
		if err != nil {
			refused = err
		}
		more = more || there && err == nil
	}
	if refused != nil { // the rest stands, and would for ever wait for what does not
		return false, survival.Fail(&h.s, "suspending", refused)
	}
	return more, nil
}

func (h *hold) Resume() error {
	if !h.can {
		return errkind.Errorf(errkind.Unsupported, "resuming subjob %v: nothing can be stopped here", h.s.Token)
	}
	all := h.below()
	var refused error
	for i := len(all) - 1; i >= 0; i-- { // children first: their parents find them as they were
		if h.stoppedBefore(&all[i]) {
			continue
		}
		if _, err := h.walker.Signal(&all[i], syscall.SIGCONT); err != nil {
			refused = err
		}
	}
	h.told = false
	return survival.Fail(&h.s, "resuming", refused)
}

func (h *hold) stoppedBefore(p *sense.Process) bool {
	if !h.told {
		return false
	}
	for i := range h.stood {
		if h.stood[i].PID == p.PID && h.stood[i].Started == p.Started {
			return true
		}
	}
	return false
}

func (h *hold) Still() (bool, error) {
	all, stands := h.below(), false
	for i := range all {
		if !h.walker.Stopped(&all[i]) {
			return false, nil
		}
		stands = stands || all[i].Stopped()
	}
	return stands, nil
}

func (h *hold) Settle(patience time.Duration) (bool, error) {
	until := time.Now().Add(patience)
	for before := -1; ; {
		still, err := h.Still()
		if err != nil {
			return false, err
		}
		// What was born while it looked shows at the second look.
		if n := h.walker.Found(); still && n == before {
			return true, nil
		} else if before = -1; still {
			before = n
			continue
		}
		if !time.Now().Before(until) {
			return false, nil
		}
		if _, err := h.stop(); err != nil {
			return false, err
		}
		time.Sleep(pause)
	}
}

func (h *hold) Reclaim(quantity.Amount) (quantity.Amount, error) { return 0, nil }

func (h *hold) Close() error { return nil }
