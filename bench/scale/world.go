package main

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/node"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// zoneID is the zone of the worlds that run in this process.
const zoneID = "z"

// perNode is how many slices a machine has.
const perNode = 4

// slots are the sizes of a machine's slices, in GiB, with their speeds.
//
//nolint:gochecknoglobals // read-only by use; Go has no constant arrays
var slots = [perNode]struct{ gib, speed int64 }{{5, 150}, {6, 200}, {10, 310},
	{20, 500}}

// world is the gate, the zone and the nodes of a park with jobs that wait, on which everything goes as planned: messages arrive
// at once and in order, subjobs end when they should, now and then before. What jobs there are stays the same: for each that is
// over another one is submitted. It is no simulator: it looks at the time that each step takes.
type world struct {
	now     quantity.Instant
	parties []party
	perNode int
	index   map[protocol.Address]int
	mail    []protocol.Message
	later   events
	numbers uint64
	runs    map[job.Token]*courseOf
	filed   map[part][]protocol.Fact
	out     protocol.Out
	specs   []job.Spec
	draw    prng.Stream
	// waiting are names of jobs to pick from for what people do, as far as they are known.
	waiting []string
	// sold subjobs, submitted jobs, errors that people were told.
	sold, submitted, refused int
	refusal                  error
	// took is the processor time of each step, in microseconds, while watched; cold is read before each of them, and warmth what it adds
	// up to.
	watched bool
	clock   stopwatch
	cold    []byte
	warmth  byte
	took    map[protocol.Role][]float64
}

type party struct {
	address protocol.Address
	actor   protocol.Actor
	wake    quantity.Instant
}

// part is what an actor has left to the archive of a job.
type part struct {
	role protocol.Role
	job  job.ID
}

// courseOf is a subjob under way.
type courseOf struct {
	start protocol.Message
	begin quantity.Instant
	// version grows when its end moves: an older event is void.
	version uint32
	over    bool
}

// event is something that happens later: a tick of a party, or the end of a run.
type event struct {
	at      quantity.Instant
	number  uint64
	party   int
	run     *courseOf
	version uint32
}

type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { x := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return x }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}

func emptyWorld() *world {
	return &world{
		now: quantity.Instant(1_000_000 * time.Second), index: map[protocol.Address]int{}, runs: map[job.Token]*courseOf{},
		filed: map[part][]protocol.Fact{}, draw: prng.New(seed, 4),
		took: map[protocol.Role][]float64{},
	}
}

// newWorld makes a park whose actors hold its jobs and have been recovered; nothing is offered yet.
func newWorld(ctx context.Context, q question) (*world, error) {
	w := emptyWorld()
	var negotiates *auction.Config
	if q.JASDA {
		m := auction.Config{}.Under(policies.Default())
		negotiates = &m
	}
	g, err := gate.New(gate.Config{Zones: gate.Alone(zoneID), MaxJobs: 4 * max(q.Waiting, 1000)})
	if err != nil {
		return nil, err
	}
	rigid, err := backfill.Named(backfill.Default) // what the daemon does unless it is told otherwise, as the policy is
	if err != nil {
		return nil, err
	}
	z, err := zone.New(zone.Config{ID: zoneID, Policy: policies.Default(), Rigid: rigid, Market: negotiates})
	if err != nil {
		return nil, err
	}
	w.add(protocol.Address{Role: protocol.Gate}, g)
	w.add(protocol.Address{Role: protocol.Zone, ID: zoneID}, z)
	w.nodes((q.Slices+perNode-1)/perNode, perNode)
	if w.specs, err = specs(); err != nil {
		return nil, err
	}
	if err := w.fill(ctx, q.Waiting); err != nil {
		return nil, err
	}
	return w, w.recover(ctx)
}

// nodes adds so many machines with so many slices each.
func (w *world) nodes(n, slices int) {
	w.perNode = slices
	for i := range n {
		id := fmt.Sprintf("n%04d", i)
		w.add(protocol.Address{Role: protocol.Node, ID: id}, node.New(node.Config{ID: job.NodeID(id), Zone: zoneID, Number: i + 1}))
	}
}

func (w *world) recover(ctx context.Context) error {
	for i := range w.parties {
		w.parties[i].actor.Recover(w.now, &w.out)
		w.spread(i)
	}
	return w.settle(ctx)
}

// fill gives the gate and the zone their queues and jobs, as a recovery does.
func (w *world) fill(ctx context.Context, waiting int) error {
	for i := range queues {
		q := &protocol.Queue{Name: queueName(i), Weight: int64(1 + i%3)}
		w.parties[0].actor.Apply(protocol.Fact{Kind: protocol.QueueSet, Body: q})
		w.parties[1].actor.Apply(protocol.Fact{Kind: protocol.QueueKnown, Body: q})
	}
	s := seeds{set: "w", waiting: waiting, zone: zoneID, now: w.now}
	return s.each(func(facts []protocol.Fact) error {
		for _, f := range facts {
			w.parties[w.index[f.Actor]].actor.Apply(f)
		}
		if len(w.waiting) < 4096 {
			w.waiting = append(w.waiting, string(facts[0].Job))
		}
		return ctx.Err()
	})
}

func (w *world) add(a protocol.Address, actor protocol.Actor) {
	w.index[a] = len(w.parties)
	w.parties = append(w.parties, party{a, actor, quantity.Never})
}

// open lets every node say what it has: from here on it is sold.
func (w *world) open(ctx context.Context) error {
	for p := range w.parties {
		a := w.parties[p].address
		if a.Role != protocol.Node {
			continue
		}
		var have []protocol.Slice
		for i := range w.perNode {
			s := slots[i%len(slots)]
			have = append(have, protocol.Slice{
				ID: job.SliceID(fmt.Sprintf("%s/s%d", a.ID, i)), Model: "sim", Profile: fmt.Sprintf("%dg", s.gib),
				Capacity: trp.Vector{quantity.Amount(s.gib << 30)},
				Speed:    s.speed, Simulated: true,
			})
		}
		w.send(protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Executor, ID: a.ID}, To: a,
			Body: &protocol.Stock{Slices: have}})
		if err := w.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) send(m protocol.Message) { w.mail = append(w.mail, m) }

// settle steps until nothing is left to be said at this instant.
func (w *world) settle(ctx context.Context) error {
	for i := 0; i < len(w.mail); i++ {
		if i&63 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p, known := w.index[w.mail[i].To]
		if !known {
			continue
		}
		w.step(p, w.mail[i])
	}
	clear(w.mail)
	w.mail = w.mail[:0]
	return nil
}

// step takes one input and notes how long that took.
func (w *world) step(p int, m protocol.Message) {
	actor := w.parties[p].actor
	if a, ok := actor.(protocol.Archivist); ok {
		if name, recalls := a.Recalls(&m); recalls {
			m.Filed = w.filed[part{w.parties[p].address.Role, name}]
		}
	}
	if !w.watched {
		actor.Step(w.now, m, &w.out)
	} else {
		for i := 0; i < len(w.cold); i += 64 { // a cache line
			w.warmth += w.cold[i]
		}
		begin := w.clock.now()
		actor.Step(w.now, m, &w.out)
		role := w.parties[p].address.Role
		w.took[role] = append(w.took[role], float64(w.clock.since(begin))/float64(time.Microsecond))
	}
	w.spread(p)
}

// spread carries out the effects of a step.
func (w *world) spread(p int) {
	for i := range w.out.Facts {
		switch w.out.Facts[i].Kind {
		case protocol.Claimed:
			w.sold++
		case protocol.JobClosed:
			w.submit()
		}
	}
	for i := range w.out.Effects {
		m := &w.out.Effects[i]
		m.From = w.parties[p].address
		switch m.To.Role {
		case protocol.Gate, protocol.Zone, protocol.Node:
			w.send(*m)
		case protocol.Executor:
			w.execute(m)
		case protocol.Archive:
			w.archive(m)
		case protocol.Timer:
			if at := max(m.Body.(*protocol.Moment).At, w.now); at < w.parties[p].wake {
				w.parties[p].wake = at
				w.plan(event{at: at, party: p})
			}
		case protocol.Person:
			if err := m.Body.(*protocol.Receipt).Err; err != nil {
				w.refused, w.refusal = w.refused+1, err
			}
		}
	}
	clear(w.out.Facts)
	clear(w.out.Effects)
	w.out.Reset()
}

func (w *world) plan(e event) {
	w.numbers++
	e.number = w.numbers
	heap.Push(&w.later, e)
}

// execute is the executor of every node.
func (w *world) execute(m *protocol.Message) {
	say := func(a protocol.Message) {
		a.From, a.To, a.Token, a.Job, a.Generation = m.To, m.From, m.Token, m.Job, m.Generation
		w.send(a)
	}
	r := w.runs[m.Token]
	switch m.Kind {
	case protocol.Start:
		if r != nil {
			return
		}
		r = &courseOf{start: *m, begin: w.now}
		w.runs[m.Token] = r
		say(protocol.Message{Kind: protocol.Started, Body: &protocol.Beginning{At: w.now}})
		w.plan(event{at: w.now.Add(max(time.Second, m.Body.(*protocol.Work).Plan.Wall-time.Duration(w.draw.IntN(5000))*time.Millisecond)),
			run: r})
	case protocol.Deadline:
		if r != nil && !r.over {
			r.version++
			moved, work := m.Body.(*protocol.Shift), *r.start.Body.(*protocol.Work)
			work.End, work.Range = moved.End, moved.Range
			r.start.Body = &work
			w.plan(event{at: max(w.now, moved.End.Add(-10*time.Second)), run: r, version: r.version})
		}
	case protocol.Stop:
		if r != nil && !r.over {
			w.finish(r, job.Stopped)
		}
	case protocol.Settle:
		delete(w.runs, m.Token)
		say(protocol.Message{Kind: protocol.Settled})
	case protocol.Purge:
		say(protocol.Message{Kind: protocol.Purged})
	}
}

// archive is where the gate and the zone leave jobs that are over.
func (w *world) archive(m *protocol.Message) {
	at := part{m.From.Role, m.Job}
	answer := protocol.Message{From: m.To, To: m.From, Job: m.Job, Generation: m.Generation}
	switch m.Kind {
	case protocol.File:
		w.filed[at] = m.Filed
		answer.Kind = protocol.Archived
	case protocol.Purge:
		delete(w.filed, at)
		delete(w.filed, part{protocol.Zone, m.Job})
		answer.Kind = protocol.Purged
	}
	w.send(answer)
}

// finish ends a subjob. One in twelve gives the second half of its work back.
func (w *world) finish(r *courseOf, how job.Outcome) {
	r.over = true
	m := &r.start
	res := &job.Result{Outcome: how, Progress: m.Body.(*protocol.Work).Range.To, Start: r.begin, End: w.now,
		Peak: m.Body.(*protocol.Work).Demand, Prepare: time.Duration(w.draw.IntN(40)) * time.Millisecond}
	if how == job.Done && m.Body.(*protocol.Work).Spec.Divisible() && w.draw.IntN(12) == 0 {
		half := m.Body.(*protocol.Work).Range.From + m.Body.(*protocol.Work).Range.Len()/2
		res.Outcome, res.Progress = job.Yielded, max(m.Body.(*protocol.Work).Range.From, half-half%m.Body.(*protocol.Work).Spec.Grid)
	}
	if how == job.Stopped {
		res.Progress = m.Body.(*protocol.Work).Range.From
	}
	res.Checkpoint = m.Body.(*protocol.Work).Spec.Kind == job.Steps && res.Progress > m.Body.(*protocol.Work).Range.From
	w.send(protocol.Message{Kind: protocol.Exited, From: m.To, To: m.From, Token: m.Token, Job: m.Job,
		Body: &protocol.Conclusion{Slice: m.Body.(*protocol.Work).Slice, Range: m.Body.(*protocol.Work).Range, Result: res}})
}

// next goes on to the next instant at which something happens; false if there is none.
func (w *world) next(ctx context.Context) (bool, error) {
	if len(w.later) == 0 {
		return false, nil
	}
	w.now = max(w.now, w.later[0].at)
	for len(w.later) > 0 && w.later[0].at <= w.now {
		e := heap.Pop(&w.later).(event)
		switch {
		case e.run != nil:
			if !e.run.over && e.version == e.run.version {
				w.finish(e.run, job.Done)
			}
		case w.parties[e.party].wake == e.at:
			p := &w.parties[e.party]
			p.wake = quantity.Never
			w.step(e.party, protocol.Message{Kind: protocol.Tick, From: protocol.Address{Role: protocol.Timer}, To: p.address})
		}
		if err := w.settle(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// submit adds a job; people also pause, resume, cancel and requeue now and then.
func (w *world) submit() {
	w.submitted++
	n := w.submitted
	name := jobName("new", n)
	to := protocol.Address{Role: protocol.Gate}
	person := protocol.Address{Role: protocol.Person, ID: name}
	w.send(protocol.Message{
		Kind: protocol.Submit, From: person, To: to,
		Body: &protocol.Submission{Request: name, Spec: specOf(w.specs, w.draw.IntN(shapes), name), Digest: name}, Job: job.ID(name),
	})
	other := job.ID(w.waiting[w.draw.IntN(len(w.waiting))])
	switch n % 24 {
	case 5:
		w.send(protocol.Message{Kind: protocol.PauseJob, From: person, To: to, Body: &protocol.Pause{Request: name, Paused: true},
			Job: other})
	case 11:
		w.send(protocol.Message{Kind: protocol.PauseJob, From: person, To: to, Body: &protocol.Pause{Request: name}, Job: other})
	case 17:
		w.send(protocol.Message{Kind: protocol.Cancel, From: person, To: to, Body: &protocol.Cancellation{Request: name}, Job: other})
	}
}

// sell goes on until so many more subjobs are sold.
func (w *world) sell(ctx context.Context, n int) error {
	until := w.sold + n
	for w.sold < until {
		more, err := w.next(ctx)
		if err != nil {
			return err
		}
		if !more {
			return fmt.Errorf("nothing happens any more after %d of %d subjobs; %d calls were refused, the last: %w", w.sold, until,
				w.refused, w.refusal)
		}
	}
	return nil
}
