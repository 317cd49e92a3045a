// Package subjob measures what a subjob that does nothing costs: how many a real daemon with simulated slices ends in a second,
// beside bare fork, exec and wait of the same two programs (the supervisor's and the command's) in the same run, and what each
// of them costs in syncs and processor time. Linux only.
package subjob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/bench/daemon"
)

// command is what the subjobs run, and what is started bare.
const command = "/bin/true"

// Settings of a measurement.
type Settings struct {
	// Bin is the directory of sluice and sluice-shim, absolute; Temp one for this measurement's files.
	Bin, Temp string
	// Slots is how many run at once, 1 to 64; Subjobs is how many run in all.
	Slots, Subjobs int
	// Count has perf(1) count syncs, and Profile names the file that perf(1) writes a profile of the daemon and all it starts to; empty for
	// none. Either slows what it measures.
	Count   bool
	Profile string
}

// Figures of a measurement. Costs are those of one subjob.
type Figures struct {
	// PerSecond is how many subjobs ended in a second, BarePerSecond how many times both programs were started and waited for.
	PerSecond, BarePerSecond float64
	// JournalSyncs is how often the journal was synced; Syncs how often anything was (fsync, fdatasync, syncfs) by daemon,
	// supervisor and command: -1 where nobody counted.
	JournalSyncs, Syncs float64
	// Daemon is the processor time of the daemon's own process, Started of all that it started: supervisor, init, command.
	Daemon, Started time.Duration
	// Bare is the processor time of both programs alone.
	Bare time.Duration
}

// Ratio is how many subjobs end in the time in which both programs start bare once.
func (f *Figures) Ratio() float64 { return f.PerSecond / f.BarePerSecond }

// Measure starts a daemon, has it take the jobs of one subjob each while its slices are reserved, gives the slices back, and
// waits for the last of them. Half of the bare starts come before that and half after: what slows the machine for a while slows
// both.
func Measure(ctx context.Context, s Settings) (f Figures, err error) {
	dir, err := os.MkdirTemp(s.Temp, "subjob-")
	if err != nil {
		return f, err
	}
	d, err := daemon.Start(daemon.Options{Bin: s.Bin, Dir: dir, GPUs: "sim:custom,mem=256Mi" + strings.Repeat("+256Mi", s.Slots-1)})
	if err != nil {
		return f, err
	}
	if err = d.AwaitSlices(ctx, s.Slots); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	before, err := bare(ctx, &s)
	if err != nil {
		return f, err
	}
	if err = s.busy(ctx, d, &f); err != nil {
		return f, err
	}
	after, err := bare(ctx, &s)
	if err != nil {
		return f, err
	}
	f.BarePerSecond = 2 * float64(s.half()) / (before.took + after.took).Seconds()
	f.Bare = (before.used + after.used) / time.Duration(2*s.half())
	return f, nil
}

// busy is the daemon's part.
func (s *Settings) busy(ctx context.Context, d *daemon.Daemon, f *Figures) error {
	giveBack, err := d.Drain(ctx, "")
	if err != nil {
		return err
	}
	files := make([]string, s.Subjobs)
	for i := range files {
		files[i] = fmt.Sprintf("apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: noop-%d}\nspec:\n  items: {total: 1, "+
			"perItem: 10ms}\n  memory: 16Mi\n  command: [%s]\n  grace: 1s\n", i, command)
	}
	const together = 200 // a file of all could be longer than one may be
	for len(files) > 0 {
		n := min(together, len(files))
		if err = d.Send(ctx, strings.Join(files[:n], "---\n")); err != nil {
			return err
		}
		files = files[n:]
	}
	syncs, stop, err := s.perf(ctx, d.PID())
	if err != nil {
		return err
	}
	from, err := look(ctx, d)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err = giveBack(); err != nil {
		return err
	}
	if err = d.Completed(ctx, s.Subjobs); err != nil {
		return err
	}
	took := time.Since(begin)
	to, err := look(ctx, d)
	if err != nil {
		return err
	}
	if err = stop(); err != nil {
		return err
	}
	n := float64(s.Subjobs)
	f.PerSecond = n / took.Seconds()
	f.JournalSyncs = (to.appends - from.appends) / n
	f.Daemon = (to.own - from.own) / time.Duration(s.Subjobs)
	f.Started = (to.started - from.started) / time.Duration(s.Subjobs)
	f.Syncs = -1
	if counted, ok := syncs(); ok {
		f.Syncs = counted / n
	}
	return nil
}

// seen is what a daemon has used so far.
type seen struct {
	appends      float64
	own, started time.Duration
}

func look(ctx context.Context, d *daemon.Daemon) (s seen, err error) {
	counts, err := d.Metrics(ctx, "sluice_journal_append_seconds_count")
	if err != nil {
		return s, err
	}
	s.appends = counts[""]
	s.own, s.started, err = d.Processor()
	return s, err
}

// shim is the supervisor's program.
func (s *Settings) shim() string { return filepath.Join(s.Bin, "sluice-shim") }

// perf has perf(1) count the syncs of a process and of all that it starts from now on, or write a profile of them. stop ends it;
// then syncs says how many there were, false if nobody can tell.
func (s *Settings) perf(ctx context.Context, pid int) (syncs func() (float64, bool), stop func() error, err error) {
	none := func() (float64, bool) { return 0, false }
	if !s.Count && s.Profile == "" {
		return none, func() error { return nil }, nil
	}
	args := []string{"stat", "-x,", "-e", "syscalls:sys_enter_fsync,syscalls:sys_enter_fdatasync,syscalls:sys_enter_syncfs", "-p",
		fmt.Sprint(pid)}
	if s.Profile != "" {
		args = []string{"record", "-q", "-g", "-F", "9973", "-o", s.Profile, "-p", fmt.Sprint(pid)}
	}
	return watched(exec.CommandContext(ctx, "perf", args...), s.Profile == "")
}
