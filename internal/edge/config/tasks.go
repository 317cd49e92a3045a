package config

import (
	"path"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/indices"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/array"
	"sluice.dev/sluice/internal/edge/strict"
)

func arrayForm() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "indices", Need: true, Form: strict.AText("a list such as 0-199 or 1,3,5-9:2"), Example: "0-199",
			Doc: "The indices of the tasks, as sbatch takes them: unit k is the k-th. $SLURM_ARRAY_TASK_ID is a task's own."},
		strict.Field{Key: "name", Form: strict.AText("text"), Unset: "the job's", Example: "fold",
			Doc: "What $SLURM_JOB_NAME says, and %x stands for."},
		strict.Field{Key: "output", Form: strict.AText("a name such as %x-%a.out"), Unset: "slurm-%A_%a.out", Example: "logs/%x-%a.out",
			Doc: "The file in $SLUICE_OUTPUT_DIR with what a task says: %A and %j are the job, %a the index, %4a the same in four digits."},
		strict.Field{Key: "error", Form: strict.AText("a name such as %x-%a.err"), Unset: "as output", Example: "logs/%x-%a.err",
			Doc: "The file with what a task says on stderr."},
		strict.Field{Key: "limit", Form: strict.ALength(time.Second, MaxTime, 0), Unset: "none", Example: "30m",
			Doc: "How long a task may run. One that takes longer has failed."},
	)
}

func trialsForm() strict.Form {
	return strict.AnObject(strict.Field{Key: "table", Need: true, Form: strict.AText("a file such as .sluice/trials"),
		Example: ".sluice/trials",
		Doc: "The file below workdir with the parameters, as sluice sweep writes it: a line with their names, then one with the values " +
			"of each trial, JSON lists of texts. {name} in an argument of the command is the value, {{ is a brace."},
		strict.Field{Key: "stop", Form: stopForm(), Example: "{goal: minimize}", Unset: "no trial is stopped",
			Doc: "A trial is stopped once its metric is not among the best 1/reduction of those known at a step. That is its end: it does " +
				"not fail, and does not run again."})
}

// goals are what is wanted of a metric; the first is named so that it is said, and not taken for granted.
func goals() []string { return []string{"minimize", "maximize"} }

func stopForm() strict.Form {
	return strict.AnObject(
		strict.Field{Key: "goal", Need: true, Form: strict.AChoice(goals()...), Example: "minimize", Doc: "Whether less of the metric is " +
			"better, or more."},
		strict.Field{Key: "reduction", Form: strict.ANumber(2, 16, defaultReduction), Example: "4",
			Doc: "One of so many goes on from a step at which trials are compared to the next, which is so many times as far."},
		strict.Field{Key: "from", Form: strict.ANumber(1, 1<<40, 1), Example: "10", Doc: "The first step at which trials are compared."},
	)
}

// defaultReduction is that of the papers on successive halving and Hyperband.
const defaultReduction = 3

// arrayOf are the tasks of an array; total is how many units the job has, 0: that is wrong already.
func arrayOf(v strict.Value, total int64) (a job.Array) {
	if !v.Given() {
		return a
	}
	o := v.AsObject()
	text := func(key string) (strict.Value, string) { return o.Get(key), o.Get(key).Text("text", "") }
	list := o.Must("indices")
	a.Indices = list.AsText()
	if l, err := indices.Parse(a.Indices); list.Given() && err != nil {
		list.Wrong("%v", err)
	} else if n := int64(len(l.IDs)); list.Given() && total > 0 && n != total {
		list.Wrong("names %d tasks, and items.total is %d; want as many", n, total)
	}
	var v2 strict.Value
	if v2, a.Name = text("name"); strings.ContainsFunc(a.Name, func(r rune) bool { return r < ' ' || r == '/' }) || len(a.Name) > 255 {
		v2.Wrong("is %s; want text that a file can be called, at most 255 bytes", v2.What())
	}
	pattern := func(key string) string {
		v, p := text(key)
		if !v.Given() {
			return ""
		}
		if err := array.CheckPattern(p); err != nil {
			v.Wrong("%v", err)
		} else if !array.Distinct(p) && total != 1 {
			v.Wrong("is %s: every task would write the same file; put %%a into its name", v.What())
		}
		return p
	}
	a.Output, a.Error = pattern("output"), pattern("error")
	a.Limit = o.Get("limit").AsLength()
	return a
}

// trialsOf are the trials of a table.
func trialsOf(v strict.Value) (t job.Trials) {
	if !v.Given() {
		return t
	}
	o := v.AsObject()
	table := o.Must("table")
	if t.Table = table.AsText(); table.Given() && (!inside(t.Table) || t.Table == "" || len(t.Table) > 4095) {
		table.Wrong("is %s; want a file below workdir, such as .sluice/trials", table.What())
		return job.Trials{}
	}
	t.Table = path.Clean(t.Table)
	if stop := o.Get("stop"); stop.Given() {
		of := stop.AsObject()
		t.Stop = job.Stop{Reduction: of.Get("reduction").AsNumber(), From: of.Get("from").AsNumber(),
			Maximize: of.Must("goal").AsChoice() == 1}
	}
	return t
}

// inside says whether a path stays below where it starts.
func inside(p string) bool {
	p = path.Clean(p)
	return !path.IsAbs(p) && p != ".." && !strings.HasPrefix(p, "../")
}
