package placement

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/workload"
)

// Actors are the gate, the zones and the nodes as they run live, with everything of a job from its submission until it is forgotten: facts
// are made and applied, and no journal keeps them. Messages arrive in order and at once; an executor's programs run for as long as they
// are to. Time goes on by a millisecond. It is not safe for concurrent use.
type Actors struct {
	ActorCounts

	now     quantity.Instant
	parties []actor.Party
	// zones and nodes are where those begin among the parties; a name is a letter and a number.
	zones, nodes int

	queue, spare []protocol.Message
	out          protocol.Out
	wakes        alarm.Heap[int32]
	slots        []int
	at           []quantity.Instant
	due          []int32

	work   Work
	source prng.Stream
	specs  []job.Spec // by class
	run    *wheel[program]
	ends   []program
	tick   int
	next   quantity.Instant
	gap    float64
	// stays: programs do not end.
	stays bool
}

// ActorCounts of what has happened so far.
type ActorCounts struct {
	Submitted, Leased, Over, Messages, Facts int
}

// program is a subjob that runs until its tick.
type program struct {
	token job.Token
	job   job.ID
	slice job.SliceID
	rng   job.Range
	start quantity.Instant
	node  int32
}

// NewActors boots so many nodes, a multiple of a zone's 100, under a mechanism (laminar or sja). Nothing has been submitted yet.
func NewActors(work Work, mechanism string, nodes int, load float64) (*Actors, error) {
	c, err := actorsConfig(mechanism, nodes)
	if err != nil {
		return nil, err
	}
	build, err := c.Build()
	if err != nil {
		return nil, err
	}
	a := &Actors{
		now: start, parties: build().Parties(), work: work, source: prng.New(8), run: newWheel[program](), next: start,
		gap: 1e9 / (load * Slices * float64(nodes)),
	}
	a.slots, a.at = make([]int, len(a.parties)), make([]quantity.Instant, len(a.parties))
	if err := a.shapes(mechanism); err != nil {
		return nil, err
	}
	for i := range a.parties {
		a.at[i] = quantity.Never
		switch p := &a.parties[i]; p.Address.ID {
		case "z0":
			a.zones = i
		case "n0":
			a.nodes = i
		}
	}
	for i := range a.parties {
		a.parties[i].Actor.Recover(a.now, &a.out)
		a.dispatch(int32(i))
	}
	a.settle()
	number := 0
	for i := range a.parties {
		if p := &a.parties[i]; p.Address.Role == protocol.Node {
			a.queue = append(a.queue, protocol.Message{
				Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Executor, ID: p.Address.ID}, To: p.Address,
				Body: &protocol.Stock{Slices: a.stock(number, p.Address.ID)},
			})
			number++
		}
	}
	a.settle()
	for range 300 { // until everybody has heard of everybody
		a.pass()
	}
	a.next = a.now
	return a, nil
}

// actorsConfig is what arrangement makes of a choice, which has no room for so many.
func actorsConfig(mechanism string, nodes int) (c arrangement.Config, err error) {
	rigid, err := backfill.Named(backfill.Default)
	if err != nil {
		return c, err
	}
	c.Gate = gate.Config{Horizon: time.Minute, Retain: time.Second, MaxJobs: 1 << 24}
	for z := range nodes / perZone {
		id := job.ZoneID("z" + strconv.Itoa(z))
		at := gate.Zone{ID: id}
		c.Zones = append(c.Zones, zone.Config{ID: id, Policy: fair.Policy{}, Horizon: time.Minute, Rigid: rigid})
		for i := range perZone {
			n := z*perZone + i
			at.Nodes = append(at.Nodes, job.NodeID("n"+strconv.Itoa(n)))
			c.Nodes = append(c.Nodes, node.Config{ID: at.Nodes[i], Number: n, Zone: id, Horizon: time.Minute})
		}
		c.Gate.Zones = append(c.Gate.Zones, at)
	}
	if mechanism != arrangement.Laminar {
		return c, nil
	}
	s := search.Config{Flow: flow.Config{Seed: 9, Classes: Levels()}}
	for i := range c.Gate.Zones {
		s.Zones = append(s.Zones, search.Zone{ID: c.Gate.Zones[i].ID, Nodes: c.Gate.Zones[i].Nodes})
	}
	checked, err := s.Checked()
	if err != nil {
		return c, err
	}
	c.Gate.Search = checked
	for i := range c.Zones {
		c.Zones[i].Search = checked
	}
	for i := range c.Nodes {
		c.Nodes[i].Search, c.Nodes[i].GrantTTL = checked, checked.Flow.GrantTTL
	}
	return c, nil
}

// shapes are a job of each class: one piece on one slice, a second in the mean, that is worth nothing if it finds no place within one.
func (a *Actors) shapes(mechanism string) error {
	patience := time.Second
	if mechanism != arrangement.Laminar {
		patience = 0 // there all wait
	}
	var specs workload.Specs
	for c, level := range Levels() {
		phases := []trp.Phase{{UpTo: 1, Mean: level}}
		j := workload.Job{
			Queue: "q", Kind: job.Rigid, Slices: 1, Units: 1, Grid: 1, Parallelism: 1, Work: time.Second, Declared: longest + time.Second,
			Patience: patience, Theta: 10_000,
			Profile: trp.Profile{Form: trp.Phases, Phases: phases}, Memory: workload.Memory{Phases: phases},
		}
		s, err := specs.Spec(&j, job.ID(fmt.Sprint("class-", c)))
		if err != nil {
			return err
		}
		a.specs = append(a.specs, *s)
	}
	a.queue = append(a.queue, protocol.Message{
		Kind: protocol.SetQueue, From: person(), To: protocol.Address{Role: protocol.Gate},
		Body: &protocol.QueueSetting{Request: "q", Queue: &protocol.Queue{Name: "q", Weight: 1}},
	})
	return nil
}

// person submits.
func person() protocol.Address { return protocol.Address{Role: protocol.Person, ID: "bench"} }

// longest that a program runs: what an exponential length of a second hardly reaches.
const longest = 8 * time.Second

// stock is what a node has.
func (a *Actors) stock(number int, name string) (list []protocol.Slice) {
	layout := a.work.Layout(number)
	for c, n := range layout {
		for range n {
			list = append(list, protocol.Slice{ID: job.SliceID(name + "/" + strconv.Itoa(len(list))), Profile: strconv.Itoa(c) + "g",
				Speed: 1000, Capacity: trp.Vector{Levels()[c]}, Simulated: true})
		}
	}
	return list
}

// Warm lets the nodes fill, and counts from then on.
func (a *Actors) Warm() {
	for range 3000 {
		a.Tick()
	}
	a.ActorCounts = ActorCounts{}
}

// Land submits jobs of a second to nodes that are empty, until all but the last tenth of the slices are taken, and nothing of them but
// that they are leased: programs go on.
func (a *Actors) Land() {
	a.stays, a.ActorCounts = true, ActorCounts{}
	for range 1000 {
		a.Tick()
	}
}

// Tick lets a millisecond pass, with the jobs that come in it.
func (a *Actors) Tick() {
	for ; a.next <= a.now; a.next += quantity.Instant(a.source.Exp() * a.gap) {
		c := a.work.Ask(&a.source)
		a.Submitted++
		name := "j" + strconv.Itoa(a.number())
		spec := a.specs[c]
		spec.Name = job.ID(name)
		a.queue = append(a.queue, protocol.Message{
			Kind: protocol.Submit, From: person(), To: protocol.Address{Role: protocol.Gate}, Job: spec.Name,
			Body: &protocol.Submission{Request: name, Digest: name, Spec: &spec},
		})
	}
	a.settle()
	a.pass()
}

func (a *Actors) number() int {
	n := a.source.Uint64() >> 16 // names in no order
	return int(n)
}

// pass lets a millisecond pass.
func (a *Actors) pass() {
	a.tick++
	a.now = start + quantity.Instant(a.tick)*1e6
	a.ends = a.ends[:0]
	a.run.due(a.tick, func(p program) { a.ends = append(a.ends, p) })
	for i := range a.ends {
		p := &a.ends[i]
		a.Over++
		a.say(p.node, protocol.Message{
			Kind: protocol.Exited, Token: p.token, Job: p.job,
			Body: &protocol.Conclusion{Slice: p.slice, Range: p.rng, Result: &job.Result{Outcome: job.Done, Progress: p.rng.To,
				Start: p.start, End: a.now}},
		})
	}
	a.settle()
}

// say is what an executor tells its node.
func (a *Actors) say(n int32, m protocol.Message) {
	m.To = a.parties[n].Address
	m.From = protocol.Address{Role: protocol.Executor, ID: m.To.ID}
	a.queue = append(a.queue, m)
}

// settle delivers messages and wakes the actors that are due until nothing more happens at this instant.
func (a *Actors) settle() {
	for {
		for len(a.queue) > 0 {
			batch := a.queue
			a.queue = a.spare[:0]
			for i := range batch {
				to, ok := a.party(batch[i].To)
				if !ok {
					continue
				}
				a.Messages++
				a.parties[to].Actor.Step(a.now, batch[i], &a.out)
				a.dispatch(to)
			}
			clear(batch)
			a.spare = batch
		}
		a.due = a.due[:0]
		for p, ok := a.wakes.Due(a.now); ok; p, ok = a.wakes.Due(a.now) {
			a.at[p] = quantity.Never
			a.due = append(a.due, p)
		}
		if len(a.due) == 0 {
			return
		}
		slices.Sort(a.due)
		for _, p := range a.due {
			a.parties[p].Actor.Step(a.now, actor.Tick(a.parties[p].Address), &a.out)
			a.dispatch(p)
		}
	}
}

// party is who has an address.
func (a *Actors) party(at protocol.Address) (i int32, ok bool) {
	switch at.Role {
	case protocol.Gate:
		return 0, true
	case protocol.Zone:
		return a.numbered(at, a.zones)
	case protocol.Node:
		return a.numbered(at, a.nodes)
	}
	return 0, false
}

// numbered is the party of an address, among those that begin there.
func (a *Actors) numbered(at protocol.Address, first int) (int32, bool) {
	number := 0
	for _, digit := range []byte(at.ID[1:]) {
		number = 10*number + int(digit-'0')
	}
	i := first + number
	return int32(i), i < len(a.parties) && a.parties[i].Address == at
}

// dispatch sends what a party has to say, and is the executor and the timer.
func (a *Actors) dispatch(from int32) {
	a.Facts += len(a.out.Facts)
	for i := range a.out.Effects {
		m := &a.out.Effects[i]
		switch m.To.Role {
		case protocol.Gate, protocol.Zone, protocol.Node:
			if m.Kind == protocol.Leased {
				a.Leased++
			}
			m.From = a.parties[from].Address
			a.queue = append(a.queue, *m)
		case protocol.Timer:
			if at := m.Body.(*protocol.Moment).At; at < a.at[from] {
				a.at[from] = at
				a.wakes.Set(&a.slots[from], from, at)
			}
		case protocol.Executor:
			a.execute(from, m)
		}
	}
	clear(a.out.Effects)
	clear(a.out.Facts)
	a.out.Reset()
}

// execute does what a node, or the gate, has its executor do.
func (a *Actors) execute(from int32, m *protocol.Message) {
	switch m.Kind {
	case protocol.Start:
		w := m.Body.(*protocol.Work)
		a.say(from, protocol.Message{Kind: protocol.Started, Token: m.Token, Job: m.Job,
			Body: &protocol.Beginning{Slice: w.Slice, Range: w.Range, At: a.now}})
		if a.stays {
			return
		}
		length := min(time.Duration(a.source.Exp()*1e9), longest)
		a.run.put(a.tick, a.tick+int(length/time.Millisecond), program{m.Token, m.Job, w.Slice, w.Range, a.now, from})
	case protocol.Settle:
		a.say(from, protocol.Message{Kind: protocol.Settled, Token: m.Token, Job: m.Job})
	case protocol.Purge:
		a.say(from, protocol.Message{Kind: protocol.Purged, Job: m.Job, Generation: m.Generation})
	}
}
