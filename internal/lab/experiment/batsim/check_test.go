package batsim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/conservative"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

func TestEveryStartIsEqualOrExplained(t *testing.T) {
	lines, err := Check(filepath.Dir(tracetest.Data(t, "backfill_ref")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		l := &lines[i]
		if !l.OK() || l.Jobs != 801 || l.EqualByHost != 801 || l.Equal+l.Explained != 801 {
			t.Errorf("%+v", l)
		}
		// Most starts are equal even without naming hosts, or the planner itself has changed.
		if l.Equal < 700 {
			t.Errorf("%s: %d of %d starts are Batsim's", l.Planner, l.Equal, l.Jobs)
		}
		want := map[string]time.Duration{"easy": 9_520 * time.Millisecond, "conservative": 9_850 * time.Millisecond}[l.Planner]
		if (l.PublishedMeanWait - want).Abs() > 5*time.Millisecond {
			t.Errorf("%s: the reference waits %v on average, and is known to wait %v", l.Planner, l.PublishedMeanWait, want)
		}
		t.Logf("%s: %d equal, %d explained, mean wait %v, published %v, first %+v", l.Planner, l.Equal, l.Explained, l.MeanWait,
			l.PublishedMeanWait, l.First)
	}
}

// TestNamedHosts is the difference in its smallest form. When the last job comes, host 0 alone is free. The head, of two
// hosts, is reserved at 10 s, when 0, 1 and 2 are free. By number one of them is to spare; by name, 0 is the head's.
func TestNamedHosts(t *testing.T) {
	s := time.Second
	jobs := []Job{
		{ID: "short", Hosts: 1, Requested: s, Execution: s},
		{ID: "runs", Hosts: 2, Requested: 10 * s, Execution: 10 * s},
		{ID: "on", Hosts: 1, Requested: 100 * s, Execution: 100 * s},
		{ID: "head", Submitted: 2 * s, Hosts: 2, Requested: 10 * s, Execution: 10 * s},
		{ID: "last", Submitted: 3 * s, Hosts: 1, Requested: 15 * s, Execution: 15 * s},
	}
	for _, c := range []struct {
		kind    planner.Kind
		machine Machine
		last    time.Duration
	}{
		{easy.Kind(), Loose, 3 * s}, {namedEASY(), Loose, 10 * s},
		{conservative.Kind(), Loose, 3 * s}, {conservative.Kind(), Named, 10 * s},
	} {
		got, err := Replay(jobs, 4, c.machine, c.kind)
		if err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, 0, 0, 10 * s, c.last}; !slices.Equal(got, want) {
			t.Errorf("%s on machine %d: starts %v, want %v", c.kind.Name, c.machine, got, want)
		}
	}
}

func TestConservativeOnBothMachines(t *testing.T) {
	jobs := []Job{
		{ID: "a", Hosts: 1, Requested: 10, Execution: 5},
		{ID: "b", Submitted: 1, Hosts: 2, Requested: 10, Execution: 5},
		{ID: "c", Submitted: 2, Hosts: 1, Requested: 8, Execution: 8},
	}
	for _, m := range []Machine{Loose, Named} {
		got, err := Replay(jobs, 2, m, conservative.Kind())
		if err != nil || got[0] != 0 || got[1] != 10 || got[2] != 2 {
			t.Errorf("machine %d: starts %v, %v: c fits before b's reservation at 10, and a's early end does not help b", m, got, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	const head = "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,starting_time,execution_time,finish_time\n"
	for name, text := range map[string]string{
		"no job":    head,
		"too long":  head + "1,w,0,1,10,1,0,11,11\n",
		"failed":    head + "1,w,0,1,10,0,0,5,5\n",
		"too large": head + "1,w,0,33,10,1,0,5,5\n",
	} {
		file := filepath.Join(t.TempDir(), "jobs.csv")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want an error of kind Invalid that names the file", name, err)
		}
	}
	if _, err := Check(t.TempDir()); err == nil {
		t.Error("an empty folder must be refused")
	}
}
