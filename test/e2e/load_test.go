package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestThousandJobsInTheQueue(t *testing.T) {
	t.Parallel()
	d := up(t, three, "--log", "warn")
	slices := d.slices()
	for _, s := range slices {
		d.must("pause", s.ID)
	}
	var text strings.Builder
	for i := range 1000 {
		if i%100 == 0 && i > 0 {
			d.submit(text.String())
			text.Reset()
		}
		text.WriteString(spec(fmt.Sprintf("job-%d", i), "items: {total: 1, perItem: 1ms}", "true"))
	}
	d.submit(text.String())
	for _, args := range [][]string{{"jobs"}, {"explain", "job-999"}, {"windows"}, {"slices"}, {"queues"}} {
		d.must(args...)
	}
	if n := strings.Count(d.must("jobs", "-o", "name"), "job-"); n != 1000 {
		t.Errorf("%d jobs, want 1000", n)
	}
	d.kill()
	d.start()
	for _, s := range slices {
		d.must("resume", s.ID)
	}
	d.done("job-0")
	if n := strings.Count(d.must("jobs", "-o", "name"), "job-"); n != 1000 {
		t.Errorf("%d jobs after the restart, want 1000", n)
	}
}

func TestOutputOfManySubjobs(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi+64Mi+64Mi", "--log", "warn")
	// Each subjob does one unit and gives the rest back.
	d.submit(spec("pieces", "items: {total: 250, perItem: 1ms, parallelism: 4}", `echo $SLUICE_FROM > "$SLUICE_OUTPUT_DIR/units"; `+say+
		`say $((SLUICE_FROM+1)); exit 85`))
	j := d.done("pieces")
	if j.Subjobs < 250 {
		t.Errorf("%d subjobs, want one for each unit", j.Subjobs)
	}
	d.once("pieces", 250)
	if n := len(strings.Fields(d.must("output", "pieces", "--cat"))); n != 250 {
		t.Errorf("--cat has %d lines", n)
	}
}

func TestQueuesKeepTheirCaps(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi+64Mi+64Mi", "--log", "warn")
	d.must("queue", "set", "small", "--cap", "1", "--max-jobs", "2")
	d.must("queue", "set", "big", "--weight", "3")
	for _, s := range d.slices() {
		d.must("pause", s.ID) // nothing ends before the third job has been tried
	}
	d.submit(spec("capped", "items: {total: 40, perItem: 50ms, parallelism: 4}", each("sleep 0.02"), "queue: small"))
	d.submit(spec("free", "items: {total: 40, perItem: 50ms, parallelism: 4}", each("sleep 0.02"), "queue: big"))
	d.submit(spec("second", "items: {total: 1, perItem: 1ms}", each(":"), "queue: small"))
	_, errs, code := d.as([]byte(spec("third", "items: {total: 1, perItem: 1ms}", each(":"), "queue: small")), "submit", "-f", "-")
	if code == 0 {
		t.Error("a third job was taken where two may be")
	}
	says(t, errs, "queue small", "2 unfinished jobs")
	for _, s := range d.slices() {
		d.must("resume", s.ID)
	}
	most := 0
	d.until("they are over", func() bool {
		capped := d.job("capped")
		most = max(most, capped.Running)
		return capped.State == "COMPLETED" && d.job("free").State == "COMPLETED" && d.job("second").State == "COMPLETED"
	})
	if most > 1 {
		t.Errorf("queue small had %d slices, its cap is 1", most)
	}
	for name, total := range map[string]int64{"capped": 40, "free": 40, "second": 1} {
		d.once(name, total)
	}
}

func TestPoliciesFinishTheSameWork(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"fair", "throughput", "deadline", "fifo", "shortest"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			d := up(t, three, "--policy", policy)
			var text string
			for i := range 6 {
				text += spec(fmt.Sprintf("job-%d", i), "items: {total: 10, perItem: 5ms, parallelism: 2}", each(":"),
					fmt.Sprintf("priority: %d", i))
			}
			d.submit(text + spec("whole", "rigid: {walltime: 2s}", `seq 0 0 > "$SLUICE_OUTPUT_DIR/units"`))
			for i := range 6 {
				d.done(fmt.Sprintf("job-%d", i))
				d.once(fmt.Sprintf("job-%d", i), 10)
			}
			d.done("whole")
		})
	}
}

// What is estimated holds: a second job behind a first one of known length.
func TestEstimatesAreTrue(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	sleeps := `sleep 3; : > "$SLUICE_OUTPUT_DIR/o"`
	d.submit(spec("first", "items: {total: 10, perItem: 360ms, grid: 10}", sleeps))
	d.running("first", 1)
	second := spec("second", "items: {total: 10, perItem: 360ms, grid: 10}", sleeps)
	out, errs, code := d.as([]byte(second), "submit", "-f", "-", "--dry-run")
	if code != 0 {
		t.Fatalf("dry run: %s", errs)
	}
	says(t, out, "second")
	if strings.Contains(d.must("jobs"), "second") {
		t.Error("a dry run submitted")
	}
	d.submit(second)
	j := d.job("second")
	if j.FinishLatest.IsZero() || j.Reason == "" {
		t.Fatalf("no estimate: %+v", j)
	}
	said := j.FinishLatest
	j = d.done("second")
	// The lease of the first may end earlier than planned; late by more than a second is wrong on any machine.
	if late := j.Ended.Sub(said); late > 3*time.Second {
		t.Errorf("said %v at the latest, was %v", said, j.Ended)
	}
}

func TestPauseResumeAndCancelJobs(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.must("queue", "set", "default", "--max-window", "2s")
	d.submit(spec("held", "items: {total: 20, perItem: 200ms, grid: 1}", each(`sleep 0.1; [ $i -lt 10 ] || `+d.opened("held")),
		"grace: 200ms", "maxFailures: 1000"))
	d.running("held", 1)
	d.must("pause", "held")
	d.until("it is held", func() bool { return d.job("held").Running == 0 })
	d.must("pause", "held")
	d.kill()
	d.start()
	d.must("resume", "held")
	d.write("held", "")
	d.done("held")
	d.once("held", 20)
	d.submit(spec("ends", "items: {total: 1000, perItem: 50ms, grid: 1}", each("sleep 0.03"), "grace: 200ms"))
	d.until("some of it is done", func() bool { return d.job("ends").Running == 1 })
	d.must("cancel", "ends")
	d.sluice("cancel", "ends") // it may be over by now, which is told
	if j := d.over("ends"); j.State != "CANCELLED" {
		t.Errorf("%s", j.State)
	}
	d.fails(1, []string{"over already", "CANCELLED"}, "cancel", "ends")
	d.until("its subjob is gone", func() bool { return d.slices()[0].State == "idle" })
	d.fails(1, []string{"is over"}, "pause", "ends")
}

func TestLogsFollow(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi")
	d.submit(spec("talks", "items: {total: 1, perItem: 5s}", `for i in 1 2 3; do echo line $i; sleep 0.2; done`))
	// From when it was sold its part, which is before it begins.
	d.until("it has a subjob", func() bool { return len(d.job("talks").History) > 0 })
	c := exec.Command(filepath.Join(bin, "sluice"), "logs", "talks", "-f", "--server", d.addr)
	var errs strings.Builder
	c.Stderr = &errs
	pipe, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(pipe)
	if err != nil || c.Wait() != nil {
		t.Errorf("following: %v %s", err, errs.String())
	}
	if string(data) != "1-1 | line 1\n1-1 | line 2\n1-1 | line 3\n" {
		t.Errorf("followed %q", data)
	}
	var about map[string]any
	if err := json.Unmarshal([]byte(d.must("status", "-o", "json")), &about); err != nil {
		t.Error(err)
	}
}
