package airlock

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
)

// TestBelowNamesTheFieldThatDecides: of two tasks that differ in it and in all that come behind it, which say the opposite.
func TestBelowNamesTheFieldThatDecides(t *testing.T) {
	low := Task{Token: job.Token{Epoch: 1, Seq: 9}, Start: t0.Add(-100 * time.Second), Resident: gib, Planned: 2 * gib, Class: Lasting,
		Priority: 5, Value: 3}
	for _, c := range []struct {
		want  string
		order Order
		// high is above low by one field, and below it by those behind that one.
		high func(*Task)
	}{
		{"it has outgrown its plan, with 1024 MiB of 512", ClassFirst, func(h *Task) { h.Class, h.Priority = Fleeting, -1 }},
		{"its class is lasting, the other's collective", ClassFirst, func(h *Task) { h.Class, h.Priority = Collective, -1 }},
		{"its priority is 5, the other's 6", PriorityFirst, func(h *Task) { h.Class, h.Priority = Fleeting, 6 }},
		{"its priority is 5, the other's 6", ClassFirst, func(h *Task) { h.Priority, h.Value = 6, 0 }},
		{"its class is lasting, the other's collective", PriorityFirst, func(h *Task) { h.Class, h.Value = Collective, 0 }},
		{"its queue's value band is 3, the other's 4", ClassFirst, func(h *Task) { h.Value, h.Start = 4, t0 }},
		{"it has run 1m40s, the other 5m0s", ClassFirst, func(h *Task) {
			h.Start, h.Resident, h.Planned = t0.Add(-5*time.Minute), 9*gib,
				0
		}},
		{"it has 1024 MiB, the other 100", ClassFirst, func(h *Task) { h.Resident, h.Token.Seq = 100<<20, 1 }},
		{"they are alike, and its number 1-9 comes before 1-10", ClassFirst, func(h *Task) { h.Token.Seq = 10 }},
	} {
		l, h, cfg := low, low, Config{Order: c.order}
		if c.high(&h); strings.Contains(c.want, "outgrown") {
			l.Planned, h.Planned = gib/2, 0
		}
		x, y := RankingOf(t0, &l), RankingOf(t0, &h)
		if got := cfg.Below(&x, &y); got != c.want || !cfg.Outranks(t0, &h, &l) {
			t.Errorf("it says %q, want %q; and the order says the same: %v", got, c.want, cfg.Outranks(t0, &h, &l))
		}
	}
}

// TestBelowAgreesWithTheKey: only those whose keys are the same are alike.
func TestBelowAgreesWithTheKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := config(t), host(t)
		for i := range s.Tasks {
			for j := range s.Tasks {
				l, h := &s.Tasks[i], &s.Tasks[j]
				if !c.Outranks(t0, h, l) {
					continue
				}
				x, y := RankingOf(t0, l), RankingOf(t0, h)
				if said := c.Below(&x, &y); strings.HasPrefix(said, "they are alike") != (c.key(t0, l) == c.key(t0, h)) {
					t.Fatalf("%+v below %+v: %s", l, h, said)
				}
			}
		}
	})
}
