// Package witness keeps trials of whole systems to account by what no part of Sluice knows: programs write each unit that they do to a file
// of their own before they write it to their output, and the judge compares what is committed with what there must be and with what was
// witnessed. What strikes the system is the trial's own (test/cluster, test/slurm).
package witness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	// WorkerVariable makes a test program the program of a subjob (Work); it names the folder of witnesses.
	WorkerVariable = "WITNESS_WORKER"
	// StepsVariable is set besides for a job of steps.
	StepsVariable = "WITNESS_STEPS"
	// Pace is what a unit takes.
	Pace = 100 * time.Millisecond
	// Grid is how many units are reported at once.
	Grid = 10
	// unitsFile is what each subjob writes its units to.
	unitsFile = "units"
)

// Work does the units of a subjob. Each is written to the job's witness, outside of all that Sluice knows, by one append, and then to the
// output: the unit, the subjob and the machine. Steps leave a checkpoint with each report, and go on from the last.
func Work(witnesses string) {
	host, err := os.Hostname()
	check(err)
	name, subjob := os.Getenv("SLUICE_JOB"), os.Getenv("SLUICE_SUBJOB")
	from, to := number("SLUICE_FROM"), number("SLUICE_TO")
	steps := os.Getenv(StepsVariable) != ""
	state := func(folder string, n int64) string {
		return filepath.Join(os.Getenv(folder), fmt.Sprintf("state-%d", n))
	}
	if steps && from > 0 {
		text, failed := os.ReadFile(state("SLUICE_RESUME_DIR", from))
		check(failed)
		if string(text) != name {
			check(fmt.Errorf("the checkpoint at %d is %q", from, text))
		}
	}
	witness, err := os.OpenFile(filepath.Join(witnesses, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(err)
	var out bytes.Buffer
	for i := from; i < to; i++ {
		time.Sleep(Pace)
		line := fmt.Sprintf("%d %s %s\n", i, subjob, host)
		_, err = witness.WriteString(line)
		check(err)
		out.WriteString(line)
		if done := i + 1; done%Grid == 0 || done == to {
			publish(filepath.Join(os.Getenv("SLUICE_OUTPUT_DIR"), unitsFile), out.Bytes())
			if steps {
				publish(state("SLUICE_CHECKPOINT_DIR", done), []byte(name))
			}
			publish(os.Getenv("SLUICE_PROGRESS_FILE"), fmt.Appendf(nil, `{"progress": %d, "checkpoint": %v}`, done, steps))
		}
	}
}

func number(variable string) int64 {
	n, err := strconv.ParseInt(os.Getenv(variable), 10, 64)
	check(err)
	return n
}

// publish replaces a file whole.
func publish(path string, data []byte) {
	check(os.WriteFile(path+".tmp", data, 0o644))
	check(os.Rename(path+".tmp", path))
}

// check ends a subjob that can't go on, as its own failure.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}
