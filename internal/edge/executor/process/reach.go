package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// Reachable checks that a user may pass through every existing directory down to dir. An error of
// kind Denied names each that is closed to it. Access control lists are not looked at.
func Reachable(dir string, u *shim.User) error {
	if u == nil || u.UID == 0 {
		return nil
	}
	var errs []error
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("looking whether user %d can reach %s: %w", u.UID, dir, err)
		}
		if err == nil && !passable(info, u) {
			errs = append(errs, fmt.Errorf("user %d may not enter %s (%v), where its files would be: chmod o+x %s, or choose another "+
				"data directory", u.UID, at, info.Mode(), at))
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if len(errs) == 0 {
		return nil
	}
	slices.Reverse(errs) // from the root down, as one would open them
	return errkind.Errorf(errkind.Denied, "%w", errors.Join(errs...))
}

// passable reports whether the class a user is in, owner, group or other, has x on a directory.
func passable(info fs.FileInfo, u *shim.User) bool {
	bit := fs.FileMode(0o001)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case st.Uid == u.UID:
			bit = 0o100
		case st.Gid == u.GID || slices.Contains(u.Groups, st.Gid):
			bit = 0o010
		}
	}
	return info.Mode()&bit != 0
}
