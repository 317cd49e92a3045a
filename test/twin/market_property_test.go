package twin_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/sim"
)

// TestWhateverIsSubmittedEnds throws random jobs at random slices with random reservations, behaviour, queues, policies and
// loss of messages. The oracle watches every fact; beyond it every job that the gate accepts reaches a final state, a job
// whose subjobs behave finishes (unless messages are lost: its subjobs start late then and may miss their deadlines), no
// place of a rigid job is left over, and no lease stands.
func TestWhateverIsSubmittedEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		s := newStory(rt, w.setting)
		for i, q := range []protocol.Queue{
			{Name: "default", Weight: 1}, {Name: "capped", Weight: 2, Cap: rapid.IntRange(1, 3).Draw(rt, "cap")},
			{Name: "short", Weight: 3, MaxWindow: 5 * time.Minute},
		} {
			s.person(0, protocol.Gate, protocol.Message{Kind: protocol.SetQueue,
				Body: &protocol.QueueSetting{Request: fmt.Sprint("queue ", i), Queue: &q}})
		}
		s.run(warmUp) // the first inventory may be lost: without one the gate refuses nothing
		var behave []job.ID
		for _, a := range w.jobs {
			if s.actors.Gates[0].Gate.Check(1e9, a.spec) != nil {
				continue // it could never run here
			}
			s.submit(a.after, a.spec)
			behave = append(behave, a.spec.Name)
		}
		for _, r := range w.reservations {
			s.reserve(warmUp, r)
		}
		for s.since() < 48*time.Hour && len(s.oracle.verdicts) < len(behave) {
			s.run(s.since() + 10*time.Minute)
		}
		for _, n := range behave {
			if j := s.job(n); j.State != job.Finished && (!w.failing && w.setting.rough == nil || !j.State.Final()) {
				rt.Errorf("job %s, two days later: %+v", n, j)
			}
		}
		s.run(s.since() + 10*time.Minute) // everything is settled and withdrawn by then
		if left := s.oracle.leftover(); len(left) > 0 {
			rt.Errorf("places %v are kept for nobody", left)
		}
		if len(s.oracle.leases) > 0 {
			rt.Errorf("%d leases stand", len(s.oracle.leases))
		}
	})
}

// warmUp is when the first job may arrive.
const warmUp = time.Minute

// drawn is one world of the property.
type drawn struct {
	setting      setting
	jobs         []arrival
	reservations []protocol.Reservation
	failing      bool
}

func drawWorld(rt *rapid.T) (w drawn) {
	for i := range rapid.IntRange(1, 4).Draw(rt, "slices") {
		w.setting.slices = append(w.setting.slices, protocol.Slice{
			ID: job.SliceID(fmt.Sprintf("n/s%d", i)), Capacity: trp.Vector{quantity.Amount(rapid.Int64Range(5, 20).Draw(rt, "gib") << 30)},
			Speed: rapid.Int64Range(300, 1500).Draw(rt, "speed"), Simulated: true,
		})
	}
	w.setting.policy = rapid.SampledFrom(all.Policies()).Draw(rt, "policy")
	w.setting.horizon = time.Duration(rapid.IntRange(10, 60).Draw(rt, "horizon")) * time.Minute
	seed := rapid.Uint64().Draw(rt, "seed")
	chance := func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % n
	}
	if loss := rapid.IntRange(0, 15).Draw(rt, "loss in percent"); loss > 0 {
		w.setting.rough = func(*protocol.Message) int {
			switch n := chance(100); {
			case n < loss:
				return 0
			case n < 2*loss:
				return 2
			}
			return 1
		}
	}
	w.failing = rapid.Bool().Draw(rt, "failing")
	true1 := truly(w.setting.slices)
	w.setting.model = func(m *protocol.Message) sim.Behaviour {
		b := true1(m)
		b.Linger = time.Duration(chance(300)) * time.Millisecond
		b.PerUnit = b.PerUnit * time.Duration(70+chance(40)) / 100 // up to a tenth slower than declared
		if m.Body.(*protocol.Work).Spec.Kind == job.Rigid {
			b.PerUnit = m.Body.(*protocol.Work).Spec.Walltime * time.Duration(20+chance(79)) / 100
		} else if w.failing && chance(10) == 0 {
			b.Fails, b.FailAfter = []job.Outcome{job.ExitFailed, job.Lost, job.Yielded}[chance(3)],
				time.Duration(chance(60_000))*time.Millisecond
		}
		return b
	}
	for i := range rapid.IntRange(1, 7).Draw(rt, "jobs") {
		w.jobs = append(w.jobs, drawJob(rt, i))
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "reservations") {
		from := warmUp + time.Duration(rapid.IntRange(2, 3600).Draw(rt, "from"))*time.Second
		w.reservations = append(w.reservations, protocol.Reservation{
			Kind: protocol.ForOwner, Slice: w.setting.slices[i%len(w.setting.slices)].ID, Start: at(from),
			End: at(from + time.Duration(rapid.IntRange(1, 3600).Draw(rt, "for"))*time.Second), Truncate: w.failing &&
				rapid.Bool().Draw(rt, "truncate"),
		})
	}
	return w
}

func drawJob(rt *rapid.T, i int) arrival {
	kind := rapid.SampledFrom([]job.Kind{job.Items, job.Steps, job.Rigid}).Draw(rt, "kind")
	s := spec(rt, job.ID(fmt.Sprint("j", i)), kind, rapid.Int64Range(1, 3000).Draw(rt, "total"),
		time.Duration(rapid.IntRange(100, 3000).Draw(rt, "per unit"))*time.Millisecond)
	s.Queue = rapid.SampledFrom([]string{"default", "capped", "short"}).Draw(rt, "queue")
	if kind == job.Rigid {
		s.Slices = rapid.IntRange(1, 3).Draw(rt, "gang")
		if s.Slices == 1 && rapid.IntRange(0, 9).Draw(rt, "endless") == 0 {
			s.Walltime = 0
		}
	} else {
		s.Grid = rapid.Int64Range(1, 30).Draw(rt, "grid")
		s.TauMin = time.Duration(rapid.IntRange(0, 120).Draw(rt, "tau")) * time.Second
		s.Continue = rapid.Bool().Draw(rt, "continue")
		if rapid.IntRange(0, 3).Draw(rt, "untimed") == 0 {
			s.PerUnit = 0
		}
		if kind == job.Items {
			s.Parallelism = rapid.IntRange(1, 9).Draw(rt, "parallelism")
		}
	}
	p := trp.Profile{Form: trp.Phases}
	for at := int64(0); at < s.Total; {
		at = min(s.Total, at+rapid.Int64Range(max(1, s.Total/4), s.Total).Draw(rt, "phase"))
		p.Phases = append(p.Phases, trp.Phase{UpTo: at, Mean: quantity.Amount(rapid.Int64Range(1, 15).Draw(rt, "gib") << 30)})
	}
	table, err := trp.Compile(p, s.Total, 10_000)
	if err != nil {
		rt.Fatalf("%v", err)
	}
	s.Profile, s.Safe = p, table
	s.Priority = int32(rapid.IntRange(0, 3).Draw(rt, "priority"))
	return arrival{warmUp + time.Duration(rapid.IntRange(2, 3600).Draw(rt, "arrives"))*time.Second, s}
}
