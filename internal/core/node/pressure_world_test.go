package node

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// pressedWorld is a node whose host runs out of memory in any way: what it sells is held against the host's memory, and storms that nobody
// has foreseen blow. Its executor does what it is told, late or never, and its sensors say anything.
type pressedWorld struct {
	*world
	asks  uint64
	alive []job.Token
	// told to be suspended, to go on or to end, and not answered yet.
	still map[job.Token]bool
	ends  map[job.Token]bool
}

func (p *pressedWorld) step(m protocol.Message) {
	p.world.step(m)
	p.absorb()
}

// absorb takes in the last step, and holds the invariants after it.
func (p *pressedWorld) absorb() {
	p.Helper()
	for _, m := range p.effects {
		switch m.Kind {
		case protocol.Suspend:
			p.still[m.Token] = true
		case protocol.Resume:
			p.still[m.Token] = false
		case protocol.Stop:
			p.ends[m.Token] = true
		default:
		}
	}
	for _, l := range p.n.leases.Ordered() { // I7: every entry ends within its timer
		if stood := p.now.Sub(l.Stand().Since); l.Stand().Since != 0 && stood >= 30*time.Second && !l.Stand().Reclaimed &&
			(l.Runs() || l.Phase() == leases.Stopping) {
			p.Fatalf("I7: lease %v is %v, and has been for %v", l.Token(), l.Phase(), stood)
		}
	}
	if h := joint.NewLimit(p.cfg.Host); h.Counted() && h.Given { // what is sold, and what is held, is within the limit at every moment
		var list []protocol.Reservation
		for _, s := range p.n.inventory.All() {
			list = append(list, s.Sold()...)
		}
		for _, at := range list {
			var sum joint.Load
			for _, x := range list {
				if x.Start <= at.Start && at.Start < x.End {
					peak, sold := p.n.leases.Peak(x.Token)
					if !sold {
						peak, _ = p.n.holds.Peak(x.Token)
					}
					sum.Add(peak)
				}
			}
			if need := h.Need(&sum, h.Correlation); need > h.Memory {
				p.Fatalf("%s is sold", h.Explain(&sum, h.Correlation))
			}
		}
	}
}

// taskOf is a subjob as it lies in a node's table.
func taskOf(o *protocol.Neighbour) airlock.Task {
	return airlock.Task{
		Token: o.Token, Start: o.Start, Planned: o.Planned, Since: o.Stand.Since, Resumed: o.Stand.Resumed, Resident: o.Resident,
		Parked: o.Parked,
		Growth: o.Growth, Priority: o.Rank.Priority, Value: o.Rank.Value, Class: [protocol.Classes]airlock.Class{
			protocol.Fleeting: airlock.Fleeting, protocol.Lasting: airlock.Lasting, protocol.Collective: airlock.Collective,
		}[o.Rank.Class], State: airlock.State(o.State), Entries: o.Stand.Times, Bound: o.Bound, Yields: o.Rank.Yields,
	}
}

// strain has the sensors say something, in another order to the twin: I9, the same victims, is that both then do the same.
func (p *pressedWorld) strain(s *protocol.Strain, seed uint64) {
	p.Helper()
	other := *s
	other.Uses = slices.Clone(s.Uses)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(other.Uses), func(i, j int) { other.Uses[i], other.Uses[j] = other.Uses[j], other.Uses[i] })
	var tasks []airlock.Task
	var list []*leases.Lease
	for _, o := range p.n.Neighbours(s.Uses) { // as they lie in the node's own table
		tasks = append(tasks, taskOf(&o))
		list = append(list, p.n.leases.Of(o.Token))
	}
	p.run(func() { p.n.Step(p.now, protocol.Message{Kind: protocol.Pressure, From: executor, Body: s}, &p.out) })
	var plain protocol.Out
	p.everything()
	p.twin.Step(p.now, protocol.Message{Kind: protocol.Pressure, From: executor, Body: &other}, &plain)
	p.agree(&plain)
	p.absorb()
	p.ranked(s, tasks, list)
}

// ranked is I8: who is ended because memory is short ranks below all that are spared, but for those whose end would free nothing; and who
// has to give way short of that below all that could.
func (p *pressedWorld) ranked(s *protocol.Strain, tasks []airlock.Task, list []*leases.Lease) {
	p.Helper()
	hit := map[int]bool{}
	brink := false
	for i, l := range list {
		for _, m := range p.effects {
			if m.Token == l.Token() && (m.Kind == protocol.Suspend || m.Kind == protocol.Stop) &&
				(l.Stand().Reclaimed || l.Stand().Since != tasks[i].Since) {
				hit[i] = true
				brink = brink || strings.Contains(l.Why(), airlock.Brink.String())
			}
		}
	}
	floor := max(1, s.Capacity/1000)
	order := p.cfg.Airlock.WithDefaults()
	// The room in swap, and how many tasks are suspended, once all that are hit have been suspended.
	room, parked := min(s.Room, s.Capacity*quantity.Amount(order.MostBytes)/1000), 0
	for i := range tasks {
		if t := &tasks[i]; t.State == airlock.Suspending || t.State == airlock.Suspended || hit[i] {
			room, parked = room-t.Parked, parked+1
			if t.State != airlock.Suspended {
				room -= t.Resident
			}
		}
	}
	for v := range hit {
		stands := tasks[v].State == airlock.Running || tasks[v].State == airlock.Resuming
		if brink = strings.Contains(list[v].Why(), airlock.Brink.String()); !stands && !brink {
			continue // its timer is over
		}
		for u := range tasks {
			t := &tasks[u]
			spared := !hit[u] && t.State != airlock.Reclaiming && (brink || t.State == airlock.Running || t.State == airlock.Resuming)
			frees := t.Resident + 2*max(0, t.Growth)
			if brink {
				frees = t.Resident
			}
			stands := !t.Bound && t.Entries < order.Entries && parked < order.MostTasks &&
				min(t.Resident, max(0, room))+2*max(0, t.Growth) >= floor
			able := brink || t.Yields || stands
			if strings.Contains(list[v].Why(), airlock.Foreseen.String()) { // asks who has outgrown its plan, suspends nobody
				able = t.Yields && t.Outgrown()
			}
			if spared && able && frees >= floor && !order.Outranks(p.now, t, &tasks[v]) {
				p.Fatalf("I8: %v survives, and does not outrank %v, which is hit", t.Token, tasks[v].Token)
			}
		}
	}
}

// sell asks for time on a slice, redeems it and starts what was sold.
func (p *pressedWorld) sell(t *rapid.T) {
	p.asks++
	s := job.SliceID(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "slice"))
	from := p.now.Sub(t0) + time.Duration(rapid.SampledFrom([]int{0, 0, 0, 30}).Draw(t, "later"))*time.Second
	to := from + time.Duration(rapid.IntRange(1, 300).Draw(t, "length"))*time.Second
	m := wants(p.asks, s, from, to, float64(rapid.IntRange(0, 30).Draw(t, "mean")), float64(rapid.IntRange(0, 4).Draw(t, "deviation")))
	if rapid.IntRange(0, 3).Draw(t, "of before") == 0 {
		m.Body.(*protocol.Asking).Peak = trp.Peak{}
	}
	p.step(m)
	g := p.sent(protocol.Granted)
	if g == nil {
		return
	}
	r := redeemed(*g, m)
	w := r.Body.(*protocol.Work)
	w.Rank = protocol.Rank{
		Priority: int32(rapid.IntRange(-1, 1).Draw(t, "priority")),
		Class:    protocol.Class(rapid.IntRange(0, protocol.Classes-1).Draw(t, "class")),
		Value:    uint16(rapid.IntRange(0, 2).Draw(t, "value")), Yields: rapid.Bool().Draw(t, "yields"),
	}
	if rapid.IntRange(0, 4).Draw(t, "member") == 0 {
		w.Plan.Members = 2
	}
	p.step(r)
}

// sense is what the sensors say.
func (p *pressedWorld) sense(t *rapid.T) {
	const host = 160 * gib
	s := &protocol.Strain{Capacity: host, Room: quantity.Amount(rapid.IntRange(0, 100).Draw(t, "room")) * gib,
		Stall: int64(rapid.SampledFrom([]int{0, 0, 0, 300}).Draw(t, "stall"))}
	for _, token := range p.alive {
		if rapid.IntRange(0, 9).Draw(t, "named") > 0 {
			u := protocol.Use{Token: token, Resident: quantity.Amount(rapid.IntRange(0, 40).Draw(t, "resident")) * gib,
				Growth: quantity.Amount(rapid.IntRange(-5, 20).Draw(t, "grows")) * gib}
			if p.still[token] {
				u.Parked = quantity.Amount(rapid.IntRange(0, 20).Draw(t, "parked")) * gib
			}
			s.Uses = append(s.Uses, u)
			s.Growth += u.Growth
		}
	}
	s.Used = quantity.Amount(rapid.SampledFrom([]int{40, 100, 130, 140, 148, 150, 154, 157, 160}).Draw(t, "used")) * gib
	p.strain(s, rapid.Uint64().Draw(t, "order"))
}

// obey has the executor answer what it was told: it is suspended, goes on, or is gone.
func (p *pressedWorld) obey(token job.Token) {
	still, told := p.still[token]
	switch {
	case p.ends[token]:
		p.exit(token, job.Yielded)
	case told:
		p.step(protocol.Message{Kind: protocol.Suspended, From: executor, Token: token, Body: &protocol.Stillness{Still: still}})
	}
}

func (p *pressedWorld) exit(token job.Token, o job.Outcome) {
	p.alive = slices.DeleteFunc(p.alive, func(t job.Token) bool { return t == token })
	delete(p.still, token)
	delete(p.ends, token)
	m := exited(token, o, 50)
	m.Body.(*protocol.Conclusion).Result.Peak = trp.Vector{20 * gib}
	p.step(m)
}

// started takes in what began in any step so far.
func (p *pressedWorld) started() {
	for _, l := range p.n.leases.Ordered() {
		if l.Issued() && !l.Seen() && !slices.Contains(p.alive, l.Token()) {
			p.alive = append(p.alive, l.Token())
			p.step(protocol.Message{Kind: protocol.Started, From: executor, Token: l.Token(), Body: &protocol.Beginning{At: p.now}})
		}
	}
}

func (p *pressedWorld) tick(d time.Duration) {
	p.now = p.now.Add(d)
	for _, t := range slices.Clone(p.alive) {
		if l := p.n.leases.Of(t); l != nil && l.Issued() && l.Terms().End <= p.now {
			p.exit(t, job.DeadlineKilled)
		}
	}
	p.step(protocol.Message{Kind: protocol.Tick})
	p.started()
}

func (p *pressedWorld) reboot() {
	p.restart()
	var found []protocol.Found
	for _, t := range p.alive {
		l := p.n.leases.Of(t)
		found = append(found, protocol.Found{Token: t, Job: l.Job(), Slice: l.Terms().Slice, Alive: true, Still: p.still[t],
			Started: p.now})
	}
	clear(p.ends)
	p.boot(found)
}

func (p *pressedWorld) boot(found []protocol.Found) {
	var list []protocol.Slice
	for _, id := range []job.SliceID{"a", "b", "c", "d", "e", "f"} {
		s := device(id)
		s.Capacity = trp.Vector{40 * gib}
		list = append(list, s)
	}
	p.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: list, Found: found}})
	p.started()
}

// TestPressedWorlds: I7 to I10 after every step, and the limit on joint excess, where memory is drawn and storms blow.
func TestPressedWorlds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{ID: "n", Zone: "z", Airlock: airlock.Config{Order: airlock.Order(rapid.IntRange(0, 1).Draw(t, "order"))}}
		cfg.Host.Memory = quantity.Amount(rapid.SampledFrom([]int{0, 50, 100, 160}).Draw(t, "memory")) * gib
		if cfg.Host.Given = rapid.Bool().Draw(t, "given"); cfg.Host.Given {
			cfg.Host.Correlation = rapid.Int64Range(0, joint.Whole).Draw(t, "correlation")
		}
		p := &pressedWorld{
			world: &world{tb: t, cfg: cfg, now: t0, n: New(cfg), shadow: New(cfg), twin: New(cfg)}, still: map[job.Token]bool{},
			ends: map[job.Token]bool{},
		}
		p.recover()
		p.boot(nil)
		some := func(t *rapid.T) job.Token { return anyOf(t, "process", p.alive) }
		t.Repeat(map[string]func(*rapid.T){
			"sell":      func(t *rapid.T) { p.sell(t); p.started() },
			"sell too":  func(t *rapid.T) { p.sell(t); p.started() },
			"sense":     p.sense,
			"sense too": p.sense,
			"obey":      func(t *rapid.T) { p.obey(some(t)) },
			"exit":      func(t *rapid.T) { p.exit(some(t), job.Done) },
			"time":      func(t *rapid.T) { p.tick(time.Duration(rapid.IntRange(0, 12_000).Draw(t, "ms")) * time.Millisecond) },
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
					p.reboot()
				}
			},
		})
		// I10: no zone is heard, and the sensors are silent. What is suspended goes on or ends by the node's own timers.
		for range 40 {
			p.tick(time.Second)
			for _, token := range slices.Clone(p.alive) {
				p.obey(token)
			}
		}
		for _, l := range p.n.leases.Ordered() {
			if l.Stand().Since != 0 && !l.Ended() {
				p.Fatalf("I10: lease %v is %v, and nobody ends that", l.Token(), l.Phase())
			}
		}
	})
}
