package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An array runs each index once and keeps what each has said apart; the daemon is killed on the way.
func TestArrayOutlastsTheDaemon(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	done := make(chan string, 1)
	go func() {
		out, errs, code := d.sluice("run", "--array", "1,3,10-28:2%3", "--per-item", "300ms", "--mem", "16Mi", "--name", "array", "--quiet",
			"--server", d.addr, "--",
			"sh", "-c", `sleep 0.2; echo "index $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"`)
		done <- fmt.Sprintf("exit %d\n%s%s", code, out, errs)
	}()
	d.until("some of it is done", func() bool {
		_, _, code := d.sluice("job", "array")
		return code == 0 && d.job("array").Progress > 1
	})
	d.kill()
	d.start()
	says(t, <-done, "exit 0", "job array COMPLETED, 12/12")
	for _, i := range []int{1, 3, 10, 28} {
		if out := d.must("output", "array", "--cat", "--file", fmt.Sprintf("slurm-array_%d.out", i)); out != fmt.Sprintf("index %d of 12\n",
			i) {
			t.Errorf("task %d: %q", i, out)
		}
	}
	rows := results(t, d, "array")
	if len(rows) != 12 || rows[11]["task"] != 28.0 || rows[0]["state"] != "DONE" {
		t.Errorf("%v", rows)
	}
}

func results(t *testing.T, d *daemon, name string) (rows []map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(d.must("sweep", "results", name, "-o", "json")), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// A batch script runs as it is, with the directory that it was submitted from; what is not understood is not taken silently.
func TestBatchScript(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("data.txt", "from here\n")
	write("fold.sh", `#!/bin/sh
#SBATCH --job-name="My fold" --array=1-4%2
#SBATCH --time 1:00 --mem=16M -o logs/%x-%2a.out
#SBATCH --partition=gpu
cd "$SLURM_SUBMIT_DIR" && cat data.txt && echo "$SLURM_ARRAY_TASK_ID $1"
[ $SLURM_ARRAY_TASK_ID != 3 ] || { echo no good >&2; exit 4; }
`)
	d.fails(2, []string{"fold.sh:4: --partition=gpu: is not understood here", "--ignore-unknown"}, "submit", "fold.sh")
	_, errs, code := d.sluice("submit", "--wait", "--quiet", "--ignore-unknown", "fold.sh", "--server", d.addr, "--", "--fast")
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	says(t, errs, "fold.sh:3: --mem=16M is taken as the GPU's memory", "fold.sh:4: --partition=gpu is not understood, and left out",
		"the current directory goes along", "task 3: exit 4")
	name := strings.TrimSpace(d.must("jobs", "-o", "name"))
	if out := d.must("output", name, "--cat", "--file", "logs/*-03.out"); out != "from here\n3 --fast\nno good\n" {
		t.Errorf("%q", out)
	}

	write("one.sh", "#!/bin/sh\n#SBATCH -t 0:30 --mem=16M\necho $SLURM_JOB_NAME; cat data.txt; cd \"$SLURM_SUBMIT_DIR\"; cat data.txt\n")
	d.must("submit", "--wait", "--quiet", "one.sh")
	name = strings.Fields(d.must("jobs", "-o", "name", "--limit", "1"))[0]
	if out := d.must("logs", name); out != "one.sh\nfrom here\nfrom here\n" {
		t.Errorf("%q of %s", out, name)
	}

	runs := filepath.Join(d.dir, "runs")
	write("bad.sh", "#!/bin/sh\n#SBATCH -t 1:00 --mem=16M\necho ran >> "+runs+"; exit 3\n")
	d.fails(1, []string{"FAILED"}, "submit", "--wait", "--quiet", "bad.sh")
	if j := d.must("jobs", "--limit", "1", "-o", "json"); !strings.Contains(j, "its subjob ended without progress: exit status 3") {
		t.Errorf("%s", j)
	}
	if out, err := os.ReadFile(runs); string(out) != "ran\n" {
		t.Errorf("%q, %v: a script that fails is run once", out, err)
	}
}

// A sweep has each trial once, with its metrics, and lists what has failed.
func TestSweep(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	sweep := []string{"sweep", "--grid", "lr=1e-3,3e-4", "--grid", "seed=0..9", "--per-trial", "200ms", "--mem", "16Mi", "--name", "sweep",
		"--quiet",
		"--no-workdir", "--server", d.addr, "--", "sh", "-c", `sleep 0.1; [ $2 != 4 ] || exit 7
echo "{\"metric\": $1, \"step\": 1}" > "$SLUICE_METRICS_FILE"
echo "{\"metric\": 0.$2, \"step\": 2}" >> "$SLUICE_METRICS_FILE"; echo $1 $2`,
		"sh", "{lr}", "{seed}"}
	type end struct {
		errs string
		code int
	}
	if _, errs, code := d.sluice("sweep", "--grid", "x=1,2", "--random", "0", "--mem", "16Mi", "--", "true", "{x}"); code != 2 ||
		!strings.Contains(errs, "--random 0") {
		t.Errorf("exit %d: %s; want none of 0 trials", code, errs)
	}
	done := make(chan end, 1)
	go func() {
		_, errs, code := d.sluice(sweep...)
		done <- end{errs, code}
	}()
	d.until("some of it is done", func() bool {
		_, _, code := d.sluice("job", "sweep")
		return code == 0 && d.job("sweep").Progress > 2
	})
	d.kill()
	d.start()
	e := <-done
	if e.code != 0 {
		t.Errorf("exit %d: %s", e.code, e.errs)
	}
	says(t, e.errs, "sluice: 20 trials\n", "18 trials done, 2 failed, 0 skipped", "trial 4: exit 7; trial 14: exit 7")
	rows := results(t, d, "sweep")
	if len(rows) != 20 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, r := range rows {
		lr, seed := []string{"1e-3", "3e-4"}[i/10], fmt.Sprint(i%10)
		state, metric := "DONE", any(float64(i%10)/10)
		if seed == "4" {
			state, metric = "FAILED", nil
		}
		if r["trial"] != float64(i) || r["lr"] != lr || r["seed"] != seed || r["state"] != state || r["metric"] != metric {
			t.Errorf("%v", r)
		}
	}
	if out := d.must("output", "sweep", "--cat", "--file", "trial-13.out"); out != "3e-4 3\n" {
		t.Errorf("%q", out)
	}
	// The same again finds it done.
	if _, errs, code := d.sluice(sweep...); code != 0 || !strings.Contains(errs, "18 trials done") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A task that is killed wherever it runs is the one that fails: those behind it run.
func TestTaskThatIsAlwaysKilled(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	_, errs, code := d.sluice("run", "--array", "0-9", "--per-item", "100ms", "--mem", "16Mi", "--name", "killed", "--quiet", "--server",
		d.addr, "--", "sh", "-c",
		`case $SLURM_ARRAY_TASK_ID in 0|4) echo x >> "`+d.dir+`/tries"; kill -9 $$;; esac; echo $SLURM_ARRAY_TASK_ID`)
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	says(t, errs, "task 0: signal 9 (killed), most likely for want of memory; task 4: signal 9 (killed), most")
	if j := d.job("killed"); j.State != "COMPLETED" || j.Progress != 10 {
		t.Errorf("%+v", j)
	}
	// Three times each, and once more whenever its lease ends before its second run has.
	tries, err := os.ReadFile(filepath.Join(d.dir, "tries"))
	if n := strings.Count(string(tries), "x"); err != nil || n < 4 || n > 20 {
		t.Errorf("two tasks were tried %d times, %v; want each at least twice, and not for ever", n, err)
	}
	for i, r := range results(t, d, "killed") {
		state := "DONE"
		if i == 0 || i == 4 {
			state = "FAILED"
		}
		if r["task"] != float64(i) || r["state"] != state {
			t.Errorf("%v, want %s", r, state)
		}
	}
}

// A trial whose lease ends is run again, and has one record.
func TestTaskThatIsCut(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	go d.sluice("run", "--array", "0-3", "--per-item", "100ms", "--mem", "16Mi", "--name", "cut", "--set", "grace=300ms", "--server",
		d.addr, "--", "sh", "-c",
		`[ $SLURM_ARRAY_TASK_ID != 2 ] || { echo x >> "`+d.dir+`/tries"; sleep 2; }; echo $SLURM_ARRAY_TASK_ID`)
	d.until("it is accepted", func() bool { _, _, code := d.sluice("job", "cut"); return code == 0 })
	d.done("cut")
	if tries, err := os.ReadFile(filepath.Join(d.dir, "tries")); err != nil || strings.Count(string(tries), "x") < 2 {
		t.Errorf("it was never cut: %q, %v", tries, err)
	}
	rows := results(t, d, "cut")
	if len(rows) != 4 || rows[2]["state"] != "DONE" || rows[2]["seconds"].(float64) < 1.9 {
		t.Errorf("%v", rows)
	}
	for i := range 4 {
		if out := d.must("output", "cut", "--cat", "--file", fmt.Sprintf("slurm-cut_%d.out", i)); out != fmt.Sprintf("%d\n", i) {
			t.Errorf("task %d: %q", i, out)
		}
	}
}

// Hopeless trials are stopped, whichever subjob they are in, and what is known of the others outlives the daemon; the best one is never
// stopped.
func TestHopelessTrials(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	sweep := []string{"sweep", "--grid", "x=0..39", "--per-trial", "800ms", "--mem", "16Mi", "--name", "hopeless", "--quiet",
		"--stop-when", "hopeless", "--goal", "minimize", "--from-step", "2", "--no-workdir", "--server", d.addr, "--", "sh", "-c",
		`trap 'exit 1' TERM; for step in 1 2 3 4 5 6; do echo "{\"metric\": $1, \"step\": $step}" >> "$SLUICE_METRICS_FILE"; sleep 0.12; done`,
		"sh", "{x}"}
	done := make(chan string, 1)
	go func() {
		_, errs, code := d.sluice(sweep...)
		done <- fmt.Sprintf("exit %d\n%s", code, errs)
	}()
	d.until("a trial was stopped", func() bool {
		_, _, code := d.sluice("job", "hopeless")
		return code == 0 && slices.ContainsFunc(results(t, d, "hopeless"), func(r map[string]any) bool { return r["state"] == "STOPPED" })
	})
	d.kill()
	d.start()
	says(t, <-done, "exit 0", "stopped as hopeless, 0 failed, 0 skipped")
	stopped := 0
	for _, r := range results(t, d, "hopeless") {
		switch {
		case r["state"] == "STOPPED" && r["x"] != "0":
			if r["end"] == "stopped at step 2, hopeless" { // else at the last, 6
				stopped++
			}
		case r["state"] != "DONE" || r["step"] != 6.0:
			t.Errorf("%v", r)
		}
	}
	if stopped < 10 {
		t.Errorf("%d of 40 were stopped at the first step at which they are compared", stopped)
	}
}
