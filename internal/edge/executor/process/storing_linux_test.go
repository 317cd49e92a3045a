package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// leavesLingering is a program that is done at once, and leaves what is not durable before the file at until is there.
func leavesLingering(t testing.TB, until string) []string {
	t.Helper()
	return []string{"sh", "-c", fmt.Sprintf(`printf %%s %q >"$SLUICE_OUTPUT_DIR/%s"`, until, lingers)}
}

// saysVacant waits for the word that what a subjob left is being stored, and that its slice is free.
func (b *bench) saysVacant() {
	b.Helper()
	b.await("the word that what it left is being stored", b.storing.Load)
	if !b.vacant.Load() {
		b.Error("nothing of it lives, and it holds its slice")
	}
	b.storing.Store(false)
}

// TestWhatIsBeingStoredHoldsNoSlice: a disk takes longer for what a subjob left than its lease lasts. Its executor says so, also one that
// comes back meanwhile, and then how it ended; the time is not the program's.
func TestWhatIsBeingStoredHoldsNoSlice(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.Report = 50 * time.Millisecond })
	slow := filepath.Join(t.TempDir(), "durable")
	b.do(lease(2*time.Second, leavesLingering(t, slow)...))
	b.next(protocol.Started)
	b.saysVacant()
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	if found := b.open(); len(found) != 1 || !found[0].Alive || found[0].Stuck || found[0].Result != nil {
		t.Fatalf("found %+v, want it alive", found)
	}
	b.storing.Store(false)
	b.saysVacant()
	before := quantity.At(time.Now())
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := b.word(protocol.Exited)
	if r := m.Body.(*protocol.Conclusion).Result; r.Outcome != job.Done || r.Progress != 10 || r.End >= before {
		t.Errorf("it ended %+v, want it done, before it was stored at %v", r, before)
	}
}

// TestALostSubjobIsStoredBesideItsSlice: as one that ends, where its supervisor was killed and the daemon makes what it left durable.
func TestALostSubjobIsStoredBesideItsSlice(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.Report = 50 * time.Millisecond })
	slow := filepath.Join(t.TempDir(), "durable")
	program := leavesLingering(t, slow)
	program[2] += "; exec sleep 1000"
	b.do(lease(time.Hour, program...))
	b.next(protocol.Started)
	b.await("the program to write", func() bool {
		text, err := os.ReadFile(filepath.Join(b.dir().Output(), lingers))
		return err == nil && string(text) == slow
	})
	note, err := b.dir().ReadNote()
	if err == nil {
		err = syscall.Kill(note.PID, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.saysVacant()
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.word(protocol.Exited)
}
