package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// TestWhatASubjobLinksToStaysAsItIs: a subjob's tree is sealed, listed, pruned and purged, and what its links name is none of it.
func TestWhatASubjobLinksToStaysAsItIs(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.Retain.Lost = 1 })
	other := t.TempDir()
	program := filepath.Join(other, "program")
	must(os.WriteFile(program, []byte("of somebody"), 0o755))
	must(os.Chmod(program, 0o755|os.ModeSetuid))
	must(os.Chmod(other, 0o750))
	m := lease(time.Minute, "sh", "-c", fmt.Sprintf(`for d in $SLUICE_OUTPUT_DIR $SLUICE_CHECKPOINT_DIR .; do
	ln -s %[1]s $d/up; ln %[2]s $d/hard; ln -s %[2]s $d/link; mkfifo $d/pipe; mkdir -p $d/closed/deeper; chmod 0500 $d/closed
done; echo mine >$SLUICE_CHECKPOINT_DIR/state; echo '{"progress":10,"checkpoint":true}' >$SLUICE_PROGRESS_FILE`, other, program))
	m.Body.(*protocol.Work).Spec.Kind = job.Steps
	b.run(m, job.Done)
	b.settle(true, job.Range{From: 0, To: 10})
	as := func(when string) {
		t.Helper()
		for path, mode := range map[string]os.FileMode{program: 0o755 | os.ModeSetuid, other: 0o750 | os.ModeDir} {
			if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
				t.Errorf("%s: %s has mode %v (%v), had %v", when, path, info.Mode(), err, mode)
			}
		}
	}
	as("settled")
	if info, err := os.Lstat(filepath.Join(b.o.DataDir, "checkpoints", "j", token.String(), "state")); err != nil ||
		info.Mode().Perm()&0o222 != 0 {
		t.Errorf("the checkpoint can be written by accident: %v, %v", info, err)
	}
	b.do(protocol.Message{Kind: protocol.Purge, Job: "j"})
	b.await("the purge", func() bool {
		jobs, err := b.stored()
		return err == nil && len(jobs) == 0
	})
	as("purged")
}
