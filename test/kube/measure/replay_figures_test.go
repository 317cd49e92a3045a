//go:build kubernetes && figures

package measure

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/test/kube/plane"
)

const (
	speedup          = 30
	ramp, measured   = 25 * time.Second, 100 * time.Second
	notice, reaction = 10 * time.Second, 500 * time.Millisecond
	long, short      = 60, 10 // units of Pods that keep all or nothing
	tail             = (long + 5) * time.Second
	longest, widest  = 8 * time.Hour, 8
	load             = .65
)

// beside is what may fill the gaps of a replay.
type beside struct {
	name string
	make func(*replay) fillers
}

// fillings are those of all replays. Pods of 60 s are played with extended resources alone: nobody preempts for a device, and shorter ones
// are the better for the hosts.
func fillings() []beside {
	return []beside{
		{"nothing", func(*replay) fillers { return nothing() }},
		{"Sluice", func(r *replay) fillers { return ours(r, notice, reaction) }},
		{"short", func(*replay) fillers { return lowPriority(short) }},
		{"Kueue-short", func(*replay) fillers { return kueuePreempts(short) }},
	}
}

// TestReplayFigures plays the hosts' trace at full size, with extended resources, beside each of what may fill its gaps, and writes
// docs/kubernetes.md: make kube-bench.
func TestReplayFigures(t *testing.T) {
	const machines = 200
	table, of := play(t, Extended, machines, append(fillings(), beside{"long", func(*replay) fillers { return lowPriority(long) }}))
	if t.Failed() {
		return
	}
	put(
		t, "replay", fmt.Sprintf(
			`%d machines of kwok with one GPU each, and a stretch of hosts' jobs %s, spaced to a load of %g of the devices and
played %d times as fast as it was: %s of it in %s. Jobs run for %s at most, on %d machines at most. Kueue places them, from a queue that owns every device. Each filler has more work than there is time for, in units of %s, and each of
its Pods takes %s to start up before its first; Sluice's notice is %s, and its programs give back %s after they were told. Pods of the others keep all of their units or none: with few they lose less, and start up more
often. Those of low priority are of one Job, as many as there are devices. Kueue's are of as many Jobs as there are devices, of one Pod after the other, in a queue that borrows what the hosts' leaves.

The first share is ''leftoverUseful'': the time of units that are kept, each counted once, of what the hosts leave where nothing is beside them, less %s for each gap. The second is of the gaps that there were beside this filler,
which are longer where the hosts' jobs wait. Hosts' jobs start when the last of their Pods runs. All of it is counted from what a watch of Pods saw and from their termination messages. The notice, the scheduler's back-off and the
operator's own seconds are not faster: an hour's gap is two minutes here, and has the costs of two minutes. %d cores carry all of it; load is the machine's.

%s`, machines, of, load, speedup, (measured*speedup).String(), measured, longest, widest, unit, startup, notice, reaction, startup,
			runtime.NumCPU(), table))
}

// TestReplayFiguresUnderDRA does the same under DRA, on fewer machines: kube-scheduler reads all ResourceSlices anew for each machine that
// it looks at for a Pod, some 0.4 s of a processor for each of the hosts' Pods at 200 machines, and nine times less at 60.
func TestReplayFiguresUnderDRA(t *testing.T) {
	const machines = 60
	table, _ := play(t, DRA, machines, fillings())
	if t.Failed() {
		return
	}
	put(t, "replay-dra", fmt.Sprintf("The same under DRA with %d machines:\n\n%s", machines, table))
}

// play plays the trace beside each filling, and returns the table of what became of it, and what the trace is of.
func play(t *testing.T, by By, machines int, with []beside) (table, of string) {
	t.Helper()
	trace, of := hostTrace(t, Playing{Devices: machines, Speedup: speedup, For: ramp + measured + tail, Load: load, Longest: longest,
		Widest: widest})
	var rows []Replayed
	for _, f := range with {
		t.Run(f.name, func(t *testing.T) {
			p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok, plane.Kueue),
				plane.Leaves(cluster.LabelOperator))
			r := newReplay(t, p, by, machines, trace, ramp, measured, tail)
			rows = append(rows, r.run(f.make(r)))
			t.Logf("\n%s", replayed(rows))
		})
	}
	return replayed(rows), of
}

// put writes a section of the page, if one is to be written.
func put(t *testing.T, section, text string) {
	t.Helper()
	text = strings.ReplaceAll(text, "''", "`")
	t.Log("\n" + text)
	if page := os.Getenv("SLUICE_KUBE_PAGE"); page != "" {
		if err := plane.WritePage(page, section, text); err != nil {
			t.Fatal(err)
		}
	}
}

// replayed is the rows as Markdown. Of how devices are asked for, the first has nothing beside the hosts: its gaps are those that count.
func replayed(rows []Replayed) string {
	var b strings.Builder
	b.WriteString("| devices are asked for by | the gaps are filled by | `leftoverUseful` | of the gaps it left itself | thrown away | " +
		"its Pods | hosts' jobs | p50 to start | p99 | not started | load |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	gaps := map[By]time.Duration{}
	for _, r := range rows {
		if r.Beside == "nothing" {
			gaps[r.By] = r.Gaps
		}
		share := func(of time.Duration) string {
			if of <= 0 || r.Pods == 0 {
				return "-"
			}
			return fmt.Sprintf("%.3f", float64(r.Useful)/float64(of))
		}
		lost := "-"
		if done := r.Useful + r.Twice + r.Lost; done > 0 {
			lost = fmt.Sprintf("%.1f%%", 100*float64(r.Twice+r.Lost)/float64(done))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %d | %s | %s | %d | %.0f |\n", r.By, r.Beside, share(gaps[r.By]), share(r.Gaps),
			lost, r.Pods, len(r.Waits.Started)+r.Waits.Never, cell(r.Waits, .5), cell(r.Waits, .99), r.Waits.Never, r.Load)
	}
	return b.String()
}
