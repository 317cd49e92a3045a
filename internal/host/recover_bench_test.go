package host

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/wire"
	"sluice.dev/sluice/internal/host/snapshots"
)

// waits is a job for which there is no slice that is large enough, like no other, as it is said once it is accepted.
func waits(b *testing.B, i int) *job.Spec {
	s := &job.Spec{
		Queue: gate.DefaultQueue, Kind: job.Items, Total: 1000, Unit: "item", PerUnit: time.Second,
		Grid: 1, Parallelism: 2, Slices: 1, MaxFailures: 3, OverheadMax: 100,
		Launch: job.Launch{Command: []string{"python", "train.py", "--part", strconv.Itoa(i)}, Env: []string{"MODE=fast"},
			Grace: 5 * time.Second},
	}
	s.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: s.Total, Mean: 60 << 30}}}
	table, err := trp.Compile(s.Profile, s.Total, 10_000)
	if err != nil {
		b.Fatal(err)
	}
	s.Safe = table
	return s
}

// standing is the data directory of a daemon in which n jobs wait, as records or, once one was written, as a snapshot.
func standing(b *testing.B, n int) Options {
	b.Helper()
	build, err := arrangement.Alone(
		gate.Config{Zones: gate.Alone("z"), MaxJobs: 2 * n}, zone.Config{ID: "z", Policy: fair.Policy{}}, node.Config{ID: "n", Zone: "z"},
	).Build()
	if err != nil {
		b.Fatal(err)
	}
	o := Options{
		DataDir: b.TempDir() + "/data", Machine: "n", Inventory: fixed{}, NoTape: true, SnapshotRecords: 1 << 40, SnapshotBytes: 1 << 50,
		Actors:   func() actor.Set { return build() },
		Journal:  func(dir string) (journal.Journal, error) { return local.Open(dir, local.Options{}) },
		Executor: func(Env) (executor.Executor, Files, error) { return &deaf{}, nil, nil },
	}
	h, err := Open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	gateIs, zoneIs := protocol.Address{Role: protocol.Gate}, protocol.Address{Role: protocol.Zone, ID: "z"}
	at := h.daemon.clock.Now()
	var batch [][]byte
	for i := range n {
		s, name := waits(b, i), job.ID(fmt.Sprintf("train-%07d", i))
		for _, f := range []protocol.Fact{
			{Kind: protocol.JobAccepted, Actor: gateIs, Job: name, Epoch: 1, Generation: 1, At: at,
				Body: &protocol.Acceptance{Spec: s, Request: fmt.Sprintf("%032d", i), Digest: fmt.Sprintf("%064d", i), Zone: "z"}},
			{Kind: protocol.HomeTaken, Actor: zoneIs, Job: name, Epoch: 1, Generation: 1, At: at, Body: &protocol.Taking{Spec: s}},
			{Kind: protocol.JobHomed, Actor: gateIs, Job: name, Epoch: 1},
		} {
			batch = append(batch, wire.AppendFacts(nil, []protocol.Fact{f}))
		}
		if len(batch) > 9000 || i == n-1 {
			if _, err := h.daemon.journal.Append(batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
	return o
}

// resident is a figure of this process' memory, in MiB: VmHWM at most, VmRSS now.
func resident(b *testing.B, what string) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc/self/status")
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, what+":"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return n / 1024
		}
	}
	return 0
}

// processor is how many seconds of processor time this process has used.
func processor(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// BenchmarkRecover opens a daemon with many jobs that wait, once from records and once from a snapshot that it wrote while it
// worked: what that takes, the memory at most and after it, and of the snapshot the turns of the loop beside it. It wants
// -benchtime 1x.
func BenchmarkRecover(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		if testing.Short() && n > 10_000 {
			continue // it takes minutes to set up
		}
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) { // here, so that no size is set up that nobody asks for
			o := standing(b, n)
			for _, from := range []string{"records", "snapshot"} {
				b.Run("from="+from, func(b *testing.B) {
					for b.Loop() {
						h := recoverAgain(b, o, n)
						turns(b, h)
						if err := h.Close(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// recoverAgain opens a daemon and says what that took.
func recoverAgain(b *testing.B, o Options, n int) *Host {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // begins VmHWM anew
	before, begin, used := resident(b, "VmRSS"), time.Now(), processor(b)
	h, err := Open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(begin).Seconds(), "s/open")
	b.ReportMetric(processor(b)-used, "cpu-s/open")
	b.ReportMetric(resident(b, "VmHWM")-before, "MiB-at-most")
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(resident(b, "VmRSS")-before, "MiB-after")
	b.ReportMetric(float64(m.HeapAlloc)/float64(n), "B-heap/job")
	return h
}

// turns is the loop of an idle daemon through one snapshot.
func turns(b *testing.B, h *Host) {
	d := h.daemon
	s := snapshots.New(d.journal, snapshots.Limits{Records: 1}, 0, d.set.Parties(),
		func() []actor.Party { return d.opts.Actors().Parties() }, d.opts.Log)
	begin := time.Now()
	if err := s.Turn(); err != nil {
		b.Fatal("no snapshot was begun", err)
	}
	b.ReportMetric(float64(time.Since(begin).Microseconds())/1000, "ms-to-begin")
	var worst, sum time.Duration
	count := 0
	for over := false; !over; {
		select {
		case room := <-s.Room():
			turn := time.Now()
			s.Capture(room)
			took := time.Since(turn)
			worst, sum, count = max(worst, took), sum+took, count+1
		case why := <-s.Over():
			if err := s.End(why); err != nil || why != nil {
				b.Fatal("no snapshot was written", err, why)
			}
			over = true
		}
	}
	b.ReportMetric(float64(worst.Microseconds())/1000, "ms-worst-turn")
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(count), "ms-mean-turn")
	b.ReportMetric(time.Since(begin).Seconds(), "s/snapshot")
}
