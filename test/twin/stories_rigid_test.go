package twin_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/lab/sim"
)

func gang(t failer, name job.ID, walltime time.Duration, n int) *job.Spec {
	return with(spec(t, name, job.Rigid, int64(walltime/time.Second), time.Second), func(s *job.Spec) { s.Slices = n })
}

// slowly runs everything of one job at a multiple of its plan; whatever is killed is gone a little later.
func slowly(name job.ID, factor float64, linger time.Duration) sim.Model {
	return func(m *protocol.Message) sim.Behaviour {
		b := truly(nil)(m)
		if m.Job == name {
			b.PerUnit = time.Duration(float64(b.PerUnit) * factor)
		}
		b.Linger = linger
		return b
	}
}

// TestAHeadWhosePlaceIsStillInUse: what ran before the head is killed at its deadline and is gone a second later. The
// head's place begins at that deadline; it waits for the slice without asking for it again and again.
func TestAHeadWhosePlaceIsStillInUse(t *testing.T) {
	s := newStory(t, setting{slices: one(10), model: slowly("slow", 10, time.Second)})
	s.submit(0, with(spec(t, "slow", job.Items, 400, time.Second), func(s *job.Spec) { s.Parallelism = 1 }))
	s.submit(time.Second, gang(t, "head", time.Minute, 1))
	s.run(15 * time.Minute)
	s.ended(job.Finished, 11*time.Minute, "head")
	if late := s.oracle.started["head"].Sub(s.oracle.promised["head"]); late < 0 || late > 1100*time.Millisecond {
		t.Errorf("the head started %v after its promise, the slice was in use for a second of it", late)
	}
}

// TestAGangIsNotOvertaken: small work goes on arriving, on three slices; the gang of two starts where it was first promised.
func TestAGangIsNotOvertaken(t *testing.T) {
	s := newStory(t, setting{slices: equal(3, 10)})
	s.submit(0, with(spec(t, "a", job.Items, 300, time.Second), func(s *job.Spec) { s.Parallelism = 3 }))
	s.submit(3*time.Second, gang(t, "pair", 2*time.Minute, 2))
	for i := range 30 {
		s.submit(time.Duration(i)*20*time.Second, spec(t, job.ID(fmt.Sprint("small", i)), job.Items, 40, time.Second))
	}
	s.run(2 * time.Hour)
	s.ended(job.Finished, 10*time.Minute, "a", "pair")
	s.oracle.kept("pair")
	if left := s.oracle.leftover(); len(left) > 0 {
		t.Errorf("places %v are still kept for nobody", left)
	}
}

// TestAGangWhoseTimeIsTaken: a drain moves one of the gang's two slices to later. The other place moves along, nothing is
// sold behind its old end, and the gang starts when the drain is over.
func TestAGangWhoseTimeIsTaken(t *testing.T) {
	s := newStory(t, setting{slices: equal(2, 10)})
	s.submit(0, with(spec(t, "a", job.Items, 200, time.Second), func(s *job.Spec) { s.Parallelism = 2 }))
	s.submit(3*time.Second, gang(t, "pair", 2*time.Minute, 2))
	s.reserve(5*time.Second, protocol.Reservation{Kind: protocol.ForDrain, Slice: "n/s1", Start: at(100 * time.Second),
		End: at(5 * time.Minute)})
	for i := range 40 {
		s.submit(time.Duration(6+10*i)*time.Second, spec(t, job.ID(fmt.Sprint("late", i)), job.Items, 400, time.Second))
	}
	s.run(5 * time.Hour)
	s.ended(job.Finished, 5*time.Minute+125*time.Second, "pair")
	if late := s.oracle.started["pair"].Sub(at(5 * time.Minute)); late > time.Second {
		t.Errorf("the gang started %v after the drain was over", late)
	}
}

// TestARigidJobWithoutAWalltimeGetsItsSlice: it needs a slice behind which nothing is sold, and gets it when what runs
// there is over, although work enough waits to take the slice for ever.
func TestARigidJobWithoutAWalltimeGetsItsSlice(t *testing.T) {
	s := newStory(t, setting{slices: one(10), model: func(m *protocol.Message) sim.Behaviour {
		b := sim.Planned(m)
		if m.Job == "serve" {
			b.PerUnit = 20 * time.Minute
		}
		return b
	}})
	s.submit(0, spec(t, "a", job.Items, 3000, time.Second))
	s.submit(time.Second, with(spec(t, "serve", job.Rigid, 1, time.Second), func(s *job.Spec) { s.Walltime = 0 }))
	s.run(10 * time.Hour)
	s.ended(job.Finished, 35*time.Minute, "serve")
	s.ended(job.Finished, 3*time.Hour, "a")
	s.oracle.kept("serve")
}

// TestAnOverrunEndsWhereAnotherHasAPlace: a rigid job may go on past its walltime, but not into the place of the next.
func TestAnOverrunEndsWhereAnotherHasAPlace(t *testing.T) {
	for _, c := range []struct {
		name string
		next bool
		want job.State
	}{{"alone it goes on", false, job.Finished}, {"until the next one's place", true, job.Failed}} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t, setting{slices: one(10), model: slowly("long", 3, 0)})
			s.submit(0, with(gang(t, "long", time.Minute, 1), func(s *job.Spec) { s.OnOverrun, s.MaxFailures = job.OverrunExtends, 1 }))
			if c.next {
				s.submit(10*time.Second, gang(t, "next", time.Minute, 1))
			}
			s.run(20 * time.Minute)
			s.ended(c.want, 200*time.Second, "long")
			if c.next {
				s.ended(job.Finished, 130*time.Second, "next")
				s.oracle.kept("next")
			}
		})
	}
}

// TestACapHoldsForGangsToo: a queue that may hold two slices never holds three, and its gang is not starved by its own
// small jobs. A gang larger than the cap is refused at submission.
func TestACapHoldsForGangsToo(t *testing.T) {
	s := newStory(t, setting{slices: equal(4, 10)})
	s.person(0, protocol.Gate, protocol.Message{Kind: protocol.SetQueue,
		Body: &protocol.QueueSetting{Request: "q", Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: 2}}})
	most := 0
	s.submit(time.Second, with(spec(t, "a", job.Items, 100, time.Second), func(s *job.Spec) { s.Parallelism = 1 }))
	s.submit(2*time.Second, gang(t, "pair", time.Minute, 2))
	for i := range 30 {
		s.submit(time.Duration(3+5*i)*time.Second, with(spec(t, job.ID(fmt.Sprint("late", i)), job.Items, 30, time.Second),
			func(s *job.Spec) { s.Parallelism = 1 }))
	}
	for i := range 400 {
		s.run(time.Duration(i) * 5 * time.Second)
		for _, q := range s.actors.Zones[0].Queues(s.sim.Now()) {
			most = max(most, q.Held)
		}
	}
	s.ended(job.Finished, 5*time.Minute, "pair")
	s.ended(job.Finished, 30*time.Minute, "late0", "late25")
	if most != 2 {
		t.Errorf("a queue capped at 2 slices held %d", most)
	}
	if err := s.actors.Gates[0].Gate.Check(1e9, gang(t, "trio", time.Minute, 3)); err == nil {
		t.Error("a gang of three was accepted into a queue that may hold two slices")
	}
}

// TestAWithdrawnHeadLeavesNothingReserved whatever state it is in when it is cancelled, paused or expires.
func TestAWithdrawnHeadLeavesNothingReserved(t *testing.T) {
	for name, leave := range map[string]func(*story){
		"cancelled": func(s *story) {
			s.person(20*time.Second, protocol.Gate, protocol.Message{Kind: protocol.Cancel, Body: &protocol.Cancellation{Request: "c"},
				Job: "head"})
		},
		"paused": func(s *story) {
			s.person(20*time.Second, protocol.Gate,
				protocol.Message{Kind: protocol.PauseJob, Body: &protocol.Pause{Request: "p", Paused: true}, Job: "head"})
		},
		"expired": func(*story) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, setting{slices: one(10)})
			s.submit(0, with(spec(t, "a", job.Items, 200, time.Second), func(s *job.Spec) { s.Parallelism = 1 }))
			s.submit(time.Second, with(gang(t, "head", time.Minute, 1), func(s *job.Spec) {
				if name == "expired" {
					s.Deadline = at(20 * time.Second)
				}
			}))
			leave(s)
			s.run(19 * time.Second)
			if len(s.oracle.leftover()) != 1 {
				t.Fatalf("the head has %d places, want one", len(s.oracle.leftover()))
			}
			s.run(21 * time.Second)
			if left := s.oracle.leftover(); len(left) > 0 {
				t.Errorf("place %v is still kept", left)
			}
			s.run(10 * time.Minute)
			s.ended(job.Finished, 5*time.Minute, "a")
		})
	}
}

// TestAHeadBehindAJobLongerThanTheHorizon: the end of what runs lies beyond what the node looks ahead; the head's place is
// reserved as soon as it comes into sight, and others do not take it first.
func TestAHeadBehindAJobLongerThanTheHorizon(t *testing.T) {
	s := newStory(t, setting{slices: one(10)})
	s.submit(0, gang(t, "long", 45*time.Minute, 1))
	s.submit(time.Second, gang(t, "head", 10*time.Minute, 1))
	s.submit(2*time.Second, spec(t, "small", job.Items, 3000, time.Second))
	s.run(5 * time.Hour)
	s.ended(job.Finished, 57*time.Minute, "long", "head")
	s.oracle.kept("head")
}
