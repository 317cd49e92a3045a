package drain

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// desk is a gate of jobs and drains alone, which draws zone b.
type desk struct {
	jobs *jobs.Register
	d    *Drains
}

func (g *desk) Fact(out *protocol.Out, f protocol.Fact) {
	out.Facts = append(out.Facts, f)
	switch f.Kind {
	case protocol.ZoneDrained, protocol.JobDeparted:
		g.d.Apply(&f)
	case protocol.JobAccepted:
		g.jobs.Accept(&f)
	default:
		g.jobs.Fold(g.jobs.Find(f.Job), &f)
	}
}
func (g *desk) Send(out *protocol.Out, m protocol.Message)            { out.Effects = append(out.Effects, m) }
func (g *desk) Redraw(quantity.Instant, *jobs.Job, uint32) job.ZoneID { return "b" }
func (g *desk) Tell(*jobs.Job)                                        {}
func gone(job.ZoneID) bool                                            { return false }
func (g *desk) drain(now quantity.Instant, zone job.ZoneID, out *protocol.Out) {
	g.d.Drain(now, &protocol.Message{From: protocol.Address{Role: protocol.Person}}, &protocol.Draining{Zone: zone}, out)
}

// TestAJobLeavesOnceAndItsOldHomeIsToldUntilItHasForgotten.
func TestAJobLeavesOnceAndItsOldHomeIsToldUntilItHasForgotten(t *testing.T) {
	g := &desk{jobs: jobs.New(time.Hour, time.Second, nil)}
	g.d = New(protocol.Address{Role: protocol.Gate}, nil, []job.ZoneID{"a", "b"}, time.Second, g.jobs, gone, g)
	var out protocol.Out
	g.Fact(&out, protocol.Fact{Kind: protocol.JobAccepted, Job: "j", Epoch: 1, Generation: 1, At: 1,
		Body: &protocol.Acceptance{Spec: &job.Spec{Total: 1}, Zone: "a"}})
	g.drain(1, "a", &out)
	j := g.jobs.Find("j")
	if _, _, moves := j.Moves(); moves {
		t.Fatal("a job moves whose old home has not confirmed it")
	}
	g.Fact(&out, protocol.Fact{Kind: protocol.JobHomed, Job: "j", Epoch: 1})
	for range 2 {
		g.d.RehomeAll(2, &out)
	}
	if n := len(slices.DeleteFunc(slices.Clone(out.Facts), func(f protocol.Fact) bool { return f.Kind != protocol.Rehomed })); n != 1 ||
		j.Zone() != "b" || j.Epoch() != 2 {
		t.Fatalf("it moves %d times, to %s under epoch %d", n, j.Zone(), j.Epoch())
	}
	if !g.d.Waits(j) {
		t.Fatal("nobody waits for its record")
	}
	g.d.Surrendered(&protocol.Message{From: protocol.Address{Role: protocol.Zone, ID: "a"}, Job: "j", Epoch: 1, Generation: 1},
		&protocol.Record{Job: "j"})
	if g.d.Waits(j) {
		t.Fatal("its record was surrendered, and is waited for")
	}
	g.d.Depart(j, "a")
	for now := quantity.Instant(1e9); now < 100e9; now = now.Add(64 * time.Second) {
		out.Reset()
		if g.d.Repeat(now, &out); len(out.Effects) != 1 || out.Effects[0].Kind != protocol.Forget || out.Effects[0].To.ID != "a" ||
			out.Effects[0].Epoch != 1 {
			t.Fatalf("at %d its old home is told %+v", now, out.Effects)
		}
	}
	again := New(protocol.Address{Role: protocol.Gate}, nil, []job.ZoneID{"a", "b"}, time.Second, g.jobs, gone, g)
	for _, f := range g.d.AppendFacts(nil) {
		again.Apply(&f)
	}
	if again.Sum() != g.d.Sum() {
		t.Error("its facts fold to something else")
	}
	m := protocol.Message{Kind: protocol.Forgotten, From: protocol.Address{Role: protocol.Zone, ID: "a"}, Job: "j", Epoch: 1}
	if !g.d.Departed(&m, &out) || g.d.Departed(&m, &out) || g.d.Wake() != quantity.Never {
		t.Error("it has forgotten, and is told on")
	}
}
