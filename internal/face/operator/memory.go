//go:build kubernetes

package operator

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// groupFiles are where a container reads how much memory it may take, by version of control groups.
var groupFiles = []string{"memory.max", "memory/memory.limit_in_bytes"} //nolint:gochecknoglobals // read-only by use

// boundMemory has the collector work harder when memory comes near the container's limit, where GOMEMLIMIT does not say it: what is live is about half of what it
// would let grow. root is /sys/fs/cgroup.
func boundMemory(root string, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	for _, name := range groupFiles {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		// A group without a limit says max, or a number beyond any machine.
		most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || most < 1 || most >= 1<<50 {
			return
		}
		debug.SetMemoryLimit(most / 10 * 9)
		log.Info("memory is collected harder near the container's limit", "limit", most)
		return
	}
}
