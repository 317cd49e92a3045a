package agents

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// TestARoundWaitsForWhoIsPromptAndThere: whatever comes, goes and answers, as many jobs have an agent as were last said to, a round waits
// for those that were prompt when they were asked and have neither answered nor gone, and no answer of a former session counts.
func TestARoundWaitsForWhoIsPromptAndThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, board := quantity.Instant(1e15), window.NewBoard(time.Second)
		est := index.NewEstimator(fifo.Policy{}, time.Hour, false, board)
		x := index.New(index.Config{}, est)
		c, _ := board.ClassOf(&protocol.Slice{Capacity: trp.Vector{20 << 30}, Speed: 1000})
		x.Cover(c)
		s := &window.Slice{Supply: &markettest.Slice{ID: "s", Gaps: []protocol.Gap{{Start: now, End: quantity.Never}}}}
		board.Place(s, c)
		board.Invalidate(s)
		board.Advertise(now)
		d := NewRelay(Config{Retry: time.Second, Close: 200 * time.Millisecond}, est, x, &status.Negotiation{})
		var jobs []*index.Job
		here := map[*index.Job]uint64{}
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			spec := markettest.Spec(t, i)
			spec.Name, spec.External = job.ID(fmt.Sprint("j", i)), true
			j := &index.Job{Demand: &markettest.Job{Of: spec, Came: now}}
			x.Activate(j, quantity.Never)
			jobs = append(jobs, j)
		}
		var out protocol.Out
		missed, waits, passed := map[*index.Job]int{}, map[*index.Job]bool{}, map[*index.Job]quantity.Instant{}
		session, id := uint64(0), uint64(0)
		var open *Round
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			j := rapid.SampledFrom(jobs).Draw(t, "job")
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				session++
				d.Attend(j, session, true)
				here[j], missed[j] = session, 0
				delete(waits, j)
				delete(passed, j)
			case 1:
				was := rapid.Uint64Range(1, session+1).Draw(t, "of")
				if d.Attend(j, was, false); here[j] == was {
					delete(here, j)
					delete(waits, j)
				}
			case 2:
				if open != nil {
					break
				}
				id++
				open = d.NewRound(now, id, 4, quantity.Never)
				offers := []Offer{{Slice: s, ID: s.Windows()[0].ID(), Full: true}}
				asked := d.Callees(now, jobs, offers)
				if len(asked) != len(here) {
					t.Fatalf("%d are asked, %d have an agent", len(asked), len(here))
				}
				clear(waits)
				for i := range asked {
					if missed[asked[i].job] < mostMissed {
						waits[asked[i].job] = true
					}
				}
				clear(passed)
				if d.Announce(now, open, offers, asked, &out); len(waits) == 0 {
					for i := range asked {
						passed[asked[i].job] = open.closes
					}
					open = nil
				}
			case 3:
				of := rapid.Uint64Range(1, session+1).Draw(t, "session")
				in := protocol.Message{Session: of, Job: j.Name()}
				d.Answer(now, j, &in, &protocol.Proposal{Round: id})
				if of == here[j] && passed[j] > now { // it was not waited for, and is prompt after all
					missed[j] = 0
					delete(passed, j)
				}
				if open != nil && of == here[j] &&
					slices.ContainsFunc(open.asked, func(c Callee) bool { return c.job == j && c.session == of }) {
					missed[j] = 0
					delete(waits, j)
				}
			default:
				if open == nil {
					break
				}
				if rapid.Bool().Draw(t, "closes") {
					now = open.closes
				}
				r := d.Over(now)
				if (r != nil) != (len(waits) == 0 || now >= open.closes) {
					t.Fatalf("a round is over: %v, while %d are waited for", r != nil, len(waits))
				}
				if r == nil {
					break
				}
				d.TakeIn(now, r)
				for i := range r.asked {
					if c := &r.asked[i]; !c.answered && here[c.job] == c.session {
						missed[c.job]++
					}
				}
				d.Conclude(now, r, &out)
				s.Windows()[0].Await(0)
				open = nil
			}
			if d.Attending() != len(here) {
				t.Fatalf("%d attend, want %d", d.Attending(), len(here))
			}
			if open != nil && open.waiting != len(waits) {
				t.Fatalf("a round waits for %d, want %d", open.waiting, len(waits))
			}
			for _, j := range jobs {
				if d.Session(j) != here[j] {
					t.Fatalf("%s is in session %d, want %d", j.Name(), d.Session(j), here[j])
				}
			}
		}
	})
}
