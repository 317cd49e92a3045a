package show

import (
	"strings"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// WishColumns are who waits for devices that slices are cut from, and why it has a place or none.
func WishColumns(a *session.Session) []command.Column[*pb.Wish] {
	type wish = *pb.Wish
	return []command.Column[wish]{
		{Key: "id", Value: func(w wish) any { return w.Id }},
		{Key: "group", Value: func(w wish) any { return w.Group }},
		{Key: "who", Head: "WAITS", Value: func(w wish) any { return w.Who }},
		{Key: "node", Value: func(w wish) any { return w.Node }},
		{Key: "since", Head: "SINCE", Value: func(w wish) any { return Stamp(w.Since) },
			Text: func(w wish) string { return Clock(a, w.Since) }},
		{Key: "state", Head: "PLACE", Value: func(w wish) any { return w.State }},
		{Key: "until", Value: func(w wish) any { return Stamp(w.Until) }},
		{Key: "machine", Value: func(w wish) any { return w.Machine }},
		{Key: "devices", Head: "DEVICES", Wide: true, Value: func(w wish) any { return append([]string{}, w.Devices...) },
			Text: func(w wish) string { return strings.Join(w.Devices, ", ") }},
		{Key: "from", Value: func(w wish) any { return Stamp(w.From) }},
		{Key: "slices", Head: "SLICES", Value: func(w wish) any { return append([]string{}, w.Slices...) },
			Text: func(w wish) string { return strings.Join(w.Slices, ", ") }},
		{Key: "subjobs", Head: "JOBS", Value: func(w wish) any {
			list := make([]command.Record, 0, len(w.Subjobs))
			for _, s := range w.Subjobs {
				list = append(list, command.Record{{Key: "job", Value: s.Job}, {Key: "subjob", Value: s.Subjob},
					{Key: "slice", Value: s.Slice}, {Key: "end", Value: Stamp(s.End)}})
			}
			return list
		}, Text: func(w wish) string {
			var names []string
			for _, s := range w.Subjobs {
				names = append(names, s.Job)
			}
			return strings.Join(names, ", ")
		}},
		{Key: "at", Head: "STOP", Value: func(w wish) any { return Stamp(w.At) }, Text: func(w wish) string { return Clock(a, w.At) }},
		{Key: "lostSeconds", Value: func(w wish) any { return Seconds(w.Lost) }},
		{Key: "leftSeconds", Value: func(w wish) any { return Seconds(w.Left) }},
		{Key: "why", Head: "WHY", Value: func(w wish) any { return w.Why }},
	}
}

// ReclaimColumns are what was decided about subjobs for those who wait, and why.
func ReclaimColumns(a *session.Session) []command.Column[*pb.ReclaimStep] {
	type step = *pb.ReclaimStep
	return []command.Column[step]{
		{Key: "at", Head: "RECLAIM", Value: func(s step) any { return Stamp(s.At) }, Text: func(s step) string { return Clock(a, s.At) }},
		{Key: "node", Value: func(s step) any { return s.Node }},
		{Key: "step", Head: "STEP", Value: func(s step) any { return s.Step }},
		{Key: "job", Value: func(s step) any { return s.Job }},
		{Key: "subjob", Head: "SUBJOB", Value: func(s step) any { return s.Subjob }},
		{Key: "slice", Head: "SLICE", Value: func(s step) any { return s.Slice }},
		{Key: "end", Head: "ENDS", Value: func(s step) any { return Stamp(s.End) }, Text: func(s step) string { return Clock(a, s.End) }},
		{Key: "wish", Value: func(s step) any { return s.Wish }},
		{Key: "who", Head: "FOR", Value: func(s step) any { return s.Who }},
		{Key: "why", Head: "WHY", Value: func(s step) any { return s.Why }},
	}
}
