package tree

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
	// Patience bounds one look, of which a Measure takes three at most; 0: nothing does. A tree of thousands that is not measured by then
	// is not known to have more than the limit.
	Patience time.Duration
	until    time.Time
	peak     int64
	// next is when an exact figure may be taken again for a new peak.
	next time.Time
}

// Peak is the largest use measured so far.
func (m *Meter) Peak() int64 { return m.peak }

// Measure returns the use of the given processes now, parents before children. Those that are gone count nothing.
func (m *Meter) Measure(procs []Member) int64 {
	begun := time.Now()
	m.hurry()
	var sum int64
	for i := range procs {
		if m.late() {
			return m.unknown(sum)
		}
		sum += resident(procs[i].PID)
	}
	stored := m.Stores.Used()
	sum += stored
	over := m.Limit > 0 && sum > m.Limit
	if (len(procs) > 1 || stored > 0) && sum > m.peak {
		if !over && begun.Before(m.next) {
			return sum // a peak that lasts is measured next time
		}
		now, known := m.exact(procs, stored)
		if over && known && now > m.Limit {
			// The processes are not read in the same instant: one that frees its share in between makes the other's larger. It is too much
			// only if two looks in a row agree.
			var again int64
			again, known = m.exact(procs, stored)
			now = min(now, again)
		}
		if m.next = time.Now().Add(20 * time.Since(begun)); !known {
			return m.unknown(sum)
		}
		sum = min(sum, now)
	}
	m.peak = max(m.peak, sum)
	return sum
}

// hurry begins a look that may take as long as the meter's patience.
func (m *Meter) hurry() {
	if m.until = (time.Time{}); m.Patience > 0 {
		m.until = time.Now().Add(m.Patience)
	}
}

// late says whether a look has taken as long as it may.
func (m *Meter) late() bool { return !m.until.IsZero() && time.Now().After(m.until) }

// unknown is the answer for a tree that was not measured in time.
func (m *Meter) unknown(sum int64) int64 {
	if m.Limit > 0 {
		return min(sum, m.Limit)
	}
	return sum
}

// exact is what the processes have and what is stored, less what they have mapped of that; false: it would have taken too long, and what
// was seen of it is not more than the limit.
//
// A process that runs in its parent's own memory counts nothing: that is what a child of vfork(2) or posix_spawn(3) does until it calls
// exec, and the kernel, which counts by address space and not by process, tells both that all of it is theirs.
func (m *Meter) exact(procs []Member, stored int64) (sum int64, known bool) {
	m.hurry()
	for _, p := range procs {
		if m.late() {
			return sum, m.Limit > 0 && sum > m.Limit
		}
		if !sameMemory(p.PID, p.Parent) { // asked first: between the two it can only come to have its own
			sum += proportional(p.PID)
		}
	}
	if stored == 0 {
		return sum, true
	}
	mapped, known := m.mapped(procs)
	return sum + max(0, stored-mapped), known
}

// mapped is the proportional share of what processes have mapped of the stores, which is in their own figures as well; false: it would have
// taken too long.
func (m *Meter) mapped(procs []Member) (sum int64, known bool) {
	for _, p := range procs {
		if m.late() {
			return 0, false
		}
		data, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/smaps")
		if err != nil || sameMemory(p.PID, p.Parent) {
			continue
		}
		sum += m.Stores.mappedIn(data)
	}
	return sum, true
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

// OwnPlaces are where a subjob with a mount namespace has a file system in memory of its own.
func OwnPlaces() []string { return []string{"/tmp", "/dev/shm"} }

// inodeSize is about what the kernel keeps for a file in memory beside its content, in bytes.
const inodeSize = 1 << 10

// Stores are file systems in memory that belong to a tree: what lies there is its memory, whichever process put it there. The
// zero value is none.
type Stores struct {
	files []*os.File
	// devices are their numbers as /proc/PID/smaps writes them.
	devices map[string]bool
}

// OpenStores opens the own places of the tree below an init. One that is not in memory is left out.
func OpenStores(init int) (s Stores) {
	s.devices = map[string]bool{}
	for _, place := range OwnPlaces() {
		f, err := os.Open(filepath.Join("/proc", strconv.Itoa(init), "root",
			place)) //nolint:gosec // the path is of two numbers and a constant
		if err != nil {
			continue
		}
		var st unix.Statfs_t
		var info unix.Stat_t
		if unix.Fstatfs(int(f.Fd()), &st) != nil || st.Type != unix.TMPFS_MAGIC || unix.Fstat(int(f.Fd()), &info) != nil {
			_ = f.Close()
			continue
		}
		s.files = append(s.files, f)
		s.devices[fmt.Sprintf("%02x:%02x", unix.Major(info.Dev), unix.Minor(info.Dev))] = true
	}
	return s
}

// Used is what lies in them, in bytes.
func (s *Stores) Used() (used int64) {
	for _, f := range s.files {
		var st unix.Statfs_t
		if unix.Fstatfs(int(f.Fd()), &st) == nil {
			used += int64(st.Blocks-st.Bfree)*st.Bsize + max(0, int64(st.Files-st.Ffree)-1)*inodeSize // its root is not the subjob's
		}
	}
	return used
}

// Close closes them: the kernel keeps what is held.
func (s *Stores) Close() {
	for _, f := range s.files {
		_ = f.Close()
	}
	s.files = nil
}

// mappedIn adds up the shares of the mappings that are of these devices. A mapping begins with a line such as
// "7f00-7f10 rw-s 00000000 00:2f 12  /dev/shm/x".
func (s *Stores) mappedIn(smaps []byte) (sum int64) {
	of := false
	for line := range bytes.Lines(smaps) {
		f := bytes.Fields(line)
		switch {
		case len(f) >= 5 && bytes.IndexByte(f[0], '-') > 0 && !bytes.HasSuffix(f[0], []byte(":")):
			of = s.devices[string(f[3])]
		case of && len(f) >= 2 && (string(f[0]) == "Pss:" || string(f[0]) == "SwapPss:"):
			kb, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err == nil {
				sum += kb << 10
			}
		}
	}
	return sum
}
