//go:build !linux

package pod

import (
	"fmt"
	"os"

	"sluice.dev/sluice/internal/core/errkind"
)

// Main is `sluice-shim pod`, which needs Linux.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "sluice-shim pod runs on Linux alone")
	return 1
}

// Prepare is `sluice-shim install`, which needs Linux.
func Prepare(_, _, _, _ string) error {
	return errkind.Errorf(errkind.Unsupported, "it runs on Linux alone")
}

// Equip is `sluice-shim lend`, which needs Linux.
func Equip(_, _ string) error {
	return errkind.Errorf(errkind.Unsupported, "it runs on Linux alone")
}
