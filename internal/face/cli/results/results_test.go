package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/tasks"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/clitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// restarting is a daemon that goes away between a call and the next.
type restarting struct {
	*apitest.Fake
	calls int
}

func (r *restarting) Outputs(ctx context.Context, name job.ID) ([]status.Output, error) {
	if r.calls++; r.calls == 1 || r.calls == 3 {
		return nil, errkind.Errorf(errkind.Unavailable, "the daemon is stopping")
	}
	return r.Fake.Outputs(ctx, name)
}

// TestResults: a record counts within the range that its subjob committed, whatever else stands in its file, and what has none is told
// apart. A daemon that restarts meanwhile is waited for.
func TestResults(t *testing.T) {
	dir := t.TempDir()
	record := func(unit, exit int) string {
		return fmt.Sprintf(`{"unit":%d,"exit":%d,"seconds":1.5,"output":"trial-%d.out","params":[{"name":"lr","value":"1e-%d"}],`+
			`"metrics":{"lines":2,"last":0.25,"step":20,"least":0.25,"most":0.5}}`+"\n", unit, exit, unit, unit)
	}
	fake := apitest.New()
	for i, text := range []string{record(0, 0) + record(1, 3) + record(2, 9), record(2, 0) + `{"unit":3,"ex`} {
		folder := filepath.Join(dir, fmt.Sprint(i))
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "tasks.jsonl"), []byte(text), 0o600),
			os.WriteFile(filepath.Join(folder, "trial-0.out"), []byte(record(0, 7)), 0o600)); err != nil {
			t.Fatal(err)
		}
		fake.OutputList = append(fake.OutputList, status.Output{Token: job.Token{Epoch: 1, Seq: uint64(i + 1)}, Path: folder,
			Range: job.Range{From: int64(2 * i), To: int64(2*i + 2 - i)}, Files: []string{"tasks.jsonl", "trial-0.out"}})
	}
	fake.Set(status.Job{Name: "sweep", State: job.Finished, Total: 4, Progress: 4, Skipped: 1, Unit: "trial"})
	service := &restarting{Fake: fake}
	a := clitest.Session(t, service, time.Now)
	var out, said bytes.Buffer
	a.Out, a.Err = &out, &said
	c, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := fetchRows(t.Context(), a, c, "sweep", true)
	if err != nil {
		t.Fatal(err)
	}
	if service.calls < 4 || !strings.Contains(said.String(), "is away") || !strings.Contains(said.String(), "is back") {
		t.Errorf("%d calls, said %q", service.calls, &said)
	}
	said.Reset()
	a.Format = "csv"
	if err := show(a, rows); err != nil {
		t.Fatal(err)
	}
	if want := `trial,lr,state,metric,step,least,most,seconds,end,output
0,1e-0,DONE,0.25,20,0.25,0.5,1.5,exit 0,trial-0.out
1,1e-1,FAILED,0.25,20,0.25,0.5,1.5,exit 3,trial-1.out
2,1e-2,DONE,0.25,20,0.25,0.5,1.5,exit 0,trial-2.out
3,,SKIPPED,,,,,,,
`; out.String() != want {
		t.Errorf("%s, want\n%s", &out, want)
	}
	if err := Summary(t.Context(), a, c, "sweep"); err != nil ||
		said.String() != "sluice: 2 trials done, 1 failed, 1 skipped; `sluice sweep results "+
			"sweep` shows them\nsluice: failed: trial 1: exit 3\n" {
		t.Errorf("%q, %v", &said, err)
	}
	if err := Judge(t.Context(), a, c, "sweep"); err == nil || command.ExitCode(err) != command.ExitFailed || !strings.Contains(err.Error(),
		"trial 1: exit 3") {
		t.Error(err)
	}
}

// TestOpenTasks: what has no record yet is called by its index, and says whether it waits or runs; of a job that is over it stays open.
func TestOpenTasks(t *testing.T) {
	j := &pb.Job{Name: "a", Total: 6, State: pb.Job_RUNNING, Unit: "task", History: []*pb.Subjob{
		{Range: &pb.Range{From: 0, To: 1}, Outcome: pb.Subjob_DONE},
		{Range: &pb.Range{From: 1, To: 4}, Outcome: pb.Subjob_RUNNING, Running: true, Progress: 2},
		{Range: &pb.Range{From: 4, To: 5}, Outcome: pb.Subjob_RUNNING, Running: true},
		{Range: &pb.Range{From: 5, To: 6}, Outcome: pb.Subjob_SOLD, Running: true},
	}}
	spec, _, err := config.Compose([]strict.Set{{Path: "apiVersion", Value: "sluice.dev/v1alpha1"}, {Path: "kind", Value: "Job"},
		{Path: "metadata.name", Value: "a"}, {Path: "spec.items.total", Value: "6"}, {Path: "spec.memory", Value: "1Gi"},
		{Path: "spec.command", Value: "[x]"}, {Path: "spec.adapter.array.indices", Value: "10,20-24"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := config.RenderJob(spec, "")
	if err != nil {
		t.Fatal(err)
	}
	j.Spec = string(text)
	index := int64(10)
	list := []tasks.Record{{Unit: 0, Task: &index, Output: "o"}}
	said := func() string {
		rows, err := rowsOf(j, list)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		a := &session.Session{App: &command.App{Out: &out, Format: "csv"}}
		if err := show(a, rows); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := said(), "task,state,seconds,end,output\n10,DONE,0,exit 0,o\n20,ENDED,,,\n21,RUNNING,,,\n22,WAITING,,,\n"+
		"23,RUNNING,,,\n24,WAITING,,,\n"; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	j.State, j.Final, j.History = pb.Job_CANCELLED, true, nil
	list = nil
	if got := said(); !strings.HasPrefix(got, "task,state,seconds,end,output\n10,OPEN,,,\n20,OPEN") {
		t.Errorf("%s", got)
	}
}
