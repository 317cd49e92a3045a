//go:build kubernetes

package measure

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// HostJob is a job of the hosts' trace as it is played: so many Pods with one device each, which run for whole seconds.
type HostJob struct {
	At      time.Duration
	Seconds int
	Pods    int
}

// Playing says how a trace is played: on so many devices, so many times as fast as it was, for so long, with the offered load, as a share
// of the devices, near this.
type Playing struct {
	Devices int
	Speedup int
	For     time.Duration
	Load    float64
	// Longest is what is left of a longer job of the trace, Widest how many devices of a wider one.
	Longest time.Duration
	Widest  int
}

// hostTrace is a stretch of the Philly log where that is there, else of what the generator makes with its published distributions; the
// text says which.
func hostTrace(t testing.TB, o Playing) ([]HostJob, string) {
	t.Helper()
	arrivals, of := workload.Arrivals(synthetic.Jobs{Seed: 1, Durations: synthetic.PhillySingles(), GPUs: synthetic.PhillyGPUs(),
		Count: 100_000}.Open()),
		"made up with the published distributions of the Philly trace"
	if root := traces(); root != "" {
		in, err := compose.Published(root)
		if err != nil {
			t.Fatal(err)
		}
		arrivals, of = in.Arrivals(0), "of the Philly trace"
	}
	var all []workload.Arrival
	for {
		var a workload.Arrival
		more, err := arrivals.Next(&a)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		all = append(all, a)
	}
	jobs := stretch(all, o)
	if len(jobs) == 0 {
		t.Fatalf("no stretch %s has a load near %g of %d devices", of, o.Load, o.Devices)
	}
	return jobs, of
}

// traces is the folder of the published traces: SLUICE_DATA, else shared/data beside a folder above; "" if it is not there.
func traces() string {
	roots := []string{os.Getenv("SLUICE_DATA")}
	if dir, err := os.Getwd(); err == nil && roots[0] == "" {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			roots = append(roots, filepath.Join(dir, "shared", "data"))
		}
	}
	for _, root := range roots {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(compose.PhillyFile))); root != "" && err == nil {
			return root
		}
	}
	return ""
}

// stretch spaces the arrivals of a trace so that its load in the mean is what is wanted, finds, hour by hour, a stretch that offers it
// throughout, give or take a tenth of the devices, and has it begin with what then ran; nil: there is none.
func stretch(all []workload.Arrival, o Playing) []HostJob {
	span := o.For * time.Duration(o.Speedup)
	type job struct {
		from, to time.Duration
		pods     int
	}
	var jobs []job
	work := 0.
	for _, a := range all {
		work += min(a.Duration, o.Longest).Seconds() * float64(min(a.GPUs, o.Widest))
	}
	wider := work / time.Duration(all[len(all)-1].Submit).Seconds() / (o.Load * float64(o.Devices))
	for _, a := range all {
		at := time.Duration(float64(a.Submit) * wider)
		jobs = append(jobs, job{at, at + min(a.Duration, o.Longest), min(a.GPUs, o.Widest)})
	}
	// busy is how many devices are held in the mean from one instant to another, if nothing waits.
	busy := func(from, to time.Duration) float64 {
		held := 0.
		first, _ := slices.BinarySearchFunc(jobs, from-o.Longest, func(j job, at time.Duration) int { return cmp.Compare(j.from, at) })
		for _, j := range jobs[first:] {
			if j.from >= to {
				break
			}
			held += max(0, min(j.to, to)-max(j.from, from)).Seconds() * float64(j.pods)
		}
		return held / (to - from).Seconds()
	}
	// Of those whose load is near in each third, the one that has arrivals there as the whole trace has them in the mean: they come in
	// bursts.
	usual := float64(len(jobs)) * span.Seconds() / 3 / (jobs[len(jobs)-1].from - jobs[0].from).Seconds()
	begun := func(at time.Duration) int {
		n, _ := slices.BinarySearchFunc(jobs, at, func(j job, at time.Duration) int { return cmp.Compare(j.from, at) })
		return n
	}
	best, off := time.Duration(-1), math.Inf(1)
	for from := jobs[0].from + o.Longest; from+span <= jobs[len(jobs)-1].from; from += time.Hour {
		near, other := true, 0.
		for third := range time.Duration(3) {
			begin, end := from+third*span/3, from+(third+1)*span/3
			near = near && math.Abs(busy(begin, end)/float64(o.Devices)-o.Load) < .1
			other = max(other, math.Abs(float64(begun(end)-begun(begin))-usual))
		}
		if near && other < off {
			best, off = from, other
		}
	}
	if best < 0 {
		return nil
	}
	var out []HostJob
	for _, j := range jobs {
		if j.to <= best || j.from >= best+span {
			continue
		}
		from := max(j.from, best)
		out = append(out, HostJob{At: (from - best) / time.Duration(o.Speedup),
			Seconds: max(1, int(((j.to-from)/time.Duration(o.Speedup)+time.Second/2)/time.Second)), Pods: j.pods})
	}
	return out
}

func TestAStretchOfATraceHasItsLoad(t *testing.T) {
	jobs, of := hostTrace(t, Playing{Devices: 200, Speedup: 30, For: 5 * time.Minute, Load: .65, Longest: 8 * time.Hour, Widest: 8})
	held, later := 0., 0
	for _, j := range jobs {
		from, to := j.At, min(j.At+time.Duration(j.Seconds)*time.Second, 5*time.Minute)
		if j.At < 0 || j.At >= 5*time.Minute || j.Seconds < 1 || j.Pods < 1 || j.Pods > 8 {
			t.Fatalf("%+v", j)
		}
		held += (to - from).Seconds() * float64(j.Pods)
		if j.At > 0 {
			later++
		}
	}
	if load := held / 300 / 200; load < .55 || load > .75 || later < 25 {
		t.Errorf("%d jobs %s, %d of them later: a load of %g", len(jobs), of, later, load)
	}
	t.Logf("%d jobs %s, %d of them while it is played", len(jobs), of, later)
}
