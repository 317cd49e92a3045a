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

// groupFiles hold a container's memory limit, for cgroup v2 and v1.
var groupFiles = []string{"memory.max", "memory/memory.limit_in_bytes"} //nolint:gochecknoglobals // read-only by use

// boundMemory sets the collector's soft limit from the container's memory limit unless GOMEMLIMIT is set: by default the heap may grow to
// twice what is live. root is /sys/fs/cgroup.
func boundMemory(root string, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	for _, name := range groupFiles {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue
		}
		// Without a limit the file says max, or a number beyond any machine.
		most, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || most < 1 || most >= 1<<50 {
			return
		}
		debug.SetMemoryLimit(most / 10 * 9)
		log.Info("memory is collected harder near the container's limit", "limit", most)
		return
	}
}
