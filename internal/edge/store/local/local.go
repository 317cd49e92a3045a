// Package local is the store in a directory of this machine: the daemon's own by default.
package local

import "sluice.dev/sluice/internal/edge/store/files"

// Name is the kind's word.
const Name = "local"

// Open opens the store in dir, which is made if it is missing. Errors as files.Open has them.
func Open(dir string, before ...files.Before) (*files.Dir, error) {
	return files.Open(files.Options{Kind: Name, Dir: dir, Make: true, Writer: "part", Before: files.First(before)})
}
