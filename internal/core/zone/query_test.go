package zone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/throughput"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/zone"
)

// asked asks a zone everything that people can ask.
func asked(z *zone.Zone, now quantity.Instant, stranger *job.Spec) {
	for _, j := range z.Page(now, status.JobQuery{}).Jobs {
		z.Job(now, j.Name)
		z.Explain(now, j.Name)
	}
	z.Windows(now)
	z.Queues(now)
	z.DryRun(now, stranger)
	z.Costs([]status.Cut{{Job: "j0"}})
	z.Negotiation()
	z.Learned()
}

// TestQuestionsChangeNothing: a zone that is asked everything between any two inputs, at any instant, says and decides what one
// says and decides that nobody asks.
func TestQuestionsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		w := newWorld(rt, 1024, 512, 2048)
		if w.config.Policy = rapid.SampledFrom(append(all.Policies(), free{})).Draw(rt, "policy"); draw(2) == 0 {
			w.config.Market = &auction.Config{}
		}
		w.draw, w.twin = draw, &twin{asked: true}
		w.z = w.make()
		w.twin.restart(w)
		w.rough(rt)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
		stranger := w.drawJob(rt, draw, 1000)
		stranger.Queue = "unheard-of"
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 2, Cap: 1 + draw(4)}})
		jobs := rapid.IntRange(1, 20).Draw(rt, "jobs")
		for i := 0; i < 100 && (i < 4*jobs || len(w.closed) < len(w.adopted)); i++ {
			if n := len(w.adopted); n < jobs && draw(3) > 0 {
				w.submit(w.drawJob(rt, draw, n))
			}
			w.disturb(draw)
			before, facts := w.z.Digest(), len(capture.All(w.z))
			asked(w.z, w.now, stranger)
			asked(w.z, w.now.Add(time.Duration(draw(2000))*time.Millisecond), stranger)
			if w.z.Digest() != before || len(capture.All(w.z)) != facts {
				rt.Fatalf("what people asked changed the durable state")
			}
			w.tick()
		}
	})
}

// TestManyJobsAreCountedBySample: of more jobs than are asked, those asked stand for all, in what is said of windows and, under a
// policy whose order moves with every window, of ranks. Under others a rank is exact.
func TestManyJobsAreCountedBySample(t *testing.T) {
	for _, p := range []policy.Policy{fifo.Policy{}, fair.Policy{}, throughput.Policy{}, free{}} {
		t.Run(p.Name(), func(t *testing.T) { countsMany(t, p) })
	}
}

func countsMany(t *testing.T, p policy.Policy) {
	w := newWorld(t, 512)
	w.config.Policy = p
	w.z = w.make()
	w.settle()
	const n = 20_000
	for i := range n {
		s := items(t, fmt.Sprintf("j%05d", i), 5, int64(1000-i%4/3*900), 1) // every fourth would fit the slice
		s.Queue = "capped"
		if i%4 < 3 {
			s.Queue = "default"
		}
		w.z.Apply(protocol.Fact{Kind: protocol.HomeTaken, Job: s.Name, Epoch: 1, Generation: 1, At: quantity.Instant(1 + i),
			Body: &protocol.Taking{Spec: s}})
	}
	w.slices[0].busy = nil
	held := protocol.Fact{Kind: protocol.HomePaused, Body: &protocol.JobPause{Paused: true}}
	for i := 3; i < n; i += 4 {
		held.Job = job.ID(fmt.Sprintf("j%05d", i))
		w.z.Apply(held)
	}
	w.step(protocol.Message{Kind: protocol.Tick})
	windows := w.z.Windows(w.now)
	i := slices.IndexFunc(windows, func(v status.Window) bool { return v.State == "unanswered" })
	if i < 0 || !strings.HasPrefix(windows[i].Reason, "too small for about ") || !strings.Contains(windows[i].Reason, "about ") {
		t.Fatalf("windows: %+v", windows)
	}
	var small, busy int
	if _, err := fmt.Sscanf(windows[i].Reason, "too small for about %d jobs, about %d jobs run", &small, &busy); err != nil ||
		small+busy < n-2 || small < 14_300 || small > 15_700 {
		t.Errorf("%q: %v", windows[i].Reason, err)
	}
	for i := 3; i < n; i += 4 {
		held.Job, held.Body = job.ID(fmt.Sprintf("j%05d", i)), &protocol.JobPause{}
		w.z.Apply(held)
	}
	w.step(protocol.Message{Kind: protocol.Tick})
	e, _ := w.z.Explain(w.now, "j10003") // the middle one of 5,000, of which the first was just asked
	r, moves := e.Rank, !p.Motion().Kept()
	if r.About != moves || strings.Contains(e.Prospect, "about ") != moves || !moves && (r.Place < 2500 || r.Place > 2501 || r.Of < 4999 ||
		r.Of > 5000) {
		t.Errorf("%+v, %q", r, e.Prospect)
	}
	if moves && (r.Place < 1800 || r.Place > 3200 || r.Of < 4200 || r.Of > 5800) {
		t.Errorf("%+v, %q", r, e.Prospect)
	}
}
