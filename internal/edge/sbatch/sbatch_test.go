package sbatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// understood reads a script whole, as people get it told.
func understood(text string) (Request, string) {
	s, wrong := Read([]byte(text))
	r, more := Understand(s.Options)
	var out []string
	for _, p := range append(wrong, more...) {
		out = append(out, fmt.Sprintf("%d: %s", p.Line, p.Text))
	}
	return r, strings.Join(out, "\n")
}

func TestScript(t *testing.T) {
	r, wrong := understood(`#!/bin/bash -l
# a comment, and ## SBATCH is one too
##SBATCH --time=9
#SBATCH --job-name="two words" --time 1-2:03:04   # a day and a bit
#SBATCH -a 1,3,5-9:2%4
#SBATCH -o 'logs/%x-%a.out'

#SBATCH --gres=gpu:1g.10gb:1
#SBATCH --requeue --signal=B:SIGUSR1@90
#SBATCH -t10 --time=20
#SBATCH --partition gpu --exclusive --mail-user=a\ b
python3 train.py --seed $SLURM_ARRAY_TASK_ID
`)
	if wrong != "" {
		t.Fatal(wrong)
	}
	if r.JobName != "two words" || r.Time != 20*time.Minute || r.Tasks.Parallel != 4 || len(r.Tasks.IDs) != 5 ||
		r.Output != "logs/%x-%a.out" ||
		r.Slices != 1 || r.Memory == 0 || r.Signal != "USR1" || r.Before != 90*time.Second || r.Array != "1,3,5-9:2%4" {
		t.Errorf("%+v", r)
	}
	var unknown []string
	for _, o := range r.Unknown {
		unknown = append(unknown, fmt.Sprintf("%d %s", o.Line, o))
	}
	if want := []string{"11 --partition=gpu", "11 --exclusive", "11 --mail-user=a b"}; !slices.Equal(unknown, want) {
		t.Errorf("%q, want %q", unknown, want)
	}
	if len(r.Notes) != 2 || r.Notes[0].Line != 8 || !strings.Contains(r.Notes[0].Text, "GPU memory") || r.Notes[1].Line != 9 {
		t.Errorf("notes %+v", r.Notes)
	}
}

func TestProblems(t *testing.T) {
	for text, want := range map[string]string{
		"echo\n":                                       "1: the first line",
		"#!\n":                                         "1: the first line",
		"#!/bin/sh\n#SBATCH --time=1 x\n":              `2: "x" is no option`,
		"#!/bin/sh\n#SBATCH --time=\"1\n":              `2: a " is not closed`,
		"#!/bin/sh\n#SBATCH --time=1 \\\n":             "2: ends in a backslash",
		"#!/bin/sh\necho\n#SBATCH --time=1\n":          "3: stands behind the first command",
		"#!/bin/sh\r\necho\r\n":                        "DOS",
		"#!/bin/sh\n\x00":                              "zero byte",
		"#!/bin/sh\n" + strings.Repeat("#\n", 70000):   "at most",
		"#!/bin/sh\n#SBATCH --time\n":                  "2: --time: has no value",
		"#!/bin/sh\n#SBATCH --requeue=yes\n":           "2: --requeue=yes: takes no value",
		"#!/bin/sh\n#SBATCH --time=1:2:3:4\n":          "is no time",
		"#!/bin/sh\n#SBATCH --time=abc\n":              "is no time",
		"#!/bin/sh\n#SBATCH --time=1-1:2:3:4\n":        "is no time",
		"#!/bin/sh\n#SBATCH --array=5-1\n":             "ends before it begins",
		"#!/bin/sh\n#SBATCH --mem=0\n":                 "all memory",
		"#!/bin/sh\n#SBATCH --mem=2X\n":                "is no size",
		"#!/bin/sh\n#SBATCH --mem=2KM\n":               "is no size",
		"#!/bin/sh\n#SBATCH --mem=1000000T\n":          "more than 1024T",
		"#!/bin/sh\n#SBATCH --gres=license:1\n":        "no other resources",
		"#!/bin/sh\n#SBATCH --gres=gpu:1,gpu:2\n":      "no other resources",
		"#!/bin/sh\n#SBATCH --gpus=0\n":                "no number of GPUs",
		"#!/bin/sh\n#SBATCH --output=%N.out\n":         "%N in it",
		"#!/bin/sh\n#SBATCH --output=../x\n":           "leads out",
		"#!/bin/sh\n#SBATCH --dependency=afterok:17\n": "sluice wait",
		"#!/bin/sh\n#SBATCH -d afterok:17:18\n":        "sluice wait",
		"#!/bin/sh\n#SBATCH --signal=KILL@10\n":        "no signal",
		"#!/bin/sh\n#SBATCH --signal=USR1@x\n":         "number of seconds",
		"#!/bin/sh\n#SBATCH --nodes=2\n":               "one machine",
		"#!/bin/sh\n#SBATCH --job-name=a/b\n":          "file's name",
		"#!/bin/sh\n#SBATCH --time=x\n#SBATCH --mem=0\n": "2: --time=x: is no time; want minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or " +
			"D-HH:MM:SS, at most 100 years\n3: --mem=0",
	} {
		if _, wrong := understood(text); !strings.Contains(wrong, want) {
			t.Errorf("%.60q: %q, want %q", text, wrong, want)
		}
	}
}

func TestTime(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Minute, "0:30": 30 * time.Second, "90:00": 90 * time.Minute, "1:02:03": time.Hour + 2*time.Minute + 3*time.Second,
		"2-3": 2*day + 3*time.Hour, "2-3:4": 2*day + 3*time.Hour + 4*time.Minute, "1-00:00:01": day + time.Second, "0": 0, "UNLIMITED": 0,
		"infinite": 0,
	} {
		if got, err := Time(text); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "1-", "-1:00", "1:", "1h", "1::2", "99999999", "40000-0"} {
		if got, err := Time(text); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestMemoryAndGPUs(t *testing.T) {
	for options, want := range map[string]string{
		"--mem=16G": "16Gi 1 notes 1", "--mem=500": "500Mi 1 notes 1", "--mem=1024K": "1Mi 1 notes 1", "--mem=2GB": "2Gi 1 notes 1",
		"--gres=gpu": "0 1 notes 0", "--gres=gpu:2": "0 2 notes 0", "--gpus=3": "0 3 notes 0", "--gpus=a100:2": "0 2 notes 1",
		"-G1":                          "0 1 notes 0",
		"--gres=gpu:a100:2 --mem=4G":   "4Gi 2 notes 2",
		"--gres=gpu:1g.10gb --mem=64G": "10G 1 notes 2",
		"--gres=gpu:a100_1g.10gb:3":    "10G 3 notes 1",
	} {
		list, err := Words(options)
		if err != nil {
			t.Fatal(err)
		}
		r, wrong := Understand(list)
		if got := fmt.Sprintf("%s %d notes %d", quantity.ExactBytes(r.Memory), r.Slices, len(r.Notes)); len(wrong) > 0 || got != want {
			t.Errorf("%s: %s %v %v, want %s", options, got, wrong, r.Notes, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("#!/bin/bash\n#SBATCH --array=1-3%2 -t 5 -J\"x y\" --mem 4G --gres=gpu:2\n#SBATCH -o%x\n" +
		"#SBATCH --signal=B:10@5 --requeue\nrun\n"))
	f.Add([]byte("#!\n#SBATCH -\n#SBATCH --\n#SBATCH \\ \n#SBATCH ' \""))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, wrong := Read(data)
		lines := strings.Count(string(data), "\n") + 1
		r, more := Understand(s.Options)
		for _, p := range append(append(wrong, more...), r.Notes...) {
			if p.Line < 1 || p.Line > lines || p.Text == "" {
				t.Fatalf("problem %+v of %d lines", p, lines)
			}
		}
		if len(wrong) == 0 && len(s.Interpreter) == 0 || r.Time < 0 || r.Memory < 0 || r.Before < 0 || len(more) == 0 && r.Slices < 1 {
			t.Fatalf("%+v %+v", s, r)
		}
		// Every option that is read is understood, said to be wrong, or listed.
		for _, o := range s.Options {
			if _, known := options()[o.Name]; !known && !slices.Contains(r.Unknown, o) {
				t.Fatalf("%+v is taken silently", o)
			}
		}
	})
}
