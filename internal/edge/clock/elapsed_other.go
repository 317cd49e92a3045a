//go:build !linux

package clock

import "time"

// elapsed is the time since the process began: subjobs run on Linux alone.
func elapsed() time.Duration { return time.Since(began) }

// began is when the process did.
var began = time.Now() //nolint:gochecknoglobals // a count of time needs a beginning
