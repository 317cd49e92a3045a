// Package durable is the one place where a file of a run directory, of what is published from it, or of a store in a directory, is made to
// outlast a power cut; small files that others keep are replaced here too. It knows nothing of their content; it is separate so that a test
// can know what was synced when (package power models a power cut to check it).
package durable

import "os"

// OnSync, where it is set, is told of every file and directory that is about to be synced. Tests set it, before anything runs.
var OnSync func(f *os.File) //nolint:gochecknoglobals // a supervisor is a process of its own: there is nobody to hand it to

// Sync makes a file's content, or a directory's names, durable. Whatever must outlast a power cut goes through here.
func Sync(f *os.File) error {
	if OnSync != nil {
		OnSync(f)
	}
	return f.Sync()
}
