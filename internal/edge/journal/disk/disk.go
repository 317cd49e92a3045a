// Package disk is the little that a journal needs of a file system, for one directory: files written at an offset,
// synced, renamed, and the directory itself synced. The real one is OS; package memory has one that can be full, lose
// its power or rot. It must not know what is in the files.
package disk

import (
	"io"
	"slices"
)

// FS is one directory. Names have no separators. What was not synced may be lost, in any part and any order, when the
// power is cut: the content of a file until its Sync, its name until the directory's Sync. Two goroutines may use different
// files of it, and change and sync names, at the same time; List is for one alone.
type FS interface {
	// List returns the names in the directory, sorted. A directory that does not exist is empty.
	List() ([]string, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// View opens an existing file for reading only.
	View(name string) (File, error)
	// Create makes a file that must not exist.
	Create(name string) (File, error)
	// Rename gives a file another name and replaces what had it, in one step.
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes all creations, renames and removals durable.
	Sync() error
	// Lock makes this process the directory's only user until the lock is closed or the process ends. An error of kind
	// Conflict names the process that has it. The directory is made if it does not exist.
	Lock() (io.Closer, error)
	// Holder is the id of the process that has the lock, 0 if nobody has, -1 if somebody unknown has.
	Holder() int
	// String is the directory's path, for people.
	String() string
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	// Sync makes content and size durable.
	Sync() error
}

// LockName is the file that carries the lock and the id of the process that holds it.
const LockName = "LOCK"

// ReadAll reads a whole file, into room if it is large enough.
func ReadAll(fs FS, name string, room []byte) ([]byte, error) {
	f, err := fs.View(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := slices.Grow(room[:0], int(size))[:size]
	n, err := f.ReadAt(b, 0)
	if n == len(b) {
		err = nil // a reader may say with the last byte that it is the last
	}
	return b[:n], err
}

// Put writes a file as a whole: under a temporary name, synced, renamed, and the directory synced. A crash leaves the
// file of before or the new one. On an error the temporary file is gone if it could be removed.
func Put(fs FS, name, temporary string, content ...[]byte) error {
	f, err := Make(fs, name, temporary, content...)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return fs.Sync()
}

// Make is Put without the last step, and leaves the file open for reading and writing: its name is durable only after the
// directory's Sync. It needs one file descriptor, at its beginning. On an error nothing has the name that had it not before.
func Make(fs FS, name, temporary string, content ...[]byte) (File, error) {
	f, err := fs.Create(temporary)
	if err != nil {
		return nil, err
	}
	var off int64
	for _, b := range content {
		if _, err = f.WriteAt(b, off); err != nil {
			break
		}
		off += int64(len(b))
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = fs.Rename(temporary, name)
	}
	if err != nil {
		_ = f.Close()
		_ = fs.Remove(temporary) // the first error is the one to tell; Open removes what stays
		return nil, err
	}
	return f, nil
}
