package shim

import (
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
)

// Anchor ties the node's clock to the kernel's: both were read at the same moment. The supervisor computes with it and
// never reads the wall clock, so setting that clock neither extends a lease nor cuts one. Boot is CLOCK_BOOTTIME in
// nanoseconds, which goes on while the machine is suspended: time slept through counts as lease time.
type Anchor struct {
	Wall quantity.Instant
	Boot time.Duration
	// Ahead is by how much the node's clock was ahead of the machine's wall clock, which programs read: that of a machine which has joined
	// a cluster is its head's.
	Ahead time.Duration `json:",omitempty"`
}

// leastAhead is the smallest difference that counts: two readings of one clock differ by what lies between them.
const leastAhead = 10 * time.Millisecond

// AnchorAt ties wall to the kernel's clock now.
func AnchorAt(wall quantity.Instant) Anchor {
	a := Anchor{Wall: wall, Boot: Boottime()}
	if ahead := wall.Sub(quantity.At(time.Now())); ahead.Abs() >= leastAhead {
		a.Ahead = ahead
	}
	return a
}

// Shown is an instant of the node's clock by the machine's wall clock, for programs.
func (a Anchor) Shown(t quantity.Instant) quantity.Instant {
	if t == quantity.Never {
		return t
	}
	return t.Add(-a.Ahead)
}

// Until is how long it is from now until t, negative if t has passed.
func (a Anchor) Until(t quantity.Instant) time.Duration {
	if t == quantity.Never {
		return t.Sub(0)
	}
	return t.Sub(a.Now())
}

// Now is the node's clock as reckoned from the anchor.
func (a Anchor) Now() quantity.Instant { return a.Wall.Add(Boottime() - a.Boot) }

// Boottime is CLOCK_BOOTTIME: the time since the machine started, suspension included.
func Boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// It exists since Linux 2.6.39; a kernel without it can't hold a deadline.
		panic("no CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

// BootID names the time from one start of the machine to the next; empty if the kernel does not say.
func BootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// SealDescriptors lets no program that this process starts from now on inherit a descriptor from first up, whoever opened it: Go marks its
// own, but not those from this process's parent, nor those that a library opens.
func SealDescriptors(first int) {
	if unix.CloseRange(uint(first), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	names, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return
	}
	for _, e := range names {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}
