package sense

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

const (
	// cgroups is where control groups are mounted: those of version 2 at or below it, those of version 1 that count memory in a folder of
	// it.
	cgroups = "/sys/fs/cgroup"
	// mostLevels is how many groups above each other are looked at; those further up than that are not.
	mostLevels = 16
	// ahead is how far ahead it counts which of several memories is the shortest: what a task takes more until then is there already.
	ahead = 2 * time.Second
	// held is which part of a memory is its group's memory.high, in parts per thousand: between the severe line and the emergency line, as
	// they are by default. At it the kernel takes back what it can and has every task there wait, and ends none.
	held = 950
)

// level is one control group that all of this is in. What is not there is not open.
type level struct {
	limit, high, current, stat File
	swapLimit, swapUsed        File
	names                      []string // in stat, of what the kernel takes back when the limit is reached
	// growth of what is used of it: each memory has one of its own, since the difference between two of them is no growth.
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
