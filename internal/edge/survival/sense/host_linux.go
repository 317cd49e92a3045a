package sense

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
)

// trigger is what wakes an Await: tasks stood still for 100 ms of two seconds. Without CAP_SYS_RESOURCE a window must be a multiple of two seconds.
// The kernel overwrites the last byte of what is written to /proc/pressure.
const trigger = "some 100000 2000000\x00"

// Host senses a machine's memory, and that of the control group with a limit that all of this is in, if there is one. Make it with OpenHost.
type Host struct {
	meminfo, pressure File
	// limit, current and stat of the group, limited: it has a limit.
	limit, current, stat File
	inactive             string // the name in stat of what can be had from files that are not used
	compressed           bool   // what is moved out stays in memory, compressed
	trigger, wake        File
	growth, some, full   survival.Rate
	buf                  [8 << 10]byte
	polls                [2]unix.PollFd
}

// OpenHost opens what there is of it. group is a control group of version 2 that all subjobs are in, empty for that of this process: its limit and those
// above it count, and its pressure if the kernel says it.
func OpenHost(group string) (*Host, error) {
	h := &Host{}
	if group == "" {
		group = tree.OwnGroup()
	}
	var err error
	if h.meminfo, err = OpenFile("/proc/meminfo", unix.O_RDONLY); err != nil {
		return nil, err
	}
	h.compressed = compressedSwap()
	h.openLimit(group)
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

// openLimit finds the group with the least limit: of version 2 at or above the one given, else of version 1 the one that this process is in.
func (h *Host) openLimit(group string) {
	least, where, limit, current := int64(1)<<62, "", "memory.max", "memory.current"
	for dir := group; strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
		if v := readNumber(filepath.Join(dir, limit)); v < least {
			least, where = v, dir
		}
	}
	h.inactive = "inactive_file "
	if where == "" {
		limit, current, h.inactive = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "
		where = memoryGroup()
		if where == "" || readNumber(filepath.Join(where, limit)) >= least {
			return
		}
	}
	h.limit, _ = OpenFile(filepath.Join(where, limit), unix.O_RDONLY)
	h.current, _ = OpenFile(filepath.Join(where, current), unix.O_RDONLY)
	h.stat, _ = OpenFile(filepath.Join(where, "memory.stat"), unix.O_RDONLY)
}

// readNumber is the number in a file; one that is larger than any memory if there is none.
func readNumber(path string) int64 {
	data, err := os.ReadFile(path)
	if v, ok := Number(data); err == nil && ok {
		return v
	}
	return 1 << 62
}

// memoryGroup is the control group of version 1 that this process's memory is counted in; empty: none.
func memoryGroup() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "memory" {
			continue
		}
		for _, dir := range []string{filepath.Join("/sys/fs/cgroup/memory", parts[2]), "/sys/fs/cgroup/memory"} { // in a container the second is ours
			if _, err := os.Stat(filepath.Join(dir, "memory.limit_in_bytes")); err == nil {
				return dir
			}
		}
	}
	return ""
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
	h.within(m)
	m.Growth = h.growth.Add(now, int64(m.Used))
	h.stalls(now, m)
	return nil
}

// within takes the group's figures where that is shorter of memory than the machine.
func (h *Host) within(m *survival.Memory) {
	if !h.limit.Is() {
		return
	}
	limit, okLimit := h.number(&h.limit)
	current, okCurrent := h.number(&h.current)
	if !okLimit || !okCurrent || limit <= 0 || quantity.Amount(limit) >= m.Capacity {
		return
	}
	used := quantity.Amount(current)
	if text, err := h.stat.Read(h.buf[:]); err == nil {
		if inactive, ok := Field(text, h.inactive); ok {
			used = max(0, used-quantity.Amount(inactive))
		}
	}
	capacity := quantity.Amount(limit)
	if quantity.MulDiv(int64(used), 1000, int64(capacity)) >= quantity.MulDiv(int64(m.Used), 1000, int64(m.Capacity)) {
		m.Capacity, m.Used = capacity, used
	}
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
	for _, f := range []*File{&h.meminfo, &h.pressure, &h.limit, &h.current, &h.stat, &h.trigger, &h.wake} {
		f.Close()
	}
}
