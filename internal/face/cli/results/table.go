package results

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/indices"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/tasks"
	"sluice.dev/sluice/internal/face/cli/session"
)

// Cmd is the command results.
func Cmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "results JOB", Short: "Show what became of each trial of a sweep, or task of an array",
		Long: `Show one line for each trial of a sweep, or task of an array: its parameters, how it
ended, and what its metrics said. DONE and FAILED have ended; STOPPED was hopeless (--stop-when)
and is not run on; SKIPPED was given up, since
whenever it ran its subjob passed a limit; WAITING has not begun, or runs again; RUNNING runs;
ENDED has ended, and how is known once its subjob has; OPEN has not ended, and its job is over.
METRIC and STEP are of the last line in $SLUICE_METRICS_FILE, LEAST and MOST are over all lines.`,
		Example: "  sluice sweep results sweep-lr\n  sluice sweep results sweep-lr -o csv > results.csv",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.CompleteJobs(),
		RunE: a.Calling(func(ctx context.Context, c session.Client, args []string) error {
			rows, err := fetchRows(ctx, a, c, args[0], false)
			if err != nil {
				return err
			}
			return show(a, rows)
		}),
	}
	return a.OutputAs(c, "table", "json", "yaml", "csv")
}

// row is one task, with or without a record.
type row struct {
	unit int64
	// index of an array; nil: it is a trial, or its job's file may not be read.
	index  *int64
	state  string
	record tasks.Record
}

// fetchRows reads what became of a job's tasks. heard: the daemon has answered before.
func fetchRows(ctx context.Context, a *session.Session, c session.Client, name string, heard bool) ([]row, error) {
	j, err := jobOf(ctx, a, c, name, heard)
	if err != nil {
		return nil, err
	}
	list, err := Fetch(ctx, a, c, name)
	if err != nil {
		return nil, err
	}
	return rowsOf(j, list)
}

// mostRows bounds a table.
const mostRows = 1_000_000

// rowsOf makes a row for each unit of a job.
func rowsOf(j *pb.Job, list []tasks.Record) ([]row, error) {
	if j.GetTotal() > mostRows {
		return nil, command.Usage("job %s has %d %ss; those of at most %d can be shown", j.GetName(), j.GetTotal(), j.GetUnit(), mostRows)
	}
	rows := make([]row, j.GetTotal())
	state := "WAITING"
	switch {
	case j.GetFinal() && j.GetState() == pb.Job_COMPLETED:
		state = "SKIPPED"
	case j.GetFinal():
		state = "OPEN"
	}
	called := indicesOf(j)
	for i := range rows {
		if rows[i] = (row{unit: int64(i), state: state}); i < len(called) {
			rows[i].index = &called[i]
		}
	}
	for _, s := range j.GetHistory() {
		underWay(rows, s)
	}
	for i := range list {
		r := &list[i]
		if r.Unit >= int64(len(rows)) {
			continue
		}
		state := "DONE"
		switch {
		case r.Failed():
			state = "FAILED"
		case r.Hopeless != nil:
			state = "STOPPED"
		}
		rows[r.Unit].state, rows[r.Unit].record = state, *r
		if r.Task != nil {
			rows[r.Unit].index = r.Task
		}
	}
	return rows, nil
}

// underWay says how far the tasks of a subjob are that does not count yet. It runs them one after another.
func underWay(rows []row, s *pb.Subjob) {
	from, to := s.GetRange().GetFrom(), min(s.GetRange().GetTo(), int64(len(rows)))
	now := max(from, s.GetProgress())
	switch s.GetOutcome() {
	case pb.Subjob_RUNNING:
	case pb.Subjob_PUBLISHING:
		now = to
	default:
		return
	}
	for unit := from; unit < min(now, to); unit++ {
		rows[unit].state = "ENDED"
	}
	if now < to {
		rows[now].state = "RUNNING"
	}
}

// indicesOf are those of an array's tasks, by its job file, which only who may read what the job writes is told.
func indicesOf(j *pb.Job) []int64 {
	spec, _, err := config.ParseJob("spec", []byte(j.GetSpec()))
	if err != nil {
		return nil
	}
	l, err := indices.Parse(spec.Launch.Adapter.Array.Indices)
	if err != nil {
		return nil
	}
	return l.IDs
}

// show prints the table.
func show(a *session.Session, rows []row) error {
	columns := columnsOf(rows)
	if a.Format != "csv" {
		return command.Show(a.App, rows, columns, func(r row) string { return strconv.FormatInt(r.unit, 10) }, "no tasks")
	}
	w := csv.NewWriter(a.Out)
	line := make([]string, len(columns))
	for i, c := range columns {
		line[i] = c.Key
	}
	_ = w.Write(line) // Error says whether it failed
	for _, r := range rows {
		for i, c := range columns {
			line[i] = ""
			if v := c.Value(r); v != nil {
				line[i] = fmt.Sprint(v)
			}
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error()
}

// columnsOf are those that the tasks have something in.
func columnsOf(rows []row) (list []command.Column[row]) {
	add := func(key string, value func(row) any) {
		list = append(list, command.Column[row]{Key: key, Head: strings.ToUpper(key), Value: value, Text: func(r row) string {
			if v := value(r); v != nil {
				return fmt.Sprint(v)
			}
			return ""
		}})
	}
	var first *tasks.Record
	measured, tasked := false, false
	for i := range rows {
		if r := &rows[i].record; r.Output != "" {
			first = cmp.Or(first, r)
			measured = measured || r.Metrics != nil
		}
		tasked = tasked || rows[i].index != nil
	}
	add(map[bool]string{true: "task", false: "trial"}[tasked], func(r row) any {
		if r.index != nil {
			return *r.index
		}
		if tasked {
			return nil
		}
		return r.unit
	})
	if first != nil {
		for i, p := range first.Params {
			add(p.Name, func(r row) any {
				if i < len(r.record.Params) {
					return r.record.Params[i].Value
				}
				return nil
			})
		}
	}
	add("state", func(r row) any { return r.state })
	if measured {
		number := func(key string, of func(*tasks.Metrics) *float64) {
			add(key, func(r row) any {
				if m := r.record.Metrics; m != nil && of(m) != nil {
					return *of(m)
				}
				return nil
			})
		}
		number("metric", func(m *tasks.Metrics) *float64 { return m.Last })
		add("step", func(r row) any {
			if m := r.record.Metrics; m != nil && m.Step != nil {
				return *m.Step
			}
			return nil
		})
		number("least", func(m *tasks.Metrics) *float64 { return m.Least })
		number("most", func(m *tasks.Metrics) *float64 { return m.Most })
	}
	ended := func(key string, of func(*tasks.Record) any) {
		add(key, func(r row) any {
			if r.record.Output == "" {
				return nil
			}
			return of(&r.record)
		})
	}
	ended("seconds", func(r *tasks.Record) any { return r.Seconds })
	ended("end", func(r *tasks.Record) any { return r.Said() })
	ended("output", func(r *tasks.Record) any { return r.Output })
	return list
}

// Summary says how the trials of a sweep that is over ended, and shows the few first that have failed.
func Summary(ctx context.Context, a *session.Session, c session.Client, name string) error {
	rows, err := fetchRows(ctx, a, c, name, true)
	if err != nil {
		return err
	}
	states := map[string]int{}
	var list []tasks.Record
	for i := range rows {
		states[rows[i].state]++
		list = append(list, rows[i].record)
	}
	stopped := ""
	if n := states["STOPPED"]; n > 0 {
		stopped = fmt.Sprintf("%d stopped as hopeless, ", n)
	}
	fmt.Fprintf(a.Err, "sluice: %d trials done, %s%d failed, %d skipped; `sluice sweep results %s` shows them\n", states["DONE"], stopped,
		states["FAILED"], states["SKIPPED"], name)
	if said := Failures(list); said != "" {
		fmt.Fprintf(a.Err, "sluice: failed: %s\n", said)
	}
	return nil
}
