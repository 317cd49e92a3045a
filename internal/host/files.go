package host

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Logs tells what a subjob wrote until now: stdout, then stderr; a zero token means the latest subjob. tell must not keep a
// piece's data. An error of kind NotFound says what there is instead.
func (h *Host) Logs(ctx context.Context, name job.ID, token job.Token, tell func(LogPiece) error) error {
	if h.files == nil {
		return errNoLogs()
	}
	j, err := h.Job(ctx, name)
	if err != nil {
		return err
	}
	if token.Zero() {
		if token, err = latest(&j); err != nil {
			return err
		}
	}
	files, err := h.files.OpenLogs(name, token)
	if errkind.Of(err) == errkind.NotFound && h.silent(&j, token) {
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

// silent says whether a subjob of which no logs are kept has run, and wrote nothing.
func (h *Host) silent(j *status.Job, token job.Token) bool {
	i := slices.IndexFunc(j.History, func(s status.Subjob) bool { return s.Token == token })
	return i >= 0 && j.History[i].Start != 0 && (j.History[i].Running || j.History[i].End > quantity.At(h.files.LogsSince()))
}

func errNoLogs() error { return errkind.Errorf(errkind.Unsupported, "this daemon keeps no logs") }

func closeAll(files []io.ReadSeekCloser) {
	for _, f := range files {
		_ = f.Close() // only read
	}
}

// latest is the subjob that started last.
func latest(j *status.Job) (job.Token, error) {
	if len(j.History) == 0 {
		return job.Token{}, errkind.Errorf(errkind.NotFound, "job %s has not run yet: %s", j.Name, j.Reason)
	}
	last := slices.MaxFunc(j.History, func(a, b status.Subjob) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Start, a.PlannedStart), cmp.Or(b.Start, b.PlannedStart)), a.Token.Compare(b.Token))
	})
	return last.Token, nil
}

// Outputs lists what the committed subjobs have written, in order of progress. Those of member 0, as all are but a gang's, cover all
// that is published, without overlap; skipped units are not among them. A range in which nothing was written has no path, since no folder
// is made for it. What the further members of a gang wrote follows in their order.
func (h *Host) Outputs(ctx context.Context, name job.ID) ([]status.Output, error) {
	if h.files == nil {
		return nil, errkind.Errorf(errkind.Unsupported, "this daemon keeps no outputs")
	}
	j, err := h.Job(ctx, name)
	if err != nil {
		return nil, err
	}
	list, err := h.files.Outputs(name)
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
