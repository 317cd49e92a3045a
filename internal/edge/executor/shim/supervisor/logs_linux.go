package supervisor

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/volume"
)

// logFile is a log that is made when something is written to it: most programs say nothing.
type logFile struct {
	path string
	// flags say what becomes of what is there (O_TRUNC, O_APPEND), mode who may read it: nobody else, since other users can guess the path.
	flags int
	mode  os.FileMode
	file  *os.File
	// noRoom is set to when the file system last had no room for the log, in Unix nanoseconds, and quota to whether that was for a quota;
	// nil: it is not noted.
	noRoom *atomic.Int64
	quota  *atomic.Bool
}

func (f *logFile) Write(p []byte) (n int, err error) {
	if f.file == nil {
		// A pipe in its place would have no reader and block the open for good.
		f.file, err = shim.OpenPlain(f.path, os.O_WRONLY|os.O_CREATE|f.flags, f.mode)
	}
	if err == nil {
		n, err = f.file.Write(p)
	} else {
		f.file = nil
	}
	if f.noRoom != nil && volume.NoRoom(err) {
		f.quota.Store(volume.OverQuota(err))
		f.noRoom.Store(time.Now().UnixNano())
	}
	return n, err
}

func (f *logFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// logs are what the command writes to stdout and stderr. It goes into their files as long as the budget, in bytes, lasts. The rest is read
// and dropped, so that the program never blocks, and one line says how much it was.
type logs struct {
	paths  [2]string
	budget atomic.Int64
	pipes  []*os.File
	under  sync.WaitGroup
	noRoom atomic.Int64 // what logFile.noRoom points to
	quota  atomic.Bool  // what logFile.quota points to
}

func newLogs(dir shim.Dir, limit int64) *logs {
	l := &logs{paths: [2]string{dir.Stdout(), dir.Stderr()}}
	l.budget.Store(limit)
	return l
}

// read reads the end of a pipe until nobody writes to it any more, in the background: the disk may not keep up, and deadlines do not
// wait for it. Where there is nothing to read nobody does any more, and it is closed.
func (l *logs) read(which, fd int, some bool) {
	if !some {
		_ = unix.Close(fd)
		return
	}
	_ = unix.SetNonblock(fd, true)
	r := os.NewFile(uintptr(fd), "")
	l.pipes = append(l.pipes, r)
	l.under.Go(func() {
		f := &logFile{path: l.paths[which], flags: os.O_TRUNC, mode: 0o600, noRoom: &l.noRoom, quota: &l.quota}
		if dropped := pour(f, r, &l.budget); dropped > 0 {
			// Best effort: a disk that refused the log may refuse this line too.
			_, _ = fmt.Fprintf(f, "\n[sluice: the log limit was reached or the disk is full; %d bytes were dropped]\n", dropped)
		}
		_ = f.Close()
		_ = r.Close()
	})
}

// close waits until all is written that was to be read. The writers are gone.
func (l *logs) close() {
	deadline := time.Now().Add(patience)
	for _, p := range l.pipes {
		_ = p.SetReadDeadline(deadline) // somebody outside may have been handed the other end
	}
	l.under.Wait()
}

// pour copies r to w while the budget lasts and returns how many bytes it dropped.
func pour(w io.Writer, r io.Reader, budget *atomic.Int64) (dropped int64) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		keep := int64(n)
		if left := budget.Add(-keep); left < 0 {
			keep = max(0, keep+left)
		}
		if keep > 0 {
			if k, werr := w.Write(buf[:keep]); werr != nil {
				keep = int64(k)
				budget.Store(0)
			}
		}
		dropped += int64(n) - keep
		if err != nil {
			return dropped
		}
	}
}
