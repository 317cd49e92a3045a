//go:build !linux

package supervisor

import (
	"fmt"
	"os"
	"runtime"
)

// Main says that subjobs can't be supervised here: it needs Linux.
func Main([]string) int {
	fmt.Fprintf(os.Stderr, "sluice-shim needs Linux, this is %s: run nodes on Linux, other machines can submit to them\n", runtime.GOOS)
	return 1
}
