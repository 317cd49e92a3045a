package local

import "sluice.dev/sluice/internal/edge/journal"

// delayed is what the planted bug SkipSync keeps back; nothing in ordinary builds. See package planted.
type delayed struct {
	held   []byte
	at     int64
	frames int
}

// later keeps frames in memory for a while, as a machine without a sync does, so that a kill loses what was
// acknowledged last.
func (j *opened) later(at journal.Position) {
	d := &j.delayed
	if d.frames == 0 {
		d.at = j.off
	}
	d.held, d.frames = append(d.held, j.buf...), d.frames+1
	j.off += int64(len(j.buf))
	j.last = at
	if d.frames >= 40 {
		_, _ = j.tail.WriteAt(d.held, d.at) // a planted bug does not look at errors either
		d.held, d.frames = d.held[:0], 0
	}
}
