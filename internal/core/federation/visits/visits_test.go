package visits

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const sec = quantity.Instant(time.Second)

func nodes(n int) (all []protocol.Address) {
	for i := range n {
		all = append(all, protocol.Address{Role: protocol.Node, ID: fmt.Sprint("n", i)})
	}
	return all
}

func view(t testing.TB, kind job.Kind, parallelism int) *atomizer.View {
	t.Helper()
	s := &job.Spec{
		Kind: kind, Total: 1000, Unit: "unit", Grid: 1, Parallelism: parallelism, Slices: 1, PerUnit: time.Second, OverheadMax: 100,
		Theta:  10_000,
		Launch: job.Launch{Grace: time.Second}, Profile: trp.Profile{Form: trp.Phases, Combine: trp.Maximum,
			Phases: []trp.Phase{{UpTo: 1000, Mean: 1 << 30}}},
	}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		t.Fatal(err)
	}
	return &atomizer.View{Spec: s, Learned: &protocol.Learned{}}
}

// call is a round at a node with one window of a hundred seconds.
func call(from protocol.Address, session, round uint64) *protocol.Message {
	return &protocol.Message{Kind: protocol.Announce, From: from, Job: "j", Session: session, Body: &protocol.Call{
		Round: round, Closes: 2 * sec, Most: 4,
		Windows: []protocol.Advert{{Window: 7, Slice: "s", Speed: 1000, Capacity: trp.Vector{trp.Memory: 4 << 30}, Start: sec,
			End: 101 * sec}},
	}}
}

// TestAJobVisitsNoMoreThanItMay: K nodes, no node twice, those where it won first, and one place for a draw.
func TestAJobVisitsNoMoreThanItMay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, all := New(Config{Most: rapid.IntRange(1, 5).Draw(t, "K")}), nodes(rapid.IntRange(0, 8).Draw(t, "nodes"))
		var j Job
		var out protocol.Out
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if len(all) > 0 {
					v.Won(&j, rapid.SampledFrom(all).Draw(t, "won at"))
				}
			case 1:
				if len(j.hosts) > 0 {
					from := rapid.SampledFrom(j.hosts).Draw(t, "full")
					if v.Parted(sec, &j, &protocol.Message{From: from, Session: j.session}); slices.Contains(j.hosts, from) {
						t.Fatalf("%v has turned it away and is visited", from)
					}
				}
			case 2:
				if v.Leave(&j, &out); len(j.hosts) > 0 || v.Next() != quantity.Never {
					t.Fatal("it has left and visits somebody")
				}
				continue
			}
			out.Reset()
			v.Visit(sec, "j", &j, &protocol.Visit{}, all, &out)
			if len(j.hosts) > v.cfg.Most || len(out.Effects) != len(j.hosts) {
				t.Fatalf("%d nodes are visited and %d are told, %d may be", len(j.hosts), len(out.Effects), v.cfg.Most)
			}
			for i, a := range j.hosts {
				if slices.Contains(j.hosts[:i], a) {
					t.Fatalf("%v is visited twice", a)
				}
			}
		}
	})
}

func TestWhereItWonIsVisitedFirst(t *testing.T) {
	v, all := New(Config{Most: 3}), nodes(50)
	far := protocol.Address{Role: protocol.Node, ID: "in another zone"}
	var j Job
	var out protocol.Out
	for _, a := range []protocol.Address{all[3], all[4], far} {
		v.Won(&j, a)
	}
	if v.Visit(sec, "j", &j, &protocol.Visit{}, all, &out); len(j.hosts) != 3 ||
		!slices.Equal(j.hosts[:2], []protocol.Address{far, all[4]}) || j.hosts[2] == all[3] {
		t.Errorf("it visits %v, want where it last won, and a draw", j.hosts)
	}
	other := New(Config{Most: 3})
	var k Job
	other.Visit(sec, "j", &k, &protocol.Visit{}, all, &out)
	first := slices.Clone(k.hosts)
	k = Job{}
	if other.Visit(sec, "j", &k, &protocol.Visit{}, all, &out); !slices.Equal(first, k.hosts) {
		t.Errorf("the same job is drawn to %v, and to %v", first, k.hosts)
	}
}

// TestNothingIsProposedAtTwoNodes: what one node was answered is pledged there until the round is over.
func TestNothingIsProposedAtTwoNodes(t *testing.T) {
	for _, kind := range []job.Kind{job.Items, job.Steps} {
		v, all := New(Config{}), nodes(2)
		var j Job
		var out protocol.Out
		v.Visit(sec, "j", &j, &protocol.Visit{}, all, &out)
		w := view(t, kind, 4)
		answer := func(now quantity.Instant, node int, round uint64) (work job.Ranges) {
			out.Reset()
			v.Answer(now, &j, w, call(all[node], j.session, round), &out)
			if len(out.Effects) != 1 || out.Effects[0].Kind != protocol.Answer || out.Effects[0].Body.(*protocol.Proposal).Round != round ||
				out.Effects[0].To != all[node] {
				t.Fatalf("%v: said was %+v", kind, out.Effects)
			}
			for _, x := range out.Effects[0].Body.(*protocol.Proposal).Variants {
				work = work.Add(x.Range)
			}
			return work
		}
		first := answer(sec, 0, 1)
		second := answer(sec, 1, 1)
		for _, r := range second {
			if first.Overlaps(r) {
				t.Errorf("%v: %v is proposed at both nodes", kind, r)
			}
		}
		if again := answer(sec, 0, 1); !slices.Equal(again, first) {
			t.Errorf("%v: the same round is answered with %v, and with %v", kind, first, again)
		}
		v.Told(&j, &protocol.Message{From: all[1], Body: &protocol.News{Round: 1}})
		v.Told(&j, &protocol.Message{From: all[0], Body: &protocol.News{Round: 1, Notices: []protocol.Notice{{Kind: protocol.Lost}}}})
		if after := answer(sec, 1, 2); !slices.Equal(after, first) {
			t.Errorf("%v: it has lost, and proposes %v at another, not %v", kind, after, first)
		}
		v.Told(&j, &protocol.Message{From: all[1], Body: &protocol.News{Round: 2, Notices: []protocol.Notice{{Kind: protocol.Awarded}}}})
		if held := answer(sec, 0, 3); slices.Equal(held, first) {
			t.Errorf("%v: %v was awarded and its grant is under way, and is proposed again", kind, first)
		}
		v.Told(&j, &protocol.Message{From: all[0], Body: &protocol.News{Round: 3}})
		if late := answer(4*sec, 0, 4); !slices.Equal(late, first) {
			t.Errorf("%v: the grant has not come in time, and %v is proposed, not %v", kind, late, first)
		}
	}
}

// TestAPledgeEndsWithItsRound: when the grant has come of it, and when the job has left.
func TestAPledgeEndsWithItsRound(t *testing.T) {
	for name, over := range map[string]func(*Visits, *Job, protocol.Address, *protocol.Out){
		"settled": func(v *Visits, j *Job, at protocol.Address, _ *protocol.Out) { v.Settled(j, at, 1) },
		"left":    func(v *Visits, j *Job, _ protocol.Address, out *protocol.Out) { v.Leave(j, out) },
	} {
		v, all := New(Config{}), nodes(2)
		var j Job
		var out protocol.Out
		v.Visit(sec, "j", &j, &protocol.Visit{}, all, &out)
		v.Answer(sec, &j, view(t, job.Items, 4), call(all[0], j.session, 1), &out)
		v.Settled(&j, all[1], 1)
		v.Settled(&j, all[0], 2)
		if len(j.pledges) != 1 {
			t.Fatalf("%s: %d pledges, and the round is not over", name, len(j.pledges))
		}
		if over(v, &j, all[0], &out); len(j.pledges) != 0 {
			t.Errorf("%s: pledged is %+v", name, j.pledges)
		}
	}
}

// TestSessionsOfALaterLifeAreLater: else nodes would take what a home says that started again for old.
func TestSessionsOfALaterLifeAreLater(t *testing.T) {
	all, last := nodes(1), uint64(0)
	for life := range quantity.Instant(3) {
		v, now := New(Config{}), (1+life)*sec
		for range 10 {
			var j Job
			var out protocol.Out
			if v.Visit(now, "j", &j, &protocol.Visit{}, all, &out); j.session <= last {
				t.Fatalf("session %d after %d", j.session, last)
			}
			last = j.session
		}
	}
}

// TestACallOfAnEarlierVisitIsNotAnswered: nor one after it has left.
func TestACallOfAnEarlierVisitIsNotAnswered(t *testing.T) {
	v, all := New(Config{}), nodes(1)
	var j Job
	var out protocol.Out
	v.Visit(sec, "j", &j, &protocol.Visit{}, all, &out)
	old := j.session
	v.Leave(&j, &out)
	v.Visit(2*sec, "j", &j, &protocol.Visit{}, all, &out)
	out.Reset()
	if v.Answer(2*sec, &j, view(t, job.Items, 1), call(all[0], old, 1), &out); len(out.Effects) > 0 || j.session <= old {
		t.Errorf("session %d was %d; said was %+v", j.session, old, out.Effects)
	}
}

// TestWhereAllNodesAreFullNoneIsPressed: a job that is turned away is drawn to others, but not to one after the other for ever; and a node
// that was full is asked again in time.
func TestWhereAllNodesAreFullNoneIsPressed(t *testing.T) {
	v, all := New(Config{}), nodes(40)
	var j Job
	says := func(now quantity.Instant, turnedAway bool) (said int) {
		for {
			var out protocol.Out
			v.Visit(now, "j", &j, &protocol.Visit{}, all, &out)
			if said += len(out.Effects); len(out.Effects) == 0 || !turnedAway || said > 1000 {
				return said
			}
			for _, m := range out.Effects {
				v.Parted(now, &j, &protocol.Message{From: m.To, Session: m.Session})
			}
		}
	}
	if n := says(sec, true); n < 4 || n > 8 {
		t.Errorf("all are full, and it says %d times that it is there, want 4 to 8", n)
	}
	if n := says(2*sec, true); n > 0 {
		t.Errorf("it tries %d more within the time after which visits are said again", n)
	}
	if n := says(5*sec, false); n != 4 {
		t.Errorf("%d nodes are visited once there may be room, want 4", n)
	}
	few := nodes(2)
	var k Job
	var out protocol.Out
	v.Visit(6*sec, "k", &k, &protocol.Visit{}, few, &out)
	v.Parted(6*sec, &k, &protocol.Message{From: few[0], Session: k.session})
	if v.Visit(7*sec, "k", &k, &protocol.Visit{}, few, &out); len(k.hosts) != 1 {
		t.Errorf("it visits %v, and the first of these was full a second ago", k.hosts)
	}
	if v.Visit(10*sec, "k", &k, &protocol.Visit{}, few, &out); len(k.hosts) != 2 {
		t.Errorf("it visits %v: a node that was full once is never asked again", k.hosts)
	}
}

// TestAWordToAnEarlierVisitChangesNothing: a node that was full then may have room now, and one that is not visited turns nobody away.
func TestAWordToAnEarlierVisitChangesNothing(t *testing.T) {
	v, all := New(Config{}), nodes(1)
	var j Job
	var out protocol.Out
	v.Visit(sec, "j", &j, &protocol.Visit{}, all, &out)
	v.Parted(sec, &j, &protocol.Message{From: all[0], Session: j.session - 1})
	v.Parted(sec, &j, &protocol.Message{From: protocol.Address{Role: protocol.Node, ID: "far"}, Session: j.session})
	if len(j.hosts) != 1 || len(j.full) != 0 {
		t.Errorf("it visits %v, and counts %v as full", j.hosts, j.full)
	}
}

func TestVisitsAreSaidAgain(t *testing.T) {
	v, all := New(Config{}), nodes(3)
	var b, a Job
	var out protocol.Out
	v.Visit(sec, "b", &b, &protocol.Visit{}, all, &out)
	v.Visit(sec, "a", &a, &protocol.Visit{}, all, &out)
	if due := v.Due(v.Next() - 1); len(due) > 0 {
		t.Errorf("%v are due before their time", due)
	}
	if due := v.Due(v.Next()); !slices.Equal(due, []job.ID{"a", "b"}) {
		t.Errorf("%v are due, want both, by name", due)
	}
}
