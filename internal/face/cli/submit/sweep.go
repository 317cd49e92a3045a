package submit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/tasks"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/edge/trials"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/results"
	"sluice.dev/sluice/internal/face/cli/session"
)

// tableFile is the file of a sweep's trials in its work directory.
const tableFile = ".sluice/trials"

// sweeping is what a sweep is of.
type sweeping struct {
	grid []string
	csv  string
	// random trials of the grid are drawn by seed; 0: it has all.
	random int
	seed   uint64
	stay   bool
	stop   stopping
	// stops are what the job file says of stop.
	stops []strict.Set
}

// stopping says when a trial is stopped.
type stopping struct {
	when, goal      string
	reduction, from int
}

// sets are what the job file says of it.
func (s *stopping) sets(changed func(string) bool) (list []strict.Set, err error) {
	var wrong []error
	switch {
	case s.when == "" && (s.goal != "" || changed("reduction") || changed("from-step")):
		wrong = append(wrong, errors.New("--goal, --reduction and --from-step say how trials are stopped: add --stop-when hopeless"))
	case s.when == "":
		return nil, nil
	case s.when != "hopeless":
		wrong = append(wrong, fmt.Errorf("--stop-when %q: there is only hopeless", s.when))
	}
	if s.when != "" && s.goal != "minimize" && s.goal != "maximize" {
		wrong = append(wrong, fmt.Errorf("--goal %q: say what is wanted of the metric, minimize or maximize", s.goal))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, &command.Failure{Code: command.ExitUsage, Err: err}
	}
	const at = "spec.adapter.trials.stop."
	list = []strict.Set{{Path: at + "goal", Value: s.goal}}
	for _, f := range []struct {
		flag, key string
		value     int
	}{{"reduction", "reduction", s.reduction}, {"from-step", "from", s.from}} {
		if changed(f.flag) {
			list = append(list, strict.Set{Path: at + f.key, Value: strconv.Itoa(f.value)})
		}
	}
	return list, nil
}

// SweepCmd is the command sweep.
func SweepCmd(a *session.Session) *cobra.Command {
	values := map[string]*string{}
	var env, sets []string
	var how sweeping
	var detach, print, git, replace bool
	var w jobs.Waiting
	c := &cobra.Command{
		Use: "sweep [flags] -- COMMAND [ARG...]", Short: "Run a command once for each of many settings of its parameters",
		Long: `Run a command once for each combination of parameters, wait until every trial has ended,
and show what became of them. {name} anywhere in an argument is the trial's value of a
parameter that --grid or --csv names; {{ is a brace, and all else stays as it is.

A trial may say how it does with lines in $SLUICE_METRICS_FILE, such as
{"metric": 0.3, "step": 10}. A trial that fails is listed, and does not keep the others:
the exit code is 0 once each has ended or is listed as skipped.

With --stop-when hopeless a trial is stopped once its metric is not among the best third of
those that others had at the same step: at steps 1, 3, 9, 27 and so on (--from-step, --reduction). The trials of a
grid come in an order that is drawn. One that says no steps is never stopped.

The current directory goes along as work directory; --no-workdir leaves it. An interrupt
ends the waiting and not the sweep; the same command with the same --name waits again.`,
		Example: `  sluice sweep --grid lr=1e-3,3e-4 --grid seed=0..49 --per-trial 5m --mem 4Gi -- python3 train.py --lr {lr} --seed {seed}
  sluice sweep --grid lr=1e-4,1e-3,1e-2 --grid width=64..1024..64 --random 20 --per-trial 5m --mem 4Gi -- ./train --lr={lr} --width={width}
  sluice sweep --grid lr=1e-4..1e-1..1e-3 --stop-when hopeless --goal minimize --from-step 10 --mem 4Gi -- ./train --lr={lr}
  sluice sweep --csv trials.csv --mem 4Gi --name folds -d -- ./fold {sequence}
  sluice sweep results folds -o csv`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := map[string]string{}
			for flag, v := range values {
				if cmd.Flags().Changed(flag) {
					given[flag] = *v
				}
			}
			if cmd.Flags().Changed("random") && how.random < 1 {
				return command.Usage("--random %d: want how many trials are drawn, at least 1", how.random)
			}
			var err error
			if how.stops, err = how.stop.sets(cmd.Flags().Changed); err != nil {
				return err
			}
			s, n, err := how.compose(given, env, sets, args)
			if err != nil {
				return err
			}
			if print {
				_, err = a.Out.Write(s.text)
				return err
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Err, "sluice: %d trials\n", n)
			how := submitting{git: git, wait: !detach, replace: replace}
			if _, err := submit(cmd.Context(), a, c, []submission{s}, how); err != nil || detach {
				return err
			}
			if err := jobs.Wait(cmd.Context(), a, c, []string{s.name}, w); err != nil {
				return err
			}
			return results.Summary(cmd.Context(), a, c, s.name)
		},
	}
	f := c.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	for _, r := range unitFlags("per-trial") {
		meaning, example := config.Describe(r.path)
		values[r.flag] = f.String(r.flag, "", fmt.Sprintf("%s, such as %s", meaning, example))
	}
	f.Lookup("per-trial").Usage = "what one trial takes on a slice of speed 1, such as 5m (default: a first trial is measured, alone)"
	f.Lookup("parallel").Usage = "how many trials may run at once (default: all)"
	f.Lookup("name").Usage = "the job's name (default: the command's, with a random end)"
	f.StringArrayVar(&how.grid, "grid", nil,
		"a parameter and what it may be: NAME=VALUE,VALUE or NAME=FROM..TO[..STEP]; several make every combination")
	f.StringVar(&how.csv, "csv", "", "a file with a trial in each row, below a row with the parameters' names")
	f.IntVar(&how.random, "random", 0, "draw so many of the grid's combinations")
	f.Uint64Var(&how.seed, "seed", 1, "with --random: another number draws others; with --stop-when: it orders the grid's trials otherwise")
	f.StringVar(&how.stop.when, "stop-when", "", "hopeless: stop a trial whose metric is not among the best of those known at its step "+
		"(asynchronous successive halving); needs --goal")
	f.StringVar(&how.stop.goal, "goal", "", "with --stop-when: minimize or maximize the metric")
	f.IntVar(&how.stop.reduction, "reduction", 3, "with --stop-when: one of so many goes on from a step to the next, which is so many times as far")
	f.IntVar(&how.stop.from, "from-step", 1, "with --stop-when: the first step at which trials are compared")
	f.StringArrayVarP(&env, "env", "e", nil, "a variable for the command, KEY=VALUE")
	f.StringArrayVar(&sets, "set", nil, "any other key of spec, such as onItemFailure=fail; sluice explain spec lists them")
	f.BoolVarP(&detach, "detach", "d", false, "submit the sweep and do not wait for it")
	f.BoolVar(&print, "print", false, "print the job file and submit nothing")
	f.BoolVar(&how.stay, "no-workdir", false, "the current directory does not go along")
	f.BoolVar(&git, "with-git", false, "take .git along with the directory")
	replacing(c, &replace)
	w.Flags(c, "")
	a.Output(c)
	c.AddCommand(results.Cmd(a))
	return c
}

// table is what the flags say of the trials.
func (how *sweeping) table() (trials.Table, error) {
	switch {
	case how.csv != "" && len(how.grid) > 0:
		return trials.Table{}, command.Usage("--csv has whole trials, and --grid what to combine: give one of them")
	case how.csv != "" && how.random != 0:
		return trials.Table{}, command.Usage("--random draws from a grid: leave it out with --csv")
	case how.csv == "" && len(how.grid) == 0:
		return trials.Table{}, command.Usage("what to try is not said: give --grid lr=1e-3,3e-4 or --csv FILE")
	}
	if how.csv != "" {
		f, err := os.Open(how.csv)
		if err != nil {
			return trials.Table{}, command.Usage("--csv: %w", err)
		}
		defer f.Close()
		t, err := trials.ReadCSV(f)
		if err != nil {
			return t, command.Usage("%s: %w", how.csv, err)
		}
		return t, nil
	}
	var axes []trials.Axis
	var wrong []error
	for _, text := range how.grid {
		axis, err := trials.ParseAxis(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--grid %w", err))
		}
		axes = append(axes, axis)
	}
	if err := errors.Join(wrong...); err != nil {
		return trials.Table{}, &command.Failure{Code: command.ExitUsage, Err: err}
	}
	t, err := trials.Grid(axes, how.random, how.seed)
	if err != nil {
		return t, command.Usage("--grid: %w", err)
	}
	if how.stop.when != "" {
		t.Shuffle(how.seed) // neighbours are alike, and who comes late is compared with more
	}
	return t, nil
}

// compose makes the job of a sweep, and says how many trials it has.
func (how *sweeping) compose(given map[string]string, env, more, argv []string) (submission, int, error) {
	if len(argv) == 0 {
		return submission{}, 0,
			command.Usage("no command is given: write it behind --, as in `sluice sweep --grid seed=0..9 -- ./train {seed}`")
	}
	if how.stay && strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		return submission{}, 0,
			command.Usage("the command %s lies in a directory, and none goes along: leave --no-workdir out, or give the whole path",
				argv[0])
	}
	t, err := how.table()
	if err != nil {
		return submission{}, 0, err
	}
	if err = unused(t, argv); err != nil {
		return submission{}, 0, err
	}
	own := append(tasksOf("trial", len(t.Rows), 0), strict.Set{Path: "spec.adapter.trials.table", Value: quoted(tableFile)})
	own = append(own, how.stops...)
	if !how.stay {
		own = append(own, strict.Set{Path: "spec.workdir", Value: "."})
	}
	q := asked{verb: "sweep", flags: unitFlags("per-trial"), given: given, need: []string{"mem"}, own: own,
		env: env, sets: more, argv: argv}
	s, err := q.compose()
	if err != nil {
		return submission{}, 0, err
	}
	var table bytes.Buffer
	if err = tasks.WriteTable(&table, t.Names, t.Rows); err != nil {
		return submission{}, 0, err
	}
	s.beside.extra = []extraFile{{tableFile, table.Bytes()}}
	if !how.stay {
		s.goes = here
	}
	return s, len(t.Rows), nil
}

// unused is the error of parameters that stand nowhere in the command: all their trials would be alike.
func unused(t trials.Table, argv []string) error {
	params := make([]tasks.Param, len(t.Names))
	for i, n := range t.Names {
		params[i].Name = n
	}
	used := map[string]bool{}
	for _, arg := range argv {
		for name := range tasks.Uses(arg, params) {
			used[name] = true
		}
	}
	var wrong []error
	for _, n := range t.Names {
		if !used[n] {
			wrong = append(wrong, fmt.Errorf("the parameter %s stands nowhere in the command; write {%s} where it goes", n, n))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return &command.Failure{Code: command.ExitUsage, Err: err}
	}
	return nil
}
