package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// batsimFolder is a reference made up for the test: a second job that has to wait for the first, with a start of its own.
func batsimFolder(t *testing.T, start string) string {
	t.Helper()
	dir := t.TempDir()
	text := "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,starting_time,execution_time,finish_time\n" +
		"0,w,0,32,10,1,0,5,5\n1,w,1,1,10,1," + start + ",0.5," + start + ".5\n"
	for _, name := range []string{"easy", "conservative"} {
		path := filepath.Join(dir, "backfill_ref", "medium_late_"+name+"_out_jobs.csv.gz")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

type batsimLine struct {
	Planner     string
	Jobs, Equal int
	Explained   int
	EqualByHost int
	Unexplained []struct {
		Job             string
		Published, Ours float64
	}
	OK bool
}

func batsimLines(t *testing.T, out string) (lines []batsimLine) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &lines); err != nil || len(lines) != 2 || lines[0].Planner != "easy" ||
		lines[1].Planner != "conservative" {
		t.Fatalf("%v: %s", err, out)
	}
	return lines
}

func TestSimCheckBatsim(t *testing.T) {
	code, out, errs := simulate(t.Context(), "check", "batsim", "--data", batsimFolder(t, "5"), "-o", "json")
	if lines := batsimLines(t, out); code != 0 || errs != "" || !lines[0].OK || lines[0].Equal != 2 || lines[1].Equal != 2 {
		t.Errorf("exit %d, %q: %+v", code, errs, lines)
	}
	code, out, errs = simulate(t.Context(), "check", "batsim", "--data", batsimFolder(t, "6"), "-o", "json")
	lines := batsimLines(t, out)
	if code != 1 || lines[0].OK || len(lines[0].Unexplained) != 1 || lines[0].Unexplained[0].Published != 6 ||
		lines[0].Unexplained[0].Ours != 5 {
		t.Errorf("a start that nothing explains: exit %d, %+v", code, lines)
	}
	if !strings.Contains(errs, "easy: 1 of 2 jobs start at a time that nothing explains") {
		t.Errorf("the error says %q", errs)
	}
	if code, _, errs = simulate(t.Context(), "check", "batsim"); code != 2 || !strings.Contains(errs, "backfill_ref") {
		t.Errorf("without data: exit %d, %q", code, errs)
	}
	if code, _, errs = simulate(t.Context(), "check", "batsim", "--data", t.TempDir()); code == 0 ||
		!strings.Contains(errs, "medium_late_easy") {
		t.Errorf("an empty folder: exit %d, %q", code, errs)
	}
}

func TestSimCheckBatsimPublished(t *testing.T) {
	dir := filepath.Dir(tracetest.Data(t, "backfill_ref"))
	code, out, errs := simulate(t.Context(), "check", "batsim", "--data", dir, "-o", "json")
	for _, l := range batsimLines(t, out) {
		if code != 0 || !l.OK || l.Jobs != 801 || l.EqualByHost != 801 || l.Equal+l.Explained != 801 {
			t.Errorf("exit %d, %q: %+v", code, errs, l)
		}
	}
	if code, out, _ = simulate(t.Context(), "check", "batsim", "--data", dir); code != 0 ||
		!strings.Contains(out, "801 of 801 starts are Batsim's") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
