package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// lives plays nodes of four slices each that say yes to everything: subjobs follow one another on every slice.
type lives struct {
	z      *zone.Zone
	now    quantity.Instant
	out    protocol.Out
	slices []life
	index  map[job.SliceID]int
	said   []protocol.Message
	tokens uint64
	steps  int
	next   int
	// later is when a second gap without an end begins; 0: there is none.
	later time.Duration
}

type life struct {
	view    protocol.SliceView
	running protocol.Message // the Redeem of what runs there
}

// newLives fills n slices from a backlog.
func newLives(b testing.TB, p policy.Policy, jobs, n int) *lives {
	l := &lives{z: backlog(b, p, jobs), now: quantity.Instant(1e12), slices: make([]life, n), index: map[job.SliceID]int{}}
	for i := range l.slices {
		l.slices[i].view = protocol.SliceView{
			Slice: protocol.Slice{ID: job.SliceID(fmt.Sprintf("n%d/s%d", i/4, i)), Capacity: trp.Vector{quantity.Amount((6 + i%3) << 30)},
				Speed: 1000},
			Node: job.NodeID(fmt.Sprint("n", i/4)), Usable: true, Gaps: make([]protocol.Gap, 1),
		}
		l.index[l.slices[i].view.Slice.ID] = i
		l.open(i)
	}
	return l
}

// step tells the zone something, and then what the nodes say to what it asks for.
func (l *lives) step(m protocol.Message) {
	l.out.Reset()
	l.steps++
	l.z.Step(l.now, m, &l.out)
	for i := range l.out.Effects {
		switch m := &l.out.Effects[i]; m.Kind {
		case protocol.Ask:
			l.tokens++
			l.said = append(l.said, protocol.Message{
				Kind: protocol.Granted, From: m.To, Job: m.Job, Token: job.Token{Epoch: 1, Seq: l.tokens},
				Body: &protocol.Grant{Ask: m.Body.(*protocol.Asking).Ask, Slice: m.Body.(*protocol.Asking).Slice,
					Start: m.Body.(*protocol.Asking).Start, End: m.Body.(*protocol.Asking).End},
			})
		case protocol.Redeem:
			l.slices[l.index[m.Body.(*protocol.Work).Slice]].running = *m
			l.said = append(l.said, protocol.Message{Kind: protocol.Leased, From: m.To, Job: m.Job, Token: m.Token,
				Body: &protocol.Holding{}}, protocol.Message{Kind: protocol.Running, From: m.To, Job: m.Job, Token: m.Token,
				Body: &protocol.Beginning{At: l.now}})
		}
	}
}

func (l *lives) tell(m protocol.Message) {
	l.said = append(l.said, m)
	for i := 0; i < len(l.said); i++ {
		l.step(l.said[i])
	}
	l.said = l.said[:0]
}

// open offers a slice for ten minutes.
func (l *lives) open(i int) {
	v := l.slices[i].view // views are never written to once they are sent
	v.Version = uint64(l.steps + 1)
	v.Gaps = []protocol.Gap{{Start: l.now, End: l.now.Add(10 * time.Minute), Until: protocol.ForDrain}}
	if l.later > 0 {
		v.Gaps = append(v.Gaps, protocol.Gap{Start: l.now.Add(l.later), End: quantity.Never})
	}
	l.tell(protocol.Message{Kind: protocol.Offer, From: node(string(v.Node)), Epoch: 1, Body: &v})
}

// life ends the next subjob, which has come to nothing new but its checkpoint, and begins another one in its place.
func (l *lives) life() {
	i := l.next
	l.next = (i + 1) % len(l.slices)
	l.now = l.now.Add(10 * time.Minute / time.Duration(len(l.slices)))
	if m := &l.slices[i].running; !m.Token.Zero() {
		over := protocol.Message{Kind: protocol.Result, From: m.To, Job: m.Job, Epoch: m.Epoch, Token: m.Token,
			Body: &protocol.Conclusion{Range: m.Body.(*protocol.Work).Range, Result: &job.Result{
				Outcome: job.Stopped, Progress: m.Body.(*protocol.Work).Range.From, Start: l.now.Add(-time.Minute), End: l.now,
			}}}
		m.Token = job.Token{}
		l.tell(over)
	}
	l.open(i)
}

// BenchmarkLife is one subjob from its window to its result in a busy zone: five steps (Result, Offer, Granted, Leased,
// Running), reindexing of its job included.
func BenchmarkLife(b *testing.B) {
	for _, c := range []struct{ waiting, slices int }{
		{1000, 16}, {1000, 256}, {10_000, 16}, {10_000, 256}, {10_000, 4096}, {100_000, 256}, {100_000, 4096},
	} {
		b.Run(fmt.Sprintf("waiting=%d/slices=%d", c.waiting, c.slices), func(b *testing.B) {
			takesLong(b, c.waiting > 10_000 || c.slices > 256)
			l := newLives(b, fair.Policy{}, c.waiting, c.slices)
			for range 2 * c.slices {
				l.life()
			}
			l.steps = 0
			b.ReportAllocs()
			for b.Loop() {
				l.life()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(l.steps), "ns/step")
		})
	}
}

// BenchmarkNothing is a message that changes nothing.
func BenchmarkNothing(b *testing.B) {
	for _, slices := range []int{16, 256, 4096} {
		b.Run(fmt.Sprintf("waiting=10000/slices=%d", slices), func(b *testing.B) {
			l := newLives(b, fair.Policy{}, 10_000, slices)
			m := l.report()
			b.ReportAllocs()
			for b.Loop() {
				l.step(m)
			}
		})
	}
}

// report is a Report of what runs on the first slice.
func (l *lives) report() protocol.Message {
	m := &l.slices[0].running
	return protocol.Message{Kind: protocol.Report, From: m.To, Job: m.Job, Token: m.Token,
		Body: &protocol.Observation{Progress: 1, At: l.now}}
}

// TestNothingIsAllocatedForNothing: what changes nothing allocates nothing.
func TestNothingIsAllocatedForNothing(t *testing.T) {
	l := newLives(t, fair.Policy{}, 200, 16)
	report := l.report()
	if report.Token.Zero() {
		t.Fatal("nothing runs on the first slice")
	}
	for name, m := range map[string]protocol.Message{"report": report, "tick": {Kind: protocol.Tick}} {
		l.step(m)
		if n := testing.AllocsPerRun(100, func() { l.step(m) }); n != 0 {
			t.Errorf("a %s allocates %v times", name, n)
		}
	}
}
