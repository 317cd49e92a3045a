//go:build planted

package local

import "sluice.dev/sluice/internal/edge/journal"

// later is the planted bug SkipSync: the frame is kept in memory and written with the next one, so a kill loses it.
func (j *log) later(at journal.Position) journal.Position {
	if j.off > j.written {
		_, _ = j.tail.WriteAt(j.held, j.written)
	}
	j.held, j.written = append(j.held[:0], j.buf...), j.off
	j.off += int64(len(j.buf))
	j.last = at
	return at
}

// delayed is what SkipSync keeps back.
type delayed struct {
	held    []byte
	written int64
}
