package sense

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
)

// trigger is what wakes an Await: tasks were stalled for 100 ms of two seconds. Without CAP_SYS_RESOURCE a window must be a multiple of two
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
		// A process that may not write there is never woken, and looks often enough by itself.
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

// Sense implements survival.Survival. reclaims: what is suspended can be moved out.
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
			m.Room /= 2 // memory moved there takes about half of its size
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

// stalls reads for how long tasks were stalled, which the kernel counts in microseconds.
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

// Close closes everything.
func (h *Host) Close() {
	for _, f := range []*File{&h.meminfo, &h.arc.file, &h.pressure, &h.trigger, &h.wake} {
		f.Close()
	}
	for i := range h.levels {
		h.levels[i].close()
	}
	h.levels = nil
}

const (
	// cgroups is where control groups are mounted: those of version 2 at or below it, those of version 1 that count memory in a folder of
	// it.
	cgroups = "/sys/fs/cgroup"
	// mostLevels is how many groups above each other are looked at; those further up than that are not.
	mostLevels = 16
	// ahead is how far ahead it counts which of several memories is the shortest: what a task takes more until then is there already.
	ahead = 2 * time.Second
	// held is which part of a memory is its group's memory.high, in parts per thousand: between the severe line and the emergency line, as
	// they are by default. At it the kernel takes back what it can and makes every task there wait, and ends none.
	held = 950
)

// level is one control group that all of this is in. What is not there is not open.
type level struct {
	limit, high, current, stat File
	swapLimit, swapUsed        File
	names                      []string // in stat, of memory that the kernel takes back when the limit is reached
	// growth of its use: each memory has its own, since the difference between two of them is no growth.
	growth survival.Rate
}

// What the kernel can take back without swap, and without anybody's harm but that it is read again: pages of files, whether they were used
// lately or not, and kernel objects that are caches. It is what MemAvailable counts of a machine. A working set as Kubernetes has it
// leaves the pages used lately in: who reads a file twice fills a group up to any line by that, and others would give way for it. Not in
// it are tmpfs, what is locked, and what is dirty only for as long as it is written. A group's own memory.min and memory.low don't hold
// against its own limit, and so take nothing off.
var (
	//nolint:gochecknoglobals // a table, written to by nobody
	reclaimable2 = []string{"inactive_file ", "active_file ",
		"slab_reclaimable "}
	// Version 1 does not say what of the kernel's objects are caches.
	reclaimable1 = []string{"total_inactive_file ", "total_active_file "} //nolint:gochecknoglobals // as above
)

// openLevels opens the groups whose limits count: of version 2 the one given and those above it, where memory is counted there, else of
// version 1 the one that this process is in and those above. A limit may be set later, so that those without one are opened too.
func (h *Host) openLevels(group, root string) {
	h.climb(group, root, func(dir string) (l level) {
		open := func(name string) (f File) {
			f, _ = OpenFile(filepath.Join(dir, name), unix.O_RDONLY)
			return f
		}
		return level{limit: open("memory.max"), high: open("memory.high"), current: open("memory.current"), stat: open("memory.stat"),
			swapLimit: open("memory.swap.max"), swapUsed: open("memory.swap.current"), names: reclaimable2}
	})
	if len(h.levels) > 0 {
		return
	}
	top := filepath.Join(root, "memory")
	h.climb(memoryGroup(top), top, func(dir string) (l level) {
		open := func(name string) (f File) {
			f, _ = OpenFile(filepath.Join(dir, name), unix.O_RDONLY)
			return f
		}
		return level{limit: open("memory.limit_in_bytes"), current: open("memory.usage_in_bytes"), stat: open("memory.stat"),
			names: reclaimable1}
	})
}

// climb opens a folder and those above it, up to root, as far as they have a limit.
func (h *Host) climb(dir, root string, open func(dir string) level) {
	for ; (dir == root || strings.HasPrefix(dir, root+"/")) && len(h.levels) < mostLevels; dir = filepath.Dir(dir) {
		l := open(dir)
		if !l.limit.Is() || !l.current.Is() {
			l.close()
			continue
		}
		h.levels = append(h.levels, l)
	}
}

// memoryGroup is the control group of version 1 that this process's memory is counted in, at or below top; empty: none.
func memoryGroup(top string) string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "memory" {
			continue
		}
		for _, dir := range []string{filepath.Join(top, parts[2]), top} { // in a container the second is ours
			if _, err := os.Stat(filepath.Join(dir, "memory.limit_in_bytes")); err == nil {
				return dir
			}
		}
	}
	return ""
}

// within takes a group's figures where that is the shortest of memory, and less room where it may not swap as much as there is.
func (h *Host) within(now time.Duration, m *survival.Memory) {
	whole := m.Capacity
	for i := range h.levels {
		l := &h.levels[i]
		if most, limited := h.number(&l.swapLimit); limited {
			used, _ := h.number(&l.swapUsed)
			m.Room = min(m.Room, max(0, quantity.Amount(most-used)))
		}
		most := h.most(l)
		if most >= whole {
			continue
		}
		m.Least = min(m.Least, most)
		current, counted := h.number(&l.current)
		if !counted {
			continue
		}
		if text, err := l.stat.Read(h.buf[:]); err == nil {
			current -= int64(reclaimable(text, l.names))
		}
		g := survival.Memory{Capacity: most, Used: max(0, quantity.Amount(current))}
		g.Growth = l.growth.Add(now, int64(g.Used))
		if soon(&g) >= soon(m) {
			m.Capacity, m.Used, m.Growth = g.Capacity, g.Used, g.Growth
		}
	}
}

// most is what a group may have of memory, by its limit and by where the kernel holds it back; the largest amount if there is neither.
func (h *Host) most(l *level) quantity.Amount {
	most := quantity.Amount(math.MaxInt64)
	if limit, limited := h.number(&l.limit); limited && limit > 0 {
		most = quantity.Amount(limit)
	}
	if high, limited := h.number(&l.high); limited && high > 0 && high < math.MaxInt64/1000 {
		most = min(most, quantity.Amount(high*1000/held))
	}
	return most
}

// soon is the share that is used before long, in parts per million.
func soon(m *survival.Memory) int64 {
	used := m.Used + max(0, m.Growth)*quantity.Amount(ahead/time.Second)
	return quantity.MulDiv(int64(used), 1_000_000, int64(m.Capacity))
}

// Reclaimable is what the kernel can take back of a group of version 2 by what its memory.stat says. It can be had without ending anybody.
func Reclaimable(stat []byte) quantity.Amount { return reclaimable(stat, reclaimable2) }

func reclaimable(stat []byte, names []string) (sum quantity.Amount) {
	for _, name := range names {
		v, _ := Field(stat, name)
		sum += quantity.Amount(v)
	}
	return sum
}

func (l *level) close() {
	for _, f := range []*File{&l.limit, &l.high, &l.current, &l.stat, &l.swapLimit, &l.swapUsed} {
		f.Close()
	}
}
