package local

import "sluice.dev/sluice/internal/edge/journal"

// delayed is what the planted bug SkipSync keeps back; nothing in ordinary builds. See package planted.
type delayed struct {
	held []byte
	at   int64
}

// later keeps the frame in memory and writes the one before, so that a kill loses what was acknowledged last.
func (j *log) later(at journal.Position) {
	if len(j.delayed.held) > 0 {
		_, _ = j.tail.WriteAt(j.delayed.held, j.delayed.at) // a planted bug does not look at errors either
	}
	j.delayed.held, j.delayed.at = append(j.delayed.held[:0], j.buf...), j.off
	j.off += int64(len(j.buf))
	j.last = at
}
