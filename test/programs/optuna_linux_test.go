package programs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// python is Debian's, which has Debian's modules.
const python = "/usr/bin/python3"

// TestOptuna: a study, cut and struck, has the trials that it has uncut, with the same numbers, parameters and values to the last bit:
// none lost, none twice, none left RUNNING.
func TestOptuna(t *testing.T) {
	needs(t, "python3-optuna", python, "-c", "import optuna")
	program{
		name: "optuna", units: 80, window: 8 * time.Second, key: "perStep", estimate: "1s",
		prepare: func(t *testing.T, dir string, units int) {
			edit(t, filepath.Join(dir, "job.yaml"), "total: 100", "total: "+strconv.Itoa(units), "[python3,", "["+python+",",
				"grace: 10s", "grace: 2s")
			// Work, which takes longer on a slow machine, as the start of Python does there.
			edit(t, filepath.Join(dir, "objective.py"), "time.sleep(0.5)", "sum(range(8_000_000))")
		},
		same: func(t *testing.T, uncut, cut *daemon, job string, units int) {
			want, got := trials(t, uncut.last(job)), trials(t, cut.last(job))
			if n := strings.Count(want, "COMPLETE"); n != units {
				t.Errorf("uncut, %d trials are COMPLETE: want %d\n%s", n, units, want)
			}
			if got != want {
				t.Errorf("the trials of the study that was cut are\n%s\nuncut\n%s", got, want)
			}
		},
	}.compare(t)
}

// trials are a study's, a line each.
func trials(t *testing.T, output string) string {
	t.Helper()
	const list = `
import sys, optuna
for s in optuna.get_all_study_summaries("sqlite:///" + sys.argv[1]):
    for n in optuna.load_study(study_name=s.study_name, storage="sqlite:///" + sys.argv[1]).trials:
        print(n.number, n.state.name, n.value, sorted(n.params.items()))`
	// SQLite opens it to write, and what is published is not to change.
	db := filepath.Join(t.TempDir(), "study.db")
	text, err := os.ReadFile(filepath.Join(output, "study.db"))
	if err == nil {
		err = os.WriteFile(db, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	c := exec.Command(python, "-c", list, db)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return string(out)
}
