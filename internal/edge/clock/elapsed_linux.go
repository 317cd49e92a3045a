package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// elapsed is the time since the machine was started, suspension included.
func elapsed() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return time.Since(began) // a kernel without it holds no leases either (shim.Boottime)
	}
	return time.Duration(ts.Nano())
}

// began is when the process did.
var began = time.Now() //nolint:gochecknoglobals // a count of time needs a beginning
