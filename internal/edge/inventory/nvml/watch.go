package nvml

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory"
)

const (
	// sightings in a row before somebody else counts as there: a subjob's process may be seen just before its supervisor
	// is known, and a short look-in (nvidia-smi, a device query) is nobody's claim to the slice.
	sightings = 2
	// shownProcesses bounds how many processes a report names.
	shownProcesses = 3
)

// Watch looks every Interval, and at a GPU upon its driver's event. Slices that can't be read keep their last report.
func (inv *Inventory) Watch(ctx context.Context, ours func(slice job.SliceID, pid int) bool, report func(inventory.Sighting)) error {
	tick := time.NewTicker(inv.interval)
	defer tick.Stop()
	w := watch{seen: map[job.SliceID]int{}, ours: ours, report: report, name: inv.name}
	d := newDoctor(inv, report)
	events := make(chan event)
	var listening sync.WaitGroup
	listening.Go(func() { inv.listen(ctx, events) })
	defer listening.Wait()
	for {
		if all, _, err := inv.scan(inv.gpus); err == nil && ctx.Err() == nil {
			w.round(all)
		}
		if ctx.Err() == nil {
			d.round()
		}
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return nil
			case e := <-events:
				if ctx.Err() == nil {
					d.event(e)
				}
			case <-tick.C:
				waits = false
			}
		}
	}
}

// watch remembers what was seen and reported.
type watch struct {
	// seen counts the rounds in a row in which somebody else was on a slice; from sightings on it is reported.
	seen   map[job.SliceID]int
	ours   func(slice job.SliceID, pid int) bool
	report func(inventory.Sighting)
	name   func(pid int) string
}

func (w *watch) round(all []found) {
	for _, f := range all {
		id := f.slice.ID
		processes, err := f.where.Processes()
		if err != nil {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(processes), func(p process) bool { return w.ours(id, p.PID) })
		if len(others) == 0 {
			w.gone(id)
			continue
		}
		if w.seen[id] < sightings {
			if w.seen[id]++; w.seen[id] == sightings {
				w.report(inventory.Sighting{Slice: id, Present: true, Text: w.describe(others)})
			}
		}
	}
}

// gone forgets what was seen on a slice, and says so if it was reported.
func (w *watch) gone(id job.SliceID) {
	if w.seen[id] == sightings {
		w.report(inventory.Sighting{Slice: id, Text: "no foreign process any more"})
	}
	delete(w.seen, id)
}

// describe is "process 4242 (python3) with 3.1Gi, and 2 more".
func (w *watch) describe(others []process) string {
	slices.SortFunc(others, func(a, b process) int { return cmp.Compare(a.PID, b.PID) })
	var parts []string
	for _, p := range others[:min(len(others), shownProcesses)] {
		text := fmt.Sprintf("process %d", p.PID)
		if name := w.name(p.PID); name != "" {
			text += " (" + name + ")"
		}
		if p.Memory >= 0 {
			text += " with " + quantity.FormatBytes(quantity.Amount(p.Memory))
		}
		parts = append(parts, text)
	}
	if more := len(others) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// commandName is the short name of a process, empty if it can't be seen from here.
func commandName(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}
