package submit

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/session"
)

// arrayFlag gives an index list, of which more follows than its own key.
const arrayFlag = "array"

func runFlags() []runFlag {
	return []runFlag{
		{flag: "items", path: "spec.items.total"}, {flag: "per-item", path: "spec.items.perItem"}, {flag: "grid", path: "spec.items.grid"},
		{flag: "parallel", path: "spec.items.parallelism"},
		{flag: arrayFlag, path: "spec.adapter.array.indices", text: true},
		{flag: "steps", path: "spec.steps.total"}, {flag: "per-step", path: "spec.steps.perStep"},
		{flag: "every", path: "spec.steps.every"},
		{flag: "restore", path: "spec.steps.restore"}, {flag: "checkpoint", path: "spec.steps.checkpoint"},
		{flag: "walltime", path: "spec.rigid.walltime"}, {flag: "slices", path: "spec.rigid.slices"},
		{flag: "topology", path: "spec.rigid.topology"},
		{flag: "mem", path: "spec.memory"}, {flag: "queue", path: "spec.queue", text: true}, {flag: "priority", path: "spec.priority"},
		{flag: "deadline", path: "spec.deadline", text: true},
		{flag: "grace", path: "spec.grace"}, {flag: "name", path: "metadata.name", text: true},
		{flag: "dir", path: "spec.workdir", text: true},
	}
}

// RunCmd is the command run.
func RunCmd(a *session.Session) *cobra.Command {
	values := map[string]*string{}
	var env, sets []string
	var rigid, detach, print, git, replace bool
	var w jobs.Waiting
	c := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG...]", Short: "Run a command as a job, without a job file",
		Long: `Run a command as a job and wait until it is over. The flags become a job file, which
is read and checked as one; --print shows it and submits nothing.

Give one kind of work: --items (independent units), --array (tasks), --steps (a chain of
checkpoints) or --rigid (not divisible). The command finds its part in $SLUICE_FROM and
$SLUICE_TO. With --array it is run once for each index instead, as sbatch --array does, and
finds its own in $SLURM_ARRAY_TASK_ID; a task that fails does not keep the others, and makes
the exit code 1.
What a unit takes (--per-item, --per-step) may be left out: a first piece is measured.

No directory goes along unless --dir names one: the command starts in an empty
directory, and finds only what is installed on the daemon's machine. With --dir . the
current directory is copied, as submit does with a job's workdir.

An interrupt ends the waiting and not the job.`,
		Example: `  sluice run --items 1000 --per-item 20ms --mem 1Gi -- sh -c 'echo from $SLUICE_FROM to $SLUICE_TO'
  sluice run --items 1000 --per-item 20ms --mem 1Gi --parallel 4 --dir . -- ./count.sh
  sluice run --steps 4000 --per-step 5ms --every 100 --mem 1Gi --dir . -- python3 train.py
  sluice run --array 0-199%20 --per-item 5m --mem 8Gi --dir . -- sh -c 'python3 fold.py --seed $SLURM_ARRAY_TASK_ID'
  sluice run --rigid --walltime 40m --mem 8Gi --detach -- sort.sh
  sluice run --items 10 --per-item 1s --mem 1Gi --set theta=0.05 --print -- ./work > job.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := map[string]string{}
			for flag, v := range values {
				if cmd.Flags().Changed(flag) {
					given[flag] = *v
				}
			}
			s, err := composeRun(given, rigid, env, sets, args)
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
			list := []submission{s}
			if _, err := submit(cmd.Context(), a, c, list, submitting{git: git, wait: !detach, replace: replace}); err != nil || detach {
				return err
			}
			if err := jobs.Wait(cmd.Context(), a, c, []string{s.name}, w); err != nil {
				return err
			}
			if err := judge(cmd.Context(), a, c, list); err != nil {
				return err
			}
			if terminal.Is(a.RawErr) && !w.Quiet {
				fmt.Fprintf(a.Err, "sluice: `sluice output %s --cat` prints what it wrote, `sluice logs %s` what it said\n", s.name, s.name)
			}
			return nil
		},
	}
	f := c.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	for _, r := range runFlags() {
		meaning, example := config.Describe(r.path)
		values[r.flag] = f.String(r.flag, "", fmt.Sprintf("%s, such as %s", meaning, example))
	}
	f.Lookup("dir").Usage = "copy this directory along, and start there (default: none goes along)"
	f.Lookup("name").Usage = "the job's name (default: the command's, with a random end)"
	f.BoolVar(&rigid, "rigid", false, "the work is not divisible")
	f.StringArrayVarP(&env, "env", "e", nil, "a variable for the command, KEY=VALUE")
	f.StringArrayVar(&sets, "set", nil, "any other key of spec, such as theta=0.05 or items.unit=frame; sluice explain spec lists them")
	f.BoolVarP(&detach, "detach", "d", false, "submit the job and do not wait for it")
	f.BoolVar(&print, "print", false, "print the job file and submit nothing")
	f.BoolVar(&git, "with-git", false, "take .git along with the directory")
	replacing(c, &replace)
	w.Flags(c, "")
	return a.Output(c)
}

// composeRun makes a job of the command line.
func composeRun(given map[string]string, rigid bool, env, sets, argv []string) (submission, error) {
	if len(argv) == 0 {
		return submission{}, command.Usage("no command is given: write it behind --, as in `sluice run --items 10 --per-item 1s --mem " +
			"1Gi -- ./work`")
	}
	dir := given["dir"]
	if dir == "" && strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		return submission{}, command.Usage("the command %s lies in a directory, and none goes along: give --dir . to copy the current "+
			"one, or the whole path", argv[0])
	}
	q := asked{verb: "run", flags: runFlags(), given: given, env: env, sets: sets, argv: argv}
	if rigid {
		q.own = append(q.own, strict.Set{Path: "spec.rigid", Value: "{}"})
	}
	if text, ok := given[arrayFlag]; ok {
		values, err := arrayTasks(text)
		if err != nil {
			return submission{}, err
		}
		q.own = append(q.own, values...)
	}
	var err error
	if q.need, err = need(given, rigid); err != nil {
		return submission{}, err
	}
	return q.compose()
}

// need are the flags that others need.
func need(given map[string]string, rigid bool) ([]string, error) {
	kinds, want := 0, []string{"mem"}
	for kind, needs := range map[string][]string{"items": nil, arrayFlag: nil, "steps": {"every"}} {
		if _, ok := given[kind]; ok {
			kinds++
			want = append(needs, want...)
		}
	}
	_, items := given["items"]
	if _, tasks := given[arrayFlag]; tasks && items {
		return nil, command.Usage("--array says how many items there are: leave --items out")
	}
	if _, ok := given["walltime"]; ok || rigid {
		kinds++
	}
	_, steps := given["steps"]
	if _, every := given["every"]; every && !steps { // a chain whose length nobody knows
		kinds++
	}
	if kinds == 0 {
		return nil, command.Usage("what the work is is not said: give --items N, --array LIST, --steps N or --rigid")
	}
	return want, nil
}
