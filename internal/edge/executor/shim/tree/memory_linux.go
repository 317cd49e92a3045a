package tree

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Meter measures the memory of a tree: what is resident plus what is swapped out, in bytes. Adding up what every process
// has resident is cheap and never too little, but counts shared pages once for each process. The proportional share (PSS)
// counts a page that was shared by fork once, and makes the kernel walk page tables; so the meter takes it only where it
// matters: when several processes together would set a new peak, at most a twentieth of the time, or pass the limit.
type Meter struct {
	// Limit above which a figure must be exact; 0 for none.
	Limit int64
	// Stores of the tree. What lies there counts, and what is mapped of it counts once.
	Stores Stores
	peak   int64
	// next is when an exact figure may be taken again for a new peak.
	next time.Time
}

// Peak is the largest use measured so far.
func (m *Meter) Peak() int64 { return m.peak }

// Measure returns the use of the given processes now, parents before children. Those that are gone count nothing.
func (m *Meter) Measure(procs []Member) int64 {
	var sum int64
	for _, p := range procs {
		sum += resident(p.PID)
	}
	stored := m.Stores.Used()
	sum += stored
	over := m.Limit > 0 && sum > m.Limit
	if (len(procs) > 1 || stored > 0) && sum > m.peak {
		now := time.Now()
		if !over && now.Before(m.next) {
			return sum // a peak that lasts is measured next time
		}
		sum = min(sum, m.exact(procs, stored))
		if m.Limit > 0 && sum > m.Limit {
			// The processes are not looked at in the same instant: one that let go of its share in between makes the other's
			// larger. Too much is what two looks in a row say.
			sum = min(sum, m.exact(procs, stored))
		}
		m.next = now.Add(20 * time.Since(now))
	}
	m.peak = max(m.peak, sum)
	return sum
}

// exact is what the processes have and what is stored, less what they have mapped of that.
func (m *Meter) exact(procs []Member, stored int64) int64 {
	sum := exact(procs)
	if stored > 0 {
		sum += max(0, stored-m.Stores.mapped(procs))
	}
	return sum
}

// exact adds up the proportional shares. A process that runs in its parent's own memory counts nothing: that is what a
// child of vfork(2) or posix_spawn(3) does until it calls exec, and the kernel, which counts by address space and not
// by process, tells both that all of it is theirs.
func exact(procs []Member) (sum int64) {
	for _, p := range procs {
		if !sameMemory(p.PID, p.Parent) { // asked first: between the two it can only come to have its own
			sum += proportional(p.PID)
		}
	}
	return sum
}

// sameMemory says whether two processes have one address space. Where the kernel does not tell (no CONFIG_KCMP, no
// permission) they are taken to have two.
func sameMemory(a, b int) bool {
	const kcmpVM = 1 // KCMP_VM of linux/kcmp.h
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno == 0 && order == 0
}

// resident is VmRSS + VmSwap of /proc/PID/status, 0 if the process is gone. The shorter statm knows nothing of swap.
func resident(pid int) int64 {
	return fields(pid, "status", "VmRSS:", "VmSwap:")
}

// proportional is Pss + SwapPss of smaps_rollup; what is resident where that may not be read.
func proportional(pid int) int64 {
	if n := fields(pid, "smaps_rollup", "Pss:", "SwapPss:"); n > 0 {
		return n
	}
	return resident(pid)
}

// fields adds up the named lines of a file of /proc/PID, given there in kB.
func fields(pid int, file string, names ...string) (sum int64) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		for _, n := range names {
			if rest, ok := bytes.CutPrefix(line, []byte(n)); ok {
				kb, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
				if v, err := strconv.ParseInt(string(kb), 10, 64); err == nil {
					sum += v << 10
				}
			}
		}
	}
	return sum
}
