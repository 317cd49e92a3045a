package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// come has an owner take the first slice without a word: what runs there is killed, and has saved this share of its units, in
// percent, with a checkpoint if that is any. He goes again after a minute.
func (w *world) come(saved int64) {
	s := w.slices[0]
	for _, r := range s.runs {
		if !r.ended {
			r.done = w.now
			r.result.Outcome, r.result.Progress, r.result.Checkpoint = job.Stopped, r.m.Body.(*protocol.Work).Range.From+
				r.m.Body.(*protocol.Work).Range.Len()*saved/100, saved > 0
		}
	}
	w.seq++
	s.busy = append(s.busy, protocol.Reservation{ID: 1<<41 + w.seq, Kind: protocol.ForOwner, Start: w.now, End: w.now.Add(time.Minute),
		Source: "alice/train"})
	s.sent = ""
	for w.deliver() {
	}
	w.pass(w.now.Add(time.Minute + time.Second))
}

// pass lets time go by up to an instant.
func (w *world) pass(until quantity.Instant) {
	for w.now < until {
		w.tick()
		if w.now < until && w.now.Add(6*time.Second) > until { // a tick may go that far
			w.now = until
			w.step(protocol.Message{Kind: protocol.Tick})
		}
	}
	for w.deliver() {
	}
}

// learning is a world in which an owner has come every six minutes, so that gaps last for five of them.
func learning(t *testing.T, theta int64, m *auction.Config) *world {
	w := newWorld(t, 1024)
	w.config.Ends, w.config.Market = theta, m
	w.z = w.make()
	for range 14 {
		w.come(0)
		w.pass(w.now.Add(5 * time.Minute))
	}
	return w
}

// longest is the longest lease of a job that was sold from an instant on.
func (w *world) longest(name job.ID, from quantity.Instant) (long time.Duration) {
	for _, f := range w.claims() {
		if f.Job == name && f.Start >= from {
			long = max(long, f.End.Sub(f.Start))
		}
	}
	return long
}

// TestPiecesEndBeforeTheirGap: a chain that loses what it works on is sold no more than gaps have lasted, under both mechanisms; without
// learning it is sold the horizon. One that saves on its way is, once it has shown that, sold the horizon again.
func TestPiecesEndBeforeTheirGap(t *testing.T) {
	for name, m := range map[string]*auction.Config{"sja": nil, "jasda": {Payment: auction.Free}} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				theta int64
				most  time.Duration
			}{{0, 10 * time.Minute}, {100_000, 5*time.Minute + 5*time.Second}} {
				w := learning(t, c.theta, m)
				w.come(0)
				from := w.now
				w.submit(steps(t, "chain", 100_000, 10, 100))
				w.pass(w.now.Add(10 * time.Second))
				if long := w.longest("chain", from); long == 0 || long > c.most || c.theta == 0 && long < 9*time.Minute {
					t.Errorf("theta %d: it was sold %v", c.theta, long)
				}
			}
			w := learning(t, 100_000, m)
			w.submit(steps(t, "saver", 100_000, 10, 100))
			for range 3 {
				w.pass(w.now.Add(2 * time.Minute)) // sooner than any gap was: it is cut short, and most is saved
				w.come(90)
			}
			from := w.now
			w.come(90)
			w.pass(w.now.Add(10 * time.Second))
			if long := w.longest("saver", from); long < 9*time.Minute {
				t.Errorf("a program that saves was sold %v", long)
			}
		})
	}
}

// TestALongLeastPieceIsSoldAllTheSame: learning says how long pieces are and not who may run.
func TestALongLeastPieceIsSoldAllTheSame(t *testing.T) {
	w := learning(t, 100_000, nil)
	s := steps(t, "long", 100_000, 10, 100)
	s.TauMin = 8 * time.Minute
	w.come(0)
	from := w.now
	w.submit(s)
	w.pass(w.now.Add(10 * time.Second))
	if long := w.longest("long", from); long < 8*time.Minute || long > 9*time.Minute {
		t.Errorf("its least useful piece takes 8 m and it was sold %v", long)
	}
}

// TestARestartForgetsEnds: what is learned is soft, and nothing durable differs by it.
func TestARestartForgetsEnds(t *testing.T) {
	w := learning(t, 100_000, nil)
	if w.gaps() < 10 {
		t.Fatalf("%d gaps were seen", w.gaps())
	}
	w.restart()
	w.submit(steps(t, "chain", 100_000, 10, 100))
	from := w.now
	w.pass(w.now.Add(10 * time.Second))
	if long := w.longest("chain", from); w.gaps() != 0 || long < 9*time.Minute {
		t.Errorf("after a restart it was sold %v", long)
	}
}

// gaps is how many predictions of the ends of gaps have come out.
func (w *world) gaps() int64 {
	_, learned := w.z.Learned()
	return learned.Gaps
}
