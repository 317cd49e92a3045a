package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/bench/subjob"
)

// subjobs measures what a subjob that does nothing costs, beside bare starts of the same two programs in the same run.
func subjobs(ctx context.Context, s *settings, b *book) error {
	fmt.Println("# Subjob/busy: jobs of one no-op subjob each, all submitted before the first starts; bare is fork, exec and wait of " +
		"sluice-shim and /bin/true")
	measured := func(n int, count bool, profile string) (f subjob.Figures, err error) {
		return subjob.Measure(ctx, subjob.Settings{Bin: s.bin, Temp: s.temp, Slots: s.slots, Subjobs: n, Count: count, Profile: profile})
	}
	for range s.pairs {
		f, err := measured(s.processes, false, "")
		if err != nil {
			return err
		}
		b.add("Subjob/busy", s.processes,
			figure{f.PerSecond, "subjobs/s"}, figure{f.BarePerSecond, "bare/s"}, figure{100 * f.Ratio(), "%-of-bare"},
			figure{f.JournalSyncs, "journal-syncs"},
			figure{sample.Milliseconds(f.Daemon), "cpu-ms-daemon"}, figure{sample.Milliseconds(f.Started), "cpu-ms-started"},
			figure{sample.Milliseconds(f.Bare), "cpu-ms-bare"})
	}
	if _, err := exec.LookPath("perf"); err != nil {
		fmt.Printf("# Subjob/syncs: not measured: %v\n", err)
		return nil
	}
	f, err := measured(s.processes, true, "")
	if err != nil {
		return err
	}
	b.add("Subjob/syncs", s.processes, figure{f.Syncs, "syncs"}, figure{f.JournalSyncs, "journal-syncs"})
	if s.profile == "" {
		return nil
	}
	path, err := filepath.Abs(s.profile)
	if err == nil {
		_, err = measured(s.processes, false, path)
	}
	if err == nil {
		fmt.Printf("# the profile: perf report --no-children --sort comm,symbol -i %s\n", path)
	}
	return err
}
