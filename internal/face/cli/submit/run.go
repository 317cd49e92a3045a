package submit

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/session"
)

// runFlag is a flag of `sluice run` that gives a key of the job file; its help is the key's.
type runFlag struct {
	flag, path string
	// text: the value is text, not YAML.
	text bool
}

func runFlags() []runFlag {
	return []runFlag{
		{flag: "items", path: "spec.items.total"}, {flag: "per-item", path: "spec.items.perItem"}, {flag: "grid", path: "spec.items.grid"},
		{flag: "parallel", path: "spec.items.parallelism"},
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
	var rigid, detach, print, git bool
	var w jobs.Waiting
	c := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARG...]", Short: "Run a command as a job, without a job file",
		Long: `Run a command as a job and wait until it is over. The flags become a job file, which
is read and checked as one; --print shows it and submits nothing.

Give one kind of work: --items (independent units), --steps (a chain of checkpoints) or
--rigid (not divisible). The command finds its part in $SLUICE_FROM and $SLUICE_TO.

No directory goes along unless --dir names one: the command starts in an empty
directory, and finds only what is installed on the daemon's machine. With --dir . the
current directory is copied, as submit does with a job's workdir.

An interrupt ends the waiting and not the job.`,
		Example: `  sluice run --items 1000 --per-item 20ms --mem 1Gi -- sh -c 'echo from $SLUICE_FROM to $SLUICE_TO'
  sluice run --items 1000 --per-item 20ms --mem 1Gi --parallel 4 --dir . -- ./count.sh
  sluice run --steps 4000 --per-step 5ms --every 100 --mem 1Gi --dir . -- python3 train.py
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
			if _, err := submit(cmd.Context(), a, c, list, submitting{git: git, wait: !detach}); err != nil || detach {
				return err
			}
			if err := jobs.Wait(cmd.Context(), a, c, []string{s.name}, w); err != nil {
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
	var list []strict.Set
	quoted := func(v any) string {
		data, _ := json.Marshal(v) // strings and lists of them
		return string(data)
	}
	add := func(path, value string) { list = append(list, strict.Set{Path: path, Value: value}) }
	add("apiVersion", config.APIVersion)
	add("kind", config.JobKind)
	if given["name"] == "" {
		add("metadata.name", runName(argv[0]))
	}
	if rigid {
		add("spec.rigid", "{}")
	}
	for _, r := range runFlags() {
		v, ok := given[r.flag]
		switch {
		case !ok:
		case r.text:
			add(r.path, quoted(v))
		default:
			add(r.path, v)
		}
	}
	add("spec.command", quoted(argv))
	variables := map[string]string{}
	for _, e := range env {
		k, v, ok := strings.Cut(e, "=")
		if !ok {
			return submission{}, command.Usage("--env %s: want KEY=VALUE", e)
		}
		variables[k] = v
	}
	if len(variables) > 0 {
		add("spec.env", quoted(variables))
	}
	for _, s := range sets {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			return submission{}, command.Usage("--set %s: want KEY=VALUE, such as theta=0.05", s)
		}
		add("spec."+k, v)
	}
	if err := missing(given, rigid); err != nil {
		return submission{}, err
	}
	spec, workdir, err := config.Compose(list)
	if err != nil {
		return submission{}, asFlags(err)
	}
	return submissionOf("run", ".", config.Job{Spec: spec, Workdir: workdir})
}

// missing names the flags that others need.
func missing(given map[string]string, rigid bool) error {
	kinds, want := 0, []string{"mem"}
	for kind, needs := range map[string][]string{"items": {"per-item"}, "steps": {"per-step", "every"}} {
		if _, ok := given[kind]; ok {
			kinds++
			want = append(needs, want...)
		}
	}
	if _, ok := given["walltime"]; ok || rigid {
		kinds++
	}
	if kinds == 0 {
		return command.Usage("what the work is is not said: give --items N, --steps N or --rigid")
	}
	var errs []error
	for _, r := range runFlags() {
		for _, flag := range want {
			if _, ok := given[flag]; r.flag == flag && !ok {
				_, example := config.Describe(r.path)
				errs = append(errs, fmt.Errorf("--%s is missing; give for example --%s %s", flag, flag, example))
			}
		}
	}
	if len(errs) > 0 {
		return &command.Failure{Code: command.ExitUsage, Err: errors.Join(errs...)}
	}
	return nil
}

// asFlags says what is wrong with a composed job in terms of the flags.
func asFlags(err error) error {
	var found *strict.Problems
	if !errors.As(err, &found) {
		return err
	}
	var errs []error
	for _, p := range found.List {
		at := p.Path
		for _, r := range runFlags() {
			if r.path == at {
				at = "--" + r.flag
			}
		}
		errs = append(errs, fmt.Errorf("%s: %s", at, p.Text))
	}
	return &command.Failure{Code: command.ExitUsage, Err: &errkind.Error{Kind: errkind.Invalid, Err: errors.Join(errs...)}}
}

// runName is a name for a job that has none: that of its command with a random end.
func runName(command string) string {
	base := strings.ToLower(filepath.Base(command))
	base = strings.TrimSuffix(base, filepath.Ext(base))
	base = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, base), "-")
	if len(base) > 40 {
		base = strings.Trim(base[:40], "-")
	}
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails (package crypto/rand)
	return strings.TrimPrefix(base+"-"+hex.EncodeToString(b[:]), "-")
}

// InitCmd is the command init.
func InitCmd(a *session.Session) *cobra.Command {
	var file string
	var force bool
	kinds := strings.Join(config.StarterKinds(), ", ")
	c := &cobra.Command{
		Use: "init [KIND]", Short: "Write a commented job file to start from",
		Long: fmt.Sprintf(`Write a commented job file to start from, job.yaml, for a kind of work: %s.
It runs as it is. A file that is there is not overwritten without --force.`, kinds),
		Example: "  sluice init && sluice submit job.yaml --wait\n  sluice init steps --file train.yaml\n  sluice init rigid --file -",
		Args:    cobra.MaximumNArgs(1), ValidArgs: config.StarterKinds(),
		RunE: func(_ *cobra.Command, args []string) error {
			kind := config.StarterKinds()[0]
			if len(args) > 0 {
				kind = args[0]
			}
			text, err := config.Starter(kind)
			if err != nil {
				return err
			}
			if file == "-" {
				_, err = a.Out.Write(text)
				return err
			}
			flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
			if force {
				flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
			}
			f, err := os.OpenFile(file, flags, 0o666)
			if errors.Is(err, os.ErrExist) {
				return errkind.Errorf(errkind.Exists, "%s is there already: give --force to overwrite it, or another --file", file)
			}
			if err != nil {
				return err
			}
			_, err = f.Write(text)
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
			return a.Done(file, "written", command.Record{{Key: "file", Value: file}, {Key: "kind", Value: kind}},
				fmt.Sprintf("%s written: edit it, then `sluice submit %s --wait`", file, file))
		},
	}
	c.Flags().StringVarP(&file, "file", "f", "job.yaml", "where to write it; - is stdout")
	c.Flags().BoolVar(&force, "force", false, "overwrite a file that is there")
	return a.Output(c)
}
