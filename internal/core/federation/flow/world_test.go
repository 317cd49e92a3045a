package flow

import (
	"cmp"
	"container/heap"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// world is a small flow with messages that are late, lost, doubled and reordered, and nodes that die and come back. It keeps no rule
// itself: check does.
type world struct {
	t   *rapid.T
	cfg *Config
	now quantity.Instant
	// steps taken at now: a search that goes on without time going on never ends.
	steps int
	heap  events
	next  int
	// chance of what becomes of messages.
	chance prng.Stream

	search   *Search
	splitter *Splitter
	arbiter  *Arbiter
	lot      *Lot
	zones    []*Directory
	nodes    [][]Node
	down     [][]bool
	total    [][]Fragments

	tickets []*task
	// redeemed tokens by node.
	redeemed map[redemption]bool
	faults   bool
	// probes that lie at a node at this instant.
	lying map[[2]int][]lying
}

type redemption struct {
	zone, node int
	token      job.Token
}

type lying struct {
	p   Probe
	hop int
}

// task is a ticket and what the world counts of it beside it.
type task struct {
	Ticket
	moves    int // which answer or timer counts: those of earlier moves are old
	losses   int
	messages int // of the search under way
	draws    int // of it
	running  bool
	over     bool
	length   time.Duration
}

type event struct {
	at quantity.Instant
	n  int
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[k].at), cmp.Compare(e[i].n, e[k].n)) < 0
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() (x any) { l := len(*e) - 1; x = (*e)[l]; *e = (*e)[:l]; return x }

func (w *world) after(d time.Duration, do func()) {
	w.next++
	heap.Push(&w.heap, event{w.now.Add(d), w.next, do})
}

// send carries a message: now and then it is lost, comes twice, or late. The count is that of what was sent.
func (w *world) send(do func()) {
	copies := 1
	if w.faults {
		switch w.chance.IntN(20) {
		case 0:
			copies = 0
		case 1:
			copies = 2
		}
	}
	for range copies {
		delay := time.Duration(w.chance.IntN(4)) * time.Millisecond
		if w.faults && w.chance.IntN(30) == 0 {
			delay = 300 * time.Millisecond
		}
		w.after(delay, do)
	}
}

// stepped counts a step. What all tickets together may do at one instant is far less.
func (w *world) stepped() {
	if w.steps++; w.steps > 100_000 {
		w.t.Fatalf("100,000 steps at %v: %d tickets", w.now, len(w.tickets))
	}
}

// do carries out a move of a ticket.
func (w *world) do(tk *task, m Move) {
	w.stepped()
	w.check()
	tk.moves++
	move := tk.moves
	current := func() bool { return tk.moves == move && !tk.over }
	switch m.Act {
	case Draw:
		z, ok := w.splitter.Draw(&tk.Ticket)
		if !ok {
			w.do(tk, w.search.Stranded(w.now, &tk.Ticket))
			return
		}
		tk.draws++
		tk.messages++
		w.do(tk, w.search.Arrive(w.now, &tk.Ticket, w.zones[z]))
	case Ask:
		tk.messages += 2
		p, z, n := tk.Probe(), int(tk.Zone), int(m.Node)
		w.send(func() { w.probe(tk, move, p, z, n) })
		w.after(m.At.Sub(w.now), func() {
			if current() && tk.Phase == Asking {
				w.do(tk, w.search.Refused(w.now, &tk.Ticket, w.zones[tk.Zone]))
			}
		})
	case Rest:
		w.after(m.At.Sub(w.now), func() {
			if current() {
				w.do(tk, w.search.Next(w.now, &tk.Ticket, w.zones[tk.Zone]))
			}
		})
	case Park:
		w.lot.Add(&tk.Ticket)
		if m.At != quantity.Never {
			w.after(m.At.Sub(w.now), func() {
				if tk.Phase == Parked && w.lot.Remove(tk.ID) {
					w.do(tk, w.search.Next(w.now, &tk.Ticket, nil))
				}
			})
		}
	case Expire:
		if tk.over || tk.running {
			w.t.Fatalf("ticket %d expires, and it runs %v, is over %v", tk.ID, tk.running, tk.over)
		}
		tk.over = true
	}
	w.check()
}

// probe lies at its node until all of that instant are there.
func (w *world) probe(tk *task, move int, p Probe, z, n int) {
	key := [2]int{z, n}
	if w.down[z][n] {
		return
	}
	w.lying[key] = append(w.lying[key], lying{p, move})
	if len(w.lying[key]) > 1 {
		return
	}
	w.after(0, func() {
		lie := w.lying[key]
		delete(w.lying, key)
		if w.down[z][n] {
			return
		}
		probes := make([]Probe, len(lie))
		for i := range lie {
			probes[i] = lie[i].p
		}
		answers := w.arbiter.Decide(w.now, &w.nodes[z][n], probes, nil)
		summary := w.nodes[z][n].Summary(w.cfg)
		for i, a := range answers {
			tk := w.tickets[a.Ticket]
			w.send(func() { w.answered(tk, lie[i].hop, z, n, a, summary) })
		}
	})
}

func (w *world) answered(tk *task, move, z, n int, a Answer, s Summary) {
	w.zones[z].Report(NodeID(n), &s)
	if tk.moves != move || tk.Phase != Asking {
		return // the search went on: what was granted lapses
	}
	if !a.Granted {
		w.do(tk, w.search.Refused(w.now, &tk.Ticket, w.zones[z]))
		return
	}
	w.search.Granted(&tk.Ticket, w.zones[z])
	// its first zone is one of the seven
	if most := w.cfg.Bound() + 3*tk.losses; tk.messages+7-1 > most || tk.messages+7-1+2*tk.losses != tk.Messages(tk.losses) {
		w.t.Fatalf("ticket %d landed after %d messages (it says %d), %d losses; the bound is %d", tk.ID, tk.messages+6,
			tk.Messages(tk.losses), tk.losses, most)
	}
	tk.moves++
	move = tk.moves
	w.send(func() { w.redeem(tk, move, z, n, a) })
	w.after(300*time.Millisecond, func() {
		if tk.moves == move && !tk.running && !tk.over {
			tk.losses++
			w.do(tk, w.search.Lost(w.now, &tk.Ticket))
		}
	})
}

// redeem is the home's claim and the node's lease in one: the claim is current, or nothing is leased.
func (w *world) redeem(tk *task, move, z, n int, a Answer) {
	if tk.moves != move || w.down[z][n] {
		return
	}
	g, ok := w.nodes[z][n].Redeem(w.now, a.Token)
	if !ok {
		return
	}
	if key := (redemption{z, n, a.Token}); w.redeemed[key] || g.Ticket != tk.ID || tk.running {
		w.t.Fatalf("token %v of ticket %d is redeemed for %d, again %v, running %v", a.Token, g.Ticket, tk.ID, w.redeemed[key], tk.running)
	}
	w.redeemed[redemption{z, n, a.Token}] = true
	tk.running = true
	epoch := w.nodes[z][n].Epoch
	w.after(tk.length, func() {
		if !w.nodes[z][n].Release(g.Fragment) && w.nodes[z][n].Epoch == epoch {
			w.t.Fatalf("ticket %d gives back what nobody holds", tk.ID)
		}
		tk.over, tk.running = true, false
	})
}

// check holds what is always true.
func (w *world) check() {
	for z := range w.nodes {
		for n := range w.nodes[z] {
			node, total, held := &w.nodes[z][n], w.total[z][n], w.nodes[z][n].Held()
			for c := range total {
				if int(node.Free[c])+int(held[c])+int(node.Leased[c]) != int(total[c]) {
					w.t.Fatalf("node %d of zone %d has %v: free %v, held %v, leased %v", n, z, total, node.Free, held, node.Leased)
				}
			}
		}
		if d := w.zones[z]; d.Tickets() > w.cfg.ZoneTickets {
			w.t.Fatalf("%d tickets search in zone %d", d.Tickets(), z)
		}
	}
	searching := 0
	for _, tk := range w.tickets {
		if tk.Phase == Searching || tk.Phase == Asking {
			searching++
		}
		if int(tk.Hops) > w.cfg.MaxHops || int(tk.Resplits) > w.cfg.Resplits || int(tk.Draws) > 2+w.cfg.Resplits+tk.losses {
			w.t.Fatalf("ticket %d has %d hops, %d resplits, %d draws, %d losses", tk.ID, tk.Hops, tk.Resplits, tk.Draws, tk.losses)
		}
	}
	counted := 0
	for _, d := range w.zones {
		counted += d.Tickets()
	}
	if counted != searching {
		w.t.Fatalf("%d tickets search, zones count %d", searching, counted)
	}
}

// digests is one period: nodes tell their zone, zones tell who draws, and some of the parked are woken.
func (w *world) digests() {
	for z, d := range w.zones {
		for n := range w.nodes[z] {
			if w.down[z][n] {
				d.Silent(NodeID(n))
				continue
			}
			w.nodes[z][n].Lapse(w.now)
			s := w.nodes[z][n].Summary(w.cfg)
			w.send(func() { d.Report(NodeID(n), &s) })
		}
		digest := d.Digest(w.now)
		w.send(func() { w.splitter.Hear(w.now, &digest) })
	}
	w.splitter.Rebuild(w.now)
	budget := w.splitter.Rises(1)
	woken := w.lot.Wake(budget, nil)
	if len(woken) > w.cfg.Wakes*len(w.cfg.Classes) {
		w.t.Fatalf("%d are woken", len(woken))
	}
	for _, id := range woken {
		tk := w.tickets[id]
		tk.losses, tk.messages, tk.draws = 0, 0, 0
		w.do(tk, w.search.Wake(w.now, &tk.Ticket))
	}
}

// TestEveryTicketEnds in random worlds, within all bounds; fleeting work within its patience and one probe, and lasting work lands as soon
// as faults are over and there is room.
func TestEveryTicketEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: start, redeemed: map[redemption]bool{}, lying: map[[2]int][]lying{}, faults: rapid.Bool().Draw(t, "faults")}
		w.cfg = checked(Config{
			Seed: rapid.Uint64().Draw(t, "seed"), Classes: levels[:rapid.IntRange(1, 3).Draw(t, "classes")],
			MaxHops: rapid.IntRange(5, 64).Draw(t, "hops"), Burst: rapid.IntRange(1, 5).Draw(t, "burst"),
			ZoneHops: rapid.IntRange(1, 5).Draw(t, "zone hops"), ZoneTickets: rapid.IntRange(1, 8).Draw(t, "cap"),
			Resplits: rapid.IntRange(1, 3).Draw(t, "resplits"), Wakes: rapid.IntRange(1, 3).Draw(t, "wakes"),
		})
		w.chance = prng.New(w.cfg.Seed, prng.Name("messages"))
		zones := rapid.IntRange(1, 3).Draw(t, "zones")
		w.search, w.splitter, w.arbiter, w.lot = NewSearch(w.cfg), NewSplitter(w.cfg, zones), NewArbiter(w.cfg), NewLot()
		top := Class(len(w.cfg.Classes) - 1)
		for z := range zones {
			n := rapid.IntRange(1, 4).Draw(t, "nodes")
			w.zones = append(w.zones, NewDirectory(w.cfg, ZoneID(z), n, 0))
			w.nodes, w.down, w.total = append(w.nodes, nil), append(w.down, make([]bool, n)), append(w.total, nil)
			for range n {
				var f Fragments
				for c := range w.cfg.Classes {
					f[c] = uint8(rapid.IntRange(0, 1).Draw(t, "fragments"))
				}
				f[top]++ // so that everybody could run somewhere
				w.nodes[z], w.total[z] = append(w.nodes[z], NewNode(1, f, nil)), append(w.total[z], f)
			}
		}
		count := rapid.IntRange(1, 25).Draw(t, "tickets")
		for id := range count {
			tk := &task{length: time.Duration(rapid.IntRange(1, 800).Draw(t, "length")) * time.Millisecond}
			tk.ID, tk.Class, tk.Kind = TicketID(id), Class(rapid.IntRange(0, int(top)).Draw(t, "class")),
				Kind(rapid.IntRange(0, 1).Draw(t, "kind"))
			tk.Demand, tk.Priority = w.cfg.Classes[tk.Class], int16(rapid.IntRange(0, 1).Draw(t, "priority"))
			w.tickets = append(w.tickets, tk)
			arrive := time.Duration(rapid.IntRange(100, 2000).Draw(t, "arrives")) * time.Millisecond
			tk.Born = start.Add(arrive)
			if rapid.IntRange(0, 4).Draw(t, "with deadline") == 0 {
				tk.Deadline = tk.Born.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "deadline")) * time.Millisecond)
			}
			w.after(arrive, func() { w.do(tk, w.search.Begin(w.now, &tk.Ticket)) })
		}
		for range rapid.IntRange(0, 3).Draw(t, "deaths") {
			z := rapid.IntRange(0, zones-1).Draw(t, "zone")
			n := rapid.IntRange(0, len(w.nodes[z])-1).Draw(t, "node")
			at := time.Duration(rapid.IntRange(0, 3000).Draw(t, "dies")) * time.Millisecond
			w.after(at, func() { w.down[z][n] = true })
			w.after(at+time.Duration(rapid.IntRange(1, 1000).Draw(t, "back"))*time.Millisecond, func() { w.down[z][n] = false })
		}
		w.after(4*time.Second, func() { w.faults = false })
		var period func()
		periods := 0
		period = func() {
			w.digests()
			if periods++; periods < 600 && slices.ContainsFunc(w.tickets, func(tk *task) bool { return !tk.over }) {
				w.after(w.cfg.Period, period)
			}
		}
		period()
		for len(w.heap) > 0 {
			e := heap.Pop(&w.heap).(event)
			if e.at > w.now {
				w.now, w.steps = e.at, 0
			}
			w.stepped()
			e.do()
		}
		for _, tk := range w.tickets {
			switch {
			case !tk.over:
				t.Fatalf("ticket %d has not ended after a minute: %+v", tk.ID, tk)
			case tk.Phase == Expired && tk.Kind == Lasting && tk.Why != PastDeadline:
				t.Fatalf("lasting ticket %d expired: %v", tk.ID, tk.Why)
			case tk.Phase == Expired && tk.Why == PastDeadline && tk.Deadline == 0:
				t.Fatalf("ticket %d expired by a deadline that nobody gave", tk.ID)
			case tk.Phase != Expired && tk.Phase != Landed:
				t.Fatalf("ticket %d ends as %v", tk.ID, tk.Phase)
			}
		}
	})
}
