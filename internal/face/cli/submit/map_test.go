package submit

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/clitest"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/host"
)

// ran is what a command has printed, and how it ended.
type ran struct {
	out, errs string
	err       error
}

// ran runs a command of a session.
func runs(t *testing.T, a *session.Session, of func(*session.Session) *cobra.Command, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	a.Guard(&out, &errs)
	c := of(a)
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err := c.ExecuteContext(t.Context())
	return ran{out.String(), errs.String(), err}
}

// known is a daemon that has each job already.
type known struct{ *apitest.Fake }

func (known) SubmitAll(_ context.Context, jobs []host.Submission, _ []byte) []host.Outcome {
	out := make([]host.Outcome, len(jobs))
	for i, j := range jobs {
		out[i].Receipt = host.Receipt{Name: j.Spec.Name}
	}
	return out
}

// refusing is a daemon that keeps work directories, and takes no job for one that it has.
type refusing struct{ *apitest.Fake }

func (r refusing) SubmitAll(ctx context.Context, jobs []host.Submission, workdir []byte) []host.Outcome {
	for i := range jobs {
		spec := *jobs[i].Spec
		if workdir != nil {
			spec.Launch.Workdir = "kept"
		}
		jobs[i].Spec = &spec
	}
	return r.Fake.SubmitAll(ctx, jobs, workdir)
}

// TestMissingInput: a file that is not there is a mistake in the arguments, as any other.
func TestMissingInput(t *testing.T) {
	t.Chdir(clitest.Tree(t, map[string]string{"a.txt": "x\n"}))
	for _, input := range []string{"none.txt", "none/in.txt", "none-*.txt", "a.txt/b", "."} {
		r := runs(t, clitest.Session(t, apitest.New(), time.Now), MapCmd, "--input", input, "--output", "out", "--mem", "1Gi", "--", "cat")
		if command.ExitCode(r.err) != command.ExitUsage || !strings.Contains(r.err.Error(), "--input") {
			t.Errorf("%s: exit %d, %v", input, command.ExitCode(r.err), r.err)
		}
	}
}

// TestWhatDiffers: where a job of that name is another, the message says in what, and what to do.
func TestWhatDiffers(t *testing.T) {
	dir := clitest.Tree(t, map[string]string{"in.txt": "a\nb\n", "other.txt": "c\n", "infer.sh": "cat\n"})
	t.Chdir(dir)
	mapped := []string{"--input", "in.txt", "--output", "out", "--mem", "1Gi", "--name", "many", "-d"}
	swept := []string{"--grid", "x=1,2", "--mem", "1Gi", "--name", "many", "-d"}
	trained := []string{"--checkpoint-dir", "ckpt", "--steps", "9", "--mem", "1Gi", "--name", "many", "-d"}
	for name, c := range map[string]struct {
		of           func(*session.Session) *cobra.Command
		first, again []string
		says         []string
		not          string
	}{
		"map: directory": {MapCmd, append(mapped, "--", "./infer.sh"), append(mapped, "--", "./infer.sh"),
			[]string{"the work directory has changed since", "another --name", "sluice output many"}, "the command"},
		"map: command": {MapCmd, append(mapped, "--", "./infer.sh"), append(mapped, "--", "./infer.sh", "-v"),
			[]string{"the command is another", "another --name"}, "the work directory"},
		"map: input": {MapCmd, append(mapped, "--", "./infer.sh"), append(mapped, "--input", "other.txt", "--", "./infer.sh"),
			[]string{"the input is another", "another --name"}, "the command"},
		"map: memory and a time": {MapCmd, append(mapped, "--", "cat"), append(mapped, "--mem", "2Gi", "--per-line", "3s", "--", "cat"),
			[]string{"spec.memory", "spec.items.perItem", "another --name"}, "the input"},
		"sweep: directory": {SweepCmd, append(swept, "--", "./infer.sh", "{x}"), append(swept, "--", "./infer.sh", "{x}"),
			[]string{"the work directory has changed since, or the trials have", "another --name", "sluice sweep results many"},
			"the command"},
		"sweep: trials": {SweepCmd, append(swept, "--", "./infer.sh", "{x}"),
			append(swept, "--grid", "y=3,4", "--", "./infer.sh", "{x}", "{y}"),
			[]string{"the trials are others", "the command is another", "another --name"}, "the work directory"},
		"sweep: trials alone": {SweepCmd, append(swept, "--no-workdir", "--", "cat", "{x}"),
			append(swept, "--no-workdir", "--", "cat", "{x}"),
			[]string{"the trials are others", "another --name"}, "work directory"},
		"train: directory": {TrainCmd, append(trained, "--", "./infer.sh"), append(trained, "--", "./infer.sh"),
			[]string{"the work directory has changed since", "another --name", "sluice output many"}, "the command"},
		"train: none goes along": {TrainCmd, append(trained, "--", "cat"), append(trained, "--no-workdir", "--", "cat"),
			[]string{"a work directory goes along with one of them only", "another --name"}, "the command"},
	} {
		t.Run(name, func(t *testing.T) {
			a := clitest.Session(t, refusing{apitest.New()}, time.Now)
			if r := runs(t, a, c.of, c.first...); r.err != nil {
				t.Fatalf("%v: %s", r.err, r.errs)
			}
			r := runs(t, a, c.of, c.again...)
			if r.err == nil || command.ExitCode(r.err) != command.ExitFailed {
				t.Fatalf("%v, want a refusal", r.err)
			}
			for _, want := range append(c.says, "with other content") {
				if !strings.Contains(r.err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, r.err)
				}
			}
			if strings.Contains(r.err.Error(), c.not) || strings.Contains(r.err.Error(), "--replace") {
				t.Errorf("%q or --replace is in: %v", c.not, r.err)
			}
		})
	}
}

// TestAnswersToStdout: with --output - the answers, and nothing else, are what a map prints.
func TestAnswersToStdout(t *testing.T) {
	t.Chdir(clitest.Tree(t, map[string]string{"in.txt": "a\nb\nc\nd\n", "none.txt": ""}))
	fake := apitest.New()
	left := t.TempDir()
	if err := os.WriteFile(filepath.Join(left, "answers"), []byte("A\nB\nhalf"), 0o600); err != nil {
		t.Fatal(err)
	}
	fake.OutputList = []status.Output{{Token: job.Token{Epoch: 1, Seq: 1}, Path: left, Range: job.Range{To: 2}, Files: []string{"answers"}}}
	fake.Set(status.Job{Name: "many", State: job.Finished, Total: 4, Progress: 4, Skipped: 2, Unit: "line"})
	a := clitest.Session(t, known{fake}, time.Now)
	r := runs(t, a, MapCmd, "--input", "in.txt", "--output", "-", "--mem", "1Gi", "--name", "many", "--", "cat")
	if r.err != nil || r.out != "A\nB\n" || !strings.Contains(r.errs, "2 lines answered; 2 skipped: 3, 4") {
		t.Errorf("%v: printed %q, and said %q", r.err, r.out, r.errs)
	}
	r = runs(t, a, MapCmd, "--input", "none.txt", "--output", "-", "--mem", "1Gi", "--", "cat")
	if r.err != nil || r.out != "" || !strings.Contains(r.errs, "0 lines answered") {
		t.Errorf("%v: printed %q, and said %q", r.err, r.out, r.errs)
	}
	r = runs(t, a, MapCmd, "--input", "in.txt", "--output", "-", "-o", "json", "--mem", "1Gi", "--", "cat")
	if command.ExitCode(r.err) != command.ExitUsage || !strings.Contains(r.err.Error(), "leave -o out") {
		t.Errorf("%v", r.err)
	}
	if list, err := os.ReadDir("."); err != nil || len(list) != 2 {
		t.Errorf("it leaves %v, %v", list, err)
	}
}

// TestOneLineIsOne: a count says so.
func TestOneLineIsOne(t *testing.T) {
	a := clitest.Session(t, apitest.New(), time.Now)
	var said bytes.Buffer
	a.Out, a.Err = &said, &said
	for _, output := range []string{"-", "out.txt"} {
		err := (&mapping{output: output}).tell(a, "many", 3, []int64{1, 3})
		if err != nil || !strings.Contains(said.String(), "1 line answered") {
			t.Errorf("%q, %v", &said, err)
		}
		said.Reset()
	}
}
