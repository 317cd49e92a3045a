package shim

import (
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SealDescriptors lets no program that this process starts from now on inherit a descriptor from first up, whoever opened it:
// Go marks its own, but not what this process was given by whoever started it, nor what a library opens.
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
