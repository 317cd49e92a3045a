package home

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// filedThere is what another zone, under an epoch, filed of the first life of job a, of which it had committed so much.
func filedThere(spec *job.Spec, epoch uint32, committed int64) []protocol.Fact {
	return []protocol.Fact{{Kind: protocol.HomeKept, Actor: protocol.Address{Role: protocol.Zone, ID: "y"}, Job: "a",
		Body: &protocol.Keeping{Record: &protocol.Record{
			Job: "a", Epoch: epoch, Generation: 1, Spec: spec, Queue: "q", Submitted: 1, Attained: 10,
			Committed: job.Ranges{{To: committed}},
			Verdict:   job.Verdict{State: job.Cancelled}, Ended: 2,
		}}}}
}

// TestWhatANewHomeGoesOnFrom: the record that the old home surrenders, before what was filed of an earlier life; where the old home has
// left, what it filed; and from nothing never.
func TestWhatANewHomeGoesOnFrom(t *testing.T) {
	spec := &job.Spec{Name: "a", Queue: "q", Kind: job.Items, Total: 10, Grid: 1, Parallelism: 1, PerUnit: time.Second}
	moved := &protocol.Record{Job: "a", Epoch: 1, Generation: 2, Spec: spec, Queue: "q", Submitted: 3, Attained: 20,
		Committed: job.Ranges{{To: 7}}}
	for _, c := range []struct {
		name   string
		epoch  uint32
		record *protocol.Record
		filed  []protocol.Fact
		has    int64 // committed; negative: the job is not taken
	}{
		{"surrendered", 2, moved, nil, 7},
		{"surrendered, and an earlier life was filed", 2, moved, filedThere(spec, 1, 4), 7},
		{"filed by a home that has left", 2, nil, filedThere(spec, 1, 4), 4},
		{"filed by a home since which there was another", 3, nil, filedThere(spec, 1, 4), 4},
		{"filed here", 1, nil, filedThere(spec, 1, 4), 4},
		{"neither surrendered nor filed", 2, nil, nil, -1},
		{"long under way", 1, nil, filedThere(spec, 2, 4), -1},
		{"new", 1, nil, nil, 0},
	} {
		z := newDesk(Config{})
		var facts []protocol.Fact
		for range 2 { // it is said again
			in := protocol.Message{
				Kind: protocol.Adopt, From: protocol.Address{Role: protocol.Gate}, Job: "a", Epoch: c.epoch, Generation: 2,
				Body: &protocol.Adoption{Since: 1, Spec: spec, At: 3, Record: c.record, Queue: &protocol.Queue{Name: "q", Weight: 3}},
			}
			if _, asks := z.Recalls(&in); asks {
				in.Filed = c.filed
			}
			var out protocol.Out
			z.Step(quantity.Instant(1e12), in, &out)
			facts = append(facts, out.Facts...)
			j := z.Book().Job("a")
			if c.has < 0 {
				if j != nil || len(told(&out, protocol.Adopted)) > 0 {
					t.Errorf("%s: taken as %+v", c.name, j)
				}
				continue
			}
			if len(told(&out, protocol.Adopted)) != 1 || j == nil || j.Epoch != c.epoch || j.Generation != 2 ||
				j.Progress().Committed().Len() != c.has || j.Ending().Final() || j.Queue().Weight != 3 && c.name != "filed here" {
				t.Errorf("%s: %+v, said %+v", c.name, j, out.Effects)
			}
		}
		again := newDesk(Config{})
		for _, f := range facts {
			again.Apply(f)
		}
		if again.Digest() != z.Digest() {
			t.Errorf("%s: its facts fold to something else", c.name)
		}
	}
}
