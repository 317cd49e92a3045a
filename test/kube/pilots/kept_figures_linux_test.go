//go:build kubernetes && figures

package pilots

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/test/kube/plane"
)

const (
	// round is how long a round of preemptions is, keeps the most seconds that a Pod of higher priority keeps a device.
	round = 40 * time.Second
	keeps = 8
	// spread is how many machines there are, of one device each.
	spread = 4
)

// kept is what came of the seconds that Pods had a device.
type kept struct {
	pods, preempted int
	held, useful    time.Duration
	// waited is the longest that a Pod of higher priority waited until it ran.
	waited time.Duration
}

func (k *kept) share() float64 { return k.useful.Seconds() / k.held.Seconds() }

// read takes the meter over, of which nothing has a device any more.
func (k *kept) read(w *world, m *meter) {
	w.Helper()
	now := 0
	w.until("the observer has seen all Pods go", func() error {
		if k.pods, k.preempted, now, k.held = m.sum(); now > 0 {
			return fmt.Errorf("%d have a device", now)
		}
		return nil
	})
}

// keptByWorkers plays the wishes beside queue workers, for so long from the moment that all of them work, and then has them end in time.
func (w *world) keptByWorkers(list []wish, long, takes time.Duration) (k kept) {
	w.Helper()
	m := w.measure()
	h := w.hire("workers", takes, unitOf(takes, filepath.Join(w.dir, "seen"))...)
	if err := h.queue.Push(2 * w.machines * int(long/takes+2)); err != nil {
		w.Fatal(err)
	}
	w.until("all workers work", func() error {
		if c := h.queue.Counts(); c.Granted < w.machines {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	began := time.Now()
	k.waited = w.play(list)
	time.Sleep(time.Until(began.Add(long)))
	h.fire()
	k.useful = time.Duration(h.queue.Counts().Committed) * takes
	k.read(w, m)
	return k
}

// keptByPilots does so with pilots. jobs are more work than there is time for; each committed unit of theirs took so long.
func (w *world) keptByPilots(list []wish, long time.Duration, jobs []string, takes time.Duration) (k kept) {
	w.Helper()
	m := w.measure()
	w.head.start()
	w.until("the head answers", func() error { _, err := w.client.Sluice("nodes"); return err })
	w.send(strings.Join(jobs, "---\n"))
	w.until("all pilots work", func() error {
		_, running, err := w.progress("kept-")
		if err == nil && running < w.machines {
			err = fmt.Errorf("%d do", running)
		}
		return err
	})
	began := time.Now()
	k.waited = w.play(list)
	time.Sleep(time.Until(began.Add(long)))
	w.end()
	w.until("no subjob is left", func() error {
		committed, running, err := w.progress("kept-")
		if k.useful = time.Duration(committed) * takes; err == nil && running > 0 {
			err = fmt.Errorf("%d run", running)
		}
		return err
	})
	k.read(w, m)
	w.head.kill()
	return k
}

// TestWorkKept measures what becomes of the seconds that Pods had a device, on pilots and with queue workers, while Pods of higher priority
// take devices of half of the machines in each round, at the same moments beside both: with units that are shorter than a pilot's grace,
// and longer. It writes docs/kubernetes.md: make kube-bench. SLUICE_KUBE_ROUNDS makes it smaller; then nothing is written.
func TestWorkKept(t *testing.T) {
	rounds, page := 4, os.Getenv("SLUICE_KUBE_PAGE")
	if text := os.Getenv("SLUICE_KUBE_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("SLUICE_KUBE_ROUNDS=%s: want how many", text)
		}
		page = ""
	}
	long := time.Duration(rounds) * round
	var b strings.Builder
	fmt.Fprintf(&b, `%d machines of one device each. In each of %d rounds of %v a Pod of higher priority comes for the device of each of
half of the machines, at a random moment and for %d to %d s, at the same moments beside both.
Then all Pods are told to end, with their grace of %v.
Useful is the time of units that are committed, or of their steps of a second, which pilots' jobs save; a device is a Pod's from
being bound until the Pod has ended. %d cores carry all of it.

| units of | done by | Pods | preempted | had devices for | useful of that | beside queue workers | longest wait of higher priority |
|---|---|---:|---:|---:|---:|---:|---:|
`, spread, rounds, round, keeps/2, keeps, grace, runtime.NumCPU())
	for seed, takes := range []time.Duration{2 * time.Second, 30 * time.Second} {
		list := wishes(uint64(seed), rounds, round, spread, keeps)
		t.Run(takes.String(), func(t *testing.T) {
			w := newWorldOf(t, shape{machines: spread, each: 1, lengths: "10m", every: 50 * time.Millisecond})
			w.class("sluice-pilots", -1000000, "Never")
			w.class("owners", 1000, "PreemptLowerPriority")
			units := 2 * w.machines * int(long/takes+2)
			jobs, each := []string{w.items("kept-all", units, takes)}, takes
			if takes > grace {
				jobs, each = nil, time.Second
				for i := range units {
					jobs = append(jobs, w.steps(fmt.Sprint("kept-", i), takes))
				}
			}
			theirs := w.keptByWorkers(list, long, takes)
			ours := w.keptByPilots(list, long, jobs, each)
			for _, k := range []struct {
				by string
				kept
			}{{"queue workers", theirs}, {"pilots", ours}} {
				fmt.Fprintf(&b, "| %v | %s | %d | %d | %.0f s | %.1f%% | %.2f | %.1f s |\n", takes, k.by, k.pods, k.preempted,
					k.held.Seconds(), 100*k.share(), k.share()/theirs.share(), k.waited.Seconds())
			}
		})
	}
	t.Log("\n" + b.String())
	if page != "" && !t.Failed() {
		if err := plane.WritePage(page, "pilot-kept", b.String()); err != nil {
			t.Fatal(err)
		}
	}
}
