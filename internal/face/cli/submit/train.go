package submit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/session"
)

// trainGrace is how long a program has to save and end, unless it is said.
const trainGrace = "30s"

// training is a call of train.
type training struct {
	values                        map[string]*string
	checkpoints, progress         string
	noWorkdir, git, detach, print bool
	replace                       bool
	env, sets                     []string
	w                             jobs.Waiting
}

// TrainCmd is the command train.
func TrainCmd(a *session.Session) *cobra.Command {
	m := &training{values: map[string]*string{}}
	c := &cobra.Command{
		Use:   "train --checkpoint-dir DIR [--steps N] [flags] -- COMMAND [ARG...]",
		Short: "Run a program that goes on from its own checkpoints, a stretch at a time",
		Long: `Run a program that saves to a directory of its own, goes on from what is in it, and
saves and ends when it gets SIGTERM. It need not know Sluice: what one subjob has left in
the directory is put there for the next, wherever that runs.

How far it is the program says: --progress finds it in what it prints, by a regular
expression whose first group is the number of steps done; without it the number in the
name of its newest checkpoint counts (step_1200.pt, checkpoint-1200). What it has done
after its last checkpoint is done again. It is over once it has come to --steps and ended
with status 0; then its directory is the job's output. Without --steps it is over once it has
ended with status 0 by itself; where --progress is left out too, nothing need say how far it
is: the time that it has run does, and a step is a second.

A step's time need not be said: a first run is short, and measures that and how long the
program takes to start and to end. --grace (30s) is how long it has to save.

The current directory goes along, as it is now, and the program starts there; with
--no-workdir it starts in an empty one. An interrupt ends the waiting and not the job.`,
		Example: `  sluice train --checkpoint-dir ckpt --steps 90000 --progress 'step (\d+)' --mem 8Gi -- python3 train.py
  sluice train --checkpoint-dir out --steps 5000 --mem 8Gi --name lora -d -- python3 finetune.py --resume out
  sluice train --checkpoint-dir ckpt --mem 1Gi -- ./solve --restart ckpt
  sluice train --checkpoint-dir ckpt --steps 100 --mem 1Gi --print -- ./train.sh > job.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return m.run(cmd, a, args) },
	}
	f := c.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	for _, r := range runFlags() {
		switch r.flag {
		case "steps", "per-step", "restore", "checkpoint", "mem", "queue", "priority", "deadline", "grace", "name":
			meaning, example := config.Describe(r.path)
			m.values[r.flag] = f.String(r.flag, "", fmt.Sprintf("%s, such as %s", meaning, example))
		}
	}
	f.Lookup("name").Usage = "the job's name (default: the command's, with a random end)"
	f.Lookup("grace").Usage += " (default " + trainGrace + ")"
	f.StringVar(&m.checkpoints, "checkpoint-dir", "", "the directory that the program saves to and goes on from, below the current one")
	f.StringVar(&m.progress, "progress", "", `a regular expression that finds in its output how many steps are done, such as 'step (\d+)'`)
	f.BoolVar(&m.noWorkdir, "no-workdir", false, "take no directory along")
	f.StringArrayVarP(&m.env, "env", "e", nil, "a variable for the command, KEY=VALUE")
	f.StringArrayVar(&m.sets, "set", nil, "any other key of spec, such as theta=0.05; sluice explain spec lists them")
	f.BoolVarP(&m.detach, "detach", "d", false, "submit the job and do not wait for it")
	f.BoolVar(&m.print, "print", false, "print the job file and submit nothing")
	f.BoolVar(&m.git, "with-git", false, "take .git along with the directory")
	replacing(c, &m.replace)
	m.w.Flags(c, "")
	return a.Output(c)
}

func (m *training) run(cmd *cobra.Command, a *session.Session, args []string) error {
	s, err := m.compose(cmd.Flags().Changed, args)
	if err != nil {
		return err
	}
	if m.print {
		_, err = a.Out.Write(s.text)
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	how := submitting{git: m.git, wait: !m.detach, replace: m.replace}
	if _, err := submit(cmd.Context(), a, c, []submission{s}, how); err != nil || m.detach {
		return err
	}
	if err := jobs.Wait(cmd.Context(), a, c, []string{s.name}, m.w); err != nil {
		return err
	}
	if terminal.Is(a.RawErr) && !m.w.Quiet {
		fmt.Fprintf(a.Err, "sluice: `sluice output %s` lists its checkpoint directory as it is in the end, `sluice logs %s` what it said\n",
			s.name, s.name)
	}
	return nil
}

// compose makes a job of the command line.
func (m *training) compose(changed func(string) bool, args []string) (submission, error) {
	given := map[string]string{"every": "1", "grace": trainGrace}
	if !m.noWorkdir {
		given["dir"] = "."
	}
	for flag, v := range m.values {
		if changed(flag) {
			given[flag] = *v
		}
	}
	switch {
	case len(args) == 0:
		return submission{}, command.Usage("no command is given: write it behind --, as in `sluice train --checkpoint-dir ckpt " +
			"--steps 5000 --mem 8Gi -- python3 train.py`")
	case m.checkpoints == "":
		return submission{}, command.Usage("--checkpoint-dir is missing; give for example --checkpoint-dir ckpt")
	}
	if err := m.place(); err != nil {
		return submission{}, err
	}
	sets := append([]string{"adapter.directory.path=" + quoted(m.checkpoints)}, m.sets...)
	if m.progress != "" {
		sets = append(sets, "adapter.directory.progress="+quoted(m.progress))
	}
	s, err := composeRun(given, false, m.env, sets, args)
	if s.file, s.verb = "train", "train"; !m.noWorkdir {
		s.goes = here
	}
	return s, err
}

// place finds what is wrong with where the program is said to save. It starts in a copy of the current directory, so no path that leads
// out of that is of use, and what is there now goes along.
func (m *training) place() error {
	name, dir := m.checkpoints, filepath.Clean(m.checkpoints)
	local := filepath.IsLocal(dir) && dir != "."
	if here, err := os.Getwd(); !local && err == nil && filepath.IsAbs(dir) {
		if below, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(below) && below != "." {
			return command.Usage("--checkpoint-dir %s is a whole path, and the program starts in a copy of the current directory: give "+
				"--checkpoint-dir %s, and have the program save there by that name", name, below)
		}
	}
	if !local {
		return command.Usage("--checkpoint-dir %s is not below the current directory, and the program starts in a copy of that: have the "+
			"program save to a directory below it, and give that, such as --checkpoint-dir ckpt", name)
	}
	if m.noWorkdir || slices.ContainsFunc(m.sets, func(s string) bool { return strings.HasPrefix(s, "subdir=") }) {
		return nil // it starts where nothing is, or elsewhere
	}
	switch info, err := os.Lstat(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return command.Usage("--checkpoint-dir: %w: give a directory that the program can make and save to", err)
	case info.Mode().Type() == fs.ModeSymlink:
		return command.Usage("--checkpoint-dir %s is a link, and where that leads would not be kept: give the directory itself", name)
	case !info.IsDir():
		return command.Usage("--checkpoint-dir %s is a file: give the directory that the program saves to and goes on from, such as "+
			"--checkpoint-dir %s", name, holder(dir))
	}
	return nil
}

// holder is the directory that a file is in, or a name for one where that is the current directory.
func holder(file string) string {
	if dir := filepath.Dir(file); dir != "." {
		return dir
	}
	return "ckpt"
}
