package cgroup

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/sense"
)

// Name of the kind.
const Name = "cgroup"

type kind struct {
	*sense.Host
	can survival.Capability
	// counts: the kernel reports a group's memory. swappiness: memory.reclaim takes the word.
	counts, swappiness bool
}

// Open opens the kind. base is the control group in which those of subjobs are made, empty to find it as their supervisors do. An error is
// of kind Unsupported where groups can't be made or frozen there.
func Open(base string) (survival.Survival, error) {
	if base == "" {
		base, _, _ = tree.GroupBase()
	} else {
		tree.Delegate(base)
	}
	if base == "" {
		return nil, errkind.Errorf(errkind.Unsupported, "survival: there is no control group of version 2 that groups can be made in")
	}
	k := &kind{can: survival.Capability{Kind: Name}}
	if err := k.probe(base); err != nil {
		return nil, errkind.Errorf(errkind.Unsupported, "survival: control groups in %s: %w", base, err)
	}
	var err error
	if k.Host, err = sense.OpenHost(base); err != nil {
		return nil, errkind.Errorf(errkind.Unsupported, "survival: %w", err)
	}
	return k, nil
}

// probe finds out what can be done to a group in base, with one of its own.
func (k *kind) probe(base string) error {
	g, err := tree.MakeProbe(base, tree.Bounds{})
	if err != nil {
		return err
	}
	defer func() { _ = g.Remove() }()
	h := &hold{s: survival.Subjob{Group: string(g)}}
	if err := h.open(); err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	if err := h.freeze.Write(one); err != nil {
		return err
	}
	if frozen, err := h.flag("frozen "); err != nil || !frozen {
		return errkind.Errorf(errkind.Unsupported, "a group can't be frozen (%v)", err)
	}
	if err := h.freeze.Write(zero); err != nil {
		return err
	}
	k.counts = h.current.Is() && h.stat.Is()
	k.can.Level, k.can.Why = survival.FreezeOnly, "groups are frozen, and keep their memory: "
	switch {
	case !k.counts:
		k.can.Why += "the kernel counts no memory of groups in " + base + " (no memory controller of version 2)"
	case !h.reclaim.Is() && !h.high.Is():
		k.can.Why += "the kernel has neither memory.reclaim nor memory.high"
	case !swaps():
		k.can.Why += "there is no swap to move it to"
	default:
		k.can.Level, k.can.Why = survival.Full, "groups are frozen, and their memory is moved to swap"
	}
	if h.reclaim.Is() {
		// Nothing is in the group, so the kernel answers that it could not take as much, or that it does not know the word.
		err := h.reclaim.Write([]byte("4096 swappiness=200"))
		k.swappiness = err == nil || err == unix.EAGAIN //nolint:errorlint // a plain number
	}
	return nil
}

// swaps says whether there is any swap.
func swaps() bool {
	data, err := os.ReadFile("/proc/meminfo")
	n, _ := sense.Field(data, "SwapTotal:")
	return err == nil && n > 0
}

func (k *kind) Capability() survival.Capability { return k.can }

func (k *kind) Sense(now time.Duration, m *survival.Memory) error {
	return k.Host.Sense(now, k.can.Level == survival.Full, m)
}

func (k *kind) Close() error {
	k.Host.Close()
	return nil
}

func (k *kind) Take(s survival.Subjob) (survival.Hold, error) {
	if s.Group == "" {
		return nil, errkind.Errorf(errkind.Unsupported, "taking subjob %v: it has no control group", s.Token)
	}
	h := &hold{s: s, swappiness: k.swappiness}
	if err := h.open(); err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

// open opens the group's files: those of freezing must be there, the others may.
func (h *hold) open() (err error) {
	file := func(name string, flags int) (f sense.File) {
		if err != nil {
			return f
		}
		f, err = sense.OpenFile(filepath.Join(h.s.Group, name), flags)
		return f
	}
	h.freeze = file("cgroup.freeze", unix.O_RDWR)
	h.events = file("cgroup.events", unix.O_RDONLY)
	h.procs = file("cgroup.procs", unix.O_RDONLY)
	if err != nil {
		return survival.Fail(&h.s, "taking", err)
	}
	may := func(name string, flags int) sense.File {
		f, _ := sense.OpenFile(filepath.Join(h.s.Group, name), flags)
		return f
	}
	h.current, h.stat, h.swap = may("memory.current", unix.O_RDONLY), may("memory.stat", unix.O_RDONLY),
		may("memory.swap.current", unix.O_RDONLY)
	h.reclaim, h.high = may("memory.reclaim", unix.O_WRONLY), may("memory.high", unix.O_RDWR)
	if !h.current.Is() || !h.stat.Is() {
		h.walker = sense.NewWalker(0)
	}
	return nil
}
