package gang_test

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestHowAGangEnds by what is heard of its members.
func TestHowAGangEnds(t *testing.T) {
	result := func(o job.Outcome) *job.Result { return &job.Result{Outcome: o, Progress: 1, Start: 5, End: 9} }
	type heard struct {
		leased  bool
		refused string
		outcome job.Outcome
	}
	for name, c := range map[string]struct {
		members      []heard
		over, broken bool
		none         bool
		want         job.Outcome
	}{
		"nothing heard":      {members: []heard{{}, {}}},
		"both run":           {members: []heard{{leased: true}, {leased: true}}},
		"one done, one runs": {members: []heard{{outcome: job.Done}, {leased: true}}},
		"both done": {members: []heard{{outcome: job.Done}, {leased: true, outcome: job.Done}}, over: true,
			want: job.Done},
		"one failed, one runs": {members: []heard{{leased: true}, {outcome: job.ExitFailed}}, broken: true},
		"one failed, one stopped": {members: []heard{{outcome: job.Stopped}, {outcome: job.ExitFailed}}, over: true, broken: true,
			want: job.ExitFailed},
		"a lapsed hold, one asked": {members: []heard{{}, {refused: "lapsed"}}, broken: true},
		"a lapsed hold, one runs":  {members: []heard{{leased: true}, {refused: "lapsed"}}, broken: true},
		"a lapsed hold, one failed by it": {members: []heard{{outcome: job.ExitFailed}, {refused: "lapsed"}}, over: true, broken: true,
			none: true},
		"all lapsed": {members: []heard{{refused: "x"}, {refused: "x"}}, over: true, broken: true, none: true},
		"a node in trouble": {members: []heard{{outcome: job.ExitFailed}, {outcome: job.NodeFailed}}, over: true,
			broken: true, want: job.NodeFailed},
		"lost, and its peer failed by it": {members: []heard{{outcome: job.Lost}, {outcome: job.ExitFailed}, {outcome: job.Done}},
			over: true, broken: true, want: job.Lost},
	} {
		g := gang.NewCourse(len(c.members))
		for i, m := range c.members {
			if m.leased {
				g.Leased(i)
			}
			if m.refused != "" && !g.Refused(i, m.refused) {
				t.Errorf("%s: that a member is refused is no news", name)
			}
			if m.outcome != 0 && !g.Gone(i, result(m.outcome)) {
				t.Errorf("%s: that a member is gone is no news", name)
			}
		}
		if over, broken := g.Over(), g.Broken() != ""; over != c.over || broken != c.broken {
			t.Errorf("%s: over %v, broken %q", name, over, g.Broken())
		}
		if !c.over {
			continue
		}
		r, why := g.Result()
		if (r == nil) != c.none || c.none && why == "" || r != nil && r.Outcome != c.want {
			t.Errorf("%s: %+v, %q; want %v", name, r, why, c.want)
		}
	}
}

// TestTheResultOfAGangIsOfAll: times and peak of all members, the rest of the first or the worst.
func TestTheResultOfAGangIsOfAll(t *testing.T) {
	g := gang.NewCourse(2)
	g.Gone(1, &job.Result{Outcome: job.Done, Progress: 1, Start: 3, End: 20, Peak: trp.Vector{7}})
	g.Gone(0, &job.Result{Outcome: job.Done, Progress: 1, Start: 5, End: 9, Peak: trp.Vector{4}, Detail: "first"})
	if r, _ := g.Result(); r.Start != 3 || r.End != 20 || r.Peak != (trp.Vector{7}) || r.Detail != "first" {
		t.Errorf("%+v", r)
	}
	for _, c := range []struct{ start, want quantity.Instant }{{3, 3}, {0, 0}} { // it began, or could not be started while its peer ran
		failed := gang.NewCourse(2)
		failed.Gone(0, &job.Result{Outcome: job.Stopped, Start: 5, End: 9})
		failed.Gone(1, &job.Result{Outcome: job.NodeFailed, Start: c.start, End: 20})
		if r, _ := failed.Result(); r.Start != c.want || r.Outcome != job.NodeFailed {
			t.Errorf("a node failed a member that began at %d: %+v", c.start, r)
		}
	}
	lost := gang.NewCourse(2)
	lost.Gone(0, &job.Result{Outcome: job.ExitFailed, Progress: 40, Checkpoint: true})
	lost.Gone(1, &job.Result{Outcome: job.Lost, Progress: 7})
	if r, _ := lost.Result(); r.Outcome != job.Lost || r.Progress != 40 || !r.Checkpoint {
		t.Errorf("a machine is lost, and the first member left a checkpoint: %+v", r)
	}
	if g.Gone(0, &job.Result{Outcome: job.ExitFailed}) || g.Refused(1, "late") {
		t.Error("what is said again counts again")
	}
}

// TestNoTwoGangsWaitForEachOther: homes that know nothing of each other want nodes that hold for one of them at a time, and each waits for
// a node without end, which is worse than a hold that lapses. Whoever is asked next, one of them always goes on, and in the end all have
// had theirs.
func TestNoTwoGangsWaitForEachOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []job.NodeID{"a", "b", "c", "d", "e"}
		var gangs []*gang.Holds
		for range rapid.IntRange(2, 4).Draw(rt, "gangs") {
			var members []protocol.Member
			for _, n := range names {
				if rapid.Bool().Draw(rt, string(n)) {
					members = append(members, protocol.Member{Node: n, Slices: 1})
				}
			}
			if len(members) > 0 {
				gangs = append(gangs, gang.NewHolds(members))
			}
		}
		by, seq := map[job.NodeID]*gang.Holds{}, uint64(0)
		for len(gangs) > 0 {
			var able []int
			for i, g := range gangs {
				if by[g.Members()[g.Next()].Node] == nil {
					able = append(able, i)
				}
			}
			if len(able) == 0 {
				rt.Fatalf("%d gangs wait for each other", len(gangs))
			}
			at := rapid.SampledFrom(able).Draw(rt, "asks")
			g := gangs[at]
			by[g.Members()[g.Next()].Node] = g
			if seq++; !g.Hold(job.Token{Epoch: 1, Seq: seq}) {
				continue
			}
			for _, m := range g.Members() { // it has run
				delete(by, m.Node)
			}
			gangs = append(gangs[:at], gangs[at+1:]...)
		}
	})
}
