package watch

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/all"
)

// TestAtRest measures what a watcher costs where all is well, with subjobs to watch: SLUICE_REST is for how long, SLUICE_SHIM the program
// as it is built. The targets are .1% of a core and 20 MiB.
func TestAtRest(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SLUICE_REST"))
	if err != nil {
		t.Skip("it takes a minute: SLUICE_REST=60s SLUICE_SHIM=$PWD/bin/sluice-shim")
	}
	o := options(t, regionPath(t), airlock.Config{})
	if shim := os.Getenv("SLUICE_SHIM"); shim != "" {
		o.Program = shim
	}
	k := keep(t, o)
	var rows []Row
	for seq := range uint64(8) {
		rows = append(rows, start(t, seq+1).row)
	}
	k.Publish(rows)
	pid := k.pid(t, 0)
	time.Sleep(time.Second)
	before, begun := processorTime(t, pid), time.Now()
	time.Sleep(length)
	used, passed := processorTime(t, pid)-before, time.Since(begun)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") || strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "VmLck:") ||
			strings.HasPrefix(line, "Rss") {
			t.Log(strings.TrimSpace(line))
		}
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			most, _ = strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		}
	}
	share := 100 * used.Seconds() / passed.Seconds()
	t.Logf("%v of processor time in %v (%.3f%% of a core), at most %.1f MiB resident, with %d subjobs", used, passed.Round(time.Second),
		share, float64(most)/1024, len(rows))
	if share > .1 || most > 20<<10 {
		t.Error("over its target")
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// processorTime of all threads of a process, by the scheduler's own account.
func processorTime(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n)
	}
	return sum
}

// short is a machine that says that its memory is short when it is asked to; all else of it is real.
type short struct {
	survival.Survival
	used  quantity.Amount
	frees []time.Time // when a freeze was written
}

func (s *short) Sense(now time.Duration, m *survival.Memory) error {
	err := s.Survival.Sense(now, m)
	m.Used, m.Growth, m.Full = s.used, 0, 0
	return err
}

func (s *short) Take(j survival.Subjob) (survival.Hold, error) {
	h, err := s.Survival.Take(j)
	return &timed{h, s}, err
}

type timed struct {
	survival.Hold
	s *short
}

func (h *timed) Suspend() error {
	err := h.Hold.Suspend()
	h.s.frees = append(h.s.frees, time.Now())
	return err
}

func (h *timed) Measure(now time.Duration, u *survival.Use) error {
	err := h.Hold.Measure(now, u)
	u.Growth = 1 << 30 // so that there is something to be had by suspension
	return err
}

// BenchmarkTriggerToFreeze: from the moment that a look finds memory short until the kernel was told to freeze the first subjob, sensing,
// measuring all of them and deciding included.
func BenchmarkTriggerToFreeze(b *testing.B) {
	for _, kind := range all.Kinds() {
		for _, n := range []int{8, 64} {
			b.Run(fmt.Sprintf("%s/%d", kind.Name, n), func(b *testing.B) { triggerToFreeze(b, kind, n) })
		}
	}
}

func triggerToFreeze(b *testing.B, kind all.Kind, n int) {
	base, _, _ := tree.GroupBase()
	sense, err := kind.Open(base)
	if err != nil {
		b.Skip(err)
	}
	defer func() { _ = sense.Close() }()
	m := &short{Survival: sense}
	table := Table{Config: airlock.Config{Entries: 255, CoolDown: time.Nanosecond}.WithDefaults(), Wall: quantity.At(time.Now()),
		Boot: boottime(), Base: base}
	for seq := range uint64(n) {
		r := Row{Token: job.Token{Epoch: 1, Seq: seq + 1}, Start: quantity.At(time.Now()), Class: airlock.Lasting}
		cmd := exec.Command("sh", "-c", "sleep 1000 & wait")
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			for _, c := range tree.Below(cmd.Process.Pid) {
				_ = c.Signal(9)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		p, _ := tree.Look(cmd.Process.Pid)
		r.Init, r.InitStarted = p.PID, p.Started
		if base != "" {
			name := fmt.Sprintf("bench-%d-%d", os.Getpid(), seq)
			g, err := tree.MakeGroup(tree.GroupIn(base, name), tree.Bounds{})
			if err != nil {
				b.Fatal(err)
			}
			r.Group = "sluice-" + name
			if err := os.WriteFile(string(g)+"/cgroup.procs", []byte(strconv.Itoa(p.PID)), 0); err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { // before its processes are ended: cleanups go backwards
				_ = g.Kill()
				for range 1000 {
					if g.Remove() == nil {
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		table.Rows = append(table.Rows, r)
	}
	r := divide(words{at: make([]uint64, regionWords)})
	r.table.write(table.encode(nil))
	w := newWatcher(r, m, findInit, 1)
	w.look(clocks())
	if len(w.tasks) != n {
		b.Fatalf("%d subjobs are watched", len(w.tasks))
	}
	var sum, worst time.Duration
	for b.Loop() {
		m.used, m.frees = w.memory.Capacity/100*94, m.frees[:0]
		begun := time.Now()
		w.look(clocks())
		if len(m.frees) == 0 {
			b.Fatalf("nothing was frozen at %v", w.level)
		}
		took := m.frees[0].Sub(begun)
		sum, worst = sum+took, max(worst, took)
		for m.used = 0; w.near(); {
			w.look(clocks())
		}
		for i := range w.tasks {
			w.tasks[i].entries = 0
		}
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "us/first-freeze")
	b.ReportMetric(float64(worst.Microseconds()), "us/worst")
	w.close()
}
