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

// TestReplayFigures plays the hosts' trace at full size beside each of what may fill its gaps, and writes docs/kubernetes.md: make kube-bench.
func TestReplayFigures(t *testing.T) {
	const (
		speedup          = 30
		ramp, measured   = 25 * time.Second, 100 * time.Second
		notice, reaction = 10 * time.Second, 500 * time.Millisecond
		long, short      = 60, 10 // units of Pods that keep all or nothing
		tail             = (long + 5) * time.Second
		longest, widest  = 8 * time.Hour, 8
		load             = .65
	)
	// Under DRA kube-scheduler reads all ResourceSlices anew for each machine that it looks at for a Pod: some 0.4 s of a processor for each of the hosts' Pods at 200
	// machines, and nine times less at 60.
	machines := map[By]int{Extended: 200, DRA: 60}
	var rows []Replayed
	of := ""
	for _, by := range []By{Extended, DRA} {
		var trace []HostJob
		trace, of = hostTrace(t, Playing{Devices: machines[by], Speedup: speedup, For: ramp + measured + tail, Load: load, Longest: longest, Widest: widest})
		for _, with := range []struct {
			name string
			make func(*replay) fillers
		}{
			{"nothing", func(*replay) fillers { return nothing() }},
			{"Sluice", func(r *replay) fillers { return ours(r, notice, reaction) }},
			{"short", func(*replay) fillers { return lowPriority(short) }},
			{"Kueue-short", func(*replay) fillers { return kueuePreempts(short) }},
			{"long", func(*replay) fillers { return lowPriority(long) }},
		} {
			if by == DRA && with.name == "long" {
				continue // nobody preempts for a device: shorter ones are the better for the hosts
			}
			t.Run(string(by)+"/"+with.name, func(t *testing.T) {
				p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok, plane.Kueue), plane.Leaves(cluster.LabelOperator))
				r := newReplay(t, p, by, machines[by], trace, ramp, measured, tail)
				rows = append(rows, r.run(with.make(r)))
				t.Logf("\n%s", replayed(rows))
			})
		}
	}
	if t.Failed() {
		return
	}
	text := fmt.Sprintf(`Machines of kwok with one GPU each, %d where it is asked for as an extended resource and %d under DRA, and a stretch of hosts' jobs %s, spaced to a load of %g of the devices and
played %d times as fast as it was: %s of it in %s. Jobs run for %s at most, on %d machines at most. Kueue places them, from a queue that owns every device. Each filler has more work than there is time for, in units of %s, and each of
its Pods takes %s to start up before its first; Sluice's notice is %s, and its programs give back %s after they were told. Pods of the others keep all of their units or none: with few they lose less, and start up more
often. Those of low priority are of one Job, as many as there are devices. Kueue's are of as many Jobs as there are devices, of one Pod after the other, in a queue that borrows what the hosts' leaves.

The first share is ''leftoverUseful'': the time of units that are kept, each counted once, of what the hosts leave where nothing is beside them, less %s for each gap. The second is of the gaps that there were beside this filler,
which are longer where the hosts' jobs wait. Hosts' jobs start when the last of their Pods runs. All of it is counted from what a watch of Pods saw and from their termination messages. The notice, the scheduler's back-off and the
operator's own seconds are not faster: an hour's gap is two minutes here, and has the costs of two minutes. %d cores carry all of it; load is the machine's, with other work.

%s`, machines[Extended], machines[DRA], of, load, speedup, (measured * speedup).String(), measured, longest, widest, unit, startup, notice, reaction, startup, runtime.NumCPU(), replayed(rows))
	text = strings.ReplaceAll(text, "''", "`")
	t.Log("\n" + text)
	if page := os.Getenv("SLUICE_KUBE_PAGE"); page != "" {
		if err := write(page, "replay", text); err != nil {
			t.Fatal(err)
		}
	}
}

// replayed is the rows as Markdown. Of how devices are asked for, the first has nothing beside the hosts: its gaps are those that count.
func replayed(rows []Replayed) string {
	var b strings.Builder
	b.WriteString("| devices are asked for by | the gaps are filled by | `leftoverUseful` | of the gaps it left itself | thrown away | its Pods | hosts' jobs | p50 to start | p99 | not started | load |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
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
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %d | %s | %s | %d | %.0f |\n", r.By, r.Beside, share(gaps[r.By]), share(r.Gaps), lost, r.Pods, len(r.Waits.Started)+r.Waits.Never, cell(r.Waits, .5), cell(r.Waits, .99), r.Waits.Never, r.Load)
	}
	return b.String()
}
