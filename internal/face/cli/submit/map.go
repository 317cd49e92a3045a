package submit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/session"
)

// MapCmd is the command map.
func MapCmd(a *session.Session) *cobra.Command {
	m := &mapping{values: map[string]*string{}}
	c := &cobra.Command{
		Use: "map --input FILE --output FILE [flags] -- COMMAND [ARG...]", Short: "Run a command on the lines of a file, a part at a time",
		Long: `Run a command that reads lines on stdin and writes one line to stdout for each, on the
lines of a file: the k-th line that it writes answers the k-th that it read. It need not
know Sluice. Answers are put together in the order of the input, and are in --output, whole,
once every line is answered or skipped; --output - prints them then, and nothing else, to stdout.

The input is a file of lines (.jsonl, text), a .csv or .tsv, whose header goes to every
part of it, or a quoted pattern such as 'images/*.png', each file's path a line.

A line that the command fails on again and again by itself is skipped, and its number is
listed beside the output, in FILE.skipped (of --output - on stderr); --on-item-failure fail ends the job instead.

The current directory goes along, at most 64 MiB packed, and the command starts in a copy
of it; --no-workdir leaves it behind. An input of more than 64 MiB stays where it is, and
is read by its path, which must lead to it wherever subjobs run.

An interrupt ends the waiting and not the job: the same command with the same --name waits
again, and so it does after -d, as long as the directory and the input are what they were.`,
		Example: `  sluice map --input prompts.jsonl --output answers.jsonl --mem 8Gi -- python3 infer.py
  sluice map --input rows.csv --output scored.csv --answers-header --per-line 200ms --parallel 4 --mem 2Gi -- ./score.py
  sluice map --input 'images/*.png' --output labels.txt --mem 4Gi --name labels -d -- python3 label.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := map[string]string{}
			for flag, v := range m.values {
				if cmd.Flags().Changed(flag) {
					given[flag] = *v
				}
			}
			return m.run(cmd.Context(), a, given, args)
		},
	}
	f := c.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	f.StringVar(&m.input, "input", "", "the file of lines, or a quoted pattern of paths")
	f.StringVar(&m.output, "output", "", "where the answers go: a file, replaced whole when all are there, or - for stdout")
	f.StringVar(&m.format, "format", "", "what a line is: text or csv (default: by the input's name)")
	f.BoolVar(&m.header, "answers-header", false, "the command writes a header too, in front of its answers")
	f.StringVar(&m.onFail, "on-item-failure", "skip", "what becomes of a line that fails alone: skip, or fail the job")
	f.BoolVar(&m.noWorkdir, "no-workdir", false, "leave the current directory behind")
	for _, r := range unitFlags("per-line") {
		meaning, example := config.Describe(r.path)
		m.values[r.flag] = f.String(r.flag, "", fmt.Sprintf("%s, such as %s", meaning, example))
	}
	f.Lookup("per-line").Usage = "what one line takes, such as 2s (default: a first piece is measured)"
	f.Lookup("name").Usage = "the job's name (default: the command's, with a random end)"
	f.StringArrayVarP(&m.env, "env", "e", nil, "a variable for the command, KEY=VALUE")
	f.StringArrayVar(&m.sets, "set", nil, "any other key of spec, such as image=NAME; sluice explain spec lists them")
	f.BoolVarP(&m.detach, "detach", "d", false, "submit the job and do not wait for it")
	f.BoolVar(&m.git, "with-git", false, "take .git along with the directory")
	replacing(c, &m.replace)
	m.w.Flags(c, "")
	return command.FormAs(a.App, c, "form", "table", "json", "yaml", "name")
}

// run submits the job, unless it is there, waits for it and puts the answers together.
func (m *mapping) run(ctx context.Context, a *session.Session, given map[string]string, argv []string) error {
	if err := m.check(argv); err != nil {
		return err
	}
	if m.printed() && a.Format != "table" {
		return command.Usage("--output - writes the answers to stdout, where -o %s would be among them: leave -o out", a.Format)
	}
	in, err := m.read()
	if err != nil {
		return err
	}
	if in.index.Lines == 0 {
		return m.none(a)
	}
	s, err := m.compose(given, in, argv)
	if err != nil {
		return err
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	if in.stays {
		fmt.Fprintf(a.Err, "sluice: %s (%s) stays where it is: that path must lead to it wherever subjobs run\n", in.lines.Input,
			command.Size(in.index.Size))
	}
	as := submitting{git: m.git, wait: !m.detach && (a.Format == "json" || a.Format == "yaml"), replace: m.replace}
	if m.printed() {
		as.receipts = a.Err
	}
	if _, err = submit(ctx, a, c, []submission{s}, as); err != nil {
		return err
	}
	how := "with"
	if m.replace { // which would remove what is answered by then
		how = "without --replace and with"
	}
	again := fmt.Sprintf("the same command %s --name %s waits for it again, and writes %s", how, s.name, m.place())
	if m.detach {
		fmt.Fprintln(a.Err, "sluice: "+again)
		return nil
	}
	list, err := jobs.Await(ctx, a, c, []string{s.name}, m.w)
	switch {
	case ctx.Err() != nil:
		return &command.Failure{Code: command.ExitFailed, Err: errors.New("interrupted; the job goes on: " + again)}
	case err != nil:
		return err
	case !list[0].Final:
		return &command.Failure{Code: command.ExitTimeout, Err: fmt.Errorf("job %s is not over after %s: %s", s.name,
			command.Short(time.Duration(m.w.Timeout)), again)}
	case list[0].State != pb.Job_COMPLETED:
		return failed(list[0])
	}
	return m.finish(ctx, a, c, list[0], in)
}

// failed is the error of a job that has not completed.
func failed(j *pb.Job) error {
	return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("job %s %s, %d of %d lines: %s; `sluice output %s` lists what is "+
		"answered", j.Name, pb.Word(j.State), j.Progress-j.Skipped, j.Total, j.Reason, j.Name)}
}

// check finds what is wrong with the flags and with the place of the output before anything is read.
func (m *mapping) check(argv []string) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if m.input == "" {
		wrong("--input is missing; give the file of lines, such as --input prompts.jsonl")
	}
	if m.output == "" {
		wrong("--output is missing; give the file for the answers, such as --output answers.jsonl")
	} else if !m.printed() {
		if err := writable(m.output); err != nil {
			wrong("--output: %w", err)
		}
	}
	if m.format != "" && m.format != job.Text.String() && m.format != job.CSV.String() {
		wrong("--format is %q; want %s", m.format, strings.Join(job.LineFormats(), " or "))
	}
	if m.onFail != "skip" && m.onFail != "fail" {
		wrong("--on-item-failure is %q; want skip or fail", m.onFail)
	}
	if len(argv) == 0 {
		wrong("no command is given: write it behind --, as in `sluice map --input prompts.jsonl --output answers.jsonl --mem 8Gi -- " +
			"python3 infer.py`")
	}
	if m.noWorkdir && len(argv) > 0 && strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		wrong("the command %s lies in a directory, and none goes along: leave --no-workdir out, or give the whole path", argv[0])
	}
	if len(errs) > 0 {
		return &command.Failure{Code: command.ExitUsage, Err: errors.Join(errs...)}
	}
	return nil
}

// compose makes the job.
func (m *mapping) compose(given map[string]string, in *mapInput, argv []string) (submission, error) {
	l := in.lines
	adapter, err := json.Marshal(map[string]any{"lines": map[string]any{"input": l.Input, "index": l.Index, "format": l.Format.String(),
		"header": l.Header, "answersHeader": l.AnswersHeader}})
	if err != nil {
		return submission{}, err
	}
	own := []strict.Set{{Path: "spec.items.total", Value: strconv.FormatInt(in.index.Lines, 10)},
		{Path: "spec.items.unit", Value: in.unit()}, {Path: "spec.onItemFailure", Value: m.onFail},
		{Path: "spec.adapter", Value: string(adapter)}}
	if !m.noWorkdir {
		own = append(own, strict.Set{Path: "spec.workdir", Value: "."})
	}
	q := asked{verb: "map", flags: unitFlags("per-line"), given: given, need: []string{"mem"}, own: own,
		env: m.env, sets: m.sets, argv: argv}
	s, err := q.compose()
	s.goes, s.beside = in.goes, in.beside
	return s, err
}

// none writes the answers to no lines.
func (m *mapping) none(a *session.Session) error {
	if !m.printed() {
		if err := os.WriteFile(m.output, nil, 0o666); err != nil {
			return err
		}
	}
	return m.tell(a, "", 0, nil)
}

// printed says that the answers go to stdout.
func (m *mapping) printed() bool { return m.output == "-" }

// place is where the answers go, for people.
func (m *mapping) place() string {
	if m.printed() {
		return "the answers to stdout"
	}
	return m.output
}

// writable says why a file can't be made in its place: to find that out when all is answered would be late.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
