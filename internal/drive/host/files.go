package host

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
)

// followEvery is how often a followed log is looked at.
const followEvery = 200 * time.Millisecond

// Logs copies what a subjob wrote (stdout, then stderr; a zero token means the latest subjob), and goes on while it runs
// if follow is set. An error of kind NotFound says what there is instead.
func (h *Host) Logs(ctx context.Context, name job.ID, token job.Token, follow bool, w io.Writer) error {
	if h.files == nil {
		return errkind.Errorf(errkind.Unsupported, "this daemon keeps no logs")
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
	files, err := h.openLogs(ctx, name, token, follow)
	if err != nil {
		return fmt.Errorf("logs of subjob %v of job %s: %w", token, name, err)
	}
	defer func() {
		for _, f := range files {
			_ = f.Close() // only read
		}
	}()
	for {
		// Asked before the copy: what was written until then is in it, so that nothing of the end is missed.
		running := follow && h.runs(ctx, name, token)
		for _, f := range files {
			if _, err := io.Copy(w, f); err != nil {
				return fmt.Errorf("copy the logs of subjob %v of job %s: %w", token, name, err)
			}
		}
		if !running {
			return nil
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil // whoever followed has gone
		case <-h.done:
			return errStopping()
		}
	}
}

// openLogs opens a subjob's logs. Whoever follows one that was sold its part and has not begun waits until it has.
func (h *Host) openLogs(ctx context.Context, name job.ID, token job.Token, follow bool) ([]io.ReadCloser, error) {
	for {
		running := follow && h.runs(ctx, name, token)
		files, err := h.files.OpenLogs(name, token)
		if !running || errkind.Of(err) != errkind.NotFound {
			return files, err
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.done:
			return nil, errStopping()
		}
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

// runs says whether a subjob is running. If that can't be learned it is taken to be over: the copy ends.
func (h *Host) runs(ctx context.Context, name job.ID, token job.Token) bool {
	j, err := h.Job(ctx, name)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(j.History, func(s status.Subjob) bool { return s.Token == token && s.Running })
}

// Outputs lists the committed subjobs' output folders in order of progress.
func (h *Host) Outputs(ctx context.Context, name job.ID) ([]status.Output, error) {
	if h.files == nil {
		return nil, errkind.Errorf(errkind.Unsupported, "this daemon keeps no outputs")
	}
	if _, err := h.Job(ctx, name); err != nil {
		return nil, err
	}
	list, err := h.files.Outputs(name)
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "outputs of job %s: %w", name, err)
	}
	slices.SortFunc(list, func(a, b status.Output) int {
		return cmp.Or(cmp.Compare(a.Range.From, b.Range.From), cmp.Compare(a.Range.To, b.Range.To))
	})
	return list, nil
}
