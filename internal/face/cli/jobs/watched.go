package jobs

import (
	"context"
	"fmt"
	"io"
	"slices"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/live"
	"sluice.dev/sluice/internal/face/cli/session"
)

// watched is the view of jobs --watch.
type watched struct {
	a       *session.Session
	c       sluicev1alpha1connect.SluiceServiceClient
	request *pb.ListJobsRequest
	limit   int
	warned  []string
	live.Scrolled
	listed
}

func (w *watched) Fetch(ctx context.Context) (func(), error) {
	list, err := ListJobs(ctx, w.c, w.request, w.limit)
	if err != nil {
		return nil, err
	}
	return func() { w.listed = list }, nil
}

// Print writes the list in the form asked for, whole, and says on stderr which jobs are missing there, once.
func (w *watched) Print(out io.Writer) error {
	if !slices.Equal(w.warnings, w.warned) {
		w.a.Warn(w.warnings)
		w.warned = w.warnings
	}
	printed := *w.a.App
	printed.Out = out
	return command.Show(&printed, w.Jobs, JobColumns(w.a), (*pb.Job).GetName, "no jobs")
}

func (w *watched) Frame(columns, rows int, notice string) []terminal.Row {
	title := fmt.Sprintf("sluice jobs  %d", len(w.Jobs))
	if w.Older > 0 {
		title += fmt.Sprintf(" of %d", len(w.Jobs)+int(w.Older))
	}
	out := []terminal.Row{live.Titled(w.a, title, columns)}
	if notice != "" {
		out = append(out, terminal.Row{Text: notice, Style: terminal.Bad})
	}
	if len(w.warnings) > 0 {
		out = append(out, terminal.Row{Text: "jobs are missing here: " + terminal.Line(w.warnings[0]), Style: terminal.Bad})
	}
	if len(w.Jobs) == 0 {
		return append(out, terminal.Row{Text: "no jobs"})
	}
	shown := JobColumns(w.a)
	if w.a.Format != "wide" {
		narrow := shown[:0:0]
		for _, c := range shown {
			if !c.Wide {
				narrow = append(narrow, c)
			}
		}
		shown = narrow
	}
	room := rows - len(out) - 1
	w.First = max(0, min(w.First, len(w.Jobs)-room))
	jobs := w.Jobs[w.First:]
	for i, line := range live.Tabled(jobs, shown) {
		switch {
		case i == 0:
			out = append(out, terminal.Row{Text: line, Style: terminal.Heading})
		case i == room && len(jobs) > room:
			return append(out, terminal.Row{Text: fmt.Sprintf("and %d more: down", len(jobs)-i+1), Style: terminal.Faint})
		default:
			out = append(out, terminal.Row{Text: line, Style: StyleOf(jobs[i-1])})
		}
	}
	return out
}

// StyleOf is how a job stands out in a list.
func StyleOf(j *pb.Job) terminal.Style {
	switch {
	case j.State == pb.Job_COMPLETED || j.State == pb.Job_CANCELLED:
		return terminal.Faint
	case j.Final:
		return terminal.Bad
	case j.Running > 0:
		return terminal.Good
	}
	return terminal.Plain
}
