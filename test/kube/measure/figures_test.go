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

// TestFigures measures at full size and writes docs/kubernetes.md: make kube-bench.
func TestFigures(t *testing.T) {
	// Under DRA kube-scheduler looks for devices on every machine for every Pod: at 200 machines it binds some four a second, and a load is all queue.
	loads := map[By]Load{
		DRA:      {Machines: 30, Pods: 120, Every: 500 * time.Millisecond, Runs: 20, Seed: 1},
		Extended: {Machines: 200, Pods: 600, Every: 60 * time.Millisecond, Runs: 20, Seed: 1},
	}
	const patience, notice, reaction = time.Minute, 10 * time.Second, 500 * time.Millisecond
	var rows []Row
	for _, by := range []By{DRA, Extended} {
		t.Run(string(by), func(t *testing.T) {
			var w *world
			measure := func(beside string) {
				r := Row{By: by, Beside: beside, Waits: w.hosts(patience), Patience: patience}
				rows = append(rows, r)
				t.Logf("\n%s", table([]Row{r}))
			}
			start := func(t *testing.T) *plane.Plane {
				return plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok), plane.Leaves(cluster.LabelOperator))
			}
			t.Run("alone", func(t *testing.T) {
				w = newWorld(t, start(t), by, loads[by])
				measure("nothing")
				w.fillWithJobs(3600)
				measure("a Job of low priority, Kubernetes alone")
			})
			t.Run("Sluice", func(t *testing.T) {
				w = newWorld(t, start(t), by, loads[by])
				s := w.startSluice(notice, time.Second, reaction)
				s.fill(10, 1_000_000_000, time.Second)
				measure("Sluice")
				t.Logf("subjobs that ended meanwhile: %v", s.crowd.ended())
			})
		})
	}
	if t.Failed() {
		return
	}
	var b strings.Builder
	b.WriteString("Machines of kwok with seven devices each (" + profile + "), all of them taken where something fills the gaps. The hosts' Pods come at random, each for one device and some seconds:\n")
	for _, by := range []By{DRA, Extended} {
		l := loads[by]
		fmt.Fprintf(&b, "with %s %d Pods on %d machines, one every %s in the mean, of %d s. ", by, l.Pods, l.Machines, l.Every, l.Runs)
	}
	fmt.Fprintf(&b, `Time is from a
Pod's creation to its being seen running, with kubelets that are simulated: they pull no image, and end a Pod of the cluster's own at once. A subjob of Sluice
has %s of notice, and its program gives back %s after it was told. On %d cores that also carry etcd, the API server, the scheduler, the controllers, the operator and the measurement itself.

%s`, notice, reaction, runtime.NumCPU(), table(rows))
	t.Log("\n" + b.String())
	if page := os.Getenv("SLUICE_KUBE_PAGE"); page != "" {
		if err := write(page, "hosts", b.String()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRates measures how fast subjobs go through the API server beside bare Pods, in one run: bare, ours, ours, bare, so that neither gains by what the plane has
// gathered.
func TestRates(t *testing.T) {
	const n = 800
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok), plane.Leaves(cluster.LabelOperator))
	w := newWorld(t, p, Extended, Load{Machines: 20})
	newCrowd(t, p.Client(), 0, 0)
	w.leftover()
	w.bare(n / 5) // everything is warm
	bare := w.bare(n)
	ours := w.subjobs("rate-1", n)
	ours = ours.and(w.subjobs("rate-2", n))
	bare = bare.and(w.bare(n))
	if t.Failed() {
		return
	}
	text := fmt.Sprintf(`Pods with nothing to do, one after the other on each of %d devices, each from its creation until it is gone: %d of a client that makes a Pod, sees that it is over and deletes it, and %d subjobs
of the executor, from Start until they are settled. The Pods' containers end at once; scheduler, API server, kubelets and both clients share %d cores.

| | a second | processor time of API server and etcd, each | calls of everybody, each | of these its maker's | |
|---|---:|---:|---:|---:|---|
| bare Pods | %.0f | %s | %.1f | %.1f | %s |
| subjobs | %.0f (%.0f%%) | %s | %.1f | %.1f | %s |
`, pieces*len(w.machines), bare.Pods, ours.Pods, runtime.NumCPU(), bare.PerSecond(), bare.PerPodCPU().Round(100*time.Microsecond), float64(bare.All)/float64(bare.Pods), bare.PerPod(), bare.calls(), ours.PerSecond(), 100*ours.PerSecond()/bare.PerSecond(),
		ours.PerPodCPU().Round(100*time.Microsecond), float64(ours.All)/float64(ours.Pods), ours.PerPod(), ours.calls())
	t.Log("\n" + text)
	if page := os.Getenv("SLUICE_KUBE_PAGE"); page != "" {
		if err := write(page, "rates", text); err != nil {
			t.Fatal(err)
		}
	}
}
