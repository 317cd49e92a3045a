package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
)

// TestWhatIsKeptIsBounded: the first subjob that is settled prunes.
func TestWhatIsKeptIsBounded(t *testing.T) {
	b := newBench(t, func(o *process.Options) {
		o.Retain.LogBytes, o.Retain.LostBytes, o.Retain.EventBytes = 2500, 1500, 100
	})
	// Three older logs and three older pieces of lost work of 1000 bytes each, the highest number the youngest.
	for i := range 3 {
		for _, dir := range []string{"logs/old", fmt.Sprintf("kept/old.1-%d/output", i)} {
			dir = filepath.Join(b.o.DataDir, dir)
			file := filepath.Join(dir, fmt.Sprintf("9-%d.out", i))
			must(os.MkdirAll(dir, 0o700))
			must(os.WriteFile(file, make([]byte, 1000), 0o600))
			at := time.Now().Add(time.Duration(i-10) * time.Hour)
			must(os.Chtimes(file, at, at))
			must(os.Chtimes(filepath.Dir(dir), at, at))
		}
	}
	b.run(lease(time.Minute, "sh", "-c", "echo some words; echo x >$SLUICE_OUTPUT_DIR/f"), job.Done)
	b.settle(true, job.Range{From: 0, To: 10})
	names := func(pattern string) string {
		all, err := filepath.Glob(filepath.Join(b.o.DataDir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i] = filepath.Base(all[i])
		}
		return fmt.Sprint(all)
	}
	for pattern, want := range map[string]string{
		"logs/old/*":             "[9-1.out 9-2.out]",
		"kept/*":                 "[old.1-2]",
		"output/j/0*":            "[000000000000-000000000010]",
		"executor-events.jsonl*": "[executor-events.jsonl.1]",
	} {
		b.await(pattern+" to be "+want, func() bool { return names(pattern) == want })
	}
	// What comes next is told to a new file.
	second := lease(time.Minute, "true")
	second.Token.Seq = 2
	b.do(second)
	b.await("a new events file", func() bool {
		_, err := os.Stat(folders.Events(b.o.DataDir))
		return err == nil
	})
	if info, err := os.Stat(folders.OldEvents(b.o.DataDir)); err != nil || info.Size() < 100 {
		t.Errorf("the old events file: %v, %v", info, err)
	}
}
