package twin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/deadline"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/policy/throughput"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/sim"
)

// TestTheLeastPieceIsAsLongAsTheHorizon: such a job is accepted, so it must run; also when its first piece was killed at
// its deadline and plans are more careful from then on.
func TestTheLeastPieceIsAsLongAsTheHorizon(t *testing.T) {
	for _, slow := range []float64{1, 1.1} {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			first := true
			s := newStory(t, setting{slices: one(10), model: func(m *protocol.Message) sim.Behaviour {
				b := sim.Planned(m)
				b.PerUnit = 400 * time.Second
				if slow > 1 && first {
					b.PerUnit = 601 * time.Second
				}
				first = false
				return b
			}})
			// 10 min are 1.25 x 479.2 s and a second of grace: the margin of a first run exactly.
			s.submit(0, with(spec(t, "a", job.Items, 4, 479200*time.Millisecond), func(s *job.Spec) { s.Parallelism = 1 }))
			s.run(3 * time.Hour)
			s.ended(job.Finished, 80*time.Minute, "a")
		})
	}
}

// TestTheEndOfASharedJobIsNotTooShort: towards its end every share is less than tau_min; it must still finish.
func TestTheEndOfASharedJobIsNotTooShort(t *testing.T) {
	for _, total := range []int64{1, 7, 29, 30, 31, 64, 100} {
		s := newStory(t, setting{slices: equal(3, 10)})
		s.submit(0, with(spec(t, "a", job.Items, total, 3*time.Second), func(s *job.Spec) { s.Parallelism, s.TauMin = 8, 10*time.Second }))
		s.run(time.Hour)
		s.ended(job.Finished, 15*time.Minute, "a")
	}
}

// TestPhasesFindTheirSlices: each phase of the job needs another amount of memory; the small slice does what it can and
// the large one the rest, whatever the order of the phases and however short one of them is.
func TestPhasesFindTheirSlices(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		for _, gib := range [][]int64{{2, 12, 2}, {12, 2, 12}, {2, 12, 4}, {12, 12, 2}} {
			s := newStory(t, setting{})
			phases := with(spec(t, "a", kind, 300, time.Second), func(s *job.Spec) {
				p := trp.Profile{Form: trp.Phases}
				for i, g := range gib {
					p.Phases = append(p.Phases, trp.Phase{UpTo: []int64{20, 200, 300}[i], Mean: quantity.Amount(g << 30)})
				}
				table, err := trp.Compile(p, s.Total, 10_000)
				if err != nil {
					t.Fatal(err)
				}
				s.Profile, s.Safe, s.TauMin = p, table, 40*time.Second
			})
			s.submit(0, phases)
			s.run(2 * time.Hour)
			s.ended(job.Finished, 30*time.Minute, "a")
		}
	}
}

// TestMaxWindowBoundsEveryPiece of its queue.
func TestMaxWindowBoundsEveryPiece(t *testing.T) {
	s := newStory(t, setting{slices: one(10), policy: fair.Policy{}})
	s.person(0, protocol.Gate, protocol.Message{Kind: protocol.SetQueue,
		Body: &protocol.QueueSetting{Request: "q", Queue: &protocol.Queue{Name: "short", Weight: 1, MaxWindow: time.Minute}}})
	s.submit(time.Second, with(spec(t, "a", job.Steps, 500, time.Second), func(s *job.Spec) { s.Queue = "short" }))
	s.submit(2*time.Second, spec(t, "urgent", job.Items, 5, time.Second))
	s.run(time.Hour)
	s.ended(job.Finished, 20*time.Minute, "a")
	s.ended(job.Finished, 80*time.Second, "urgent")
	if n := s.job("a").Pieces; n < 9 {
		t.Errorf("500 s of work in windows of a minute took %d pieces", n)
	}
}

// TestWeightsShareASlice: two queues of weights 1 and 3 get about that share of the slice while both have work.
func TestWeightsShareASlice(t *testing.T) {
	s := newStory(t, setting{slices: one(10), policy: fair.Policy{}})
	for i, q := range []string{"light", "heavy"} {
		s.person(0, protocol.Gate, protocol.Message{Kind: protocol.SetQueue,
			Body: &protocol.QueueSetting{Request: q, Queue: &protocol.Queue{Name: q, Weight: int64(1 + 2*i), MaxWindow: time.Minute}}})
		s.submit(time.Second, with(spec(t, job.ID(q), job.Items, 6000, time.Second), func(s *job.Spec) { s.Queue, s.Parallelism = q, 1 }))
	}
	s.run(100 * time.Minute)
	light, heavy := s.job("light").Progress, s.job("heavy").Progress
	if share := float64(heavy) / float64(light); share < 2.6 || share > 3.4 {
		t.Errorf("weights 1 and 3 got %d and %d units", light, heavy)
	}
}

// TestLaxity: of three equal jobs the one whose deadline leaves least time goes first, the one without one last.
func TestLaxity(t *testing.T) {
	s := newStory(t, setting{slices: one(10), policy: deadline.Policy{}})
	s.submit(0, spec(t, "before", job.Items, 10, time.Second))
	for i, d := range []quantity.Instant{quantity.Never, at(30 * time.Minute), at(20 * time.Minute)} {
		s.submit(time.Second, with(spec(t, job.ID(fmt.Sprint("d", i)), job.Items, 200, time.Second), func(s *job.Spec) { s.Deadline = d }))
	}
	s.run(time.Hour)
	s.ended(job.Finished, 20*time.Minute, "d0", "d1", "d2")
	if a, b, c := s.job("d2").Started, s.job("d1").Started, s.job("d0").Started; a >= b || b >= c {
		t.Errorf("started at %v, %v and %v", a, b, c)
	}
}

// TestThroughputLeavesSlicesToWhomTheyHelp: of two jobs the one that is faster on a slice for what it is goes first, though it is longer,
// and the other once it is through.
func TestThroughputLeavesSlicesToWhomTheyHelp(t *testing.T) {
	on := one(10)
	on[0].Profile = "whole"
	s := newStory(t, setting{slices: on, policy: throughput.Policy{}})
	s.submit(0, spec(t, "before", job.Items, 10, time.Second))
	s.submit(time.Second, with(spec(t, "slow", job.Items, 200, time.Second),
		func(s *job.Spec) { s.Speeds = []job.SpeedOn{{Profile: "whole", Permille: 500}} }), spec(t, "fast", job.Items, 2000, time.Second))
	s.run(2 * time.Hour)
	s.ended(job.Finished, 2*time.Hour, "slow", "fast")
	if slow, fast := s.job("slow").Started, s.job("fast").Ended; slow < fast {
		t.Errorf("the slower job started at %v, before the faster was over at %v", slow, fast)
	}
}

// TestALearnedRateHoldsOnEverySlice: what is learned on a slow slice is not taken for the run time on a fast one.
func TestALearnedRateHoldsOnEverySlice(t *testing.T) {
	killed := 0
	s := newStory(t, setting{model: func(m *protocol.Message) sim.Behaviour {
		b := sim.Planned(m)
		b.PerUnit = 2 * time.Second // twice what is declared, on the fast slice
		if m.Body.(*protocol.Work).Slice == "n/gpu0" {
			b.PerUnit *= 2
		}
		if m.Body.(*protocol.Work).Range.To < m.Body.(*protocol.Work).Spec.Total &&
			m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start) < time.Duration(m.Body.(*protocol.Work).Range.Len())*b.PerUnit {
			killed++
		}
		return b
	}})
	s.submit(0, with(spec(t, "a", job.Items, 1500, time.Second), func(s *job.Spec) { s.Parallelism = 2 }))
	s.run(3 * time.Hour)
	s.ended(job.Finished, 50*time.Minute, "a")
	if killed > 4 {
		t.Errorf("%d pieces were planned too long: two slices learn it once each", killed)
	}
}

// TestWhoseSubjobsAreAlwaysKilledHasFailed: at its maxFailures where its program may have done it, whatever else runs on the machine; at
// thirty where its machine did. Waves of two count once.
func TestWhoseSubjobsAreAlwaysKilledHasFailed(t *testing.T) {
	for outcome, want := range map[job.Outcome]struct {
		waves int
		said  string
	}{
		job.Lost:       {5, "5 times in a row its subjobs ended without progress"},
		job.NodeFailed: {30, "30 times in a row its subjobs were ended from outside"},
	} {
		s := newStory(t, setting{slices: equal(3, 10), model: func(m *protocol.Message) sim.Behaviour {
			b := sim.Planned(m)
			if m.Job == "kills" {
				b.Fails, b.FailAfter = outcome, 100*time.Millisecond
			}
			return b
		}})
		s.submit(0, with(spec(t, "kills", job.Items, 400, time.Second), func(s *job.Spec) { s.Parallelism, s.MaxFailures = 2, 5 }))
		s.submit(0, with(spec(t, "works", job.Items, 400, time.Second), func(s *job.Spec) { s.Parallelism = 1 }))
		s.run(2 * time.Hour)
		s.ended(job.Failed, time.Hour, "kills")
		s.ended(job.Finished, time.Hour, "works")
		if j := s.job("kills"); j.Pieces < want.waves || j.Pieces > 2*want.waves || !strings.Contains(j.Reason, want.said) {
			t.Errorf("%v: %+v, want %d waves and %q", outcome, j, want.waves, want.said)
		}
	}
}

// TestContinuation: alone a job keeps its slice; when another would be preferred it ends and gives way.
func TestContinuation(t *testing.T) {
	s := newStory(t, setting{slices: one(10), policy: shortest.Policy{}, model: sim.Planned})
	s.submit(0, with(spec(t, "a", job.Steps, 3000, time.Second), func(s *job.Spec) { s.Continue = true }))
	s.run(25 * time.Minute)
	if n := s.job("a").Pieces; n != 1 {
		t.Errorf("alone on its slice the job was stopped: %d pieces", n)
	}
	s.submit(25*time.Minute, spec(t, "b", job.Items, 60, time.Second))
	s.run(3 * time.Hour)
	s.ended(job.Finished, 45*time.Minute, "b")
	s.ended(job.Finished, 80*time.Minute, "a")
}

// TestEndsInEveryState: a job that is cancelled, or whose deadline passes, is over soon, whatever it was doing.
func TestEndsInEveryState(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		prior func(*story)
	}{
		{"running", 20 * time.Second, func(*story) {}},
		{"waiting", 20 * time.Second, func(s *story) { s.submit(0, gang(t, "first", 5*time.Minute, 2)) }},
		{"paused", 20 * time.Second, func(s *story) {
			s.person(10*time.Second, protocol.Gate,
				protocol.Message{Kind: protocol.PauseJob, Body: &protocol.Pause{Request: "p", Paused: true}, Job: "a"})
		}},
		{"resting", 20 * time.Second, nil},
		{"as it arrives", time.Second, func(*story) {}},
	} {
		for _, expires := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, expires), func(t *testing.T) {
				o := setting{slices: equal(2, 10)}
				if c.prior == nil {
					o.model = func(m *protocol.Message) sim.Behaviour {
						b := sim.Planned(m)
						b.Fails, b.FailAfter = job.NodeFailed, 100*time.Millisecond
						return b
					}
				}
				s := newStory(t, o)
				if c.prior != nil {
					c.prior(s)
				}
				a := spec(t, "a", job.Items, 400, time.Second)
				s.submit(time.Second, a)
				want := job.Cancelled
				if expires { // specs are shared by pointer: this is before it is submitted
					a.Deadline, want = at(c.after)+1, job.Expired // one that has passed is refused
				} else {
					s.person(c.after, protocol.Gate, protocol.Message{Kind: protocol.Cancel, Body: &protocol.Cancellation{Request: "c"},
						Job: "a"})
				}
				s.run(10 * time.Minute)
				s.ended(want, c.after+2*time.Second, "a")
			})
		}
	}
}

// TestAPausedJobGoesOn: pausing lets what runs end, and nothing new starts until it is resumed.
func TestAPausedJobGoesOn(t *testing.T) {
	s := newStory(t, setting{slices: one(10)})
	s.submit(0, spec(t, "a", job.Steps, 1000, time.Second))
	for i, flag := range []bool{true, false} {
		s.person(time.Duration(10+1200*i)*time.Second, protocol.Gate,
			protocol.Message{Kind: protocol.PauseJob, Body: &protocol.Pause{Request: fmt.Sprint(i), Paused: flag}, Job: "a"})
	}
	s.run(1200 * time.Second)
	if j := s.job("a"); j.State != job.Paused || j.Pieces != 1 {
		t.Errorf("after its first piece a paused job is %+v", j)
	}
	s.run(2 * time.Hour)
	s.ended(job.Finished, 50*time.Minute, "a")
}
