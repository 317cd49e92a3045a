package supervisor

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// terms are what the subjob is held to now: the lease, and what control.json changed of it.
type terms struct {
	anchor shim.Anchor
	end    quantity.Instant
	// to is the largest end of its range it was given.
	to        int64
	stop, cut bool
	stopAt    quantity.Instant
	// nowAt is when it was to end without grace.
	nowAt quantity.Instant
	why   string
	// still is until when it is suspended at the latest, 0 if it is not; watched: by the machine's watcher; stood: it was before. short
	// is why.
	still          quantity.Instant
	watched, stood bool
	short          string
	// seen is the control.json that was read last. It is kept open: the number of a file that is gone may soon be another's.
	seen *os.File
}

func newTerms(l *shim.Lease) terms {
	return terms{anchor: l.Anchor, end: l.End, to: l.Range.To, stopAt: quantity.Never, nowAt: quantity.Never}
}

func (t *terms) now() quantity.Instant                   { return t.anchor.Now() }
func (t *terms) until(at quantity.Instant) time.Duration { return t.anchor.Until(at) }

// term is when to ask the command to end, kill when to end it: never later than the lease's end.
func (t *terms) term(grace time.Duration) quantity.Instant { return min(t.end.Add(-grace), t.stopAt) }

func (t *terms) kill(grace time.Duration) quantity.Instant {
	return min(t.end, t.stopAt.Add(grace), t.nowAt)
}

// read takes over control.json if it was replaced, and tells the program in its lease file. A damaged one is logged and the terms before it
// stay in force.
func (t *terms) read(dir shim.Dir, log *slog.Logger) {
	info, err := os.Stat(dir.Control())
	if errors.Is(err, fs.ErrNotExist) || err == nil && t.seen != nil && same(info, t.seen) {
		return
	}
	if err == nil {
		var c shim.Control
		var f *os.File
		if c, f, err = dir.OpenControl(); err == nil {
			t.take(c)
			t.close()
			t.seen = f
			err = dir.WriteTerms(t.to, t.anchor.Shown(t.end))
		}
	}
	if err != nil {
		log.Error("reading what changed of the lease", "err", err)
	}
}

// same says whether what was seen of a path is an open file.
func same(info os.FileInfo, f *os.File) bool {
	held, err := f.Stat()
	return err == nil && os.SameFile(info, held)
}

// close releases what was read.
func (t *terms) close() { _ = t.seen.Close() }

func (t *terms) take(c shim.Control) {
	// The new end is by a newer anchor; ours may differ from it if the wall clock was set, and the one that was taken with
	// the end is right.
	if c.End != t.end {
		t.anchor = c.Anchor
	}
	t.end, t.cut, t.why = c.End, c.Cut, c.Cause
	t.to = max(t.to, c.Range.To)
	if c.Stop && !t.stop {
		t.stop, t.stopAt = true, t.now()
	}
	if c.Now && t.nowAt == quantity.Never {
		t.nowAt = t.now()
	}
	t.still, t.watched, t.stood, t.short = c.Still, c.Watched, c.Stood > 0, c.Short
}
