package submit

import (
	"fmt"
	"os"
	"path/filepath"
)

// redirected are the files that a process writes its own output to, where the system says so: they change while a command waits, and
// belong to no work directory.
func redirected(own ...*os.File) (paths []string) {
	for _, f := range own {
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err == nil && filepath.IsAbs(path) {
			paths = append(paths, path)
		}
	}
	return paths
}
