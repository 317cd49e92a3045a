//go:build kubernetes

package kubernetes_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/store"
)

// TestAdaptersInAPod: commands that know nothing of the contract answer lines, run tasks, and go on from a directory of their own as
// they do on a machine.
func TestAdaptersInAPod(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	work, err := d.ex.Files().PutWorkdir(packed(t, "in.txt", strings.Repeat("a line\n", 100)))
	if err != nil {
		t.Fatal(err)
	}
	output := func(tok job.Token, r job.Range) map[string]string {
		t.Helper()
		d.settle(tok, r)
		list, err := d.ex.Files().Outputs("train")
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if o.Range == r {
				return d.content(store.Digest(strings.TrimPrefix(o.Path, store.Scheme)))
			}
		}
		t.Fatalf("no output of %v in %+v", r, list)
		return nil
	}
	start := func(n int, r job.Range, a job.Adapter, kind job.Kind, resume job.Token, script string) {
		d.do(d.lease(tok(n), r, func(w *protocol.Work) {
			w.Spec.Kind, w.Plan.Resume = kind, resume
			w.Spec.Launch.Workdir, w.Spec.Launch.Adapter, w.Spec.Launch.Command = work.ID, a, []string{"sh", "-c", script}
		}, ""))
	}

	lines := job.Adapter{Lines: job.Lines{Input: "in.txt"}}
	start(1, job.Range{To: 7}, lines, job.Items, job.Token{}, `n=0; while read x; do n=$((n+1)); echo $n; done`)
	if r := d.result(tok(1)); r.Outcome != job.Done || r.Progress != 7 {
		t.Fatalf("lines: %+v", r)
	}
	if got := output(tok(1), job.Range{To: 7})["answers"]; got != "1\n2\n3\n4\n5\n6\n7" {
		t.Errorf("lines were answered %q", got)
	}

	array := job.Adapter{Array: job.Array{Indices: "0-99", Name: "train"}, Keep: true}
	start(2, job.Range{From: 7, To: 10}, array, job.Items, job.Token{}, `echo task $SLURM_ARRAY_TASK_ID; [ $SLURM_ARRAY_TASK_ID != 8 ]`)
	if r := d.result(tok(2)); r.Outcome != job.Done || r.Progress != 10 {
		t.Fatalf("tasks: %+v", r)
	}
	if got := output(tok(2), job.Range{From: 7, To: 10}); got["slurm-train_8.out"] != "task 8" || got["slurm-train_9.out"] != "task 9" {
		t.Errorf("tasks left %v", got)
	}

	directory := job.Adapter{Directory: job.Directory{Path: "ckpt"}}
	train := `mkdir -p ckpt; n=$(ls ckpt | sed s/step_// | sort -n | tail -n 1); n=${n:-0}
trap 'exit 0' TERM; while [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); : > ckpt/step_$n; done`
	start(3, job.Range{To: 100}, directory, job.Steps, job.Token{}, train)
	d.Until("it is on its way", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.reached[tok(3)] > 0 })
	d.do(protocol.Message{Kind: protocol.Stop, Token: tok(3), Job: "train", Body: &protocol.Halt{}})
	r := d.result(tok(3))
	if r.Progress <= 0 || r.Progress >= 100 || !r.Checkpoint {
		t.Fatalf("a directory that was cut: %+v", r)
	}
	d.settle(tok(3), job.Range{To: r.Progress})
	start(4, job.Range{From: r.Progress, To: 100}, directory, job.Steps, tok(3), train)
	if r = d.result(tok(4)); r.Outcome != job.Done || r.Progress != 100 {
		t.Fatalf("a directory that went on: %+v", r)
	}
}
