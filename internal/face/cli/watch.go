package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
)

// printed is a view that can be written as a whole, too.
type printed interface {
	view
	print(out io.Writer) error
}

// watch shows a view as it changes: on the whole terminal, or again and again where there is none.
func (a *app) watch(ctx context.Context, every time.Duration, v printed) error {
	if a.fullScreen() {
		return a.live(ctx, every, v)
	}
	away := outage{server: a.server, say: func(text string) { fmt.Fprintln(a.Err, "sluice: "+terminal.Line(text)) }}
	var last []byte
	for {
		apply, err := v.fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !away.again(ctx, err):
			return err
		case err != nil:
			continue
		}
		away.answered()
		apply()
		var b bytes.Buffer
		if err := v.print(&b); err != nil {
			return err
		}
		if !bytes.Equal(b.Bytes(), last) {
			if _, err := a.Out.Write(b.Bytes()); err != nil {
				return err
			}
			last = b.Bytes()
		}
		if !rest(ctx, every) {
			return nil
		}
	}
}

// scrolled is the part of a view that is moved through: how many of its rows are above the screen.
type scrolled struct{ first int }

func (s *scrolled) key(k terminal.Key) {
	s.first += map[terminal.Key]int{terminal.KeyUp: -1, terminal.KeyDown: 1, terminal.KeyPageUp: -10, terminal.KeyPageDown: 10}[k]
}

// titled is a title with the time of day at the right.
func (a *app) titled(title string, columns int) terminal.Row {
	right := a.Now().Format("15:04:05")
	return terminal.Row{Text: fmt.Sprintf("%-*s%s", max(0, columns-len(right)), title, right), Style: terminal.Title}
}

// watched is the view of jobs --watch.
type watched struct {
	a       *app
	c       sluicev1alpha1connect.SluiceServiceClient
	request *pb.ListJobsRequest
	limit   int
	warned  []string
	scrolled
	listed
}

func (w *watched) fetch(ctx context.Context) (func(), error) {
	list, err := listJobs(ctx, w.c, w.request, w.limit)
	if err != nil {
		return nil, err
	}
	return func() { w.listed = list }, nil
}

// print writes the list in the form asked for, whole, and says on stderr which jobs are missing there, once.
func (w *watched) print(out io.Writer) error {
	if !slices.Equal(w.warnings, w.warned) {
		w.a.warn(w.warnings)
		w.warned = w.warnings
	}
	printed := *w.a.App
	printed.Out = out
	return command.Show(&printed, w.jobs, w.a.jobColumns(), (*pb.Job).GetName, "no jobs")
}

func (w *watched) frame(columns, rows int, notice string) []terminal.Row {
	title := fmt.Sprintf("sluice jobs  %d", len(w.jobs))
	if w.older > 0 {
		title += fmt.Sprintf(" of %d", len(w.jobs)+int(w.older))
	}
	out := []terminal.Row{w.a.titled(title, columns)}
	if notice != "" {
		out = append(out, terminal.Row{Text: notice, Style: terminal.Bad})
	}
	if len(w.warnings) > 0 {
		out = append(out, terminal.Row{Text: "jobs are missing here: " + terminal.Line(w.warnings[0]), Style: terminal.Bad})
	}
	if len(w.jobs) == 0 {
		return append(out, terminal.Row{Text: "no jobs"})
	}
	shown := w.a.jobColumns()
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
	w.first = max(0, min(w.first, len(w.jobs)-room))
	jobs := w.jobs[w.first:]
	for i, line := range tabled(jobs, shown) {
		switch {
		case i == 0:
			out = append(out, terminal.Row{Text: line, Style: terminal.Heading})
		case i == room && len(jobs) > room:
			return append(out, terminal.Row{Text: fmt.Sprintf("and %d more: down", len(jobs)-i+1), Style: terminal.Faint})
		default:
			out = append(out, terminal.Row{Text: line, Style: styleOf(jobs[i-1])})
		}
	}
	return out
}
