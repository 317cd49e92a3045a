package zone_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestHonestJobsEndWhateverOthersSay: agents that lie, tease, are silent, come and go, and messages that are lost keep no job
// from ending that could run on every slice.
func TestHonestJobsEndWhateverOthersSay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		config := auction.Config{
			Variants: 1 + draw(6), PerTime: draw(2) == 0, Exclusive: draw(3) == 0, Joint: draw(2) == 0, Rounds: 1 + draw(3),
			Repack: auction.Repack(draw(3)), Starve: time.Duration(60+draw(600)) * time.Second, Audience: 2 + draw(20),
		}
		if !config.Exclusive && !config.Joint {
			config.Payment = auction.Payment(draw(3))
		}
		w := newMarket(rt, config, []int64{1024, 1024, 2048, 2048}[:rapid.IntRange(1, 4).Draw(rt, "slices")]...)
		// A job that is served in turn with five others, and takes an eighth of its rest each time, is served some forty times: in
		// windows of ten minutes that alone is more than a day.
		w.config.Horizon = 2 * time.Minute
		w.config.Rigid = rapid.SampledFrom([]backfill.Discipline{{}, {Overtake: true}, byDefault(rt), {Reserve: 1}}).Draw(rt, "rigid")
		w.z, w.draw = w.make(), draw
		w.loss = rapid.SampledFrom([]int{0, 0, 5}).Draw(rt, "loss")
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 2, Cap: 1 + draw(3)}})
		var honestJobs, bad []job.ID
		for i := range rapid.IntRange(1, 8).Draw(rt, "honest") {
			var s *job.Spec
			switch draw(4) {
			case 0:
				s = items(t, fmt.Sprint("h", i), int64(1+draw(200)), int64(1+draw(900)), 1+draw(4))
			case 1, 2:
				s = steps(t, fmt.Sprint("h", i), int64(20+draw(200)), int64(1+draw(9)), int64(1+draw(900)))
				s.Continue = draw(2) == 0
			default:
				s = rigid(t, fmt.Sprint("h", i), time.Duration(1+draw(300))*time.Second, int64(1+draw(900)), 1)
			}
			if draw(3) == 0 {
				s.Queue = "capped"
			}
			honestJobs = append(honestJobs, s.Name)
			if s.Kind != job.Rigid && draw(2) == 0 {
				good := honest(s)
				w.attend(s, func(m *protocol.Message) []protocol.Message {
					if w.loss > 0 && draw(100) < 30 {
						return nil
					}
					return good(m)
				})
			} else {
				w.submit(s)
			}
		}
		for i := range rapid.IntRange(0, 5).Draw(rt, "bad") {
			s := items(t, fmt.Sprint("x", i), 1<<40, int64(1+draw(900)), 1+draw(4))
			if draw(3) == 0 {
				s.Queue = "capped"
			}
			s.Priority = int32(draw(3) * 100)
			bad = append(bad, s.Name)
			w.attend(s, []func(*protocol.Message) []protocol.Message{hostile(s, draw), mute, boastful(draw)}[draw(3)])
		}
		w.run = w.declared
		start, session := w.now, uint64(7)
		ended := func() bool {
			for _, n := range honestJobs {
				if _, ok := w.closed[n]; !ok {
					return false
				}
			}
			return true
		}
		for i := 0; i < 60_000 && w.now < start.Add(12*time.Hour) && !ended(); i++ {
			w.tick()
			w.sane()
			if len(bad) > 0 && draw(50) == 0 {
				b := bad[draw(len(bad))]
				session++
				w.step(protocol.Message{Kind: protocol.Attend, Job: b, Session: session, Body: &protocol.Attendance{Present: draw(3) > 0}})
			}
		}
		for _, n := range honestJobs {
			if v, ok := w.closed[n]; !ok || v.State != job.Finished {
				j, _ := w.z.Job(w.now, n)
				e, _ := w.z.Explain(w.now, n)
				rt.Fatalf("job %s: %v after %v (%s), %d done; %+v", n, v, w.now.Sub(start), j.Reason, j.Progress, e.Reasons)
			}
		}
	})
}

// declared is a subjob that takes just as long as its job said.
func (w *world) declared(m *protocol.Message) (time.Duration, job.Result) {
	done := job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To, Checkpoint: true}
	if m.Body.(*protocol.Work).Spec.Kind == job.Rigid {
		return m.Body.(*protocol.Work).Spec.Walltime, done
	}
	took := time.Duration(m.Body.(*protocol.Work).Range.Len()) * time.Second
	if !m.Body.(*protocol.Work).Plan.Resume.Zero() {
		took += m.Body.(*protocol.Work).Spec.Restore
	}
	if m.Body.(*protocol.Work).Range.To < m.Body.(*protocol.Work).Spec.Total {
		took += m.Body.(*protocol.Work).Spec.Checkpoint
	}
	if most := m.Body.(*protocol.Work).End.Sub(max(w.now, m.Body.(*protocol.Work).Start)); took > most {
		return most, job.Result{Outcome: job.DeadlineKilled, Progress: m.Body.(*protocol.Work).Range.From}
	}
	return took, done
}

// boastful always wants a piece, now or later, and more than anybody.
func boastful(draw func(int) int) func(*protocol.Message) []protocol.Message {
	return func(m *protocol.Message) []protocol.Message {
		answers := keen(int64(1 + draw(100)))(m)
		for i := range answers {
			for j := range answers[i].Body.(*protocol.Proposal).Variants {
				v := &answers[i].Body.(*protocol.Proposal).Variants[j]
				v.Start, v.Score = v.Start.Add(time.Duration(draw(100))*time.Second), 1_000_000
			}
		}
		return answers
	}
}
