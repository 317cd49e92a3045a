package floor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const sec = quantity.Instant(time.Second)

var homeA, homeB = protocol.Address{Role: protocol.Zone, ID: "a"}, protocol.Address{Role: protocol.Zone, ID: "b"}

// world is a node of some slices, and homes that answer for their jobs as atomizers do.
type world struct {
	t      *testing.T
	f      *Floor
	now    quantity.Instant
	gaps   map[job.SliceID][]protocol.Gap
	awards []Award
	// mute homes say nothing to a call.
	mute map[job.ID]bool
	told []protocol.Message
}

func newWorld(t *testing.T, cfg Config) *world {
	w := &world{t: t, now: sec, gaps: map[job.SliceID][]protocol.Gap{}, mute: map[job.ID]bool{}}
	cfg.Self, cfg.Policy, cfg.Market = protocol.Address{Role: protocol.Node, ID: "n"}, shortest.Policy{}, &auction.Config{}
	cfg.Horizon, cfg.MinWindow, cfg.Retry = time.Hour, time.Second, time.Second
	w.f = New(cfg, w)
	for i := range 2 {
		id := job.SliceID(fmt.Sprint("s", i))
		w.gaps[id] = []protocol.Gap{{Start: 0, End: quantity.Never}}
		w.f.Place(&protocol.Slice{ID: id, Capacity: trp.Vector{trp.Memory: 4 << 30}, Speed: 1000})
	}
	return w
}

func (w *world) Usable(job.SliceID) bool { return true }

func (w *world) Unsold(now quantity.Instant, id job.SliceID, out []protocol.Gap) []protocol.Gap {
	out = out[:0]
	for _, g := range w.gaps[id] {
		if g.Start = max(g.Start, now); g.Start < g.End {
			out = append(out, g)
		}
	}
	return out
}

func (w *world) Sell(_ quantity.Instant, a Award, _ *protocol.Out) {
	w.awards = append(w.awards, a)
	w.gaps[a.Slice] = []protocol.Gap{{Start: a.End, End: quantity.Never}}
	w.f.Changed(a.Slice)
}

// step has the floor sell, and homes answer, until nothing is said any more.
func (w *world) step() {
	for range 20 {
		var out protocol.Out
		w.f.Sell(w.now, &out)
		said := 0
		for _, m := range out.Effects {
			if m.Kind != protocol.Announce {
				w.told = append(w.told, m)
				continue
			}
			if w.mute[m.Job] {
				continue
			}
			said++
			v := w.f.visitors[m.Job]
			if m.To != v.home {
				w.t.Fatalf("%s is called at %v, its home is %v", m.Job, m.To, v.home)
			}
			in := protocol.Message{Kind: protocol.Answer, From: m.To, Job: m.Job, Session: m.Session,
				Body: &protocol.Proposal{Round: m.Body.(*protocol.Call).Round}}
			for i := range m.Body.(*protocol.Call).Windows {
				view, window := atomizer.FromCall(v.spec, m.Body.(*protocol.Call), &m.Body.(*protocol.Call).Windows[i])
				in.Body.(*protocol.Proposal).Variants = atomizer.Propose(&view, window, m.Body.(*protocol.Call).Most, w.now,
					in.Body.(*protocol.Proposal).Variants)
			}
			w.f.Answer(w.now, &in)
		}
		if said == 0 {
			return
		}
	}
	w.t.Fatal("the floor calls without end")
}

// long is a job of steps of a second.
func long(steps int64) *protocol.Visit {
	s := &job.Spec{
		Queue: "default", Kind: job.Steps, Total: steps, Unit: "step", Grid: 1, Parallelism: 1, Slices: 1, PerUnit: time.Second,
		OverheadMax: 100, Theta: 10_000,
		Launch: job.Launch{Grace: time.Second}, Profile: trp.Profile{Form: trp.Phases, Combine: trp.Maximum,
			Phases: []trp.Phase{{UpTo: steps, Mean: 1 << 30}}},
	}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		panic(err)
	}
	return &protocol.Visit{Queue: "default", Weight: 1, Submitted: 1, Spec: s}
}

func TestAVisitorWinsWhatItsHomeProposes(t *testing.T) {
	w := newWorld(t, Config{})
	if ok := w.f.Enter(w.now, homeA, "j", 1, long(60)); !ok {
		t.Fatal("it is not let in")
	}
	w.step()
	if len(w.awards) != 1 {
		t.Fatalf("%d pieces were sold, want 1: it runs one subjob at a time", len(w.awards))
	}
	a := w.awards[0]
	if a.Home != homeA || a.Job != "j" || a.Session != 1 || a.Range != (job.Range{From: 0, To: 60}) || a.Start != w.now || a.Bid == nil {
		t.Errorf("sold was %+v", a)
	}
}

// TestNothingIsSoldTwiceBeforeItsHomeHasSaidSo: what was sold counts as claimed, whatever the home said before.
func TestNothingIsSoldTwiceBeforeItsHomeHasSaidSo(t *testing.T) {
	w := newWorld(t, Config{})
	v := long(60)
	v.Spec.Kind, v.Spec.Parallelism = job.Items, 2
	w.f.Enter(w.now, homeA, "j", 1, v)
	w.step()
	var sold job.Ranges
	for _, a := range w.awards {
		if sold.Overlaps(a.Range) {
			t.Fatalf("%v is sold twice: %+v", a.Range, w.awards)
		}
		sold = sold.Add(a.Range)
	}
	if sold.Len() == 0 {
		t.Fatal("nothing is sold")
	}
}

// TestOneOrderForAllHomes: the shorter of two goes first, whichever home it is of.
func TestOneOrderForAllHomes(t *testing.T) {
	for _, first := range []string{"short", "long"} {
		w := newWorld(t, Config{})
		w.gaps["s1"] = nil
		w.f.Changed("s1")
		visits := map[string]*protocol.Visit{"short": long(10), "long": long(1000)}
		order := []string{"short", "long"}
		if first == "long" {
			slices.Reverse(order)
		}
		for i, name := range order {
			w.f.Enter(w.now, []protocol.Address{homeA, homeB}[i], job.ID(name), 1, visits[name])
		}
		w.step()
		if len(w.awards) == 0 || w.awards[0].Job != "short" {
			t.Errorf("%s came first: sold was %+v", first, w.awards)
		}
	}
}

func TestSilentHomeDelaysARoundBriefly(t *testing.T) {
	w := newWorld(t, Config{})
	w.mute["dead"] = true
	w.f.Enter(w.now, homeB, "dead", 1, long(5))
	w.f.Enter(w.now, homeA, "j", 1, long(60))
	w.step()
	w.now += sec // the round is over
	w.step()
	if len(w.awards) != 1 || w.awards[0].Job != "j" {
		t.Fatalf("sold was %+v", w.awards)
	}
	w.now += 10 * sec
	w.f.Enter(w.now, homeA, "j", 1, long(60))
	if w.step(); w.f.Visitors() != 1 || w.f.visitors["j"] == nil {
		t.Errorf("%d jobs are here, want the one whose home speaks", w.f.Visitors())
	}
}

// TestOnlyItsHomeAnswersForAJob: after another's answer the round still waits for the job's own home.
func TestOnlyItsHomeAnswersForAJob(t *testing.T) {
	w := newWorld(t, Config{})
	w.f.Enter(w.now, homeA, "j", 1, long(60))
	var out protocol.Out
	w.f.Sell(w.now, &out)
	call := out.Effects[0].Body.(*protocol.Call)
	w.f.Answer(w.now, &protocol.Message{Kind: protocol.Answer, From: homeB, Job: "j", Session: 1,
		Body: &protocol.Proposal{Round: call.Round}})
	v := w.f.visitors["j"]
	in := protocol.Message{Kind: protocol.Answer, From: homeA, Job: "j", Session: 1, Body: &protocol.Proposal{Round: call.Round}}
	view, window := atomizer.FromCall(v.spec, call, &call.Windows[0])
	in.Body.(*protocol.Proposal).Variants = atomizer.Propose(&view, window, call.Most, w.now, nil)
	w.f.Answer(w.now, &in)
	if w.f.Sell(w.now, &out); len(w.awards) != 1 {
		t.Errorf("its home has answered, and sold was %+v", w.awards)
	}
}

// TestASilentVisitorIsForgottenInTime: the floor asks to be looked at when the first visit ends, though nothing is for sale.
func TestASilentVisitorIsForgottenInTime(t *testing.T) {
	w := newWorld(t, Config{})
	for id := range w.gaps {
		w.gaps[id] = nil
		w.f.Changed(id)
	}
	w.f.Enter(w.now, homeA, "j", 1, long(60))
	var out protocol.Out
	next := w.f.Sell(w.now, &out)
	if next > w.now+10*sec {
		t.Fatalf("it is to be looked at again at %d", next)
	}
	if w.f.Sell(w.now+10*sec, &out); w.f.Visitors() != 0 {
		t.Error("its home was silent for as long as a visit counts, and it is here")
	}
}

func TestVisitsAreBoundedAndFenced(t *testing.T) {
	w := newWorld(t, Config{Most: 1})
	w.f.Enter(w.now, homeA, "j", 2, long(60))
	if ok := w.f.Enter(w.now, homeB, "k", 1, long(60)); ok {
		t.Error("a second job is let in")
	}
	old := long(60)
	old.Committed = job.Ranges{{From: 0, To: 60}}
	if w.f.Enter(w.now, homeB, "j", 1, old); w.f.visitors["j"].home != homeA {
		t.Error("an earlier session took the place of a later one")
	}
	if w.f.Leave("j", 1); w.f.Visitors() != 1 {
		t.Error("an earlier session has left for the later one")
	}
	if w.f.Answer(w.now, &protocol.Message{Kind: protocol.Answer, From: homeB, Job: "j", Session: 2,
		Body: &protocol.Proposal{Round: 1}}); w.f.Visitors() != 1 {
		t.Error("somebody else has answered")
	}
	if w.f.Leave("j", 2); w.f.Visitors() != 0 {
		t.Error("it has left and is here")
	}
	if ok := w.f.Enter(w.now, homeB, "k", 1, long(60)); !ok {
		t.Error("there is room, and the second job is not let in")
	}
}
