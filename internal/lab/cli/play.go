package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// maxSpans is how many runs of a picture are kept.
const maxSpans = 100_000

// pictures are files that a run leaves.
type pictures struct{ report, perfetto string }

// play plays what the options say, with progress, and shows what its work is made of.
func (a *app) play(ctx context.Context, o *play.Options, p pictures) (results []outcome.Result, account []string, err error) {
	if p != (pictures{}) {
		o.Spans = maxSpans
	}
	show, stop := a.simProgress()
	o.Progress = show
	results, err = play.Run(ctx, *o)
	stop()
	if err == nil {
		account, err = a.account(ctx, o)
	}
	return results, account, err
}

// account shows what was found in the files that the work is made of, and what was left out, under the first seed. It is
// empty for an interrupted run.
func (a *app) account(ctx context.Context, o *play.Options) ([]string, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	lines, err := play.Account(ctx, o.Scenario, o.Seeds[0], o.Data)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	out := a.Out
	if !slices.Contains([]string{"table", "wide"}, a.Format) {
		out = a.Err
	}
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
	fmt.Fprintln(out)
	return lines, nil
}

// write leaves the pictures that were asked for.
func (p pictures) write(o *play.Options, results []outcome.Result, account []string) error {
	if p == (pictures{}) {
		return nil
	}
	notes, err := play.Assumptions(o.Scenario, o.Data)
	if err != nil {
		return err
	}
	if len(account) > 0 {
		notes = append(notes, "Under the first seed: "+strings.Join(account, "; ")+".")
	}
	study := report.Study{Title: o.Scenario.Name, About: o.Scenario.Doc, Notes: notes}
	for i := range results {
		r := &results[i]
		study.Rows = append(study.Rows, report.Row{
			Scenario: r.Scenario, Mechanism: r.Mechanism, Seed: r.Seed, Metrics: r.Metrics, Waits: r.Waits, Spans: r.Recording,
		})
	}
	return errors.Join(toFile(p.report, study.HTML), toFile(p.perfetto, study.Perfetto))
}

// writable is an error if a file can't be written, to be reported before hours of work and not after. An existing file stays as it is.
func writable(flag, path string) error {
	if path == "" {
		return nil
	}
	_, before := os.Stat(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return command.Usage("%s: %w", flag, err)
	}
	if errors.Is(before, fs.ErrNotExist) {
		err = os.Remove(path)
	}
	return errors.Join(err, f.Close())
}

// toFile writes a file, unless it has no name.
func toFile(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}
