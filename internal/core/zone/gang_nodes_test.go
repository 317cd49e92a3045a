package zone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// newTroupe is a zone over three nodes of one slice each, and a gang that needs all of them. It notes what the zone says to them about it.
func newTroupe(t *testing.T) (w *world, said *[]string) {
	w, said = newWorld(t, 512, 512, 512), new([]string)
	w.oneNodeEach()
	w.lose = func(m *protocol.Message) bool {
		if m.To.Role == protocol.Node {
			*said = append(*said, fmt.Sprint(map[protocol.Kind]string{protocol.Ask: "ask ", protocol.Redeem: "redeem ",
				protocol.Stop: "stop ", protocol.ResultAck: "ack "}[m.Kind], m.To.ID))
		}
		return false
	}
	return w, said
}

func trio(t *testing.T) *job.Spec {
	s := rigid(t, "trio", time.Minute, 400, 3)
	s.Topology = job.SameZone
	return s
}

// oneNodeEach puts each slice on a node of its own: n0, n1 and so on.
func (w *world) oneNodeEach() {
	for i, s := range w.slices {
		s.node = job.NodeID(fmt.Sprint("n", i))
	}
}

// count counts the facts of a kind.
func (w *world) count(k protocol.FactKind) (n int) {
	for i := range w.facts {
		if w.facts[i].Kind == k {
			n++
		}
	}
	return n
}

// settledWhole insists that no member of a gang runs any more when its claim is settled, unless it was cancelled a while ago.
func (w *world) settledWhole(f *protocol.Fact) {
	if f.Kind != protocol.Released && f.Kind != protocol.Committed {
		return
	}
	if at, cancelled := w.dropped[f.Job]; cancelled && w.now >= at.Add(50*time.Second) {
		return
	}
	for _, m := range w.mail.members[f.Token] {
		for _, s := range w.slices {
			for _, r := range s.runs {
				if r.m.Token == m.Token && !r.ended && r.m.Body.(*protocol.Work).End > w.now {
					w.t.Fatalf("the claim %v of %s is settled, and member %v runs to %d, it is %d", f.Token, f.Job, m, r.done, w.now)
				}
			}
		}
	}
}

// TestTheOrderOfSlicesIsNotThatOfNodes: nodes are asked in order of their ids, wherever their slices stand among all.
func TestTheOrderOfSlicesIsNotThatOfNodes(t *testing.T) {
	w, said := newTroupe(t)
	for i, s := range w.slices {
		s.node = job.NodeID(fmt.Sprint("n", 2-i))
	}
	w.submit(trio(t))
	w.until(5 * time.Minute)
	finished(t, w, "trio")
	if want := []string{"ask n0", "ask n1", "ask n2"}; len(*said) < 3 || !slices.Equal((*said)[:3], want) {
		t.Errorf("it is said %q; want %q first", *said, want)
	}
}

// TestAGangIsAskedOfOneNodeAfterTheOther, and sold once all of them hold, to be confirmed to none before all are done.
func TestAGangIsAskedOfOneNodeAfterTheOther(t *testing.T) {
	w, said := newTroupe(t)
	w.submit(trio(t))
	w.until(5 * time.Minute)
	finished(t, w, "trio")
	want := []string{"ask n0", "ask n1", "ask n2", "redeem n0", "redeem n1", "redeem n2", "ack n0", "ack n1", "ack n2"}
	if !slices.Equal(*said, want) {
		t.Errorf("it is said %q; want %q", *said, want)
	}
	if w.count(protocol.Claimed) != 1 || w.count(protocol.Committed) != 1 || w.count(protocol.OutputPublished) != 3 {
		t.Errorf("%d claims, %d commits, %d outputs are published", w.count(protocol.Claimed), w.count(protocol.Committed),
			w.count(protocol.OutputPublished))
	}
}

// TestMembersHearTheSameOfEachOther, though the zone comes up again meanwhile, and a machine has another address by then: what they are
// told is in the claim.
func TestMembersHearTheSameOfEachOther(t *testing.T) {
	w, _ := newTroupe(t)
	w.config.Ports = gang.Ports{First: 5000, Last: 5009}
	w.z = w.make()
	for i, s := range w.slices {
		s.view.Address = fmt.Sprint("10.0.0.", i)
	}
	told, late := map[job.Token][]string{}, true
	w.lose = func(m *protocol.Message) bool {
		if m.Kind != protocol.Redeem || m.To.ID == "n2" && late {
			return m.Kind == protocol.Redeem
		}
		p := m.Body.(*protocol.Work).Plan
		told[m.Token] = append(told[m.Token], fmt.Sprint(p.Addresses, p.Port))
		return false
	}
	w.submit(trio(t))
	for w.count(protocol.Claimed) == 0 {
		w.tick()
	}
	w.slices[1].view.Address = "10.0.0.99"
	w.restart()
	late = false
	w.until(5 * time.Minute)
	finished(t, w, "trio")
	addresses := []string{"10.0.0.0", "10.0.0.1", "10.0.0.2"}
	for i := range w.facts {
		sale, ok := w.facts[i].Body.(*protocol.Sale)
		if !ok {
			continue
		}
		for _, m := range sale.Members {
			want := fmt.Sprint(addresses, w.config.Ports.Of(w.facts[i].Token))
			if len(told[m.Token]) == 0 || slices.ContainsFunc(told[m.Token], func(said string) bool { return said != want }) {
				t.Errorf("of claim %v node %s is told %q, want %s", w.facts[i].Token, m.Node, told[m.Token], want)
			}
		}
		addresses[1] = "10.0.0.99" // of the next claim
	}
}

// TestARefusalGivesUpWhatIsHeld: nothing is sold, and the nodes that hold are told, the others not asked.
func TestARefusalGivesUpWhatIsHeld(t *testing.T) {
	w, said := newTroupe(t)
	w.refuse = func(m *protocol.Message) bool { return m.To.ID == "n2" && w.now.Sub(1e9) < time.Second }
	w.submit(trio(t))
	for w.count(protocol.Claimed) == 0 {
		w.tick()
	}
	want := []string{"ask n0", "ask n1", "ask n2", "stop n0", "stop n1"}
	if len(*said) < 5 || !slices.Equal((*said)[:5], want) {
		t.Errorf("it is said %q; want %q first", *said, want)
	}
	w.until(10 * time.Minute)
	finished(t, w, "trio")
	if n := w.count(protocol.Released); n > 0 {
		t.Errorf("%d claims were released", n)
	}
}

// TestAHoldThatLapsesBeforeItsCommit: the members that began are stopped, the claim goes once they are gone, and the job waits again; it
// has not failed. A home that dies between two Commits, just before or just after, does the same.
func TestAHoldThatLapsesBeforeItsCommit(t *testing.T) {
	for _, dies := range []string{"never", "at once", "when the others run", "when it has stopped them"} {
		w, said := newTroupe(t)
		hear := w.lose
		lost := 0
		w.lose = func(m *protocol.Message) bool {
			if hear(m); m.Kind == protocol.Redeem && m.To.ID == "n1" && lost < 1 { // until it is said again the hold is gone
				lost++
				return true
			}
			return false
		}
		w.submit(trio(t))
		for w.count(protocol.Claimed) == 0 {
			w.tick()
		}
		switch dies {
		case "at once":
			w.restart()
		case "when the others run":
			w.until(700 * time.Millisecond)
			w.restart()
		case "when it has stopped them":
			for !slices.Contains(*said, "stop n2") && w.now.Sub(1e9) < 30*time.Second {
				w.tick()
			}
			w.restart()
		}
		w.until(20 * time.Minute)
		finished(t, w, "trio")
		if took := w.now.Sub(1e9); took > 80*time.Second {
			t.Errorf("%s: it is over after %v: the others ran on without the one", dies, took)
		}
		released := 0
		for i := range w.facts {
			if f := &w.facts[i]; f.Kind == protocol.Released {
				released++
				if r := f.Body.(*protocol.ClaimEnd).Result; r != nil {
					t.Errorf("%s: it is released with the result %+v, and one never began", dies, r)
				}
			}
		}
		want := 1
		if dies == "at once" { // it says Commit again from the claim, in time
			want = 0
		}
		if released != want || w.count(protocol.Claimed) != want+1 {
			t.Errorf("%s: %d claims, %d released; want %d and %d", dies, w.count(protocol.Claimed), released, want+1, want)
		}
	}
}

// TestAMemberThatFailsEndsTheOthers, and the job learns its failure; a node in trouble is not its fault.
func TestAMemberThatFailsEndsTheOthers(t *testing.T) {
	for _, c := range []struct {
		first, second job.Outcome
		want          job.State
	}{{job.Done, job.ExitFailed, job.Failed}, {job.ExitFailed, job.NodeFailed, job.Finished}} {
		w, _ := newTroupe(t)
		runs := 0
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			runs++
			r := job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
			switch o := c.second; {
			case m.Body.(*protocol.Work).Plan.Member == 1 && (c.want == job.Failed || runs <= 3):
				return 2 * time.Second, job.Result{Outcome: o, Progress: m.Body.(*protocol.Work).Range.From}
			case m.Body.(*protocol.Work).Plan.Member == 0 && c.first != job.Done && runs <= 3:
				return time.Second, job.Result{Outcome: c.first, Progress: m.Body.(*protocol.Work).Range.From}
			}
			return 30 * time.Second, r
		}
		w.submit(trio(t))
		w.until(30 * time.Minute)
		if v := w.closed["trio"]; v.State != c.want {
			t.Errorf("%v and %v: it is %+v", c.first, c.second, v)
		}
		if w.count(protocol.Claimed) > 3 || w.now.Sub(1e9) > 45*time.Second {
			t.Errorf("%v and %v: %d claims, over after %v: the others were not stopped", c.first, c.second, w.count(protocol.Claimed),
				w.now.Sub(1e9))
		}
	}
}

// TestAGangGoesOnFromItsCheckpoint: one that saves counts as far as its first member came with a checkpoint, however it ended, and the next
// run has the rest, and that checkpoint.
func TestAGangGoesOnFromItsCheckpoint(t *testing.T) {
	w, _ := newTroupe(t)
	type run struct {
		of     job.Range
		resume job.Token
	}
	runs := map[job.Token]run{} // by the claim's
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		b := m.Body.(*protocol.Work)
		if b.Plan.Member == 0 {
			runs[m.Token] = run{b.Range, b.Plan.Resume}
		}
		r := job.Result{Outcome: job.Done, Progress: b.Range.To, Checkpoint: true}
		switch n := len(runs); {
		case n == 1 && b.Plan.Member == 1: // its machine is lost
			r = job.Result{Outcome: job.Lost, Progress: b.Range.From}
			return 10 * time.Second, r
		case n == 1:
			r = job.Result{Outcome: job.ExitFailed, Progress: b.Range.From + 40, Checkpoint: true}
			return 12 * time.Second, r
		case n == 2: // its walltime is over
			r = job.Result{Outcome: job.Yielded, Progress: b.Range.From + 20, Checkpoint: b.Plan.Member == 0}
		case n == 3 && b.Plan.Member == 0: // its node is in trouble, and has no checkpoint: nothing counts
			r = job.Result{Outcome: job.NodeFailed, Progress: b.Range.From + 30}
		case n == 4: // the first has all done, and another fails in the end
			r.Checkpoint = false
			if b.Plan.Member == 2 {
				r.Outcome = job.NodeFailed
			}
		}
		return 30 * time.Second, r
	}
	s := trio(t)
	s.Saves, s.Total, s.Grid, s.MaxFailures = true, 100, 10, 1
	s = spec(t, s, 400)
	s.MaxFailures = 1
	w.submit(s)
	w.until(5 * time.Minute)
	finished(t, w, "trio")
	var got []run
	var by []job.Token
	for i := range w.facts {
		if f := &w.facts[i]; f.Kind == protocol.Claimed {
			got, by = append(got, runs[f.Token]), append(by, f.Token)
		}
	}
	if len(by) != 5 {
		t.Fatalf("%d runs: %+v", len(by), got)
	}
	last := run{job.Range{From: 60, To: 100}, by[1]}
	want := []run{{job.Range{From: 0, To: 100}, job.Token{}}, {job.Range{From: 40, To: 100}, by[0]}, last, last, last}
	if !slices.Equal(got, want) {
		t.Errorf("it ran %+v, want %+v", got, want)
	}
}

// TestAGangGoesOnWithoutANode: a machine is away for good from the middle of a run on, and its slices look as free as they did. Once its
// lease is given up the gang is placed on the others, though it was refused there at first as well.
func TestAGangGoesOnWithoutANode(t *testing.T) {
	discipline, err := backfill.Named(backfill.Default)
	if err != nil {
		t.Fatal(err)
	}
	for _, silent := range []string{"n0", "n1", "n2"} {
		w := newWorld(t, 512, 512, 512, 512, 512, 512)
		w.config.Rigid = discipline
		w.z = w.make()
		for i, s := range w.slices {
			s.node, s.view.Rack = job.NodeID(fmt.Sprint("n", i/2)), "r"
		}
		gone, refused := false, 0
		w.lose = func(m *protocol.Message) bool { return gone && (m.To.ID == silent || m.From.ID == silent) }
		w.refuse = func(m *protocol.Message) bool {
			if gone && m.Kind == protocol.Ask && m.To.ID != silent && refused < 2 {
				refused++
				return true
			}
			return false
		}
		s := trio(t)
		s.Slices, s.Topology = 4, job.SameRack
		w.submit(s)
		w.until(20 * time.Second)
		gone = true
		w.until(10 * time.Minute)
		finished(t, w, "trio")
		if took := w.now.Sub(1e9); took > 4*time.Minute {
			t.Errorf("without %s it is over after %v", silent, took)
		}
	}
}

// TestAGangPausesForANodesTrouble: one member's node can't run it. The gang as a whole is retried after pauses, and says so; that is no
// failure of the job, and it runs once the trouble is over.
func TestAGangPausesForANodesTrouble(t *testing.T) {
	w, _ := newTroupe(t)
	trouble := true
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		if trouble && m.Body.(*protocol.Work).Plan.Member == 1 {
			return 50 * time.Millisecond, job.Result{
				Outcome: job.NodeFailed, Progress: m.Body.(*protocol.Work).Range.From, Detail: "unpacking: no space left on device",
			}
		}
		return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	w.submit(trio(t))
	said := ""
	for range 100 {
		w.until(500 * time.Millisecond)
		e, _ := w.z.Explain(w.now, "trio")
		if e.Job.State.Final() {
			t.Fatalf("it is %v: %s", e.Job.State, e.Job.Reason)
		}
		if _, rest, pauses := strings.Cut(e.Job.Reason, "it is tried again in "); pauses {
			said = e.Job.Reason
			if rest, err := time.ParseDuration(rest); err != nil || e.Job.StartEarly.Sub(w.now) < rest.Truncate(time.Second) {
				t.Errorf("%s, and it is to start in %v at the earliest", said, e.Job.StartEarly.Sub(w.now))
			}
		}
	}
	for _, want := range []string{"(Node) one of its nodes could not run it", "member 1 of 3: unpacking: no space left on device"} {
		if !strings.Contains(said, want) {
			t.Errorf("in its pauses it says %q, not %q", said, want)
		}
	}
	trouble = false
	w.until(10 * time.Minute)
	finished(t, w, "trio")
}
