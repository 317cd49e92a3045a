package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestAProfileThatIsTooNarrowIsWidened: every run passes what the profile promises at theta, so it is no longer believed; but
// it is widened only as far as the largest slice goes, where the job could run before.
func TestAProfileThatIsTooNarrowIsWidened(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512, 1024)
	s := steps(t, "a", 400, 10, 1000)
	s.TauMin = 20 * time.Second
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To,
			Checkpoint: true, Peak: trp.Vector{m.Body.(*protocol.Work).Demand[trp.Memory] + 1<<20}}
	}
	w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "default", Weight: 1, MaxWindow: time.Minute}})
	w.submit(s)
	w.until(time.Hour)
	finished(t, w, "a")
	j, _ := w.z.Job(w.now, "a")
	if last := j.History[len(j.History)-1]; j.Spread <= trp.Unscaled || last.Predicted <= 1000<<20 || last.Predicted > 1024<<20 {
		t.Errorf("spread %d, the last piece was sold %d MiB of the largest slice's 1024", j.Spread, last.Predicted>>20)
	}
	if q := w.z.Queues(w.now)[0]; q.Trust.Runs == 0 || q.Trust.Excess != q.Trust.Runs {
		t.Errorf("the queue's record: %+v", q.Trust)
	}
}

// TestALiarIsBelievedLess: of two jobs alike but for what their agents declare, one says 1 and delivers as the other, and is
// believed less after its first subjobs; once honest it recovers.
func TestALiarIsBelievedLess(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "default", Weight: 1, MaxWindow: 30 * time.Second}})
	believed := map[job.ID][]int64{}
	for _, name := range []string{"liar", "honest"} {
		s := steps(t, name, 1000, 10, 300)
		s.Queue = name
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: name, Weight: 1, MaxWindow: 30 * time.Second}})
		answer := honest(s)
		w.attend(s, func(m *protocol.Message) []protocol.Message {
			answers := answer(m)
			for i := range answers {
				for k := range answers[i].Body.(*protocol.Proposal).Variants {
					if name == "liar" && w.now < quantity.Instant(600e9) {
						answers[i].Body.(*protocol.Proposal).Variants[k].Score = 1_000_000
					}
				}
			}
			return answers
		})
	}
	for w.now < quantity.Instant(1500e9) {
		w.tick()
		for _, name := range []job.ID{"liar", "honest"} {
			j, _ := w.z.Job(w.now, name)
			believed[name] = append(believed[name], j.Trust.Believed)
		}
	}
	least := func(list []int64) int64 {
		out := list[0]
		for _, x := range list {
			out = min(out, x)
		}
		return out
	}
	if l, h := least(believed["liar"]), least(believed["honest"]); l > 400_000 || h < 800_000 {
		t.Errorf("the liar was believed %d at least, the honest one %d", l, h)
	}
	if last := believed["liar"][len(believed["liar"])-1]; last < 900_000 {
		t.Errorf("long honest, it is believed %d", last)
	}
}
