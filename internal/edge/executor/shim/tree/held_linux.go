package tree

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Holding returns all living processes but this one that have a file open which is, or was, at a path; with past only one that is not
// there any more. It looks at every descriptor on the machine: it is for what nothing else names any more.
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

// holds says whether a process has a file open that is, or was, at a path, and not the one that is but.
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

// GroupOf is the control group of a process if that was made for a subjob of this name (see GroupIn), by whichever supervisor; else none.
func GroupOf(pid int, name string) Group {
	mount, own := groupMount(), groupOf(strconv.Itoa(pid))
	if mount == "" || !strings.HasPrefix(filepath.Base(own), "sluice-"+name+"-") {
		return ""
	}
	return Group(filepath.Join(mount, own))
}
