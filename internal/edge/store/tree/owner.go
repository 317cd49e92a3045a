package tree

import (
	"io/fs"
	"syscall"
)

// owner of a file by number.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
