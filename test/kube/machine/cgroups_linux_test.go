//go:build kubernetes && machine

package machine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchies are where control groups are mounted: one of version 2, or several of version 1.
func hierarchies() (all []string, err error) {
	data, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 2 && (f[2] == "cgroup" || f[2] == "cgroup2") {
			all = append(all, f[1])
		}
	}
	return all, nil
}

// makeGroups makes the group that all of the machine's groups are below, in every hierarchy.
func makeGroups(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no control groups are mounted")
	}
	for _, h := range all {
		if err := os.Mkdir(filepath.Join(h, name), 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // of version 1: nobody may be in a group that has none
			data, err := os.ReadFile(filepath.Join(h, file))
			if err == nil {
				err = os.WriteFile(filepath.Join(h, name, file), data, 0o600)
			}
			if err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
	return nil
}

// removeGroups removes that group and all below it. Nothing runs there any more.
func removeGroups(name string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		var dirs []string
		err := filepath.WalkDir(filepath.Join(h, name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for _, d := range slices.Backward(dirs) {
			if err := os.Remove(d); err != nil {
				return err
			}
		}
	}
	return nil
}
