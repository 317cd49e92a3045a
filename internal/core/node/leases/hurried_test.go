package leases

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAHomeThatCanNotWaitIsObeyed: what was told to end keeps its grace until its home says that it has none, and is told so at once and
// until it is gone; what is suspended, or was about to go on, as well. That it wants it gone is no news afterwards.
func TestAHomeThatCanNotWaitIsObeyed(t *testing.T) {
	for _, from := range []Phase{Running, Suspending, Suspended, Resuming} {
		w := newWorld()
		l := w.lease("j", "a", t0, t0.Add(time.Hour))
		w.Drive(w.now, &w.out)
		w.Started(w.now, &protocol.Message{Token: l.Token()}, w.now, &w.out)
		l.phase = from
		stop := func(now bool) *protocol.Halt {
			w.out.Reset()
			w.Stop(w.now, &protocol.Message{Token: l.Token()}, &protocol.Halt{Text: "cancelled", Now: now}, &w.out)
			if m := w.sent(protocol.Stop); len(m) > 0 {
				return m[0].Body.(*protocol.Halt)
			}
			return nil
		}
		if h := stop(false); h == nil || h.Now {
			t.Fatalf("%v: the executor hears %+v", from, h)
		}
		if stop(false) != nil {
			t.Errorf("%v: the same word again is passed on", from)
		}
		if h := stop(true); h == nil || !h.Now || h.Text != "cancelled" {
			t.Errorf("%v: without grace the executor hears %+v", from, h)
		}
		if stop(true) != nil || stop(false) != nil {
			t.Errorf("%v: what is known is passed on", from)
		}
		w.Drive(w.now.Add(2*time.Second), &w.out)
		if m := w.sent(protocol.Stop); len(m) != 1 || !m[0].Body.(*protocol.Halt).Now {
			t.Errorf("%v: it is repeated as %+v", from, m)
		}
	}
}

// TestWhatIsTakenAtOnceHasItsOwnGrace: as much as its job needs to end in order, and not more than its node gives; after a restart, when
// that is not known, all that its node gives.
func TestWhatIsTakenAtOnceHasItsOwnGrace(t *testing.T) {
	for _, c := range []struct{ grace, warn, want time.Duration }{
		{0, 0, 2 * time.Second}, {5 * time.Second, 0, 5 * time.Second}, {time.Second, 7 * time.Second, 7 * time.Second},
		{time.Minute, 0, 15 * time.Second},
	} {
		for _, known := range []bool{true, false} {
			w := newWorld()
			w.Runner.cfg.TruncateGrace = 15 * time.Second
			l := w.lease("j", "a", t0, t0.Add(time.Hour))
			w.Drive(w.now, &w.out)
			w.Started(w.now, &protocol.Message{Token: l.Token()}, w.now, &w.out)
			want := 15 * time.Second
			if l.spec = nil; known {
				want = c.want
				l.spec = &job.Spec{Launch: job.Launch{Grace: c.grace, WarnBefore: c.warn}}
			}
			now := w.now.Add(time.Minute)
			r := protocol.Reservation{Start: now, End: quantity.Never, Truncate: true}
			list := w.Truncations(now, w.Leases.inventory.Of("a"), &r)
			if len(list) != 1 || list[0].End != now.Add(want) {
				t.Errorf("grace %v, warned %v before, known %v: %+v, want it to end in %v", c.grace, c.warn, known, list, want)
			}
		}
	}
}
