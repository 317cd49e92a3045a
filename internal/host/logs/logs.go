// Package logs shows what the subjobs of a job wrote: their logs and their outputs.
package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/watches"
)

// Files are the logs that the executor keeps of subjobs.
type Files interface {
	// OpenLogs opens what a subjob wrote so far to stdout and stderr. An error of kind NotFound: nothing is kept.
	OpenLogs(name job.ID, token job.Token) ([]io.ReadSeekCloser, error)
	// LogsSince is the time since which the logs of every subjob that wrote any are kept, as far as is known.
	LogsSince() time.Time
	// Outputs lists the committed output folders of a job.
	Outputs(name job.ID) ([]status.Output, error)
}

// Jobs looks jobs up.
type Jobs interface {
	Job(ctx context.Context, name job.ID) (status.Job, error)
	// Older are the last subjobs before an index, of those that Job leaves out (status.Job.HistoryDropped).
	Older(ctx context.Context, name job.ID, before int) ([]status.Subjob, error)
}

// Elsewhere brings what subjobs on machines that have joined left to where Files have it.
type Elsewhere interface {
	// Machine is the machine that a subjob ran on; empty: this one.
	Machine(t job.Token) job.NodeID
	// Outputs brings every published output of a job that is missing here, and returns those that can't be had, with why.
	Outputs(ctx context.Context, j *status.Job) (lost []status.Output, err error)
	// Logs brings the logs of a subjob that is over, and reports whether there are any.
	Logs(ctx context.Context, j *status.Job, t job.Token) (found bool, err error)
}

// Reader reads what is kept. Safe for concurrent use.
type Reader struct {
	kept    kept
	jobs    Jobs
	watches *watches.Watches
	inbox   *inbox.Inbox
}

// kept are the files here, and those elsewhere that are brought here.
type kept struct {
	Files               // nil: nothing is kept
	elsewhere Elsewhere // nil: no machine may join
}

// New returns a reader of these files; if they are nil, nothing is kept. e is nil where no machine may join.
func New(files Files, e Elsewhere, jobs Jobs, w *watches.Watches, b *inbox.Inbox) *Reader {
	return &Reader{kept{files, e}, jobs, w, b}
}

// LogFollow says what a follower of a job's logs wants.
type LogFollow struct {
	// Token of the one subjob that is followed; zero: all of the job.
	Token job.Token
	// Since and Seen are where a follower was when it was cut off: Since as its first piece said it, and how much it has of
	// each subjob. Zero and nil: it begins.
	Since quantity.Instant
	Seen  []LogPosition
}

// LogPosition is how much of a subjob's logs a follower has, in bytes.
type LogPosition struct {
	Token    job.Token
	Out, Err int64
	// Over: the subjob writes nothing more.
	Over bool
}

// LogPiece is one message to a follower: bytes of a subjob, that it is over, or, in the first piece alone, Since.
type LogPiece struct {
	Token  job.Token
	Stderr bool
	Data   []byte
	Over   bool
	Since  quantity.Instant
}

// followChunk is the largest piece, in bytes.
const followChunk = 64 << 10

// Logs sends what a subjob wrote until now: stdout, then stderr; a zero token means the latest subjob. tell must not keep a piece's data.
// An error of kind NotFound names what there is instead.
func (l *Reader) Logs(ctx context.Context, name job.ID, token job.Token, tell func(LogPiece) error) error {
	if l.kept.Files == nil {
		return errNoLogs()
	}
	j, err := l.jobs.Job(ctx, name)
	if err != nil {
		return err
	}
	if token.Zero() {
		if token, err = latest(&j); err != nil {
			return err
		}
	}
	s, err := l.subjob(ctx, &j, token)
	if err != nil || s.LeftNothing {
		return err
	}
	files, err := l.kept.open(ctx, &j, token)
	if errkind.Of(err) == errkind.NotFound && l.kept.machine(token) == "" && silent(l.kept, &s) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("logs of subjob %v of job %s: %w", token, name, err)
	}
	defer closeAll(files)
	at := LogPosition{Token: token}
	if err := copyLogs(files, &at, make([]byte, followChunk), tell); err != nil {
		return fmt.Errorf("copy the logs of subjob %v of job %s: %w", token, name, err)
	}
	return nil
}

// subjob is that of a token, which must be the job's: what runs lies under its token alone, and may be another user's. Errors: NotFound.
func (l *Reader) subjob(ctx context.Context, j *status.Job, token job.Token) (status.Subjob, error) {
	for list, left := j.History, j.HistoryDropped; ; {
		if i := slices.IndexFunc(list, func(s status.Subjob) bool { return s.Token == token }); i >= 0 {
			return list[i], nil
		}
		if left <= 0 {
			return status.Subjob{}, errNoSubjob(j.Name, token)
		}
		var err error
		if list, err = l.jobs.Older(ctx, j.Name, left); err != nil {
			return status.Subjob{}, err
		}
		if left -= len(list); len(list) == 0 { // it is another job by now
			left = 0
		}
	}
}

// open opens the logs of a subjob; those of one that is over on another machine are brought first. NotFound: there are none. Conflict: it
// runs on another machine, and its logs are there.
func (l *kept) open(ctx context.Context, j *status.Job, token job.Token) ([]io.ReadSeekCloser, error) {
	files, err := l.OpenLogs(j.Name, token)
	at := l.machine(token)
	if errkind.Of(err) != errkind.NotFound || at == "" {
		return files, err
	}
	if slices.ContainsFunc(j.History, func(s status.Subjob) bool { return s.Token == token && s.Running }) {
		return nil, errkind.Errorf(errkind.Conflict, "it runs on machine %s, where its logs are until it has ended: ask again then, or "+
			"follow them, which waits for that", at)
	}
	found, err := l.elsewhere.Logs(ctx, j, token)
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "machine %s: %w", at, err)
	}
	if !found {
		return nil, errkind.Errorf(errkind.NotFound, "machine %s has brought none, or they are older than what is kept", at)
	}
	return l.OpenLogs(j.Name, token)
}

// machine is the machine that a subjob ran on; empty: this one.
func (l *kept) machine(t job.Token) job.NodeID {
	if l.elsewhere == nil {
		return ""
	}
	return l.elsewhere.Machine(t)
}

// outputs lists the folders of a job's committed subjobs, those of other machines too, and among them what can't be had.
func (l *kept) outputs(ctx context.Context, j *status.Job) (list []status.Output, err error) {
	var lost []status.Output
	if l.elsewhere != nil {
		if lost, err = l.elsewhere.Outputs(ctx, j); err != nil {
			return nil, err
		}
	}
	list, err = l.Outputs(j.Name)
	// What is not published came after the job was looked at, or is of an earlier job of the name, perhaps of another user: its folders lie
	// there until they are purged, and the name may be had at once.
	list = slices.DeleteFunc(list, func(o status.Output) bool { return !j.Published.Contains(o.Range) })
	return append(list, lost...), err
}

// silent reports whether a subjob of this machine without logs has run and wrote nothing.
func silent(files Files, s *status.Subjob) bool {
	return s.Start != 0 && (s.Running || s.End > quantity.At(files.LogsSince()))
}

func errNoSubjob(name job.ID, token job.Token) error {
	return errkind.Errorf(errkind.NotFound, "job %s has no subjob %v; sluice job %s lists them", name, token, name)
}

func errNoLogs() error { return errkind.Errorf(errkind.Unsupported, "this daemon keeps no logs") }

func closeAll(files []io.ReadSeekCloser) {
	for _, f := range files {
		_ = f.Close() // only read
	}
}

// latest returns the subjob that started last.
func latest(j *status.Job) (job.Token, error) {
	if len(j.History) == 0 {
		return job.Token{}, errkind.Errorf(errkind.NotFound, "job %s has not run yet: %s", j.Name, j.Reason)
	}
	last := slices.MaxFunc(j.History, func(a, b status.Subjob) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Start, a.PlannedStart), cmp.Or(b.Start, b.PlannedStart)), a.Token.Compare(b.Token))
	})
	return last.Token, nil
}

// copyLogs tells what a subjob's files, stdout and stderr, have behind at, and moves at on.
func copyLogs(files []io.ReadSeekCloser, at *LogPosition, buf []byte, tell func(LogPiece) error) error {
	for i, f := range files {
		from := &at.Out
		if i > 0 {
			from = &at.Err
		}
		if _, err := f.Seek(*from, io.SeekStart); err != nil {
			return err
		}
		for {
			n, err := f.Read(buf)
			if n > 0 {
				*from += int64(n)
				if failed := tell(LogPiece{Token: at.Token, Stderr: i > 0, Data: buf[:n]}); failed != nil {
					return failed
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Outputs lists what the committed subjobs have written, in order of progress. Those of member 0, as all are but a gang's, cover all
// that is published, without overlap; skipped units are not among them. A range in which nothing was written has no path, since no folder
// is made for it. What the further members of a gang wrote follows in their order.
func (l *Reader) Outputs(ctx context.Context, name job.ID) ([]status.Output, error) {
	if l.kept.Files == nil {
		return nil, errkind.Errorf(errkind.Unsupported, "this daemon keeps no outputs")
	}
	j, err := l.jobs.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	list, err := l.kept.outputs(ctx, &j)
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "outputs of job %s: %w", name, err)
	}
	list = append(list, unwrittenOf(&j, list)...)
	slices.SortFunc(list, func(a, b status.Output) int {
		return cmp.Or(cmp.Compare(a.Range.From, b.Range.From), cmp.Compare(a.Range.To, b.Range.To), cmp.Compare(a.Member, b.Member))
	})
	return list, nil
}

// unwrittenOf are the published ranges of a job that have no folder, since nothing was written there (of a gang, by the first member): one
// for each subjob that the history still has, and one for each gap that older subjobs leave.
func unwrittenOf(j *status.Job, folders []status.Output) (list []status.Output) {
	left := slices.Clone(j.Published)
	for i := range folders {
		if folders[i].Member > 0 {
			continue
		}
		left = left.Remove(folders[i].Range)
	}
	for i := range j.History {
		if s := &j.History[i]; !s.Committed.Empty() && left.Contains(s.Committed) {
			list = append(list, status.Output{Token: s.Token, Range: s.Committed})
			left = left.Remove(s.Committed)
		}
	}
	for _, r := range left {
		list = append(list, status.Output{Range: r})
	}
	return list
}
