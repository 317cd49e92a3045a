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
	// Under DRA kube-scheduler looks for devices on every machine for every Pod: at 200 machines it binds some four a second, and a load
	// is all queue.
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
				t.Logf("\n%s\n%s\n%s", table([]Row{r}), partsTable(r.Waits.Parts), strings.Join(r.Waits.Longest, "\n"))
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
			if by == Extended { // under DRA nobody is preempted
				t.Run("slow", func(t *testing.T) {
					w = newWorld(t, start(t), by, loads[by])
					w.fillWithSlowJobs(reaction)
					measure("the same, Pods that take " + reaction.String() + " to end")
				})
			}
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
	b.WriteString("Machines of kwok with seven devices each (" + profile +
		"), all of them taken where something fills the gaps. The hosts' Pods come at random, each for one device and some seconds:\n")
	for _, by := range []By{DRA, Extended} {
		l := loads[by]
		fmt.Fprintf(&b, "with %s %d Pods on %d machines, one every %s in the mean, of %d s. ", by, l.Pods, l.Machines, l.Every, l.Runs)
	}
	fmt.Fprintf(&b, `Time is from a
Pod's creation to its being seen running, with kubelets that are simulated: they pull no image, and end a Pod of the cluster's own at once. A subjob of Sluice
has %s of notice, and its program gives back %s after it was told. On %d cores that also carry etcd, the API server, the scheduler, the controllers, the operator and the measurement itself.

%s`, notice, reaction, runtime.NumCPU(), table(rows))
	for _, r := range rows {
		if r.Beside == "Sluice" {
			fmt.Fprintf(&b, "\nThe parts of the waits beside Sluice with %s:\n\n%s", r.By, partsTable(r.Waits.Parts))
		}
	}
	t.Log("\n" + b.String())
	if page := os.Getenv("SLUICE_KUBE_PAGE"); page != "" {
		if err := plane.WritePage(page, "hosts", b.String()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPartsOfTheHostsWait takes apart what the hosts' Pods wait for beside Sluice, at a third of the size of TestFigures.
func TestPartsOfTheHostsWait(t *testing.T) {
	for by, load := range map[By]Load{
		DRA:      {Machines: 12, Pods: 60, Every: 500 * time.Millisecond, Runs: 20, Seed: 1},
		Extended: {Machines: 60, Pods: 200, Every: 180 * time.Millisecond, Runs: 20, Seed: 1},
	} {
		t.Run(string(by), func(t *testing.T) {
			p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok), plane.Leaves(cluster.LabelOperator))
			w := newWorld(t, p, by, load)
			s := w.startSluice(10*time.Second, time.Second, 500*time.Millisecond)
			s.fill(10, 1_000_000_000, time.Second)
			r := Row{By: by, Beside: "Sluice", Waits: w.hosts(time.Minute), Patience: time.Minute}
			t.Logf("\n%s\n%s\n%s\n%v", table([]Row{r}), partsTable(r.Waits.Parts), strings.Join(r.Waits.Longest, "\n"), s.crowd.ended())
		})
	}
}

// TestRates measures how fast subjobs go through the API server beside bare Pods, in one run and in turn, so that neither gains by what
// the plane has gathered. Bare Pods are of two kinds: the smallest there can be, and a subjob's very Pod, which is what its security, its
// program and its sealed orders take.
func TestRates(t *testing.T) {
	const n = 800
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok), plane.Leaves(cluster.LabelOperator))
	w := newWorld(t, p, Extended, Load{Machines: 20})
	crowd := newCrowd(t, p.Client(), 0, 0)
	w.leftover()
	w.bare(n/5, nil) // everything is warm
	var bare, alike, ours *Rate
	for turn := range 2 {
		ours = ours.and(w.subjobs(fmt.Sprint("rate-", turn), n/2))
		bare = bare.and(w.bare(n/2, nil))
		alike = alike.and(w.bare(n/2, crowd.pod()))
		bare = bare.and(w.bare(n/2, nil))
		ours = ours.and(w.subjobs(fmt.Sprint("rate-again-", turn), n/2))
	}
	if t.Failed() {
		return
	}
	row := func(name string, r *Rate) string {
		return fmt.Sprintf("| %s | %.0f | %.0f%% | %s | %.1f | %.1f | %s |\n", name, r.PerSecond(), 100*ours.PerSecond()/r.PerSecond(),
			r.PerPodCPU().Round(100*time.Microsecond), float64(r.All)/float64(r.Pods), r.PerPod(), r.calls())
	}
	text := fmt.Sprintf(
		`Pods with nothing to do, one after the other on each of %d devices, each from its creation until it is gone: those of a client that makes a Pod, sees that it is over and deletes it, %d as small as can
be and %d like a subjob's, and %d subjobs of the executor, from Start until they are settled. Containers end at once; scheduler, API server, kubelets and all clients share %d cores, and speak protobuf.

| | a second | subjobs' rate beside it | processor time of API server and etcd, each | calls of everybody, each | of these its maker's | |
|---|---:|---:|---:|---:|---:|---|
%s%s%s`, pieces*len(w.machines), bare.Pods, alike.Pods, ours.Pods, runtime.NumCPU(), row("the smallest bare Pods", bare),
		row("bare Pods like a subjob's", alike), row("subjobs", ours))
	t.Log("\n" + text)
	if page := os.Getenv("SLUICE_KUBE_PAGE"); page != "" {
		if err := plane.WritePage(page, "rates", text); err != nil {
			t.Fatal(err)
		}
	}
}
