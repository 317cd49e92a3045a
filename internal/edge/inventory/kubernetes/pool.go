//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/edge/cluster"
)

// What is offered, as files and objects say it.
type (
	Pool     = cluster.Pool
	Class    = cluster.Class
	Resource = cluster.Resource
	Closing  = cluster.Closing
)

// reservation is what a calendar's entry makes on each slice.
func reservation(c *Closing) protocol.Reservation {
	return protocol.Reservation{
		Kind: protocol.ForServing, Start: c.Start, End: c.End, Every: c.Every,
		Truncate: true, Calendar: c.Calendar,
	}
}

const (
	defaultNotice = 30 * time.Second
	// mostPools bounds Options.Pools.
	mostPools = 64
	// mostClosings bounds a calendar: a node keeps at most 64 closures of a slice apart, others' included, and closes the slice for good
	// from the first beyond them.
	mostClosings = 32
)

// checkPools reports all errors of pools at once.
func checkPools(pools []Pool) error {
	var problems []error
	problem := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	problem(len(pools) > mostPools, "%d pools; want at most %d", len(pools), mostPools)
	for i, p := range pools {
		name := fmt.Sprintf("pool %d (%q)", i+1, p.Name)
		problem(len(p.Classes)+len(p.Resources) == 0, "%s names neither device classes nor extended resources", name)
		problem(p.Notice < 0, "%s: notice is %v; it can't be negative", name, p.Notice)
		for _, c := range p.Classes {
			problem(c.Name == "" || c.Driver == "", "%s: a class needs its name and its driver, and has %q and %q", name, c.Name, c.Driver)
			problem(c.Memory < 0 || c.Speed < 0 || c.Speed > 1000, "%s: class %s: memory %d is negative, or speed %d is not from 0 to 1000",
				name, c.Name, c.Memory, c.Speed)
		}
		for _, r := range p.Resources {
			problem(!strings.Contains(r.Name, "/"), "%s: %q is no extended resource: those have a domain in front, as nvidia.com/gpu has",
				name, r.Name)
			problem(r.Memory < 0 || r.Speed < 0 || r.Speed > 1000,
				"%s: resource %s: memory %d is negative, or speed %d is not from 0 to 1000", name, r.Name, r.Memory, r.Speed)
		}
		problem(len(p.Calendar) > mostClosings, "%s: its calendar has %d entries; want at most %d", name, len(p.Calendar), mostClosings)
		for _, c := range p.Calendar {
			length, r := c.End.Sub(c.Start), reservation(&c)
			problem(length <= 0, "%s: calendar %q ends at %s, which is not after its start at %s", name, c.Name,
				c.End.Time().Format(time.RFC3339),
				c.Start.Time().Format(time.RFC3339))
			problem(c.Every != 0 && !timeline.Sound(&r), "%s: calendar %q repeats every %v and lasts %v; "+
				"want it shorter than what it repeats after", name, c.Name, c.Every, length)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "pools of the cluster: %w", errors.Join(problems...))
}

// AnnotationMaintenance of a Node says when it is closed: intervals BEGIN/END in RFC 3339, joined by commas. Nothing is placed beyond a
// begin, and what runs there already is cut short.
const AnnotationMaintenance = "sluice.dev/maintenance"

// mostWindows bounds the intervals of one annotation.
const mostWindows = 16

// maintenance parses the annotation. One that is unreadable, or has more than mostWindows intervals, closes the machine until it is
// corrected, and cuts nothing short: somebody meant to close it.
func maintenance(text string) (list []protocol.Reservation) {
	if text == "" {
		return nil
	}
	windows := strings.Split(text, ",")
	for i, w := range windows {
		from, to, _ := strings.Cut(strings.TrimSpace(w), "/")
		start, err := time.Parse(time.RFC3339, from)
		end, failed := time.Parse(time.RFC3339, to)
		if err != nil || failed != nil || !end.After(start) || i == mostWindows {
			source := "annotation " + AnnotationMaintenance + " can't be read: want BEGIN/END in RFC 3339, joined by commas"
			return append(list, protocol.Reservation{Kind: protocol.ForMaintenance, End: quantity.Never, Source: source})
		}
		list = append(list, protocol.Reservation{
			Kind: protocol.ForMaintenance, Start: quantity.At(start), End: quantity.At(end), Source: "annotation " + AnnotationMaintenance,
			Truncate: true,
		})
	}
	return list
}

// away are taints of machines that the cluster does not hear from. Pods there run on for minutes, and often for good.
//
//nolint:gochecknoglobals // names, written to by nobody
var away = []string{"node.kubernetes.io/not-ready",
	"node.kubernetes.io/unreachable"}

// closes are the reservations that a pool's calendar and the machine's state make on all of its slices there.
func closes(p *Pool, m *machine) (list []protocol.Reservation) {
	for _, t := range m.taints {
		if slices.Contains(p.Tolerates, t.key) {
			continue
		}
		r := protocol.Reservation{Kind: protocol.ForMaintenance, End: quantity.Never, Source: "taint " + t.key}
		r.Truncate = t.effect == corev1.TaintEffectNoExecute && !slices.Contains(away, t.key)
		list = append(list, r)
	}
	list = append(list, m.closed...)
	for _, c := range p.Calendar {
		r := reservation(&c)
		if r.Source = "calendar of pool " + p.Name; c.Name != "" {
			r.Source += ": " + c.Name
		}
		list = append(list, r)
	}
	return list
}
