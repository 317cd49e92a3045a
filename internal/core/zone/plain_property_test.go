package zone_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// twin is a zone with the plain pass, which is told the same and must say the same. asked: it has the ordinary pass, and nobody
// asks it what people do.
type twin struct {
	z     *zone.Zone
	asked bool
	out   protocol.Out
	steps int
}

func (p *twin) restart(w *world) {
	if p.z = w.make(); !p.asked {
		zone.Plain(p.z)
	}
	for _, f := range w.facts {
		p.z.Apply(f)
	}
}

func (p *twin) check(w *world, do func(*zone.Zone, *protocol.Out)) {
	p.steps++
	p.out.Reset()
	do(p.z, &p.out)
	same(w, p.steps, "fact", w.out.Facts, p.out.Facts)
	same(w, p.steps, "effect", said(w.out.Effects), said(p.out.Effects))
	if p.asked && w.z.Digest() != p.z.Digest() {
		w.t.Fatalf("step %d at %d: the digests differ", p.steps, w.now)
	}
	if mine, theirs := zone.Woken(w.z), zone.Woken(p.z); theirs > w.now && (mine <= w.now || mine > theirs) {
		w.t.Fatalf("step %d at %d: the plain zone is to be woken at %d, the other at %d", p.steps, w.now, theirs, mine)
	}
	if p.steps%5 != 0 || w.config.Market != nil {
		return // what a bid lost to is counted by the one who looks at it
	}
	for name := range w.adopted {
		n, last := zone.Count(w.z, name)
		if m, then := zone.Count(p.z, name); n != m || last != then {
			w.t.Fatalf("step %d: job %s is counted as %v last %v, plainly %v last %v", p.steps, name, n, last, m, then)
		}
	}
}

// said is what is said to others. Wake-ups that turn out to be needless are not worth being exact about; late ones are.
func said(effects []protocol.Message) []protocol.Message {
	return slices.DeleteFunc(slices.Clone(effects), func(m protocol.Message) bool { return m.Kind == protocol.Wake })
}

func same[T any](w *world, step int, what string, got, want []T) {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			w.t.Fatalf("policy %s, step %d at %d: %s %d differs\nindexed %+v\nplain   %+v", w.config.Policy.Name(), step, w.now, what, i,
				got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}

// drawLimit draws a starvation limit that nearly everybody comes to, or that nobody does.
func drawLimit(draw func(int) int) starvation.Limit {
	l := starvation.Limit{After: time.Duration(5+draw(600)) * time.Second, Slowdown: int64(1 + draw(4)), Share: int64(1 + draw(1000)),
		Places: draw(4) - 1}
	if draw(4) == 0 {
		l.After = -1
	}
	return l
}

// free is a policy whose order follows no rule that an index could use.
type free struct{}

func (free) Name() string                   { return "free" }
func (free) Motion() policy.Motion          { return policy.Free }
func (free) Key(*policy.Candidate) [2]int64 { return [2]int64{} }
func (free) Compare(a, b *policy.Candidate) int {
	if x, y := a.Used%7, b.Used%7; x != y {
		return int(x - y)
	}
	return policy.ByAge(a, b)
}

// TestTheIndexDecidesAsThePlainPassDoes: facts, effects and counts, after every input, in worlds of all policies with
// several nodes, caps, bounds on windows, deadlines, pauses, cancellations, failures, lost messages and restarts.
func TestTheIndexDecidesAsThePlainPassDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		w := newWorld(rt)
		for i := range 1 + rapid.IntRange(0, 9).Draw(rt, "slices") {
			w.slices = append(w.slices, &simSlice{node: job.NodeID(fmt.Sprint("n", i/3)), view: protocol.Slice{
				Rack: []string{"r", "r", "s", ""}[i/3%4],
				ID:   job.SliceID(fmt.Sprintf("s%d", draw(1000)*10+i)), Profile: []string{"small", "large"}[draw(2)],
				Capacity: trp.Vector{quantity.Amount((512 + draw(3)*512) << 20)}, Speed: int64(500 + draw(2)*500),
			}})
		}
		w.config.Policy = rapid.SampledFrom(append(all.Policies(), free{})).Draw(rt, "policy")
		w.config.Rigid = rapid.SampledFrom([]backfill.Discipline{{}, {Overtake: true}, byDefault(rt), byDefault(rt), {Reserve: 1},
			{Reserve: 2, Overtake: true}, {Reserve: 99, Overtake: true}}).Draw(rt, "rigid")
		w.config.Horizon = time.Duration(60+draw(600)) * time.Second
		w.config.Starvation = drawLimit(draw)
		w.z, w.twin, w.draw = w.make(), &twin{}, draw
		w.twin.restart(w)
		w.rough(rt)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
		if of := rapid.SampledFrom([]int{0, 0, 3, 1}).Draw(rt, "refused of ten, and everything of one job"); of > 0 {
			w.refuse = func(m *protocol.Message) bool { return draw(10) < of || m.Job == "j0" }
		}
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 2, Cap: 1 + draw(4)}})
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "short", Weight: 3,
			MaxWindow: time.Duration(20+draw(300)) * time.Second}})
		w.settle()
		guests := rapid.Bool().Draw(rt, "parts of gangs of other zones")
		agents := rapid.Bool().Draw(rt, "agents")
		w.bidders = map[job.ID]func(*protocol.Message) []protocol.Message{}
		jobs, crash := rapid.IntRange(1, 30).Draw(rt, "jobs"), rapid.SampledFrom([]int{0, 0, 40}).Draw(rt, "restart every")
		for i := 0; i < 400 && (i < 4*jobs || len(w.closed) < len(w.adopted)); i++ {
			if n := len(w.adopted); n < jobs && draw(3) > 0 {
				if s := w.drawJob(rt, draw, n); agents && s.Divisible() && draw(3) == 0 {
					w.attend(s, []func(*protocol.Message) []protocol.Message{honest(s), hostile(s, draw), mute,
						only(protocol.Interest, honest(s))}[draw(4)])
				} else {
					w.submit(s)
				}
			}
			w.disturb(draw)
			if guests && draw(6) == 0 {
				w.borrows(rt, draw)
			}
			w.tick()
			if crash > 0 && i%crash == crash-1 {
				w.restart()
				w.attendAgain()
			}
		}
	})
}

// TestTheMarketDecidesAsThePlainRoundDoes: the same in worlds that negotiate, with agents that answer honestly, wrongly, late or
// not at all, queues that pay, priorities, and more jobs than are asked.
func TestTheMarketDecidesAsThePlainRoundDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		c := auction.Config{
			Variants: 1 + draw(4), PerTime: draw(2) == 0, Rounds: 1 + draw(3),
			Repack: []auction.Repack{auction.Rolling, auction.Never}[draw(2)], Payment: auction.Payment(draw(3)),
			Refill: []int64{0, 1000, 100_000}[draw(3)], Trusting: draw(4) == 0, Audience: 2 + draw(20),
		}
		if c.Payment != auction.VCG {
			c.Joint, c.Exclusive = draw(3) == 0, draw(3) == 0
		}
		w := newMarket(rt, c)
		for i := range 1 + rapid.IntRange(0, 5).Draw(rt, "slices") {
			w.slices = append(w.slices, &simSlice{node: job.NodeID(fmt.Sprint("n", i/3)), view: protocol.Slice{
				Rack: []string{"r", "r", "s", ""}[i/3%4],
				ID:   job.SliceID(fmt.Sprintf("s%d", i)), Profile: []string{"small", "large"}[draw(2)],
				Capacity: trp.Vector{quantity.Amount((512 + draw(3)*512) << 20)}, Speed: int64(500 + draw(2)*500),
			}})
		}
		w.config.Starvation = drawLimit(draw)
		w.config.Rigid = backfill.Discipline{Overtake: true} // places that are kept are held against the plain pass above
		w.config.Horizon = time.Duration(60+draw(600)) * time.Second
		w.z, w.twin, w.draw = w.make(), &twin{}, draw
		w.twin.restart(w)
		w.rough(rt)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 2, Cap: 1 + draw(4)}})
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "short", Weight: 3,
			MaxWindow: time.Duration(20+draw(300)) * time.Second}})
		jobs, crash := rapid.IntRange(1, 25).Draw(rt, "jobs"), rapid.SampledFrom([]int{0, 0, 40}).Draw(rt, "restart every")
		for i := 0; i < 300 && (i < 4*jobs || len(w.closed) < len(w.adopted)); i++ {
			if n := len(w.adopted); n < jobs && draw(3) > 0 {
				s := w.drawJob(rt, draw, n)
				s.Priority = int32(draw(7)-3) * 50
				switch {
				case !s.Divisible() || draw(2) == 0:
					w.submit(s)
				default:
					w.attend(s, []func(*protocol.Message) []protocol.Message{honest(s), hostile(s, draw), mute}[draw(3)])
				}
			}
			w.disturb(draw)
			w.tick()
			if crash > 0 && i%crash == crash-1 {
				w.restart()
				w.attendAgain()
			}
		}
	})
}

// attendAgain has the agents of all external jobs come back to a zone that has forgotten them.
func (w *world) borrows(t fataler, draw func(int) int) {
	name := fmt.Sprint("far", draw(3))
	s := &job.Spec{Name: job.ID(name), Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Walltime: time.Minute, Slices: 8,
		Topology: job.SameCluster}
	table, err := trp.Compile(trp.Profile{Form: trp.Phases,
		Phases: []trp.Phase{{UpTo: 1, Mean: quantity.Amount((100 + 900*draw(2)) << 20)}}}, 1, 10_000)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.Safe, s.Queue = table, "default"
	l := &protocol.Loan{Seq: uint64(w.now), Slices: draw(4), Taken: draw(2) == 0, Length: time.Duration(10+draw(200)) * time.Second,
		NotBefore: w.now.Add(time.Duration(draw(100)-30) * time.Second), Keep: draw(3) > 0, Spec: s,
		Submitted: w.now.Add(-time.Duration(draw(1000)) * time.Second)}
	if draw(8) == 0 {
		l.Length = protocol.NoEnd
	}
	w.step(protocol.Message{Kind: protocol.Borrow, From: protocol.Address{Role: protocol.Zone, ID: "y"}, Job: s.Name, Epoch: 1, Body: l})
}

func (w *world) attendAgain() {
	for _, name := range slices.Sorted(maps.Keys(w.adopted)) {
		if w.adopted[name].External {
			w.post(protocol.Message{Kind: protocol.Attend, Job: name, Session: 9, Body: &protocol.Attendance{Present: true},
				To: protocol.Address{Role: protocol.Zone}})
		}
	}
}

// drawer returns a function that draws numbers below n, all from one seed.
func drawer(t *rapid.T) func(n int) int {
	seed := rapid.Uint64().Draw(t, "seed")
	return func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % n
	}
}

// roughWorld has one to seven slices, two on a node, where messages may be lost and subjobs end in any way; its twin decides by the plain
// pass.
func roughWorld(t *rapid.T, draw func(n int) int) *world {
	w := newWorld(t)
	for i := range 1 + rapid.IntRange(0, 6).Draw(t, "slices") {
		w.slices = append(w.slices, &simSlice{node: job.NodeID(fmt.Sprint("n", i/2)), view: protocol.Slice{
			Rack: "r", ID: job.SliceID(fmt.Sprintf("s%d", i)), Profile: []string{"small", "large"}[draw(2)],
			Capacity: trp.Vector{quantity.Amount((512 + draw(3)*512) << 20)}, Speed: int64(500 + draw(2)*500),
		}})
	}
	w.config.Policy = rapid.SampledFrom(all.Policies()).Draw(t, "policy")
	w.config.Rigid = backfill.Discipline{Overtake: draw(2) == 0}
	w.config.Horizon = time.Duration(300+draw(9000)) * time.Second
	w.z, w.twin, w.draw = w.make(), &twin{}, draw
	w.twin.restart(w)
	w.rough(t)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
	return w
}

// rough draws how messages fare: lost, doubled, and delayed, so that they overtake one another.
func (w *world) rough(t *rapid.T) {
	w.loss, w.double = rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "loss"), rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "double")
	w.delay = rapid.SampledFrom([]time.Duration{0, 0, 50 * time.Millisecond, 2 * time.Second, 20 * time.Second}).Draw(t, "delay")
}

// end draws how a subjob ends.
func (w *world) end(m *protocol.Message) (time.Duration, job.Result) {
	part := m.Body.(*protocol.Work).Range.From + int64(w.draw(int(m.Body.(*protocol.Work).Range.Len())+1))
	most := m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start)
	if m.Body.(*protocol.Work).End == quantity.Never {
		most = time.Minute
	}
	switch w.draw(10) {
	case 0:
		return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: part, Checkpoint: true}
	case 1:
		return most, job.Result{Outcome: job.DeadlineKilled, Progress: part, Checkpoint: true}
	case 2:
		return most / 2, job.Result{Outcome: job.MemoryKilled, Progress: part, Checkpoint: true, Peak: m.Body.(*protocol.Work).Demand}
	}
	peak := m.Body.(*protocol.Work).Demand[trp.Memory] * quantity.Amount(50+w.draw(60)) / 100
	return most * time.Duration(50+w.draw(50)) / 100, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To,
		Checkpoint: true, Peak: trp.Vector{peak}}
}

// disturb pauses or cancels a job, takes time away from a slice, cuts the nodes off for a while, tells of a pool, removes a node, or does
// nothing.
func (w *world) disturb(draw func(int) int) {
	name := job.ID(fmt.Sprint("j", draw(max(1, len(w.adopted)))))
	switch draw(25) {
	case 0:
		w.step(protocol.Message{Kind: protocol.PauseJob, Job: name, Epoch: 1, Body: &protocol.Pause{Paused: draw(2) == 0},
			From: protocol.Address{Role: protocol.Gate}})
	case 1:
		w.step(protocol.Message{Kind: protocol.Cancel, Job: name, Epoch: 1, Body: &protocol.Cancellation{Text: "cancelled"}})
	case 2:
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: int64(1 + draw(3)),
			Cap: draw(4)}})
	case 5:
		w.step(protocol.Message{Kind: protocol.Sighted, From: protocol.Address{Role: protocol.Provider, ID: "p"}, Body: pool(w, 900)})
	case 4:
		if draw(4) == 0 {
			w.cut = w.now.Add(time.Duration(draw(120)) * time.Second)
		}
	case 6:
		if draw(3) == 0 {
			w.removes(job.NodeID(w.slices[draw(len(w.slices))].at().ID), w.now.Add(time.Duration(draw(2)*draw(100))*time.Second))
		}
	case 3:
		s := w.slices[draw(len(w.slices))]
		from := w.now.Add(time.Duration(draw(200)) * time.Second)
		if r := (protocol.Reservation{ID: 1 << 40, Kind: protocol.ForDrain, Start: from,
			End: from.Add(time.Duration(1+draw(100)) * time.Second)}); s.isFree(r.Start, r.End, "", job.Token{}) {
			s.busy = append(s.busy, r)
		}
	}
}

func (w *world) drawJob(t *rapid.T, draw func(int) int, i int) *job.Spec {
	s := &job.Spec{
		Name: job.ID(fmt.Sprint("j", i)), Kind: []job.Kind{job.Items, job.Steps, job.Steps, job.Rigid}[draw(4)],
		Total:   int64(1 + draw(200)),
		PerUnit: time.Duration(200+draw(2000)) * time.Millisecond, Grid: int64(1 + draw(12)), Parallelism: 1, Slices: 1,
	}
	switch s.Kind {
	case job.Items:
		s.Parallelism, s.OnBadItem = 1+draw(5), job.OnBadItem(draw(2))
	case job.Steps:
		s.Restore, s.Checkpoint, s.TauMin = time.Duration(draw(4))*time.Second, time.Duration(draw(4))*time.Second,
			time.Duration(draw(20))*time.Second
	case job.Rigid:
		s.Total, s.Grid, s.PerUnit, s.Slices = 1, 1, 0, 1+draw(2)
		if s.Walltime = time.Duration(5+draw(200)) * time.Second; draw(8) == 0 && s.Slices == 1 {
			s.Walltime = 0
		}
		if draw(3) == 0 && s.Walltime > 0 { // on several nodes
			s.Slices, s.Topology = 2+draw(4), job.Level(draw(4))
		}
		s.OnOverrun = job.Overrun(draw(2))
		if s.Walltime == 0 {
			s.OnOverrun = job.OverrunKills
		}
	}
	if s.Kind != job.Rigid && draw(4) == 0 {
		s.PerUnit = 0 // a first piece is measured
	}
	var phases []trp.Phase
	for at := int64(0); at < s.Total; {
		at = min(s.Total, at+1+int64(draw(int(s.Total))))
		phases = append(phases, trp.Phase{UpTo: at, Mean: quantity.Amount((100 + draw(1200)) << 20)})
	}
	s.Profile, s.Theta, s.Worth = trp.Profile{Form: trp.Phases, Phases: phases}, 10_000, job.DefaultWorth
	if s.Template = []string{"", "t", "u"}[draw(3)]; s.Template != "" {
		s.Theta = 400_000 // two runs are enough
	}
	table, err := trp.Compile(s.Profile, s.Total, s.Theta)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.Safe, s.MaxFailures, s.Deadline, s.Priority = table, 3, quantity.Never, int32(draw(2))
	s.Queue = []string{"default", "other", "capped", "short"}[draw(4)]
	s.Continue = s.Kind != job.Rigid && draw(2) == 0
	s.Launch.Grace = time.Duration(draw(3)) * time.Second
	if draw(3) == 0 {
		s.Deadline = w.now.Add(time.Duration(30+draw(3000)) * time.Second)
	}
	if draw(3) == 0 {
		s.Speeds = []job.SpeedOn{{Profile: "large", Permille: int64(draw(3) * 600)}, {Profile: "small", Permille: int64(draw(3) * 300)}}
	}
	return s
}
