package zone_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// world plays the gate, one node and its executor around a zone, with virtual time. It keeps the promises of package
// node in the plainest way, so that a test of the zone fails for the zone's faults alone.
type world struct {
	t      fataler
	z      *zone.Zone
	now    quantity.Instant
	out    protocol.Out
	facts  []protocol.Fact
	queue  []protocol.Message
	wake   quantity.Instant
	epoch  uint32
	seq    uint64
	ids    uint64
	slices []*simSlice
	// how a subjob ends; nil: exactly as planned.
	run func(m *protocol.Message) (after time.Duration, r job.Result)
	// faults: chance in percent that a message is lost or doubled, drawn by draw.
	loss, double int
	draw         func(n int) int
	delay        time.Duration    // the most that a message is under way; 0: all arrive at once, in order
	late         []letter         // by arrival
	cut          quantity.Instant // until then nothing that nodes say gets through
	mail         mail
	lose         func(m *protocol.Message) bool // names messages that are lost; nil: none but by loss
	refuse       func(m *protocol.Message) bool // names asks that the node refuses whatever is free
	deaf         bool                           // programs do not look at their lease file again
	adopted      map[job.ID]*job.Spec
	closed       map[job.ID]job.Verdict
	lives        map[job.ID]job.Generation   // that were closed
	dropped      map[job.ID]quantity.Instant // when its owner cancelled it
	taught       map[job.ID][]*trp.Table     // what jobs were told by their templates
	log          []string
	config       zone.Config
	// bidders are the agents of external jobs: what each answers to what it hears.
	bidders map[job.ID]func(m *protocol.Message) []protocol.Message
	twin    *twin // checks that a plain zone decides alike; nil: nobody does
}

type fataler interface{ Fatalf(string, ...any) }

func newWorld(t fataler, capacities ...int64) *world {
	w := &world{
		t: t, now: quantity.Instant(1e9), wake: quantity.Never, epoch: 1,
		adopted: map[job.ID]*job.Spec{}, closed: map[job.ID]job.Verdict{}, lives: map[job.ID]job.Generation{},
		dropped: map[job.ID]quantity.Instant{}, taught: map[job.ID][]*trp.Table{}, mail: newMail(),
		config: zone.Config{ID: "z", Policy: fifo.Policy{}, Horizon: 10 * time.Minute},
	}
	w.z = w.make()
	for i, c := range capacities {
		w.slices = append(w.slices, &simSlice{view: protocol.Slice{ID: job.SliceID(fmt.Sprintf("s%d", i)),
			Capacity: trp.Vector{quantity.Amount(c << 20)}, Speed: 1000}})
	}
	return w
}

// restart forgets everything soft: the zone comes up again from its facts.
func (w *world) restart() {
	z := w.make()
	for _, f := range w.facts {
		z.Apply(f)
	}
	if w.twin != nil {
		w.twin.restart(w)
	}
	if z.Digest() != w.z.Digest() {
		w.t.Fatalf("the facts fold to another state")
	}
	w.sameState("facts", z)
	kept := w.make()
	for _, f := range capture.All(w.z) {
		kept.Apply(f)
	}
	w.sameState("snapshot", kept)
	w.mail.newest = map[job.SliceID]uint64{}
	w.z, w.wake = z, quantity.Never
	w.queue = slices.DeleteFunc(w.queue, func(m protocol.Message) bool { return m.To.Role == protocol.Zone })
	for _, s := range w.slices {
		s.sent = ""
	}
	w.out.Reset()
	z.Recover(w.now, &w.out)
	if w.twin != nil {
		w.twin.check(w, func(z *zone.Zone, out *protocol.Out) { z.Recover(w.now, out) })
	}
	w.take()
}

// sameState insists that a zone made anew knows all that w.z knows, field by field: a digest may leave something out.
func (w *world) sameState(from string, z *zone.Zone) {
	if got, want := zone.Durable(z), zone.Durable(w.z); !reflect.DeepEqual(got, want) {
		w.t.Fatalf("the %s fold to another state:\n%+v\nwant\n%+v", from, got, want)
	}
}

func (w *world) make() *zone.Zone {
	z, err := zone.New(w.config)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return z
}

func (w *world) submit(specs ...*job.Spec) {
	for _, s := range specs {
		w.adopted[s.Name] = s
		w.step(protocol.Message{Kind: protocol.Adopt, Job: s.Name, Epoch: 1, Body: &protocol.Adoption{Spec: s, At: w.now},
			From: protocol.Address{Role: protocol.Gate}})
	}
}

func (w *world) step(m protocol.Message) {
	if _, again := w.dropped[m.Job]; m.Kind == protocol.Cancel && !again {
		w.dropped[m.Job] = w.now
	}
	w.out.Reset()
	w.z.Step(w.now, m, &w.out)
	if wrong := zone.Audit(w.z, w.now); len(wrong) > 0 {
		w.t.Fatalf("after %+v the zone keeps what is not so: %q", m, wrong)
	}
	w.mail.viewed(w, &m)
	if w.twin != nil {
		w.twin.check(w, func(z *zone.Zone, out *protocol.Out) { z.Step(w.now, m, out) })
	}
	w.take()
}

// rangeOf is what of its job a fact is about.
func rangeOf(f *protocol.Fact) job.Range {
	switch b := f.Body.(type) {
	case *protocol.Sale:
		return b.Range
	case *protocol.Extent:
		return b.Range
	case *protocol.ClaimEnd:
		return b.Range
	}
	return job.Range{}
}

func (w *world) take() {
	w.facts = append(w.facts, w.out.Facts...)
	for i, f := range w.out.Facts {
		w.mail.fact(&w.out.Facts[i])
		w.settledWhole(&w.out.Facts[i])
		if l, ok := f.Body.(*protocol.Learned); ok && l.Safe != nil && l.Runs > 0 {
			w.taught[f.Job] = append(w.taught[f.Job], l.Safe)
		}
		w.log = append(w.log, fmt.Sprintf("%d fact %d %s %v %v", w.now/1e6, f.Kind, f.Job, f.Token, rangeOf(&f)))
	}
	for _, m := range w.out.Effects {
		w.mail.effect(w, &m)
		n := 1
		if w.lose != nil && w.lose(&m) {
			n = 0
		}
		if m.Kind != protocol.Wake && w.loss > 0 && w.draw(100) < w.loss {
			n = 0
		}
		if m.Kind != protocol.Wake && w.double > 0 && w.draw(100) < w.double {
			n++
		}
		for range n {
			w.post(m)
		}
	}
}

// until runs until every job has a verdict or the limit is reached.
func (w *world) until(limit time.Duration) {
	end := w.now.Add(limit)
	for w.now < end && len(w.closed) < len(w.adopted) {
		w.tick()
	}
}

// tick handles everything due now, then moves on to the next instant at which something is.
func (w *world) tick() {
	for w.deliver() {
	}
	next := w.wake
	if len(w.late) > 0 {
		next = min(next, w.late[0].at)
	}
	for _, s := range w.slices {
		for _, r := range s.runs {
			if !r.ended {
				next = min(next, r.done)
			} else {
				next = min(next, r.sentAt.Add(time.Second))
			}
		}
		for _, b := range s.busy {
			switch b.Kind {
			case protocol.ForHold:
				next = min(next, quantity.Instant(b.ID))
			case protocol.ForDrain:
				next = min(next, b.End)
			}
		}
	}
	w.now = max(w.now+1, min(next, w.now.Add(5*time.Second)))
	if w.wake <= w.now {
		w.wake = quantity.Never
		w.step(protocol.Message{Kind: protocol.Tick})
	}
}

func (w *world) deliver() bool {
	acted := false
	w.arrive()
	for len(w.queue) > 0 {
		m := w.queue[0]
		w.queue = w.queue[1:]
		acted = true
		switch m.To.Role {
		case protocol.Timer:
			w.wake = min(w.wake, m.Body.(*protocol.Moment).At)
		case protocol.Gate:
			w.gate(m)
		case protocol.Node:
			w.node(m)
		case protocol.Bidder:
			if hear := w.bidders[m.Job]; hear != nil {
				for _, a := range hear(&m) {
					w.answer(a)
				}
			}
		case protocol.Zone:
			w.step(m)
		}
	}
	for _, s := range w.slices {
		s.busy = slices.DeleteFunc(s.busy, func(b protocol.Reservation) bool {
			return b.Kind == protocol.ForHold && quantity.Instant(b.ID) <= w.now || b.End <= w.now && b.Kind != protocol.ForLease
		})
		for _, r := range s.runs {
			if !r.ended && r.done <= w.now {
				r.ended = true
				r.result.End = w.now
				s.release(r.m.Token)
			}
			if r.ended && !r.acked && r.sentAt.Add(time.Second) <= w.now {
				r.sentAt = w.now
				w.reply(protocol.Message{Kind: protocol.Result, From: s.at(), Token: r.m.Token, Job: r.m.Job, Epoch: r.m.Epoch,
					Generation: r.m.Generation, Body: &protocol.Conclusion{Slice: s.view.ID, Range: r.m.Body.(*protocol.Work).Range,
						Result: &r.result}})
				acted = true
			}
		}
		s.runs = slices.DeleteFunc(s.runs, func(r *simRun) bool { return r.acked })
		if g := fmt.Sprint(s.gaps(w.now)); g != s.sent && w.cut <= w.now && s.back <= w.now {
			s.sent = g
			s.vers++
			w.reply(protocol.Message{Kind: protocol.Offer, From: s.at(), Epoch: w.epoch, Body: &protocol.SliceView{
				Slice: s.view, Node: cmp.Or(s.node, "n"), Version: s.vers, Usable: true, Gaps: s.gaps(w.now),
				Reserved: slices.Clone(s.busy),
			}})
			acted = true
		}
	}
	return acted
}

// at is the address of the slice's node.
func (s *simSlice) at() protocol.Address {
	return protocol.Address{Role: protocol.Node, ID: string(cmp.Or(s.node, "n"))}
}

// reply is a node's word to the zone.
func (w *world) reply(m protocol.Message) {
	m.To = protocol.Address{Role: protocol.Zone, ID: "z"}
	if w.lose != nil && w.lose(&m) || w.now < w.cut {
		return
	}
	if m.Kind != protocol.Offer && w.loss > 0 && w.draw(100) < w.loss {
		return
	}
	if w.double > 0 && w.draw(100) < w.double {
		w.post(m)
	}
	w.post(m)
}

func (w *world) gate(m protocol.Message) {
	if m.Kind == protocol.Closed {
		if old, ok := w.closed[m.Job]; ok && old != m.Body.(*protocol.Closing).Verdict && m.Generation == w.lives[m.Job] {
			w.t.Fatalf("job %s closed twice: %v, then %v", m.Job, old, m.Body.(*protocol.Closing).Verdict)
		}
		if m.Generation < w.lives[m.Job] {
			return // it was acknowledged
		}
		w.closed[m.Job], w.lives[m.Job] = m.Body.(*protocol.Closing).Verdict, m.Generation
		w.post(protocol.Message{Kind: protocol.ClosedAck, Job: m.Job, Epoch: m.Epoch, Generation: m.Generation,
			To: protocol.Address{Role: protocol.Zone}})
	}
}

func items(t testing.TB, name string, total int64, mib int64, parallelism int) *job.Spec {
	return spec(t, &job.Spec{Name: job.ID(name), Kind: job.Items, Total: total, PerUnit: time.Second, Grid: 1, Parallelism: parallelism},
		mib)
}

func steps(t testing.TB, name string, total, every int64, mib int64) *job.Spec {
	return spec(t, &job.Spec{Name: job.ID(name), Kind: job.Steps, Total: total, PerUnit: time.Second, Grid: every, Parallelism: 1,
		Restore: time.Second, Checkpoint: time.Second, TauMin: 5 * time.Second}, mib)
}

func rigid(t testing.TB, name string, walltime time.Duration, mib int64, n int) *job.Spec {
	return spec(t, &job.Spec{Name: job.ID(name), Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Walltime: walltime, Slices: n}, mib)
}

func spec(t testing.TB, s *job.Spec, mib int64) *job.Spec {
	t.Helper()
	s.Profile, s.Theta, s.Worth = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: s.Total, Mean: quantity.Amount(mib << 20)}}},
		10_000, job.DefaultWorth
	table, err := trp.Compile(s.Profile, s.Total, s.Theta)
	if err != nil {
		t.Fatal(err)
	}
	s.Safe, s.Queue, s.MaxFailures, s.Deadline = table, "default", 3, quantity.Never
	return s
}
