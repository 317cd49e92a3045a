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
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/tasks"
	"sluice.dev/sluice/internal/face/cli/session"
)

// Cmd is the command results.
func Cmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "results JOB", Short: "Show what became of each trial of a sweep, or task of an array",
		Long: `Show one line for each trial of a sweep, or task of an array: its parameters, how it
ended, and what its metrics said. DONE and FAILED have ended; SKIPPED was given up, since
whenever it ran its subjob passed a limit; OPEN has not ended yet. METRIC and STEP are of the
last line in $SLUICE_METRICS_FILE, LEAST and MOST are over all lines.`,
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
	unit   int64
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
	for i := range rows {
		rows[i] = row{unit: int64(i), state: "OPEN"}
		if j.GetFinal() && j.GetState() == pb.Job_COMPLETED {
			rows[i].state = "SKIPPED"
		}
	}
	for i := range list {
		r := &list[i]
		if r.Unit >= int64(len(rows)) {
			continue
		}
		state := "DONE"
		if r.Failed() {
			state = "FAILED"
		}
		rows[r.Unit] = row{r.Unit, state, *r}
	}
	return rows, nil
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
	measured, array := false, false
	for i := range rows {
		if r := &rows[i].record; r.Output != "" {
			first = cmp.Or(first, r)
			measured, array = measured || r.Metrics != nil, array || r.Task != nil
		}
	}
	add(map[bool]string{true: "task", false: "trial"}[array], func(r row) any {
		if r.record.Task != nil {
			return *r.record.Task
		}
		if array {
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
	fmt.Fprintf(a.Err, "sluice: %d trials done, %d failed, %d skipped; `sluice sweep results %s` shows them\n", states["DONE"],
		states["FAILED"],
		states["SKIPPED"], name)
	if said := Failures(list); said != "" {
		fmt.Fprintf(a.Err, "sluice: failed: %s\n", said)
	}
	return nil
}
