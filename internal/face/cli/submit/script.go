package submit

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/array"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/sbatch"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/face/cli/session"
)

// scripting is how batch scripts are taken.
type scripting struct {
	// options stand before those of the script, as on sbatch's command line: they count.
	options string
	// args are the script's own.
	args []string
	// ignore: options that are not understood are named, and left out.
	ignore bool
	// stay: no directory goes along.
	stay bool
}

// compose makes a job of a batch script. What is told on the way goes to stderr.
func (how *scripting) compose(a *session.Session, file string, data []byte) (submission, error) {
	script, wrong := sbatch.Read(data)
	given, err := sbatch.Words(how.options)
	if err != nil {
		wrong = append(wrong, sbatch.Problem{Text: err.Error()})
	}
	r, more := sbatch.Understand(append(slices.Clone(script.Options), given...))
	wrong = append(wrong, more...)
	if !how.ignore {
		for _, o := range r.Unknown {
			wrong = append(wrong, sbatch.Problem{Line: o.Line, Text: o.String() +
				": is not understood here; take it out, or give --ignore-unknown to " +
				"go on without what is listed so"})
		}
	}
	if len(more) == 0 {
		wrong = append(wrong, lacking(&r)...)
	}
	if len(wrong) > 0 {
		return submission{}, problems(file, wrong)
	}
	argv, err := how.command(file, &script)
	if err != nil {
		return submission{}, fmt.Errorf("%s: %w", file, err)
	}
	for _, o := range r.Unknown {
		r.Notes = append(r.Notes, sbatch.Problem{Line: o.Line, Text: o.String() + " is not understood, and left out"})
	}
	for _, n := range r.Notes {
		fmt.Fprintf(a.Err, "sluice: %s: %s\n", place(file, n.Line), n.Text)
	}
	spec, workdir, err := config.Compose(how.values(file, &r))
	if err != nil {
		return submission{}, inScript(file, err)
	}
	spec.Launch.Command = argv
	s, err := submissionOf(file, ".", config.Job{Spec: spec, Workdir: workdir})
	if s.script = true; !how.stay {
		s.goes = here
	}
	return s, err
}

// lacking is what a job needs and the script does not say.
func lacking(r *sbatch.Request) (wrong []sbatch.Problem) {
	if r.Memory == 0 {
		wrong = append(wrong,
			sbatch.Problem{Text: "how much GPU memory it needs is not said: give --mem=8G or --gres=gpu:1g.10gb in it, or " +
				"--sbatch --mem=8G"})
	}
	if r.Array == "" {
		return wrong
	}
	if r.Slices > 1 {
		wrong = append(wrong, sbatch.Problem{Text: fmt.Sprintf("a task of an array runs on one slice, and %d GPUs are asked for",
			r.Slices)})
	}
	for _, pattern := range []string{r.Output, r.Error} {
		if pattern != "" && !array.Distinct(pattern) {
			wrong = append(wrong, sbatch.Problem{Text: fmt.Sprintf("every task would write the same file, %s: put %%a in its name",
				pattern)})
		}
	}
	return wrong
}

// values are those of the job file, but for the command.
func (how *scripting) values(file string, r *sbatch.Request) (list []strict.Set) {
	add := func(path, value string) { list = append(list, strict.Set{Path: path, Value: value}) }
	called := r.JobName
	if called == "" {
		called = path.Base(filepath.ToSlash(file))
	}
	name := runName(strings.NewReplacer("/", "-", ".", "-").Replace(called))
	add("apiVersion", config.APIVersion)
	add("kind", config.JobKind)
	add("metadata.name", name)
	add("spec.command", "[script]") // in whose place the script comes: it may be longer than such a value
	add("spec.memory", quoted(quantity.ExactBytes(r.Memory)))
	if !how.stay {
		add("spec.workdir", ".")
	}
	if r.Signal != "" {
		add("spec.warn", quoted(map[string]string{"signal": r.Signal, "before": strict.FormatDuration(r.Before)}))
	}
	if r.Array == "" {
		add("spec.rigid", "{}")
		add("spec.rigid.slices", strconv.Itoa(r.Slices))
		add("spec.maxFailures", "1") // sbatch runs a script once; what a lost machine has cut short counts elsewhere
		if r.Time > 0 {
			add("spec.rigid.walltime", strict.FormatDuration(r.Time))
		}
		add("spec.env", quoted(map[string]string{"SLURM_JOB_ID": name, "SLURM_JOBID": name, "SLURM_JOB_NAME": called}))
		return list
	}
	list = append(list, tasksOf("task", len(r.Tasks.IDs), r.Tasks.Parallel)...)
	if r.Time > 0 { // else what one takes is measured
		add("spec.items.perItem", strict.FormatDuration(r.Time))
		add("spec.adapter.array.limit", strict.FormatDuration(r.Time))
	}
	add("spec.adapter.array.indices", quoted(r.Array))
	add("spec.adapter.array.name", quoted(called))
	for key, pattern := range map[string]string{"output": r.Output, "error": r.Error} {
		if pattern != "" {
			add("spec.adapter.array."+key, quoted(pattern))
		}
	}
	return list
}

// command runs the script as it is now: as text where its interpreter is a shell, as sbatch keeps a copy; else from the work directory.
func (how *scripting) command(file string, s *sbatch.Script) (argv []string, err error) {
	name := path.Base(filepath.ToSlash(file))
	interpreter := path.Base(s.Interpreter[0])
	if interpreter == "env" && len(s.Interpreter) > 1 {
		interpreter = s.Interpreter[1]
	}
	switch {
	case slices.Contains([]string{"sh", "bash", "dash", "ksh", "zsh", "ash"}, interpreter):
		argv = slices.Concat(s.Interpreter, []string{"-c", s.Text, name})
	case how.stay:
		return nil, errkind.Errorf(errkind.Invalid, "its interpreter %s has to find it as a file, and no directory goes along: leave "+
			"--no-workdir out", s.Interpreter[0])
	default:
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		whole, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		below, err := filepath.Rel(here, whole)
		if err != nil || file == "-" || !filepath.IsLocal(below) {
			return nil, errkind.Errorf(errkind.Invalid,
				"its interpreter %s has to find it as a file, and it is not below the current directory, "+
					"which goes along: change to where it lies", s.Interpreter[0])
		}
		argv = append(slices.Clone(s.Interpreter), filepath.ToSlash(below))
	}
	// Scripts go back to where they were submitted from, and that is wherever the copy of it lies.
	begin := []string{"/bin/sh", "-c", `SLURM_SUBMIT_DIR=$PWD; export SLURM_SUBMIT_DIR; exec "$0" "$@"`}
	return slices.Concat(begin, argv, how.args), nil
}

// place is a line of a script; 0 is the script.
func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// problems are all that is wrong with a script.
func problems(file string, wrong []sbatch.Problem) error {
	slices.SortStableFunc(wrong, func(a, b sbatch.Problem) int { return a.Line - b.Line })
	errs := make([]error, len(wrong))
	for i, p := range wrong {
		errs[i] = fmt.Errorf("%s: %s", place(file, p.Line), p.Text)
	}
	return &command.Failure{Code: command.ExitUsage, Err: &errkind.Error{Kind: errkind.Invalid, Err: errors.Join(errs...)}}
}

// inScript says what is wrong with the job that a script makes.
func inScript(file string, err error) error {
	var found *strict.Problems
	if !errors.As(err, &found) {
		return err
	}
	var wrong []sbatch.Problem
	for _, p := range found.List {
		wrong = append(wrong, sbatch.Problem{Text: p.Path + ": " + p.Text})
	}
	return problems(file, wrong)
}
