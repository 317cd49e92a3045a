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
	why       string
	seen      os.FileInfo
}

func newTerms(l *shim.Lease) terms {
	return terms{anchor: l.Anchor, end: l.End, to: l.Range.To, stopAt: quantity.Never}
}

func (t *terms) now() quantity.Instant                   { return t.anchor.Now() }
func (t *terms) until(at quantity.Instant) time.Duration { return t.anchor.Until(at) }

// term is when to ask the command to end, kill when to end it: never later than the lease's end.
func (t *terms) term(grace time.Duration) quantity.Instant { return min(t.end.Add(-grace), t.stopAt) }

func (t *terms) kill(grace time.Duration) quantity.Instant { return min(t.end, t.stopAt.Add(grace)) }

// read takes over control.json if it was replaced, and tells the program in its lease file. A damaged one is said and
// what held before goes on to hold.
func (t *terms) read(dir shim.Dir, log *slog.Logger) {
	info, err := os.Stat(dir.Control())
	if errors.Is(err, fs.ErrNotExist) || (err == nil && t.seen != nil && os.SameFile(info, t.seen)) {
		return
	}
	if err == nil {
		var c shim.Control
		if c, err = dir.ReadControl(); err == nil {
			t.take(c)
			t.seen = info
			err = dir.WriteTerms(t.to, t.end)
		}
	}
	if err != nil {
		log.Error("reading what changed of the lease", "err", err)
	}
}

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
}
