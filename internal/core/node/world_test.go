package node

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// t0 is an instant like any other, so that 0 stays free for "unset".
const t0 = quantity.Instant(1_000_000 * time.Second)

func at(d time.Duration) quantity.Instant { return t0.Add(d) }

var (
	zone     = protocol.Address{Role: protocol.Zone, ID: "z"}
	person   = protocol.Address{Role: protocol.Person, ID: "p"}
	executor = protocol.Address{Role: protocol.Executor, ID: "n"}
	spec     = &job.Spec{Name: "j", Total: 1000}
)

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// world drives one node with literal messages, and checks after every step that the facts fold to the same state.
type world struct {
	tb
	cfg     Config
	n       *Node
	shadow  *Node // folds the facts as they come and decides nothing
	twin    *Node // takes the same inputs, looks at every lease each time, and must say the same
	now     quantity.Instant
	facts   []protocol.Fact
	out     protocol.Out
	effects []protocol.Message // of the last step
	last    []protocol.Fact    // of the last step
	views   map[job.SliceID]*protocol.SliceView
}

func device(id job.SliceID) protocol.Slice {
	return protocol.Slice{ID: id, Model: "sim", Profile: "1g", Capacity: trp.Vector{100}, Speed: 1000, Simulated: true}
}

func newWorld(t tb) *world {
	w := &world{tb: t, cfg: Config{ID: "n", Zone: "z"}, now: t0}
	w.n, w.shadow, w.twin = New(w.cfg), New(w.cfg), New(w.cfg)
	w.recover()
	return w
}

// booted returns a world whose node has slices a and b.
func booted(t tb) *world {
	w := newWorld(t)
	w.inventory()
	return w
}

func (w *world) inventory(found ...protocol.Found) {
	w.step(protocol.Message{Kind: protocol.Inventory, From: executor,
		Body: &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b")}, Found: found}})
}

// restart folds the facts so far into a new node and recovers it.
func (w *world) restart() {
	w.Helper()
	n := New(w.cfg)
	for _, f := range w.facts {
		n.Apply(f)
	}
	if n.Digest() != w.n.Digest() {
		w.Fatalf("the facts fold to another state than the node had")
	}
	w.n, w.twin = n, New(w.cfg)
	for _, f := range w.facts {
		w.twin.Apply(f)
	}
	w.recover()
}

func (w *world) recover() {
	w.Helper()
	w.run(func() { w.n.Recover(w.now, &w.out) })
	var plain protocol.Out
	w.twin.Recover(w.now, &plain)
	w.agree(&plain)
}

func (w *world) step(m protocol.Message) []protocol.Message {
	w.Helper()
	w.run(func() { w.n.Step(w.now, m, &w.out) })
	var plain protocol.Out
	w.everything()
	w.twin.Step(w.now, m, &plain)
	w.agree(&plain)
	return w.effects
}

func (w *world) run(f func()) {
	w.Helper()
	w.out.Reset()
	f()
	w.effects, w.last = slices.Clone(w.out.Effects), slices.Clone(w.out.Facts)
	for _, m := range w.effects {
		if v, ok := m.Body.(*protocol.SliceView); ok {
			if w.views == nil {
				w.views = map[job.SliceID]*protocol.SliceView{}
			}
			w.views[v.Slice.ID] = v
		}
	}
	for _, f := range w.last {
		w.facts = append(w.facts, f)
		w.shadow.Apply(f)
	}
	if w.n.Digest() != w.shadow.Digest() {
		w.Fatalf("after %d facts the state differs from the folded facts", len(w.facts))
	}
	n := New(w.cfg)
	for _, f := range capture.All(w.n) {
		n.Apply(f)
	}
	if n.Digest() != w.n.Digest() {
		w.Fatalf("after %d facts a snapshot folds to another state", len(w.facts))
	}
}

// agree holds a step of the node against that of its twin.
func (w *world) agree(plain *protocol.Out) {
	w.Helper()
	if !reflect.DeepEqual(w.last, slices.Clone(plain.Facts)) && len(w.last)+len(plain.Facts) > 0 {
		w.Fatalf("the node records\n%+v\nits twin\n%+v", w.last, plain.Facts)
	}
	if len(w.effects) != len(plain.Effects) {
		w.Fatalf("the node asks for %v, its twin for %v", kinds(w.effects), kinds(plain.Effects))
	}
	for i := range w.effects {
		if !reflect.DeepEqual(w.effects[i], plain.Effects[i]) {
			w.Fatalf("the node asks for\n%+v\nits twin for\n%+v", w.effects[i], plain.Effects[i])
		}
	}
	w.indexed()
}

// everything has the twin look at every lease, whether anything of it has changed or not.
func (w *world) everything() {
	for _, l := range w.twin.leases.Ordered() {
		w.twin.leases.Stir(l)
	}
}

// indexed holds what is found through an index against what a search finds, and that nothing that is over stands.
func (w *world) indexed() {
	w.Helper()
	for _, s := range w.n.inventory.All() {
		if past := s.Past(w.now, nil); len(past) > 0 {
			w.Fatalf("%s: reservations %v are over, and stand", s.ID(), past)
		}
		for r := range s.Reservations {
			if got, on := w.n.reservations.Of(r.ID); on != s || got != r {
				w.Fatalf("reservation %d is on %s, the index has %+v", r.ID, s.ID(), got)
			}
		}
		var on []*leases.Lease
		for _, l := range w.n.leases.Ordered() {
			if t := l.Terms(); !l.Vacated() && (t.Slice == s.ID() || slices.Contains(t.Also, s.ID())) {
				on = append(on, l)
			}
		}
		if got := w.n.leases.On(s); !slices.Equal(on, got) {
			w.Fatalf("%d leases are on %s, its time has %d", len(on), s.ID(), len(got))
		}
	}
}

// wait moves time on and delivers the Tick if one is due.
func (w *world) wait(d time.Duration) []protocol.Message {
	w.Helper()
	w.now = w.now.Add(d)
	return w.step(protocol.Message{Kind: protocol.Tick})
}

func (w *world) sent(k protocol.Kind) *protocol.Message {
	for i := range w.effects {
		if w.effects[i].Kind == k {
			return &w.effects[i]
		}
	}
	return nil
}

// must returns the last step's effect of this kind.
func (w *world) must(k protocol.Kind) protocol.Message {
	w.Helper()
	m := w.sent(k)
	if m == nil {
		w.Fatalf("no effect of kind %d; there are %v", k, kinds(w.effects))
	}
	return *m
}

func (w *world) never(k protocol.Kind) {
	w.Helper()
	if m := w.sent(k); m != nil {
		w.Fatalf("effect of kind %d: %+v", k, *m)
	}
}

func (w *world) recorded(want ...protocol.FactKind) {
	w.Helper()
	var got []protocol.FactKind
	for _, f := range w.last {
		got = append(got, f.Kind)
	}
	if !slices.Equal(got, want) {
		w.Fatalf("facts %v, want %v", got, want)
	}
}

func kinds(ms []protocol.Message) (out []protocol.Kind) {
	for _, m := range ms {
		out = append(out, m.Kind)
	}
	return out
}

// gaps are those of the last offer of a slice in this step.
func (w *world) gaps(id job.SliceID) []protocol.Gap {
	w.Helper()
	for i := len(w.effects) - 1; i >= 0; i-- {
		if m := w.effects[i]; m.Kind == protocol.Offer && m.Body.(*protocol.SliceView).Slice.ID == id {
			return m.Body.(*protocol.SliceView).Gaps
		}
	}
	w.Fatalf("no offer of %s", id)
	return nil
}

func ask(id uint64, s job.SliceID, from, to time.Duration) protocol.Message {
	return protocol.Message{Kind: protocol.Ask, From: zone,
		Body: &protocol.Asking{Ask: id, Placement: protocol.Placement{Slice: s, Start: at(from), End: at(to), Demand: trp.Vector{10}}},
		Job:  "j", Epoch: 1}
}

func redeem(m protocol.Message) protocol.Message {
	g := m.Body.(*protocol.Grant)
	return protocol.Message{
		Kind: protocol.Redeem, From: zone, Token: m.Token, Job: m.Job, Epoch: 1,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: g.Slice, Range: job.Range{From: 0, To: 100}, Start: g.Start, End: g.End,
			Demand: trp.Vector{10}}, Spec: spec},
	}
}

// lease asks and redeems.
func (w *world) lease(id uint64, s job.SliceID, from, to time.Duration) job.Token {
	w.Helper()
	w.step(ask(id, s, from, to))
	g := w.must(protocol.Granted)
	w.step(redeem(g))
	w.must(protocol.Leased)
	return g.Token
}

// running leases and starts.
func (w *world) running(id uint64, s job.SliceID, from, to time.Duration) job.Token {
	w.Helper()
	t := w.lease(id, s, from, to)
	w.must(protocol.Start)
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: t, Body: &protocol.Beginning{At: w.now}})
	w.recorded(protocol.SubjobStarted)
	return t
}

func exited(t job.Token, o job.Outcome, progress int64) protocol.Message {
	return protocol.Message{Kind: protocol.Exited, From: executor, Token: t,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: o, Progress: progress}}}
}

func reserve(request string, r protocol.Reservation) protocol.Message {
	return protocol.Message{Kind: protocol.Reserve, From: person, Body: &protocol.Booking{Request: request, Reservation: &r}}
}

// result is the last step's SubjobEnded.
func (w *world) result() *job.Result {
	w.Helper()
	for _, f := range w.last {
		if f.Kind == protocol.SubjobEnded {
			return f.Body.(*protocol.SubjobEnd).Result
		}
	}
	w.Fatalf("no subjob ended")
	return nil
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
