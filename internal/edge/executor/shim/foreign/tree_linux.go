package foreign

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// Size adds up the bytes of all plain files of a tree, stopping early once they pass limit. What vanishes meanwhile does not
// count. A tree whose size can't be told, because it is nested too deeply or closed to us, has more than limit: otherwise it
// would be a way around every bound. One that is not there has none.
func Size(root string, limit int64) (n int64) {
	if info, err := os.Lstat(root); err == nil && !info.IsDir() {
		if info.Mode().IsRegular() {
			return info.Size()
		}
		return 0
	}
	err := Walk(root, func(e *Entry) error {
		if n += e.Size; n > limit {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil && !gone(err) {
		return limit + 1
	}
	return n
}

// Usage is what trees take: bytes of disk, and how many files, folders and links they have, their roots apart.
type Usage struct{ Bytes, Files int64 }

// Over says whether it is more than a bound, of which 0 is none.
func (u Usage) Over(most Usage) bool {
	return most.Bytes > 0 && u.Bytes > most.Bytes || most.Files > 0 && u.Files > most.Files
}

// Add adds what a tree takes, stopping early once it is over a bound. What vanishes meanwhile does not count. A tree that can't
// be looked into, because it is nested too deeply or closed to us, is over every bound; one that is not there takes nothing.
// Files that were removed and are still open are not seen.
func (u *Usage) Add(root string, most Usage) {
	err := Walk(root, func(e *Entry) error {
		if e.Path == "" {
			return nil
		}
		u.Bytes += e.Disk
		if u.Files++; u.Over(most) {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil && !gone(err) {
		u.Bytes, u.Files = max(u.Bytes, most.Bytes+1), max(u.Files, most.Files+1)
	}
}

// Sync makes everything in a tree durable and says how many plain files there are, and whether it is empty. An empty one holds
// nothing that could be lost, and costs nothing; nor does anything else that stands where a tree was.
func Sync(root string) (files int, empty bool, err error) { return syncAtOnce(root, mostSyncs) }

// syncAtOnce is Sync with so many files under way at most.
func syncAtOnce(root string, most int) (files int, empty bool, err error) {
	empty = true
	s := syncs{room: make(chan struct{}, most)}
	err = Walk(root, func(e *Entry) error {
		if e.Path == "" {
			return nil
		}
		empty = false
		if e.Plain {
			files++
		}
		f, failed := opened(e)
		if failed != nil || f == nil {
			return failed
		}
		return s.start(f)
	})
	if waited := s.wait(); err == nil {
		err = waited
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return 0, true, nil
	}
	if err != nil || empty {
		return files, empty, err
	}
	f, err := folder(unix.AT_FDCWD, root)
	if err != nil {
		return files, false, err
	}
	return files, false, errors.Join(durable.Sync(f), f.Close())
}

// mostSyncs is how many files are synced at once, and so how many are open. Each sync waits for the file system's journal, which writes
// down what waits together (BenchmarkSync). syncfs(2) is hardly faster, waits for what everybody else has written too, and says of no file
// whether it is on the disk.
const mostSyncs = 8

// syncs are those under way: as many as there is room for.
type syncs struct {
	room   chan struct{}
	begun  sync.WaitGroup
	mu     sync.Mutex
	failed error // the first that did
}

// start syncs and closes a file beside others, once there is room. An error is of one that was started before: there is no use in going on.
func (s *syncs) start(f *os.File) error {
	s.room <- struct{}{}
	s.begun.Go(func() {
		err := errors.Join(durable.Sync(f), f.Close())
		s.mu.Lock()
		if s.failed == nil {
			s.failed = err
		}
		s.mu.Unlock()
		<-s.room
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return fs.SkipAll // wait says it
	}
	return nil
}

// wait returns once nothing is under way, with the first error.
func (s *syncs) wait() error {
	s.begun.Wait()
	return s.failed
}

// opened is a directory or a plain file, to be synced; nil for anything else, and for what is gone.
func opened(e *Entry) (f *os.File, err error) {
	switch {
	case e.Dir:
		f, err = folder(e.dir, e.name)
	case e.Plain:
		f, err = e.Open()
	}
	if err != nil {
		return nil, ignoreGone(err)
	}
	return f, nil
}

// folder is a directory as a file.
func folder(dir int, name string) (*os.File, error) {
	fd, err := openDir(dir, name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Seal takes the right to write from a tree: from its directories, and from those plain files that belong to the tree's
// owner and have no other name, which could be anywhere. It is against accidents: the owner can take the right back.
func Seal(root string) error {
	var owner uint32
	return Walk(root, func(e *Entry) error {
		if e.Path == "" {
			owner = e.stat.Uid
		}
		if !e.Dir && !e.Plain {
			return nil
		}
		fd, err := pin(e.dir, e.name, 0)
		if err != nil {
			return nil // it went, or is closed to us: then it is not ours to seal
		}
		defer func() { _ = unix.Close(fd) }()
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Uid != owner {
			return nil
		}
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && (kind != unix.S_IFREG || st.Nlink != 1) {
			return nil
		}
		// To the descriptor, so that it is done to what was asked about. Best effort: nothing hangs on it.
		_ = unix.Chmod(again(fd), st.Mode&0o555)
		return nil
	})
}
