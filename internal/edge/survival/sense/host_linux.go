package sense

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
)

// trigger is what wakes an Await: tasks stood still for 100 ms of two seconds. Without CAP_SYS_RESOURCE a window must be a multiple of two
// seconds. The kernel overwrites the last byte of what is written to /proc/pressure.
const trigger = "some 100000 2000000\x00"

// Host senses a machine's memory, and that of the control groups with a limit that all of this is in. Make it with OpenHost.
type Host struct {
	meminfo, pressure  File
	levels             []level
	machines           bool // meminfo is the machine's, and not made up for a container
	arc                arc
	compressed         bool // what is moved out stays in memory, compressed
	trigger, wake      File
	growth, some, full survival.Rate
	buf                [8 << 10]byte
	polls              [2]unix.PollFd
}

// OpenHost opens what there is of it. group is a control group of version 2 that all subjobs are in, empty for that of this process: its
// limit and those above it count, and its pressure if the kernel says it.
func OpenHost(group string) (*Host, error) {
	h := &Host{}
	if group == "" {
		group = tree.OwnGroup()
	}
	var err error
	if h.meminfo, err = OpenFile("/proc/meminfo", unix.O_RDONLY); err != nil {
		return nil, err
	}
	h.machines = h.meminfo.kernels()
	h.arc.path.add(arcstats)
	h.compressed = compressedSwap()
	h.openLevels(group, cgroups)
	paths := []string{"/proc/pressure/memory"}
	if group != "" {
		paths = []string{filepath.Join(group, "memory.pressure"), paths[0]}
	}
	for _, path := range paths {
		if h.pressure, err = OpenFile(path, unix.O_RDONLY); err != nil {
			continue
		}
		// Who may not write there is woken by nobody, and looks often enough by itself.
		if h.trigger, err = OpenFile(path, unix.O_RDWR|unix.O_NONBLOCK); err == nil && h.trigger.Write([]byte(trigger)) != nil {
			h.trigger.Close()
		}
		break
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		h.Close()
		return nil, os.NewSyscallError("eventfd", err)
	}
	h.wake = File{fd: fd, open: true}
	return h, nil
}

// compressedSwap says whether swap is in memory.
func compressedSwap() bool {
	data, err := os.ReadFile("/proc/swaps")
	return err == nil && bytes.Contains(data, []byte("/zram"))
}

// Sense implements survival.Survival. reclaims: what stands still can be moved out.
func (h *Host) Sense(now time.Duration, reclaims bool, m *survival.Memory) error {
	text, err := h.meminfo.Read(h.buf[:])
	if err != nil {
		return err
	}
	all, known := Field(text, "MemTotal:")
	available, said := Field(text, "MemAvailable:")
	if !known || !said {
		return errors.New("/proc/meminfo says nothing of what is available")
	}
	swap, _ := Field(text, "SwapFree:")
	*m = survival.Memory{Capacity: quantity.Amount(all) << 10, Used: quantity.Amount(all-available) << 10}
	if reclaims {
		if m.Room = quantity.Amount(swap) << 10; h.compressed {
			m.Room /= 2 // what is moved there takes about half of what it took
		}
	}
	if h.machines {
		aside(m, hugetlb(text), h.arc.shrinks(now, h.buf[:]))
	}
	m.Growth = h.growth.Add(now, int64(m.Used))
	m.Least = m.Capacity
	h.within(now, m)
	h.stalls(now, m)
	return nil
}

func (h *Host) number(f *File) (int64, bool) {
	text, err := f.Read(h.buf[:])
	if err != nil {
		return 0, false
	}
	return Number(text)
}

// stalls reads for how long tasks stood still, which the kernel counts in microseconds.
func (h *Host) stalls(now time.Duration, m *survival.Memory) {
	if !h.pressure.Is() {
		return
	}
	text, err := h.pressure.Read(h.buf[:])
	if err != nil {
		return
	}
	m.Some = stalled(&h.some, now, text, "some ")
	m.Full = stalled(&h.full, now, text, "full ")
}

// stalled reads a line such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=123".
func stalled(r *survival.Rate, now time.Duration, text []byte, line string) int64 {
	for len(text) > 0 {
		one := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			one, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		at := bytes.LastIndexByte(one, '=')
		if at < 0 || len(one) < len(line) || string(one[:len(line)]) != line {
			continue
		}
		micros, _ := Number(one[at+1:])
		return min(1000, max(0, int64(r.Add(now, micros)))/1000)
	}
	return 0
}

// Await implements survival.Survival.
func (h *Host) Await(patience time.Duration) {
	h.polls = [2]unix.PollFd{{Fd: int32(h.wake.fd), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLPRI}}
	if h.trigger.Is() {
		h.polls[1].Fd = int32(h.trigger.fd)
	}
	wait := unix.NsecToTimespec(max(0, patience).Nanoseconds())
	n, err := unix.Ppoll(h.polls[:], &wait, nil)
	if err != nil || n <= 0 { // interrupted by a signal of Go's own: it looks a little earlier
		return
	}
	if h.polls[0].Revents != 0 {
		var eight [8]byte
		_, _ = unix.Read(h.wake.fd, eight[:])
	}
	if h.polls[1].Revents&^unix.POLLPRI != 0 { // the trigger is broken, and would wake at once for ever
		h.trigger.Close()
	}
}

// Wake implements survival.Survival.
func (h *Host) Wake() { _ = h.wake.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// Close lets go of everything.
func (h *Host) Close() {
	for _, f := range []*File{&h.meminfo, &h.arc.file, &h.pressure, &h.trigger, &h.wake} {
		f.Close()
	}
	for i := range h.levels {
		h.levels[i].close()
	}
	h.levels = nil
}
