package logs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host/inbox"
)

// followEvery is how often followed logs are looked at.
const followEvery = 200 * time.Millisecond

// Follow sends what the subjobs of a job write: all output of running and later ones, until the job is over; or of the one that f names,
// until it is. If none runs it begins with the latest. A follower that was cut off resumes from its position in f, whatever happened to
// this process since: nothing that is still kept is sent twice or left out.
//
// It returns nil at that end alone. tell must not keep a piece's data.
func (l *Reader) Follow(ctx context.Context, name job.ID, f LogFollow, tell func(LogPiece) error) error {
	if l.kept.Files == nil {
		return errNoLogs()
	}
	x := &follower{logs: l, name: name, want: f, tell: tell, at: map[job.Token]*LogPosition{}, buf: make([]byte, followChunk)}
	for i := range f.Seen {
		x.at[f.Seen[i].Token] = &f.Seen[i]
	}
	changed, stop := l.watches.Watch(name)
	defer stop()
	for {
		// The state before the copy: what was written until then is in it, so that nothing of an end is missed.
		over, err := x.look(ctx)
		if err == nil {
			err = x.copy(ctx)
		}
		if err != nil || over {
			return err
		}
		for stale := false; !stale; {
			select {
			case <-time.After(followEvery):
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-l.inbox.Done():
				return inbox.ErrStopping()
			}
			select {
			case <-changed:
				stale = true
			default: // it has not changed: the same subjobs run
				if err := x.copy(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// follower is one call of Follow. A look at the job says which subjobs may still write, a copy tells what they wrote. Files
// are open during a copy only, so that followers hold no descriptors.
type follower struct {
	logs *Reader
	name job.ID
	want LogFollow
	tell func(LogPiece) error
	at   map[job.Token]*LogPosition
	// job is what the last look saw, open are the subjobs to copy from, in order of start.
	job  status.Job
	open []status.Subjob
	buf  []byte
}

// look reads the state of the job. over: after one more copy nothing more will be written.
func (x *follower) look(ctx context.Context) (over bool, err error) {
	j, err := x.logs.jobs.Job(ctx, x.name)
	if err != nil {
		return false, err
	}
	if x.want.Since == 0 {
		if err := x.begin(ctx, &j); err != nil {
			return false, err
		}
	}
	x.job, x.open = j, x.open[:0]
	for _, s := range j.History {
		p := x.at[s.Token]
		switch {
		case !x.want.Token.Zero() && s.Token != x.want.Token, p != nil && p.Over:
		case p == nil && !s.Running && s.End < x.want.Since: // over before the follower came
		default:
			if p == nil {
				x.at[s.Token] = &LogPosition{Token: s.Token}
			}
			x.open = append(x.open, s)
		}
	}
	if x.want.Token.Zero() {
		return j.State.Final(), nil
	}
	return !slices.ContainsFunc(x.open, func(s status.Subjob) bool { return s.Running }), nil
}

// begin fixes the moment from which subjobs are followed and sends it, for a follower that is cut off. If nothing runs the latest subjob is
// sent too, as is the one that was asked for.
func (x *follower) begin(ctx context.Context, j *status.Job) error {
	now, err := inbox.Ask(ctx, x.logs.inbox, func(now quantity.Instant) quantity.Instant { return now })
	if err != nil {
		return err
	}
	x.want.Since = now
	first := x.want.Token
	if first.Zero() && !slices.ContainsFunc(j.History, func(s status.Subjob) bool { return s.Running }) {
		if first, err = latest(j); err != nil && j.State.Final() {
			return err
		}
	}
	if !first.Zero() {
		if !slices.ContainsFunc(j.History, func(s status.Subjob) bool { return s.Token == first }) {
			return errkind.Errorf(errkind.NotFound, "job %s has no subjob %v, or one so old that it is only counted", j.Name, first)
		}
		if x.at[first] == nil { // else the follower has some of it
			x.at[first] = &LogPosition{Token: first}
		}
	}
	return x.tell(LogPiece{Since: now})
}

// copy tells what the open subjobs have written since the last time.
func (x *follower) copy(ctx context.Context) error {
	for _, s := range x.open {
		p := x.at[s.Token]
		if p.Over {
			continue
		}
		var files []io.ReadSeekCloser
		var err error
		if !s.LeftNothing {
			files, err = x.logs.kept.open(ctx, &x.job, s.Token)
		}
		if k := errkind.Of(err); err != nil && k != errkind.NotFound && k != errkind.Conflict {
			return fmt.Errorf("logs of subjob %v of job %s: %w", s.Token, x.name, err)
		}
		// Without files it has not begun, or never will, or it runs on another machine (Conflict).
		err = copyLogs(files, p, x.buf, x.tell)
		closeAll(files)
		if err != nil {
			return fmt.Errorf("copy the logs of subjob %v of job %s: %w", s.Token, x.name, err)
		}
		if !s.Running {
			p.Over = true
			if err := x.tell(LogPiece{Token: s.Token, Over: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
