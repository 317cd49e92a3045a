package cgroup

import (
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/sense"
)

var zero, one = []byte("0"), []byte("1") //nolint:gochecknoglobals // read alone

// hold is one group. What is not there is not open.
type hold struct {
	s                     survival.Subjob
	swappiness            bool // memory.reclaim takes the word
	freeze, events, procs sense.File
	current, stat, swap   sense.File
	reclaim, high         sense.File
	growth                survival.Rate
	walker                *sense.Walker // nil: the kernel counts
	buf                   [4 << 10]byte
	text                  [48]byte
	polls                 [1]unix.PollFd
}

func (h *hold) number(f *sense.File) (quantity.Amount, error) {
	text, err := f.Read(h.buf[:])
	v, _ := sense.Number(text)
	return quantity.Amount(v), err
}

// flag of cgroup.events.
func (h *hold) flag(name string) (bool, error) {
	text, err := h.events.Read(h.buf[:])
	v, _ := sense.Field(text, name)
	return v == 1, err
}

// gone reports whether an error means that the group is not there any more.
func gone(err error) bool { return err == unix.ENODEV || err == unix.ENOENT } //nolint:errorlint // plain numbers

func (h *hold) Measure(now time.Duration, u *survival.Use) error {
	*u = survival.Use{}
	err := h.measure(u)
	if gone(err) {
		*u, err = survival.Use{}, nil
	}
	if err == nil {
		u.Growth = h.growth.Add(now, int64(u.Resident))
	}
	return survival.Fail(&h.s, "measuring", err)
}

func (h *hold) measure(u *survival.Use) (err error) {
	if h.walker != nil {
		return h.count(u)
	}
	if u.Resident, err = h.number(&h.current); err != nil {
		return err
	}
	text, err := h.stat.Read(h.buf[:])
	if err != nil {
		return err
	}
	u.Resident = max(0, u.Resident-sense.Reclaimable(text))
	if h.swap.Is() {
		u.Parked, err = h.number(&h.swap)
	}
	return err
}

// count adds up what the group's processes have.
func (h *hold) count(u *survival.Use) error {
	pid := 0
	for at := int64(0); ; {
		n, err := unix.Pread(h.procs.FD(), h.buf[:], at)
		if err != nil || n <= 0 {
			return err
		}
		at += int64(n)
		for _, c := range h.buf[:n] {
			if c >= '0' && c <= '9' {
				pid = pid*10 + int(c-'0')
				continue
			}
			if pid > 0 && pid != h.s.Init {
				resident, swapped := h.walker.Memory(pid)
				u.Resident += resident
				u.Parked += swapped
			}
			pid = 0
		}
	}
}

func (h *hold) Suspend() error { return survival.Fail(&h.s, "suspending", h.freeze.Write(one)) }

func (h *hold) Resume() error {
	err := h.freeze.Write(zero)
	if gone(err) {
		err = nil
	}
	return survival.Fail(&h.s, "resuming", err)
}

func (h *hold) Still() (bool, error) {
	text, err := h.events.Read(h.buf[:])
	if gone(err) {
		return false, nil
	}
	frozen, _ := sense.Field(text, "frozen ")
	populated, _ := sense.Field(text, "populated ")
	return frozen == 1 && populated == 1, survival.Fail(&h.s, "looking at", err)
}

func (h *hold) Settle(patience time.Duration) (bool, error) {
	until := time.Now().Add(patience)
	for {
		still, err := h.Still()
		left := time.Until(until)
		if still || err != nil || left <= 0 {
			return still, err
		}
		// The kernel says when what was read changes.
		h.polls[0] = unix.PollFd{Fd: int32(h.events.FD()), Events: unix.POLLPRI}
		wait := unix.NsecToTimespec(left.Nanoseconds())
		_, _ = unix.Ppoll(h.polls[:], &wait, nil)
		if h.polls[0].Revents&^(unix.POLLPRI|unix.POLLERR) != 0 {
			return false, survival.Fail(&h.s, "looking at", unix.ENODEV)
		}
	}
}

func (h *hold) Reclaim(most quantity.Amount) (quantity.Amount, error) {
	if most <= 0 || !h.current.Is() || !h.reclaim.Is() && !h.high.Is() {
		return 0, nil
	}
	var before, after survival.Use
	if err := h.measure(&before); err != nil {
		return 0, h.forgive("reclaiming from", err)
	}
	var err error
	if h.reclaim.Is() {
		err = h.reclaim.Write(h.order(most))
		if err == unix.EAGAIN || err == unix.EINTR { //nolint:errorlint // it was less than asked for
			err = nil
		}
	} else {
		err = h.squeeze(most)
	}
	if err != nil {
		return 0, h.forgive("reclaiming from", err)
	}
	if err := h.measure(&after); err != nil {
		return 0, h.forgive("reclaiming from", err)
	}
	return max(0, before.Resident-after.Resident), nil
}

// forgive: a group that is gone has nothing left to free.
func (h *hold) forgive(doing string, err error) error {
	if gone(err) {
		return nil
	}
	return survival.Fail(&h.s, doing, err)
}

// order is the input of memory.reclaim. Anonymous memory comes first where the kernel can be told so.
func (h *hold) order(most quantity.Amount) []byte {
	var digits [20]byte
	n := copy(h.text[:], sense.Digits(&digits, int64(most)))
	if h.swappiness {
		n += copy(h.text[n:], " swappiness=200")
	}
	return h.text[:n]
}

// squeeze makes the kernel take memory by a limit below the present use, on kernels before memory.reclaim.
func (h *hold) squeeze(most quantity.Amount) error {
	has, err := h.number(&h.current)
	if err != nil {
		return err
	}
	var digits [20]byte
	err = h.high.Write(sense.Digits(&digits, int64(max(0, has-most))))
	if after := h.high.Write([]byte("max")); err == nil {
		err = after
	}
	return err
}

func (h *hold) Close() error {
	for _, f := range []*sense.File{&h.freeze, &h.events, &h.procs, &h.current, &h.stat, &h.swap, &h.reclaim, &h.high} {
		f.Close()
	}
	return nil
}
