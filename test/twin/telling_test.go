package twin_test

import (
	"cmp"
	"maps"
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
	"Submission.Replace": "flag", "Pause.Paused": "flag", "Receipt.Changed": "flag", "Adoption.Paused": "flag",
	"Attendance.Present":  "flag",
	"Requeueing.Deadline": "at", "Archival.Count": "ask", "Halt.Unstarted": "flag", "Settlement.Committed": "flag",
	"Intrusion.Present": "flag", "Condition.Unhealthy": "flag", "Acceptance.Recalled": "flag", "Forgetting.Archived": "flag",
	"JobPause.Paused": "flag",
	"Archiving.Most":  "flag", "Archiving.Changes": "count", "Departure.Pending": "flag", "HomeDrop.Queue": "text",
	"HomeDrop.Attained": "count", "Keeping.Recalled": "flag", "SubjobEnd.Bare": "flag",
}

// wholeWords are what stories call bodies that are told as one thing.
var wholeWords = map[string]string{
	"Queue": "queue", "Call": "call", "SliceView": "view", "Learned": "learned", "Calibration": "standing", "Lesson": "lesson",
	"Reservation": "reservation", "Fault": "fault",
}

// factOrder is that of facts.
var factOrder = []string{
	"job", "epoch", "generation", "token", "node", "zone", "slice", "speed", "also", "members", "range", "at", "start", "end", "demand",
	"plan",
	"flag", "request", "text", "digest", "spec", "queue", "verdict", "result", "learned", "skipped", "reservation", "record", "bid",
	"standing", "lesson", "count", "rank", "peak", "fault",
}

// recorded is all that a fact says.
func recorded(f *protocol.Fact) string {
	words := wordsOf(reflect.ValueOf(*f), f.Body, f.Job)
	return nameOf(factNames, uint8(f.Kind)) + inOrder(words, factOrder)
}

// told is what a message says, and if only is not nil, nothing but that of it.
func told(m *protocol.Message, only []string) string {
	words := wordsOf(reflect.ValueOf(*m), m.Body, m.Job)
	if view, ok := m.Body.(*protocol.SliceView); ok {
		words["slice"] = string(view.Slice.ID)
	}
	maps.DeleteFunc(words, func(w, _ string) bool { return only != nil && !slices.Contains(only, w) })
	return nameOf(messageNames, uint8(m.Kind)) + inOrder(words, tellOrder)
}

// wordsOf are the names and values of what is not zero in a header and in a body.
func wordsOf(header reflect.Value, body protocol.Body, of job.ID) map[string]string {
	words := map[string]string{}
	var tell func(v reflect.Value)
	tell = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch field := v.Field(i); {
			case field.IsZero() || slices.Contains([]string{"Kind", "Actor", "From", "To", "Body"}, f.Name):
			case field.Type() == reflect.TypeFor[protocol.Placement]():
				tell(field)
			case field.Type() == reflect.TypeFor[*job.Spec](): // whose it is: the story has it
				words["spec"] = value(reflect.ValueOf(of))
			default:
				words[cmp.Or(bodyWords[v.Type().Name()+"."+f.Name], strings.ToLower(f.Name))] = value(field)
			}
		}
	}
	tell(header)
	if body != nil {
		v := reflect.ValueOf(body).Elem()
		if word := wholeWords[v.Type().Name()]; word != "" {
			words[word] = value(v)
		} else {
			tell(v)
		}
	}
	return words
}

// inOrder writes words out.
func inOrder(words map[string]string, order []string) (out string) {
	place := func(w string) int {
		if i := slices.Index(order, w); i >= 0 {
			return i
		}
		return len(order)
	}
	for _, w := range slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	}) {
		out += " " + w + "=" + words[w]
	}
	return out
}
