//go:build linux && !amd64 && !arm64

package supervisor

import "golang.org/x/sys/unix"

// split: there is no supervisor for this kind of processor.
func split(_, _, _, _ uintptr) (r uintptr) { return ^uintptr(unix.ENOSYS - 1) }
