package supervisor

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// logFile is a log that is made when something is written to it: most programs say nothing.
type logFile struct {
	path string
	file *os.File
}

func (f *logFile) Write(p []byte) (n int, err error) {
	if f.file == nil {
		if f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err != nil {
			f.file = nil
			return 0, err
		}
	}
	return f.file.Write(p)
}

func (f *logFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// logTo returns the end of a pipe that is written into a log file as long as the budget, in bytes, lasts. The rest is read and
// dropped, so that the program never blocks, and one line says how much it was.
func (c *child) logTo(path string, budget *atomic.Int64) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	f := &logFile{path: path}
	c.pipes = append(c.pipes, r)
	c.logs.Go(func() {
		if dropped := pour(f, r, budget); dropped > 0 {
			// Best effort: a disk that refused the log may refuse this line too.
			_, _ = fmt.Fprintf(f, "\n[sluice: the log limit was reached or the disk is full; %d bytes were dropped]\n", dropped)
		}
		_ = f.Close()
		_ = r.Close()
	})
	return w, nil
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
