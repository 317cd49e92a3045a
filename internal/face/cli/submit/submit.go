// Package submit has the commands that make jobs: from files, from a command line, and a file to begin with.
package submit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/sbatch"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/session"
)

// SubmitCmd is the command submit.
func SubmitCmd(a *session.Session) *cobra.Command {
	var files []string
	var dry, wait, git, replace bool
	var w jobs.Waiting
	var id string
	var how scripting
	c := &cobra.Command{
		Use: "submit FILE... [-- ARG...]", Aliases: []string{"sbatch"}, Short: "Submit job files and batch scripts",
		Long: `Submit the jobs of one or several job files (YAML or JSON; - is stdin), or batch scripts.

All files are read first; if one has a mistake, nothing is submitted and every
mistake is listed with its place. The directory that workdir names, relative to the
job file, is packed and goes along: regular files, directories and links that stay
inside. .git is left out unless asked for. At most 64 MiB packed.

Submitting the same file again is safe: the same name with the same content is the
same job, also when it is over. With --replace a job that is over makes way: its output,
checkpoints and logs are removed, and this one starts from the beginning. One that is
not over has to be cancelled first. To go on with what is committed, see "sluice requeue".

A file that begins with #! is a batch script, as for sbatch. Its #SBATCH lines are read:
--array, --time, --mem, --gres, --gpus, --job-name, --output, --error, --signal, --requeue.
What is not understood is listed with its line, and refused unless --ignore-unknown is
given. The current directory goes along; what stands behind -- is the script's. With --wait
the exit code is 1 if a task has failed. docs/programs.md has the rest.`,
		Example: `  sluice submit count.yml
  sluice submit *.yml --wait
  generate | sluice submit -f -
  sluice submit --replace count.yml       # again from the start, in place of one that is over
  sluice submit --dry-run count.yml       # what would happen, when, and why
  sluice submit fold.sh --wait            # a script with #SBATCH --array=0-199%20
  sluice submit --dry-run --sbatch "--array=0-3 --mem=8G" fold.sh -- --fast`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, how.args = args[:at], args[at:]
			}
			list, err := read(a, append(files, args...), &how)
			if err != nil {
				return err
			}
			if id != "" && len(list) > 1 {
				return command.Usage("--request-id names one call, and these files hold %d jobs", len(list))
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			if dry {
				return dryRun(cmd.Context(), a, c, list)
			}
			if err = check(cmd.Context(), c, list); err != nil {
				return err
			}
			names, err := submit(cmd.Context(), a, c, list, submitting{id: id, git: git, wait: wait, replace: replace})
			if err != nil || !wait {
				return err
			}
			if err = jobs.Wait(cmd.Context(), a, c, names, w); err != nil {
				return err
			}
			return judge(cmd.Context(), a, c, list)
		},
	}
	c.Flags().StringArrayVarP(&files, "file", "f", nil, "a job file; - is stdin")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would happen, when the jobs would start and why, and submit nothing")
	c.Flags().BoolVar(&wait, "wait", false, "wait until the jobs are over; exit 1 if one did not complete")
	w.Flags(c, "with --wait: ")
	c.Flags().BoolVar(&replace, "replace", false, replaceUsage)
	c.Flags().BoolVar(&git, "with-git", false, "take .git along with the work directory")
	c.Flags().StringVar(&how.options, "sbatch", "",
		"options of sbatch that count before those of scripts, such as \"--array=0-9 --time=30\"")
	c.Flags().BoolVar(&how.ignore, "ignore-unknown", false, "leave out what is not understood in scripts, and say so")
	c.Flags().BoolVar(&how.stay, "no-workdir", false, "no directory goes along with scripts")
	c.Flags().StringVar(&id, "request-id", "", "an id for this call, so that a script may repeat it safely")
	return a.Output(c)
}

// read reads and checks all files before anything is sent.
func read(a *session.Session, files []string, how *scripting) ([]submission, error) {
	if len(files) == 0 {
		return nil, command.Usage("no job file is given: name one, or - for stdin")
	}
	var list []submission
	scripts := 0
	var wrong []error
	seen := map[string]string{}
	for _, file := range files {
		data, base, err := open(a, file)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if sbatch.Is(data) {
			scripts++
			if s, refused := how.compose(a, file, data); refused != nil {
				wrong = append(wrong, refused)
			} else {
				list = append(list, s)
			}
			continue
		}
		jobs, err := config.ParseJobs(file, data)
		if lacks := sbatch.Lacking(file, data); err != nil && lacks != "" {
			err = errkind.Errorf(errkind.Invalid, "%s: %s. If it is to be a job file: %w", file, lacks, err)
		}
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		for _, j := range jobs {
			name := string(j.Spec.Name)
			if first, again := seen[name]; again && first != file {
				wrong = append(wrong, fmt.Errorf("%s: job %s is in %s too; names are unique", file, name, first))
			}
			seen[name] = file
			s, err := submissionOf(file, base, j)
			if err != nil {
				wrong = append(wrong, err)
			}
			list = append(list, s)
		}
	}
	if len(how.args) > 0 && (scripts != 1 || len(files) != 1) {
		wrong = append(wrong, errors.New("what stands behind -- is for one batch script; name one, and nothing else"))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, &command.Failure{Code: command.ExitUsage, Err: err}
	}
	return list, nil
}

// open reads one file and says what its relative paths are relative to.
func open(a *session.Session, file string) (data []byte, base string, err error) {
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(a.In, strict.MaxFileBytes+1))
		if err != nil {
			return nil, "", fmt.Errorf("stdin: %w", err)
		}
		return data, ".", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, strict.MaxFileBytes+1))
	return data, filepath.Dir(file), err
}

// submitting is how jobs are submitted: under which request id (empty: one for each), with .git, to be waited for, in place
// of those that are over.
type submitting struct {
	id                 string
	git, wait, replace bool
	// receipts is where people are told of each job; nil: stdout.
	receipts io.Writer
}

// submit sends every job and says what became of it. With --wait and -o json only the end is printed, not the receipts.
func submit(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, list []submission, how submitting) (
	[]string, error) {
	var names []string
	receipts := make([]*pb.Receipt, 0, len(list))
	packed := map[string]parcel{}
	said := how.receipts
	if said == nil {
		said = a.Out
	}
	for _, s := range list {
		workdir, err := s.pack(a, how.git, packed)
		if err != nil {
			return nil, err
		}
		call := how.id
		if call == "" {
			call = session.Request()
		}
		text, err := s.textFrom(a.Umask())
		if err != nil {
			return nil, fmt.Errorf("%s: job %s: %w", s.file, s.name, err)
		}
		resp, err := send(ctx, c, &pb.SubmitRequest{Job: text, FileName: s.file, Snapshot: workdir, RequestId: call, Replace: how.replace})
		if err != nil {
			if len(names) > 0 {
				fmt.Fprintf(a.Err, "sluice: accepted before this error, and standing: %v\n", names)
			}
			return nil, fmt.Errorf("%s: job %s: %w", s.file, s.name, s.explained(ctx, c, text, err))
		}
		for _, r := range resp.Receipts {
			names = append(names, r.Name)
			receipts = append(receipts, r)
			for _, w := range r.Warnings {
				fmt.Fprintf(a.Err, "sluice: job %s: %s\n", r.Name, w)
			}
			if a.Format == "table" || a.Format == "wide" {
				fmt.Fprintf(said, "job %s %s\n", r.Name, outcome(a, r))
			} else if how.wait && !r.Created { // it is not printed
				fmt.Fprintf(a.Err, "sluice: job %s %s\n", r.Name, outcome(a, r))
			}
		}
	}
	if how.wait || a.Format == "table" || a.Format == "wide" {
		return names, nil
	}
	return names, command.Show(a.App, receipts, receiptColumns(), (*pb.Receipt).GetName, "")
}

// outcome is what became of a submission, in words.
func outcome(a *session.Session, r *pb.Receipt) string {
	switch {
	case r.Created:
		return "accepted"
	case r.State == 0:
		return "known already, nothing changed"
	case r.State == pb.Job_COMPLETED || a.Clustered():
		return fmt.Sprintf("known already, nothing changed: it is %s", pb.Word(r.State))
	}
	return fmt.Sprintf("known already, nothing changed: it is %s (%s); `sluice requeue %s` runs what is left of it", pb.Word(r.State),
		r.Reason, r.Name)
}

func receiptColumns() []command.Column[*pb.Receipt] {
	type receipt = *pb.Receipt
	return []command.Column[receipt]{
		{Key: "name", Value: func(r receipt) any { return r.Name }},
		{Key: "created", Value: func(r receipt) any { return r.Created }},
		{Key: "state", Value: func(r receipt) any { return pb.Word(r.State) }},
		{Key: "generation", Value: func(r receipt) any { return r.Generation }},
		{Key: "journalSeq", Value: func(r receipt) any { return r.JournalSeq }},
		{Key: "journalDigest", Value: func(r receipt) any { return r.JournalDigest }},
		{Key: "warnings", Value: func(r receipt) any { return append([]string{}, r.Warnings...) }},
	}
}

// send submits, and asks again where the answer may only have been lost: the request id makes that safe.
func send(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, m *pb.SubmitRequest) (*pb.SubmitResponse, error) {
	const tries = 3
	for try := 1; ; try++ {
		resp, err := c.Submit(ctx, connect.NewRequest(m))
		if err == nil {
			return resp.Msg, nil
		}
		if errkind.Of(err) != errkind.Unavailable || try == tries {
			return nil, err
		}
		select {
		case <-time.After(time.Duration(try) * 200 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// dryRun says what would happen.
func dryRun(ctx context.Context, a *session.Session, c sluicev1alpha1connect.SluiceServiceClient, list []submission) error {
	var all []*pb.Explanation
	var wrong []error
	for _, s := range list {
		if s.script && (a.Format == "table" || a.Format == "wide") {
			fmt.Fprintf(a.Out, "%s\n", s.text)
		}
		if s.dir != "" {
			if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
				return command.Usage("%s: job %s: workdir %s is no directory", s.file, s.name, s.dir)
			}
		}
		resp, err := c.DryRun(ctx, connect.NewRequest(&pb.DryRunRequest{Job: string(s.text), FileName: s.file}))
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: job %s: %w", s.file, s.name, err))
			continue
		}
		for _, w := range resp.Msg.Warnings {
			fmt.Fprintln(a.Err, "sluice: "+w)
		}
		all = append(all, resp.Msg.Explanations...)
	}
	if err := allOf(wrong); err != nil {
		return err
	}
	if a.Format == "json" || a.Format == "yaml" {
		out := make([]command.Record, len(all))
		for i, e := range all {
			out[i] = jobs.Explanation(a, e)
		}
		return a.Dump(out)
	}
	for i, e := range all {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := jobs.ShowExplanation(a, e); err != nil {
			return err
		}
	}
	return nil
}
