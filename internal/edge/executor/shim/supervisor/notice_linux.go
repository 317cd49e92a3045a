package supervisor

import (
	"cmp"
	"log/slog"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// board is what the program is told of what was done to it. A file that can't be written costs the subjob nothing: signals and its end
// come as ever, and the file is tried again.
type board struct {
	// now is what it is to be told, of the kind "" nothing; its Sequence counts what it was to be told so far.
	now executor.Notice
	// pending: the file does not say it yet, and is tried again at this time.
	pending bool
	again   time.Time
	said    bool
}

// noticeRetry is how long a file that could not be written is left alone.
const noticeRetry = 500 * time.Millisecond

// tell has the file say one notice, or none.
func (b *board) tell(kind string, until quantity.Instant, why string, dir shim.Dir, a shim.Anchor, log *slog.Logger) {
	if n := (executor.Notice{Sequence: b.now.Sequence, Kind: kind, Until: until, Why: why}); n != b.now {
		if kind != "" {
			n.Sequence++
		}
		b.now, b.pending, b.again = n, true, time.Time{}
	}
	if !b.pending || time.Now().Before(b.again) {
		return
	}
	var err error
	if b.now.Kind == "" {
		err = dir.RemoveNotice()
	} else {
		err = dir.WriteNotice(b.now, a)
	}
	b.pending, b.again = err != nil, time.Now().Add(noticeRetry)
	if err != nil && !b.said {
		log.Warn("the program can't be told what was done to it: it has signals alone", "err", err)
	}
	b.said = err != nil
}

// notify tells the program what holds of all that was done to it. What more may be done to a running subjob is a case here, with its kind.
func (s *subjob) notify() {
	kind, until, why, t := "", quantity.Instant(0), "", &s.terms
	switch {
	case s.asked:
		kind, until, why = executor.NoticeYield, t.kill(s.lease.Grace), "its lease ends"
	case t.still != 0:
		kind, until, why = executor.NoticeSuspended, t.end, t.short
	case t.cut:
		kind, until = executor.NoticeTruncated, t.end
	case t.stood:
		kind, until, why = executor.NoticeResumed, t.end, "there is room for it again"
	}
	if kind == executor.NoticeTruncated || kind == executor.NoticeYield && (t.stop || t.cut) {
		why = cmp.Or(t.why, "its node ends it")
	}
	s.board.tell(kind, until, why, s.dir, t.anchor, s.log)
}
