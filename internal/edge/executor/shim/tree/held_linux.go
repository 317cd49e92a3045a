package tree

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Holding returns all other living processes that have the file of a path open, or one that was removed or replaced there; with past, only
// the latter. It reads every descriptor on the machine, so it is only for processes that cannot be found by anything else.
func Holding(path string, past bool) (found []Process) {
	all, err := pids()
	if err != nil {
		return nil
	}
	var now os.FileInfo
	if past {
		now, _ = os.Stat(path)
	}
	for _, pid := range all {
		if pid == os.Getpid() || !holds(pid, path, now) {
			continue
		}
		if p, ok := Look(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

// holds says whether a process has a file open that is or was at a path, leaving out the file but, if that is not nil.
func holds(pid int, path string, but os.FileInfo) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	list, err := os.ReadDir(dir)
	if err != nil {
		return false // it is gone, or somebody else's
	}
	for _, e := range list {
		link := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(link); err != nil || strings.TrimSuffix(to, " (deleted)") != path {
			continue
		}
		if info, err := os.Stat(link); err == nil && (but == nil || !os.SameFile(info, but)) {
			return true
		}
	}
	return false
}

// GroupOf is the control group of a process if a supervisor made it for a subjob of this name (see GroupIn), else none.
func GroupOf(pid int, name string) Group {
	mount, own := groupMount(), groupOf(strconv.Itoa(pid))
	if mount == "" || !strings.HasPrefix(filepath.Base(own), groupPrefix+name+"-") {
		return ""
	}
	return Group(filepath.Join(mount, own))
}
