package twin_test

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// spoken is all that a message says.
func spoken(m *protocol.Message) string { return told(m, nil) }

// heardAs is a message as it arrives: in short where an actor sent it, since it is written out there.
func heardAs(m *protocol.Message) string {
	switch m.From.Role {
	case protocol.Gate, protocol.Zone, protocol.Node:
		return told(m, []string{"job", "slice", "ask", "token"})
	}
	return spoken(m)
}

// tellOrder is the order in which a story tells what is in a message, whether it stands in the header or in the body. Another order would
// be another text of the same decisions; what is not in it comes last.
var tellOrder = []string{
	"request", "job", "epoch", "generation", "since", "slice", "also", "ask", "token", "range", "progress", "at", "start", "end", "expiry",
	"demand", "plan",
	"flag", "text", "digest", "err", "spec", "queue", "verdict", "result", "view", "reservation", "slices", "found", "session", "round",
	"call", "variants",
	"notices", "made", "filed",
}

// bodyWords are what stories call fields of bodies, where that is not the field's name.
var bodyWords = map[string]string{
	"Submission.Replace": "flag", "Pause.Held": "flag", "Receipt.Changed": "flag", "Adoption.Held": "flag", "Attendance.Present": "flag",
	"Requeueing.Deadline": "at", "Archival.Count": "ask", "Halt.Unbegun": "flag", "Settlement.Committed": "flag",
	"Intrusion.Present": "flag", "Ailment.Ails": "flag",
}

// wholeWords are what stories call bodies that are told as one thing.
var wholeWords = map[string]string{"Queue": "queue", "Call": "call", "SliceView": "view"}

// told is what a message says, and if only is not nil, nothing but that of it.
func told(m *protocol.Message, only []string) string {
	words := map[string]string{}
	tell := func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i).Name
			if v.Field(i).IsZero() || slices.Contains([]string{"Kind", "From", "To", "Body"}, f) {
				continue
			}
			word := cmp.Or(bodyWords[v.Type().Name()+"."+f], strings.ToLower(f))
			field := v.Field(i)
			if _, spec := field.Interface().(*job.Spec); spec {
				field = reflect.ValueOf(m.Job) // whose it is: the story has it
			}
			words[word] = value(field)
		}
	}
	tell(reflect.ValueOf(*m))
	if m.Body != nil {
		body := reflect.ValueOf(m.Body).Elem()
		if word := wholeWords[body.Type().Name()]; word != "" {
			words[word] = value(body)
			if view, ok := m.Body.(*protocol.SliceView); ok {
				words["slice"] = string(view.Slice.ID)
			}
		} else {
			tell(body)
		}
	}
	names := make([]string, 0, len(words))
	for w := range words {
		if only == nil || slices.Contains(only, w) {
			names = append(names, w)
		}
	}
	place := func(w string) int {
		if i := slices.Index(tellOrder, w); i >= 0 {
			return i
		}
		return len(tellOrder)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	out := nameOf(messageNames, uint8(m.Kind))
	for _, w := range names {
		out += " " + w + "=" + words[w]
	}
	return out
}
