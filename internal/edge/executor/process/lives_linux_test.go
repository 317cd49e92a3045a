package process_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// committed runs a subjob of a life that writes which one it is, and publishes it as [0, 10).
func (b *bench) committed(of job.Generation) {
	b.T.Helper()
	m := lease(time.Minute, "sh", "-c", "echo words; echo $SLUICE_SUBJOB >$SLUICE_OUTPUT_DIR/f")
	m.Token, m.Generation = job.Token{Epoch: 1, Seq: uint64(of)}, of
	b.run(m, job.Done)
	b.commit(m)
}

func (b *bench) purge(before job.Generation) {
	b.T.Helper()
	b.do(protocol.Message{Kind: protocol.Purge, Job: "j", Generation: before, From: protocol.Address{Role: protocol.Gate}})
	if m := b.next(protocol.Purged); m.Generation != before || m.Job != "j" {
		b.T.Fatalf("purged: %+v", m)
	}
}

func (b *bench) published() string {
	b.T.Helper()
	outs, err := b.ex.Outputs("j")
	if err != nil || len(outs) > 1 {
		b.T.Fatalf("outputs %+v, %v", outs, err)
	}
	if len(outs) == 0 {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(outs[0].Path, "f"))
	if err != nil {
		b.T.Fatal(err)
	}
	return string(text)
}

// TestAPurgeIsForEarlierLives: when it is answered nothing of them is where a reader finds it, and one that comes late takes
// nothing of the life that has the folders now.
func TestAPurgeIsForEarlierLives(t *testing.T) {
	b := newBench(t, nil)
	b.committed(1)
	b.purge(2)
	if got := b.published(); got != "" {
		t.Errorf("%q is left", got)
	}
	b.committed(2) // [0, 10) again
	for range 2 {
		b.purge(2)
	}
	if got := b.published(); got != "1-2\n" {
		t.Errorf("published %q after purges that came late", got)
	}
	b.outlived()
	b.await("the trash to be empty", func() bool {
		left, err := os.ReadDir(filepath.Join(b.o.DataDir, "trash"))
		return err == nil && len(left) == 0
	})
}

// outlived starts a subjob of the life before the present one: it does not run.
func (b *bench) outlived() {
	b.Helper()
	m := lease(time.Minute, "sh", "-c", "echo late >$SLUICE_OUTPUT_DIR/f")
	m.Token, m.Generation = job.Token{Epoch: 1, Seq: 7}, 1
	b.do(m)
	b.exited(job.StartFailed)
	b.do(protocol.Message{Kind: protocol.Settle, Token: m.Token, Job: "j", Body: &protocol.Settlement{}})
	b.next(protocol.Settled)
	if got := b.published(); got != "1-2\n" {
		b.Errorf("published %q after a start of an earlier life", got)
	}
}

// TestALateSettleOfAnEarlierLife is kept apart, whatever it was to publish.
func TestALateSettleOfAnEarlierLife(t *testing.T) {
	b := newBench(t, nil)
	m := lease(time.Minute, "sh", "-c", "echo late >$SLUICE_OUTPUT_DIR/f")
	m.Generation = 1
	b.run(m, job.Done)
	b.purge(2)
	b.commit(m)
	if got := b.published(); got != "" {
		t.Errorf("published %q beside another life's", got)
	}
}

// TestPurgesAtOnce: while the trash is emptied others are thrown into it, and none of them stays where it was.
func TestPurgesAtOnce(t *testing.T) {
	b := newBench(t, nil)
	const jobs = 300
	for i := range jobs {
		name := job.ID(fmt.Sprint("j", i))
		if err := os.MkdirAll(filepath.Join(b.o.DataDir, "output", string(name), "000000000000-000000000010"), 0o700); err != nil {
			t.Fatal(err)
		}
		b.do(protocol.Message{Kind: protocol.Purge, Job: name, Generation: 2, From: protocol.Address{Role: protocol.Gate}})
	}
	for range jobs {
		b.next(protocol.Purged)
	}
	left, err := os.ReadDir(filepath.Join(b.o.DataDir, "output"))
	if err != nil || len(left) > 0 {
		t.Errorf("%d of %d are left, %v", len(left), jobs, err)
	}
}

// lines is a log that is read line by line. What nobody reads any more is dropped: who logs may not wait for it.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// TestNoPurgeWithoutTrash: what can't be moved there is not said to be gone.
func TestNoPurgeWithoutTrash(t *testing.T) {
	logged := make(lines, 16)
	b := newBench(t, func(o *process.Options) { o.Logger = slog.New(slog.NewTextHandler(logged, nil)) })
	b.committed(1)
	trash := filepath.Join(b.o.DataDir, "trash")
	if err := os.Remove(trash); err != nil {
		t.Fatal(err)
	}
	b.do(protocol.Message{Kind: protocol.Purge, Job: "j", Generation: 2, From: protocol.Address{Role: protocol.Gate}})
	for !strings.Contains(<-logged, "removing what is kept of a job") {
	}
	if got := b.published(); got == "" {
		t.Error("it is gone")
	}
	if err := os.Mkdir(trash, 0o700); err != nil {
		t.Fatal(err)
	}
	b.await("the answer to a request that comes again", func() bool { // one beside the first, which is about to end, is dropped
		b.do(protocol.Message{Kind: protocol.Purge, Job: "j", Generation: 2, From: protocol.Address{Role: protocol.Gate}})
		select {
		case m := <-b.said:
			return m.Kind == protocol.Purged && m.Generation == 2
		default:
			return false
		}
	})
	if got := b.published(); got != "" {
		t.Errorf("%q is left", got)
	}
}
