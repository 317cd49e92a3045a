package home

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// shelved is a ledger with an archive that answers at once.
type shelved struct {
	z          *desk
	facts      []protocol.Fact
	parts      map[job.ID]protocol.Message
	left, back int
}

// step steps the ledger and plays the archive until it has no more to say; it returns what others were told.
func (a *shelved) step(now quantity.Instant, in protocol.Message) (said []protocol.Message) {
	for todo := []protocol.Message{in}; len(todo) > 0; {
		m := todo[0]
		todo = todo[1:]
		if name, ok := a.z.Recalls(&m); ok {
			m.Filed = a.parts[name].Filed
		}
		var out protocol.Out
		a.z.Step(now, m, &out)
		for _, f := range out.Facts {
			a.facts = append(a.facts, f)
			switch {
			case f.Kind == protocol.HomeArchived:
				a.left++
			case f.Kind == protocol.HomeKept && f.Body.(*protocol.Keeping).Recalled:
				a.back++
			}
		}
		for _, m := range out.Effects {
			if m.Kind != protocol.File {
				said = append(said, m)
				continue
			}
			a.parts[m.Job] = m
			todo = append(todo, protocol.Message{Kind: protocol.Archived, From: m.To, Job: m.Job, Generation: m.Generation,
				Body: &protocol.Archival{}})
		}
	}
	return said
}

// words draws what the gate and nodes may say of two jobs, old words too.
func words(t *rapid.T, z *desk, now quantity.Instant) protocol.Message {
	name := rapid.SampledFrom([]job.ID{"a", "b"}).Draw(t, "job")
	of, last := job.Generation(1), z.Book().Dropped(name)
	var spec *job.Spec
	if j := z.Book().Job(name); j != nil {
		of, spec = j.Generation, j.Spec
	}
	gate := protocol.Address{Role: protocol.Gate}
	m := protocol.Message{From: gate, Job: name, Epoch: 1, Generation: max(1, of-job.Generation(rapid.IntRange(0, 5).Draw(t, "earlier")/5))}
	adoption := &protocol.Adoption{At: now}
	switch rapid.SampledFrom([]string{"adopt", "adopt", "again", "again", "other", "cancel", "cancel", "ack", "ack", "ack", "forget",
		"pause", "result"}).Draw(t, "word") {
	case "adopt": // as it is, or the first
		m.Kind, adoption.Since = protocol.Adopt, 1
		if z.Book().Job(name) == nil {
			m.Generation, adoption.Since = last+1, last+1
		}
	case "again": // the next life of the same work
		m.Kind, m.Generation, adoption.Since = protocol.Adopt, max(of, last)+1, 1
		if last > 0 {
			adoption.Since = last + 1
		}
	case "other":
		m.Kind, m.Generation, adoption.Since = protocol.Adopt, max(of, last)+1, max(of, last)+1
	case "cancel":
		m.Kind, m.Body = protocol.Cancel, &protocol.Cancellation{Text: "because"}
	case "ack":
		m.Kind = protocol.ClosedAck
	case "forget":
		m.Kind = protocol.Forget
	case "pause":
		m.Kind, m.Body = protocol.PauseJob, &protocol.Pause{Paused: rapid.Bool().Draw(t, "flag")}
	case "result":
		m.Kind, m.From, m.Token, m.Body = protocol.Result, protocol.Address{Role: protocol.Node, ID: "n"}, job.Token{Epoch: 1, Seq: 7},
			&protocol.Conclusion{Result: &job.Result{}}
		m.Epoch += uint32(rapid.IntRange(0, 3).Draw(t, "another home") / 3)
	}
	if m.Kind == protocol.Adopt {
		if spec == nil || adoption.Since == m.Generation {
			spec = &job.Spec{Name: name, Queue: "q", Kind: job.Items, Total: 10, Grid: 1, Parallelism: 1, PerUnit: time.Second}
		}
		if j := z.Book().Job(name); j != nil && rapid.IntRange(0, 3).Draw(t, "doubled") > 0 {
			adoption.At = j.Submitted
		}
		adoption.Spec, adoption.Queue = spec, &protocol.Queue{Name: "q", Weight: 1}
		m.Body = adoption
	}
	return m
}

// TestAnArchivedRecordAnswersAsAHotOne: whatever comes, and comes late, a ledger that lets go of every job as soon as it is over
// says what one says that keeps them all.
func TestAnArchivedRecordAnswersAsAHotOne(t *testing.T) {
	left, back := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{}
		hot := newDesk(cfg)
		cfg.Archive = &filing.Config{Keep: 1}
		cold := newDesk(cfg)
		a := &shelved{z: cold, parts: map[job.ID]protocol.Message{}}
		for _, id := range []job.ID{"a", "b"} { // each has a subjob that was committed
			spec := &job.Spec{Name: id, Queue: "q", Kind: job.Items, Total: 10, Grid: 1, Parallelism: 1, PerUnit: time.Second}
			claim := protocol.Claim{Token: job.Token{Epoch: 1, Seq: 7},
				Sale: protocol.Sale{Node: "n", Placement: protocol.Placement{Range: job.Range{To: 4}}}}
			f := protocol.Fact{Kind: protocol.HomeKept, Job: id, Body: &protocol.Keeping{Record: &protocol.Record{
				Job: id, Epoch: 1, Generation: 1, Spec: spec, Queue: "q", Submitted: 1, Attained: 10, Committed: job.Ranges{{To: 4}},
				Past: []protocol.Past{{Claim: claim, Committed: claim.Range}},
			}}}
			hot.Apply(f)
			cold.Apply(f)
			a.facts = append(a.facts, f)
		}
		now := quantity.Instant(1e12)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{2, 2000}).Draw(rt, "passes")) * time.Millisecond)
			in := words(rt, hot, now)
			got := a.step(now, in)
			var out protocol.Out
			hot.Step(now, in, &out)
			want := out.Effects
			for _, list := range []*[]protocol.Message{&got, &want} {
				*list = slices.DeleteFunc(*list, func(m protocol.Message) bool { return m.Kind == protocol.Wake })
				slices.SortStableFunc(*list, func(a, b protocol.Message) int {
					return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Job, b.Job))
				})
			}
			if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				rt.Fatalf("%+v:\n got %+v\nwant %+v", in, got, want)
			}
			for _, id := range []job.ID{"a", "b"} {
				h, j := hot.Book().Job(id), cold.Book().Job(id)
				if j == nil && h != nil { // what the archive has of it is what the other one has
					if p := a.parts[id]; len(p.Filed) == 0 || !h.Ending().Final() ||
						!reflect.DeepEqual(p.Filed[0].Body.(*protocol.Keeping).Record, h.Record()) {
						rt.Fatalf("job %s: the archive has %+v, the other ledger %+v", id, p.Filed, h.Record())
					}
				}
				if j != nil && (h == nil || !reflect.DeepEqual(h.Record(), j.Record())) {
					rt.Fatalf("job %s: %+v, in the other ledger %+v", id, j, h)
				}
			}
			again := newDesk(cfg)
			for _, f := range a.facts {
				again.Apply(f)
			}
			kept := newDesk(cfg)
			for _, f := range capture.All(cold) {
				kept.Apply(f)
			}
			if again.Digest() != cold.Digest() || kept.Digest() != cold.Digest() {
				rt.Fatalf("digest %x, of its facts %x, of its snapshot %x", cold.Digest(), again.Digest(), kept.Digest())
			}
		}
		left, back = left+a.left, back+a.back
	})
	if left == 0 || back == 0 {
		t.Errorf("%d jobs were archived, %d taken back: the test shows nothing", left, back)
	}
}
