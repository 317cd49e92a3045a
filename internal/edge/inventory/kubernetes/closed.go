//go:build kubernetes

package kubernetes

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

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
