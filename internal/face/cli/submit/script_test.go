package submit

import (
	"bytes"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/clitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// told makes a job of a script, and is what was said on the way.
func told(t *testing.T, how scripting, file, text string) (submission, string, error) {
	t.Helper()
	var said bytes.Buffer
	a := session.New(session.Options{Getenv: func(string) string { return "" }})
	a.Err = &said
	s, err := how.compose(a, file, []byte(text))
	return s, said.String(), err
}

func TestScriptBecomesAnArray(t *testing.T) {
	s, said, err := told(t, scripting{args: []string{"--fast"}}, "dir/fold.v2.sh", `#!/bin/bash -l
#SBATCH -a 1-9:2%2 -t 30 --gres=gpu:1g.10gb --signal=USR1@90
#SBATCH -o x-%a.out
run
`)
	if err != nil {
		t.Fatal(err)
	}
	spec := s.job.Spec
	want := job.Adapter{Array: job.Array{Indices: "1-9:2%2", Name: "fold.v2.sh", Output: "x-%a.out", Limit: spec.PerUnit}, Keep: true}
	if spec.Kind != job.Items || spec.Total != 5 || spec.Parallelism != 2 || spec.PerUnit.Minutes() != 30 || spec.Launch.Adapter != want ||
		spec.Launch.WarnSignal != 10 || spec.Unit != "task" || spec.OnBadItem != job.BadItemSkips || s.job.Workdir != "." ||
		s.goes != here {
		t.Errorf("%+v", spec)
	}
	if !strings.HasPrefix(s.name, "fold-v2-sh-") || !strings.Contains(said,
		"sluice: dir/fold.v2.sh:2: --gres=gpu:1g.10gb is taken as a need of") {
		t.Errorf("%s: %q", s.name, said)
	}
	if c := spec.Launch.Command; len(c) != 9 || c[3] != "/bin/bash" || c[4] != "-l" || c[5] != "-c" || !strings.HasSuffix(c[6],
		"\nrun\n") ||
		c[7] != "fold.v2.sh" || c[8] != "--fast" {
		t.Errorf("%q", c)
	}
}

func TestScriptBecomesARigidJob(t *testing.T) {
	s, _, err := told(t, scripting{options: "--mem=8G --time=1:00:00", stay: true}, "one.sh", "#!/bin/sh\n#SBATCH --time=5 --gpus=2\nrun\n")
	if err != nil {
		t.Fatal(err)
	}
	if spec := s.job.Spec; spec.MaxFailures != 1 {
		t.Errorf("it fails after %d runs that failed, and sbatch runs a script once", spec.MaxFailures)
	}
	if spec := s.job.Spec; spec.Kind != job.Rigid || spec.Slices != 2 || spec.Walltime.Hours() != 1 || s.job.Workdir != "" ||
		spec.Launch.Adapter.Given() {
		t.Errorf("%+v", spec)
	}
}

// TestAnArrayWithoutTimeIsMeasured: no limit is no time that its tasks take.
func TestAnArrayWithoutTimeIsMeasured(t *testing.T) {
	for _, options := range []string{"", "--time=0", "-t UNLIMITED"} {
		s, _, err := told(t, scripting{options: options}, "a.sh", "#!/bin/sh\n#SBATCH --array=0-9 --mem=1G\nrun\n")
		if err != nil {
			t.Fatal(err)
		}
		if spec := s.job.Spec; !spec.Untimed() || spec.Launch.Adapter.Array.Limit != 0 || spec.Total != 10 {
			t.Errorf("%q: %+v", options, spec)
		}
	}
}

// TestWhatIsNoScriptAndNoJobFile: a script that lacks its first line is taken for neither, and what to do is said.
func TestWhatIsNoScriptAndNoJobFile(t *testing.T) {
	t.Chdir(clitest.Tree(t, map[string]string{"a.sh": "#SBATCH --mem=1G\npython3 train.py --lr 1e-3\n", "b.sh": "set -e\necho a: b: c\n",
		"c.py": "import torch\n", "late.sh": "\n#!/bin/sh\necho\n", "mark.sh": "\ufeff#!/bin/sh\necho\n",
		"job.yml": "apiVersion: sluice/v1\nkind: [\n", "job.json": "{\"spec\": }", "empty.yml": "", "list.yml": "- a\n- b\n"}))
	a := session.New(session.Options{Getenv: func(string) string { return "" }})
	const lacks = "looks like a script without its first line: begin it with #!/bin/sh, or "
	const late = "#! has to be the first two bytes of a script"
	for file, says := range map[string]string{"a.sh": lacks, "b.sh": lacks, "c.py": lacks, "late.sh": late,
		"mark.sh": late,
		"job.yml": "", "list.yml": "", "job.json": "", "empty.yml": ""} {
		_, err := read(a, []string{file}, &scripting{})
		switch {
		case err == nil || command.ExitCode(err) != command.ExitUsage || !strings.HasPrefix(err.Error(), file+":"):
			t.Errorf("%s: %v", file, err)
		case says == "" && strings.Contains(err.Error(), "script"), !strings.Contains(err.Error(), says):
			t.Errorf("%s: %v, want %q", file, err, says)
		}
	}
}

// TestScriptsThatAreRefused: all that is wrong is said at once, with its line.
func TestScriptsThatAreRefused(t *testing.T) {
	for text, want := range map[string][]string{
		"#!/bin/sh\n#SBATCH --time=x --partition=gpu\n#SBATCH --array=1-\n": {"s:2: --time=x: is no time",
			"s:2: --partition=gpu: is not understood here",
			"s:3: --array=1-: "},
		"#!/bin/sh\n#SBATCH --array=1-3\n": {"s: how much GPU memory it needs"},
		"#!/bin/sh\n#SBATCH --array=1-3 --gpus=2 -t 1 --mem=1G -o x.out\n": {"on one slice, and 2 GPUs",
			"every task would write the same file, x.out"},
		"#!/usr/bin/perl\n#SBATCH --mem=1G\n":                  {"no directory goes along"},
		"#!/bin/sh\n#SBATCH --mem=1G --signal=USR1@3\n":        {"spec.warn.before: is 3s; SIGTERM comes 5s before the end"},
		"#!/bin/sh\n#SBATCH --mem=1G\n#SBATCH -d afterok:17\n": {"s:3: --dependency=afterok:17: no job here waits for another"},
	} {
		_, said, err := told(t, scripting{stay: true}, "s", text)
		if err == nil || command.ExitCode(err) != command.ExitUsage {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %q", text, err, w)
			}
		}
		if strings.Contains(said, "left out") {
			t.Errorf("%q: %q", text, said)
		}
	}
	if _, said, err := told(t, scripting{ignore: true}, "s", "#!/bin/sh\n#SBATCH --mem=1G --partition gpu\n"); err != nil ||
		!strings.Contains(said, "s:2: --partition=gpu is not understood, and left out") {
		t.Errorf("%q, %v", said, err)
	}
	// An interpreter that is no shell finds the script where it lies.
	t.Chdir(clitest.Tree(t, map[string]string{"sub/x.py": "x"}))
	s, _, err := told(t, scripting{}, "sub/x.py", "#!/usr/bin/env python3\n#SBATCH --mem=1G\n")
	if c := s.job.Spec; err != nil || strings.Join(c.Launch.Command[3:], " ") != "/usr/bin/env python3 sub/x.py" {
		t.Errorf("%v %v", c, err)
	}
	if _, _, err := told(t, scripting{}, "../x.py", "#!/usr/bin/env python3\n#SBATCH --mem=1G\n"); err == nil ||
		!strings.Contains(err.Error(), "not below") {
		t.Error(err)
	}
}
