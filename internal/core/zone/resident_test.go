package zone_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestOneProgramEndsForAJob: a job that is refused since a program ends for it waits for that slice, and has none end on the next one;
// where the program never ends it looks elsewhere after a while.
func TestOneProgramEndsForAJob(t *testing.T) {
	for name, end := range map[string]time.Duration{"it ends": time.Second, "it never does": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1024, 1024)
			var asked []job.SliceID
			gone := quantity.Instant(0)
			view := func(usable bool) {
				s := w.slices[0]
				s.vers++
				w.reply(protocol.Message{Kind: protocol.Offer, From: s.at(), Epoch: w.epoch, Body: &protocol.SliceView{Slice: s.view,
					Node: "n", Version: s.vers, Usable: usable, Gaps: s.gaps(w.now)}})
			}
			w.lose = func(m *protocol.Message) bool {
				if m.Kind != protocol.Ask {
					return false
				}
				a := m.Body.(*protocol.Asking)
				asked = append(asked, a.Slice)
				if a.Slice != "s0" || gone != 0 && w.now >= gone {
					return false
				}
				gone = w.now.Add(end)
				w.reply(protocol.Message{Kind: protocol.Refused, From: m.To, Job: m.Job,
					Body: &protocol.Refusal{Ask: a.Ask, Slice: a.Slice, Text: "a program stays there", Ends: true}})
				view(false)
				return true
			}
			w.submit(items(t, "a", 1, 100, 1))
			w.until(500 * time.Millisecond)
			if e, _ := w.z.Explain(w.now, "a"); !strings.Contains(e.Job.Reason, "ends for it") {
				t.Errorf("it says %q, %+v", e.Job.Reason, e.Reasons)
			}
			want := []job.SliceID{"s0", "s1"}
			if end == time.Second {
				w.until(600 * time.Millisecond)
				view(true)
				want = []job.SliceID{"s0", "s0"}
			}
			w.until(30 * time.Second)
			finished(t, w, "a")
			if !slices.Equal(asked, want) {
				t.Errorf("it asked on %v, want %v", asked, want)
			}
		})
	}
}
