package node

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// touches says whether a lease or grant on these slices is on s.
func touches(s job.SliceID, first job.SliceID, also []job.SliceID) bool {
	return s == first || slices.Contains(also, s)
}

// process is what the storm's executor knows of one subjob.
type process struct {
	start   protocol.Message
	state   int // runs, stuck, dead
	at, end quantity.Instant
	result  *job.Result
	settled bool
	still   bool
	// waits: its program has stayed, and waits for the next subjob.
	waits bool
}

// number is that of the program that a process can go on in.
func (p *process) number() uint64 { return p.start.Body.(*protocol.Work).Plan.Residence }

const (
	runs = iota
	stuck
	dead
)

// storm is a world in which anything may come, again, late and in any order. Its executor is the ground truth of what
// runs on which slice.
type storm struct {
	*world
	processes map[job.Token]*process
	order     []job.Token // of processes
	granted   []protocol.Message
	results   []protocol.Message
	past      []protocol.Message // of this boot: to be sent again
	held      []protocol.Message // from the executor, not yet delivered
	asks      uint64
	plans     map[uint64]protocol.Plan // by ask
	made      map[job.Token]int
	ended     map[job.Token]int
	until     quantity.Instant // its machine is gone for good; 0: nobody has said so
	told      quantity.Instant // when that was said
	leaves    bool             // and that it is about to be
}

// closes is when everything ends that its machine was sold; Never: nothing has to.
func (s *storm) closes() quantity.Instant {
	if s.until == 0 {
		return quantity.Never
	}
	if s.leaves {
		return s.told
	}
	return s.until.Add(-10 * time.Second)
}

// request is an id for a person's call: one that comes twice is known by it.
func (s *storm) request() string {
	s.asks++
	return strconv.FormatUint(s.asks, 10)
}

func (s *storm) deliver(m protocol.Message) {
	s.past = append(s.past, m)
	if stock, ok := m.Body.(*protocol.Stock); ok {
		s.until, s.leaves, s.told = stock.Until, stock.Leaves, s.now
	}
	s.step(m)
	s.absorb()
}

// absorb lets the storm's executor and zone take in the last step, and checks what has left the node.
func (s *storm) absorb() {
	for _, f := range s.last {
		switch f.Kind {
		case protocol.LeaseMade:
			s.made[f.Token]++
			if s.made[f.Token] > 1 {
				s.Fatalf("token %v is redeemed twice", f.Token)
			}
		case protocol.SubjobEnded:
			s.ended[f.Token]++
			if s.ended[f.Token] > 1 || s.made[f.Token] != 1 {
				s.Fatalf("subjob %v ends %d times after %d leases", f.Token, s.ended[f.Token], s.made[f.Token])
			}
			if p := s.processes[f.Token]; p != nil && p.state == runs {
				s.Fatalf("subjob %v is said to have ended and still runs", f.Token)
			}
		default:
		}
	}
	for _, m := range s.effects {
		switch m.Kind {
		case protocol.Granted:
			if g := m.Body.(*protocol.Grant); g.End > s.closes() {
				s.Fatalf("%v is granted until %d, and the machine closes at %d", m.Token, g.End, s.closes())
			}
			s.granted = append(s.granted, m)
		case protocol.Result:
			s.results = append(s.results, m)
		case protocol.Start:
			s.start(m)
		case protocol.Stop, protocol.Deadline:
			if p := s.processes[m.Token]; p != nil && p.state == runs {
				p.end = min(p.end, s.now.Add(2*time.Second))
				if m.Kind == protocol.Deadline {
					p.end = m.Body.(*protocol.Shift).End
				}
			}
		case protocol.Suspend, protocol.Resume:
			if p := s.processes[m.Token]; p != nil && p.state == runs {
				p.still = m.Kind == protocol.Suspend
				s.held = append(s.held, protocol.Message{Kind: protocol.Suspended, From: executor, Token: m.Token,
					Body: &protocol.Stillness{Still: p.still}})
			}
		case protocol.Settle:
			if p := s.processes[m.Token]; p != nil {
				if p.state == runs {
					s.Fatalf("directories of %v are settled while it runs", m.Token)
				}
				p.settled = true
			}
			s.held = append(s.held, protocol.Message{Kind: protocol.Settled, From: executor, Token: m.Token})
		case protocol.Dismiss:
			if p := s.processes[m.Token]; p != nil {
				p.waits = false
			}
			s.held = append(s.held, protocol.Message{Kind: protocol.Dismissed, From: executor, Token: m.Token})
		case protocol.Offer:
			s.checkOffer(m)
		default:
		}
	}
}

// start is the executor's part, and the proof that a slice is never given on before it is free.
func (s *storm) start(m protocol.Message) {
	if s.processes[m.Token] != nil {
		return
	}
	if s.made[m.Token] != 1 || s.ended[m.Token] != 0 || m.Body.(*protocol.Work).Start > s.now || m.Body.(*protocol.Work).Spec == nil {
		s.Fatalf("start of %v, which has %d leases and %d ends, at %d for %d", m.Token, s.made[m.Token], s.ended[m.Token], s.now,
			m.Body.(*protocol.Work).Start)
	}
	resident := m.Body.(*protocol.Work).Plan.Resident
	for _, t := range s.order {
		p := s.processes[t]
		if number := m.Body.(*protocol.Work).Plan.Residence; p.waits && number != 0 && number == p.number() &&
			m.Body.(*protocol.Work).Slice == p.start.Body.(*protocol.Work).Slice {
			p.waits, resident = false, false // it goes on in it
		}
		if p.state == dead && !p.waits {
			continue
		}
		for _, id := range append([]job.SliceID{m.Body.(*protocol.Work).Slice}, m.Body.(*protocol.Work).Also...) {
			if touches(id, p.start.Body.(*protocol.Work).Slice, p.start.Body.(*protocol.Work).Also) {
				s.Fatalf("%v starts on %s while %v is there", m.Token, id, t)
			}
		}
	}
	s.processes[m.Token] = &process{start: m, at: s.now, end: m.Body.(*protocol.Work).End}
	s.order = append(s.order, m.Token)
	if resident { // the program has ended meanwhile
		s.finish(m.Token, job.NodeFailed)
		return
	}
	s.held = append(s.held, protocol.Message{Kind: protocol.Started, From: executor, Token: m.Token, Body: &protocol.Beginning{At: s.now}})
}

// checkOffer compares the gaps with what stands, second by second and by brute force.
func (s *storm) checkOffer(m protocol.Message) {
	for _, g := range m.Body.(*protocol.SliceView).Gaps {
		if g.End > s.closes() {
			s.Fatalf("gap [%d,%d) is offered, and the machine closes at %d", g.Start, g.End, s.closes())
		}
		for _, l := range s.n.Leases() {
			if !l.Ended && touches(m.Body.(*protocol.SliceView).Slice.ID, l.Slice, l.Also) && g.Start < l.End && l.Start < g.End {
				s.Fatalf("gap [%d,%d) on %s lies on lease %v", g.Start, g.End, m.Body.(*protocol.SliceView).Slice.ID, l.Token)
			}
		}
		for _, t := range s.order {
			if p := s.processes[t]; p.state != dead && touches(m.Body.(*protocol.SliceView).Slice.ID, p.start.Body.(*protocol.Work).Slice,
				p.start.Body.(*protocol.Work).Also) && g.Start <= s.now {
				s.Fatalf("%s is offered now while %v is there", m.Body.(*protocol.SliceView).Slice.ID, t)
			}
		}
		for _, r := range m.Body.(*protocol.SliceView).Reserved {
			for t := g.Start; t < min(g.End, s.now.Add(time.Hour)); t = t.Add(time.Second) {
				d := t - r.Start
				if d >= 0 && r.Every > 0 {
					d %= quantity.Instant(r.Every)
				}
				if d >= 0 && d < r.End-r.Start {
					s.Fatalf("second %d of gap [%d,%d) on %s lies in %v %d", t, g.Start, g.End, m.Body.(*protocol.SliceView).Slice.ID,
						r.Kind, r.ID)
				}
			}
		}
	}
}

// check looks at the whole state: no two leases overlap on a slice, and none is longer than the machine is there, but for the moment that a
// subjob gets whose time is taken at once.
func (s *storm) check() {
	ls := s.n.Leases()
	for _, l := range ls {
		if !l.Ended && l.End > max(s.closes(), s.told.Add(2*time.Second)) {
			s.Fatalf("lease %v ends at %d, and the machine closes at %d", l.Token, l.End, s.closes())
		}
	}
	for i, a := range ls {
		for _, b := range ls[:i] {
			for _, id := range []job.SliceID{"a", "b", "c"} {
				if !a.Ended && !b.Ended && touches(id, a.Slice, a.Also) && touches(id, b.Slice, b.Also) && a.Start < b.End &&
					b.Start < a.End {
					s.Fatalf("leases %v and %v overlap on %s", a.Token, b.Token, id)
				}
			}
		}
	}
	for _, l := range s.n.leases.Ordered() {
		if stood := s.now.Sub(l.Stand().Since); l.Stand().Since != 0 && stood >= 30*time.Second && !l.Stand().Reclaimed &&
			(l.Runs() || l.Phase() == leases.Stopping) {
			s.Fatalf("lease %v is %v, and has been for %v", l.Token(), l.Phase(), stood)
		}
	}
	still := 0
	for _, l := range s.n.leases.Ordered() {
		if l.Phase().Still() {
			still++
		}
	}
	if a := s.n.Airlock(s.now); a.Strain.Standing != still || a.Strain.Suspended < a.Strain.Recovered || len(a.Steps) > 256 {
		s.Fatalf("%d are suspended, %d were and %d went on, in %d steps; and %d are", a.Strain.Standing, a.Strain.Suspended,
			a.Strain.Recovered, len(a.Steps), still)
	}
}

// reap ends processes at their deadline, as their supervisors do.
func (s *storm) reap() {
	for _, t := range s.order {
		if p := s.processes[t]; p.state == runs && p.end <= s.now {
			s.finish(t, job.DeadlineKilled)
		}
	}
}

func (s *storm) finish(t job.Token, o job.Outcome) {
	p := s.processes[t]
	r := p.start.Body.(*protocol.Work).Range
	p.state, p.result = dead, &job.Result{Outcome: o, Progress: (r.From + r.To) / 2, Start: p.at, End: s.now}
	c := &protocol.Conclusion{Result: p.result}
	if p.number() != 0 && o == job.Done {
		p.waits, c.Resident = true, &protocol.Resident{Number: p.number(), Memory: 5, Since: p.at}
	}
	s.held = append(s.held, protocol.Message{Kind: protocol.Exited, From: executor, Token: t, Body: c})
}

// redeem turns a grant into what is to be redeemed, by the plan that was asked with.
func (s *storm) redeem(m protocol.Message) protocol.Message {
	r := redeem(m)
	r.Body.(*protocol.Work).Plan = s.plans[m.Body.(*protocol.Grant).Ask]
	return r
}

// reboot restarts the node; what the executor finds is what is really there.
func (s *storm) reboot() {
	s.restart()
	s.absorb()
	s.past, s.granted, s.held = nil, nil, nil
	for _, p := range s.processes { // no program survives that waits
		p.waits = false
	}
	var found []protocol.Found
	for _, t := range s.order {
		if p := s.processes[t]; !p.settled {
			found = append(found, protocol.Found{
				Token: t, Job: p.start.Job, Slice: p.start.Body.(*protocol.Work).Slice, Alive: p.state == runs, Stuck: p.state == stuck,
				Still: p.still, Started: p.at, Result: p.result,
			})
		}
	}
	m := protocol.Message{Kind: protocol.Inventory, From: executor,
		Body: &protocol.Stock{Found: found, Slices: []protocol.Slice{device("a"), device("b"), device("c")}, Until: s.until,
			Leaves: s.leaves}}
	s.step(m)
	s.absorb()
}

func anyOf[T any](t *rapid.T, what string, from []T) T {
	if len(from) == 0 {
		t.Skip("no " + what)
	}
	return from[rapid.IntRange(0, len(from)-1).Draw(t, what)]
}

func TestStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{ID: "n", Zone: "z", Overdue: time.Second}
		cfg.Host.Memory = quantity.Amount(rapid.SampledFrom([]int{0, 0, 15, 25, 300}).Draw(t, "host memory"))
		s := &storm{
			world:     &world{tb: t, cfg: cfg, now: t0, n: New(cfg), shadow: New(cfg)},
			processes: map[job.Token]*process{}, plans: map[uint64]protocol.Plan{}, made: map[job.Token]int{}, ended: map[job.Token]int{},
		}
		s.reboot()
		slice := func(t *rapid.T) job.SliceID {
			return job.SliceID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "slice"))
		}
		span := func(t *rapid.T) (from, to quantity.Instant) {
			from = s.now.Add(time.Duration(rapid.IntRange(-1, 20).Draw(t, "start")) * time.Second)
			return from, from.Add(time.Duration(rapid.IntRange(1, 15).Draw(t, "length")) * time.Second)
		}
		actions := map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
				s.reap()
				s.deliver(protocol.Message{Kind: protocol.Tick})
			},
			"ask": func(t *rapid.T) {
				s.asks++
				m := protocol.Message{Kind: protocol.Ask, From: zone,
					Body: &protocol.Asking{Ask: s.asks, Placement: protocol.Placement{Slice: slice(t), Demand: trp.Vector{10}}}, Job: "j",
					Epoch: 1}
				m.Body.(*protocol.Asking).Start, m.Body.(*protocol.Asking).End = span(t)
				if rapid.Bool().Draw(t, "with its peak") {
					m.Body.(*protocol.Asking).Peak = trp.Peak{Mean: 7, Deviation: 1}
				}
				if rapid.IntRange(0, 4).Draw(t, "gang") == 0 {
					m.Body.(*protocol.Asking).Also = []job.SliceID{slice(t)}
				} else {
					p := &m.Body.(*protocol.Asking).Plan
					p.Residence = uint64(rapid.IntRange(0, 2).Draw(t, "residence"))
					p.Resident = p.Residence > 0 && rapid.Bool().Draw(t, "resident")
					s.plans[s.asks] = *p
				}
				if rapid.Bool().Draw(t, "own") {
					m.Body.(*protocol.Asking).Reservation = &protocol.Reservation{ID: uint64(rapid.IntRange(1, 20).Draw(t, "id"))}
				}
				s.deliver(m)
			},
			"redeem": func(t *rapid.T) { s.deliver(s.redeem(anyOf(t, "grant", s.granted))) },
			"redeem at once": func(t *rapid.T) {
				s.asks++
				m := ask(s.asks, slice(t), 0, 0)
				m.Body.(*protocol.Asking).Start = s.now
				m.Body.(*protocol.Asking).End = s.now.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "length")) * time.Second)
				m.Body.(*protocol.Asking).Plan.Residence = uint64(rapid.IntRange(0, 2).Draw(t, "residence"))
				s.plans[s.asks] = m.Body.(*protocol.Asking).Plan
				s.deliver(m)
				if g := s.sent(protocol.Granted); g != nil {
					s.deliver(s.redeem(*g))
				}
			},
			"executor": func(t *rapid.T) {
				if len(s.held) == 0 {
					t.Skip("nothing")
				}
				i := rapid.IntRange(0, len(s.held)-1).Draw(t, "message")
				m := s.held[i]
				s.held = slices.Delete(s.held, i, i+1)
				s.deliver(m)
			},
			"a whole subjob": func(t *rapid.T) { // by the last view, as a home would sell it
				s.asks++
				m := ask(s.asks, slice(t), 0, 0)
				a := m.Body.(*protocol.Asking)
				a.Start, a.End = s.now, s.now.Add(10*time.Second)
				a.Plan.Residence = rapid.SampledFrom([]uint64{0, 1, 1, 1, 2}).Draw(t, "residence")
				if v := s.views[a.Slice]; v != nil && v.Resident != nil {
					a.Plan.Resident = v.Resident.Number == a.Plan.Residence
				}
				s.plans[s.asks] = a.Plan
				s.deliver(m)
				g := s.sent(protocol.Granted)
				if g == nil {
					return
				}
				s.deliver(s.redeem(*g))
				if p := s.processes[g.Token]; p != nil && p.state == runs {
					s.finish(g.Token, rapid.SampledFrom([]job.Outcome{job.Done, job.Done, job.ExitFailed}).Draw(t, "outcome"))
				}
				held := s.held
				s.held = nil
				for _, m := range held {
					s.deliver(m)
				}
			},
			"a program ends that waits": func(t *rapid.T) {
				if token := anyOf(t, "process", s.order); s.processes[token].waits {
					s.processes[token].waits = false
					s.held = append(s.held, protocol.Message{Kind: protocol.Dismissed, From: executor, Token: token})
				}
			},
			"exit": func(t *rapid.T) {
				if token := anyOf(t, "process", s.order); s.processes[token].state == runs {
					s.finish(token, rapid.SampledFrom([]job.Outcome{job.Done, job.Yielded, job.ExitFailed}).Draw(t, "outcome"))
				}
			},
			"pressure": func(t *rapid.T) {
				p := &protocol.Strain{Capacity: 1000, Room: quantity.Amount(rapid.IntRange(0, 500).Draw(t, "room"))}
				for _, token := range s.order {
					if s.processes[token].state == runs && rapid.IntRange(0, 3).Draw(t, "named") > 0 {
						p.Uses = append(p.Uses, protocol.Use{Token: token,
							Resident: quantity.Amount(rapid.IntRange(0, 300).Draw(t, "resident"))})
					}
				}
				p.Used = quantity.Amount(rapid.IntRange(0, 1000).Draw(t, "used"))
				s.deliver(protocol.Message{Kind: protocol.Pressure, From: executor, Body: p})
			},
			"long time": func(t *rapid.T) {
				s.now = s.now.Add(time.Duration(rapid.IntRange(9, 31).Draw(t, "s")) * time.Second)
				s.reap()
				s.deliver(protocol.Message{Kind: protocol.Tick})
			},
			"stuck": func(t *rapid.T) {
				token := anyOf(t, "process", s.order)
				if p := s.processes[token]; p.state == runs && rapid.IntRange(0, 2).Draw(t, "rarely") == 0 {
					p.state = stuck
					s.deliver(protocol.Message{Kind: protocol.Stuck, From: executor, Token: token, Body: &protocol.Reason{Text: "state D"}})
				}
			},
			"release": func(t *rapid.T) { // a person has looked, and ended what was there
				id := slice(t)
				for _, token := range s.order {
					if p := s.processes[token]; p.state == stuck &&
						touches(id, p.start.Body.(*protocol.Work).Slice, p.start.Body.(*protocol.Work).Also) {
						p.state, p.result = dead, &job.Result{Outcome: job.Lost}
					}
				}
				s.deliver(protocol.Message{Kind: protocol.Unquarantine, From: person, Body: &protocol.Clearance{Request: s.request(),
					Slice: id}})
			},
			"ack": func(t *rapid.T) {
				r := anyOf(t, "result", s.results)
				s.deliver(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: r.Token, Job: r.Job,
					Body: &protocol.Acknowledgement{Range: job.Range{From: 0, To: r.Body.(*protocol.Conclusion).Result.Progress}}})
			},
			"stop": func(t *rapid.T) {
				s.deliver(protocol.Message{Kind: protocol.Stop, From: zone, Token: anyOf(t, "grant", s.granted).Token,
					Body: &protocol.Halt{}})
			},
			"extend": func(t *rapid.T) {
				l := anyOf(t, "lease", s.n.Leases())
				s.asks++
				s.deliver(protocol.Message{
					Kind: protocol.Extend, From: zone, Body: &protocol.Extension{Ask: s.asks, Slice: l.Slice,
						Range: job.Range{From: l.Range.From, To: l.Range.To + 10},
						End:   l.End.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "longer")) * time.Second)}, Token: l.Token, Job: l.Job,
				})
			},
			"reserve": func(t *rapid.T) {
				r := protocol.Reservation{Kind: protocol.ForOwner, Slice: slice(t), Truncate: rapid.Bool().Draw(t, "truncate")}
				r.Start, r.End = span(t)
				if rapid.IntRange(0, 3).Draw(t, "repeats") == 0 {
					r.Every = 40 * time.Second
				}
				s.deliver(protocol.Message{Kind: protocol.Reserve, From: person, Body: &protocol.Booking{Request: s.request(),
					Reservation: &r}})
			},
			"place": func(t *rapid.T) {
				s.asks++
				r := protocol.Reservation{Kind: protocol.ForRigid, Slice: slice(t), Job: "j"}
				r.Start, r.End = span(t)
				s.deliver(protocol.Message{Kind: protocol.Reserve, From: zone, Body: &protocol.Booking{Ask: s.asks, Reservation: &r},
					Job: "j"})
			},
			"unreserve": func(t *rapid.T) {
				s.deliver(protocol.Message{Kind: protocol.Unreserve, From: person, Body: &protocol.Booking{Request: s.request(),
					Reservation: &protocol.Reservation{ID: uint64(rapid.IntRange(1, 20).Draw(t, "id"))}}})
			},
			"foreign": func(t *rapid.T) {
				s.deliver(protocol.Message{Kind: protocol.Foreign, From: executor,
					Body: &protocol.Intrusion{Slice: slice(t), Present: rapid.IntRange(0, 2).Draw(t, "there") == 0}})
			},
			"holds": func(t *rapid.T) {
				i := &protocol.Intrusion{Slice: slice(t), Present: rapid.IntRange(0, 5).Draw(t, "there") == 0}
				for range rapid.IntRange(0, 2).Draw(t, "holds") {
					r := protocol.Reservation{
						Kind: rapid.SampledFrom([]protocol.ReservationKind{protocol.ForForeign, protocol.ForMaintenance}).Draw(t,
							"kind"),
						Truncate: rapid.Bool().Draw(t, "truncate"),
					}
					r.Start, r.End = span(t)
					i.Closures = append(i.Closures, r)
				}
				s.deliver(protocol.Message{Kind: protocol.Foreign, From: executor, Body: i})
			},
			"stock": func(t *rapid.T) {
				list := &protocol.Stock{}
				if rapid.Bool().Draw(t, "leaves") {
					list.Until = s.now.Add(time.Duration(rapid.IntRange(-5, 60).Draw(t, "until")) * time.Second)
					list.Leaves = rapid.Bool().Draw(t, "is about to")
				}
				for _, id := range []job.SliceID{"a", "b", "c"} {
					if rapid.IntRange(0, 4).Draw(t, "there") > 0 {
						list.Slices = append(list.Slices, device(id))
					}
				}
				s.deliver(protocol.Message{Kind: protocol.Inventory, From: executor, Body: list})
			},
			"again":   func(t *rapid.T) { s.deliver(anyOf(t, "past", s.past)) },
			"restart": func(*rapid.T) { s.reap(); s.reboot() },
			"":        func(*rapid.T) { s.check() },
		}
		t.Repeat(actions)
		s.drain()
	})
}

// drain lets everything end: what runs exits, the home acknowledges, directories settle, a person releases every slice.
func (s *storm) drain() {
	for range 60 {
		s.now = s.now.Add(time.Second)
		s.reap()
		for _, t := range s.order {
			if p := s.processes[t]; p.state == stuck {
				p.state, p.result = dead, &job.Result{Outcome: job.Lost}
			}
		}
		for _, id := range []job.SliceID{"a", "b", "c"} {
			s.deliver(protocol.Message{Kind: protocol.Unquarantine, From: person, Body: &protocol.Clearance{Request: s.request(),
				Slice: id}})
			s.deliver(protocol.Message{Kind: protocol.Foreign, From: executor, Body: &protocol.Intrusion{Slice: id}})
		}
		for _, m := range slices.Clone(s.held) {
			s.deliver(m)
		}
		s.held = nil
		s.deliver(protocol.Message{Kind: protocol.Tick})
		for _, r := range slices.Clone(s.results) {
			s.deliver(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: r.Token, Job: r.Job, Body: &protocol.Acknowledgement{}})
		}
		s.results = nil
		s.check()
	}
	for token := range s.made {
		if s.ended[token] != 1 {
			s.Fatalf("lease %v has ended %d times", token, s.ended[token])
		}
	}
	known := map[job.Token]bool{}
	for _, x := range s.n.inventory.Staying() {
		known[x.Stay().Token] = true
		if x.Stay().Leaving != "" {
			s.Fatalf("the program after %v never leaves", x.Stay().Token)
		}
	}
	for token, p := range s.processes {
		if p.waits && !known[token] {
			s.Fatalf("a program waits after %v, and its node does not know", token)
		}
	}
	if left := s.n.Leases(); len(left) != 0 {
		s.Fatalf("leases are left: %+v", left)
	}
}
