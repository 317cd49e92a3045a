package sim

import (
	"slices"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/sim/resident"
)

// machine plays the executors of all nodes: it runs each Start for its true duration, at most to the lease's end.
type machine struct {
	*ground
	jobs   *arrivals
	teller *teller
	runs   map[job.Token]*run
	on     [][]*run // by party, in no order
	places map[job.SliceID]place
	memory memory
	guests visited
	// programs that stay between subjobs.
	programs resident.Programs
	// berths are the places of pilots, first the number of the first slice in each.
	berths []Node
	first  []int32
}

// memory is what happens to the memory of the hosts.
type memory interface {
	// began and gone are runs that begin and end; still and halt are what a node says to one that stands.
	began(r *run)
	gone(r *run, res *job.Result)
	still(r *run, still bool)
	halt(r *run, why *protocol.Halt)
}

// visited waits for what a run gives back.
type visited interface{ changed(party int) }

// number gives every slice its place.
func (m *machine) number(berths []Node) {
	number := int32(0)
	for i := range m.o.Nodes {
		n := &m.o.Nodes[i]
		for j := range n.Slices {
			m.places[n.Slices[j].ID] = place{slice: &n.Slices[j], class: n.Classes[j], number: number}
			number++
		}
	}
	m.berths = berths
	for i := range berths {
		m.first = append(m.first, number)
		number += int32(len(berths[i].Slices))
	}
	m.teller.unheard = make([]unheard, number)
	m.on = make([][]*run, len(m.parties))
}

// house puts a pilot's node into a berth, and gives its slices their places.
func (m *machine) house(p int, at protocol.Address, a protocol.Actor, list []protocol.Slice) {
	m.index[at] = p
	m.parties[p] = party{Party: actor.Party{Address: at, Actor: a}, key: uint64(at.Role)<<56 ^ prng.Name(at.ID)}
	i := p - m.berth()
	for j := range list {
		m.places[list[j].ID] = place{slice: &list[j], class: m.berths[i].Classes[j], number: m.first[i] + int32(j)}
	}
}

// vacate leaves a berth empty: nothing runs there, and nobody is at its address any more. What homes have not settled is told of when they
// have.
func (m *machine) vacate(p int, list []protocol.Slice) {
	for j := range list {
		delete(m.places, list[j].ID)
	}
	for _, r := range m.of(p) {
		m.teller.abandon(r)
	}
	m.on[p] = nil
	delete(m.index, m.parties[p].Address)
	m.parties[p] = party{trouble: trouble{down: true, up: quantity.Never}}
	m.wakes.Set(p, quantity.Never)
}

// do carries out an effect of a node.
func (m *machine) do(in *protocol.Message) {
	r := m.runs[in.Token]
	if r != nil && r.start.From != in.From {
		invariant.Check(false, "%s and %s both use the token %v; configure nodes with numbers of their own", actor.Name(r.start.From),
			actor.Name(in.From), in.Token)
	}
	standing := r != nil && r.result == nil && r.killed == nil
	switch in.Kind {
	case protocol.Start:
		if r == nil {
			r = m.begin(in, in.Body.(*protocol.Work))
		}
		if r.result != nil {
			m.exited(r)
		} else {
			m.answer(r, protocol.Message{Kind: protocol.Started, Body: r.beginning(r.shown)})
		}
	case protocol.Deadline:
		if standing {
			r.cut = in.Body.(*protocol.Shift).End < r.promised
			r.promised = max(r.promised, in.Body.(*protocol.Shift).End)
			r.end, r.rng.To = in.Body.(*protocol.Shift).End, max(r.rng.To, in.Body.(*protocol.Shift).Range.To)
			m.arm(r)
		}
	case protocol.Stop:
		if standing {
			m.memory.halt(r, in.Body.(*protocol.Halt))
		}
	case protocol.Suspend, protocol.Resume:
		if standing {
			m.memory.still(r, in.Kind == protocol.Suspend)
		}
	case protocol.Dismiss:
		there, first := m.programs.Dismiss(in.Body.(*protocol.Holding).Slice, in.Token)
		if first {
			m.events.Put(m.now.Add(resident.Parting), event{kind: parts, index: m.mail.post(in)})
		} else if !there {
			m.say(in.From, protocol.Message{Kind: protocol.Dismissed, Token: in.Token})
		}
	case protocol.Settle:
		if r != nil {
			m.drop(r)
			m.teller.know(r) // it is already, but for a run that nobody has claimed
		}
		m.say(in.From, protocol.Message{Kind: protocol.Settled, Token: in.Token, Job: in.Job})
	case protocol.Purge: // models leave no files
		m.say(in.From, protocol.Message{Kind: protocol.Purged, Job: in.Job, Generation: in.Generation})
	}
}

// placesOf are the slices of a subjob.
func (m *machine) placesOf(w *protocol.Work) []place {
	list := []place{m.places[w.Slice]}
	for _, id := range w.Also {
		list = append(list, m.places[id])
	}
	return list
}

// begin starts a subjob.
func (m *machine) begin(in *protocol.Message, w *protocol.Work) *run {
	party := m.index[in.From]
	r := &run{
		party: party, places: m.placesOf(w),
		course: course{
			start: *in, clock: &m.parties[party].clock, rng: w.Range, begin: m.now, shown: m.local(party), end: w.End, promised: w.End,
		},
	}
	m.runs[in.Token] = r
	r.at = len(m.on[party])
	m.on[party] = append(m.on[party], r)
	var ok bool
	if r.program, r.stayed, ok = m.programs.Enter(in, r.shown); !ok {
		r.news.slot = none
		r.result = &job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: w.Range.From, End: r.shown, Detail: resident.Gone}
		return r
	}
	m.teller.enrol(r)
	switch {
	case m.o.Model != nil:
		r.does = m.o.Model(in)
	case r.news.slot != none:
		r.does = truth(&m.jobs.list[r.news.slot].job, r.news.attempt, in, r.places)
	default:
		r.does = Planned(in)
	}
	if r.stayed {
		r.does = r.does.warm()
	}
	m.memory.began(r)
	m.arm(r)
	m.guests.changed(party)
	return r
}

// drop forgets a run.
func (m *machine) drop(r *run) {
	delete(m.runs, r.start.Token)
	list := m.on[r.party]
	last := list[len(list)-1]
	list[r.at], last.at = last, r.at
	list[len(list)-1] = nil
	m.on[r.party] = list[:len(list)-1]
}

// arm plans when the run ends if nothing else happens. An earlier plan is void.
func (m *machine) arm(r *run) {
	r.version++
	var at quantity.Instant
	if r.memory.since == 0 {
		at = r.plan(m.now)
	} else { // its lease's time goes on
		at, r.how = max(m.now, r.clock.When(r.end)), job.DeadlineKilled
	}
	m.events.Put(at, event{kind: ends, run: r, version: r.version})
}

// rearm plans the end of all runs of a node again: its clock was set.
func (m *machine) rearm(party int) {
	for _, r := range m.of(party) {
		if r.result == nil && r.killed == nil {
			m.arm(r)
		}
	}
}

// of are a node's runs, by token.
func (m *machine) of(party int) []*run {
	list := slices.Clone(m.on[party])
	slices.SortFunc(list, func(a, b *run) int { return a.start.Token.Compare(b.start.Token) })
	return list
}

// due ends a run whose time has come, unless its course has changed since.
func (m *machine) due(r *run, version int32) {
	switch {
	case r.result != nil || version != r.version:
	case r.killed != nil:
		r.killed.End = m.local(r.party)
		m.gone(r, r.killed)
	default:
		m.over(r, r.how)
	}
}

// stop ends a run on its node's word: a program that can yields within its grace.
func (m *machine) stop(r *run) {
	r.closing = true
	if !r.does.Yields || r.work().Spec == nil || !r.work().Spec.Divisible() {
		m.over(r, job.Stopped)
		return
	}
	if end := m.local(r.party).Add(r.grace()); end < r.end {
		r.cut, r.end = true, end
		m.arm(r)
	}
}

// over ends a run now. One that was killed may linger.
func (m *machine) over(r *run, how job.Outcome) {
	r.thaw(m.now)
	res := r.outcome(how, m.now)
	if r.does.Linger > 0 && (how == job.DeadlineKilled || how == job.Stopped) {
		r.killed = res
		r.version++
		m.events.Put(m.now.Add(r.does.Linger), event{kind: ends, run: r, version: r.version})
		return
	}
	m.gone(r, res)
}

func (m *machine) gone(r *run, res *job.Result) {
	if r.memory.asked && (res.Outcome == job.Yielded || res.Outcome == job.DeadlineKilled) {
		res.Outcome = job.Stopped // that a killer asked it to leave early is no failure of its job, as it is none where its node did
	}
	r.result = res
	m.memory.gone(r, res)
	m.teller.measured(r)
	if r.program != nil && !r.closing && !r.cut && (res.Outcome == job.Done || res.Outcome == job.Yielded) {
		m.programs.Stay(r.program, r.party, r.work().Slice, r.start.Token, res.Peak[trp.Memory])
	}
	m.exited(r)
	m.teller.leave(r)
	m.guests.changed(r.party)
}

// exited tells a run's end, and whether its program stays now.
func (m *machine) exited(r *run) {
	c := r.conclusion(r.result)
	c.Resident = m.programs.After(c.Slice, r.start.Token)
	m.answer(r, protocol.Message{Kind: protocol.Exited, Body: c})
}

// part is that the program which a message has dismissed is gone.
func (m *machine) part(index int32) {
	in := m.mail.messages[index]
	m.mail.drop(index)
	if m.programs.Part(in.Body.(*protocol.Holding).Slice, in.Token) {
		m.say(in.From, protocol.Message{Kind: protocol.Dismissed, Token: in.Token})
	}
}

// intruded is that a node hears what others do on a slice: a program that stays there does not outlive it.
func (m *machine) intruded(party int, in *protocol.Intrusion) {
	if t, gone := m.programs.Evict(m.local(party), in); gone {
		m.say(m.parties[party].Address, protocol.Message{Kind: protocol.Dismissed, Token: t})
	}
}

func (m *machine) answer(r *run, a protocol.Message) {
	a.Token, a.Job = r.start.Token, r.start.Job
	m.say(r.start.From, a)
}

// say sends a node something. One that is down finds it when it comes back.
func (m *machine) say(node protocol.Address, a protocol.Message) {
	if m.parties[m.index[node]].down {
		return
	}
	a.From, a.To = protocol.Address{Role: protocol.Executor, ID: node.ID}, node
	m.enqueue(&a)
}

// shake is a node that crashes: what runs there is lost, unless supervisors keep it. What it wrote down stays.
func (m *machine) shake(party int, keep bool) {
	m.programs.Abandon(party)
	for _, r := range m.on[party] {
		r.closing = true
	}
	if keep {
		return
	}
	m.parties[party].down = true // it hears nothing of this
	for _, r := range m.of(party) {
		switch {
		case r.result != nil:
		case r.killed != nil:
			m.gone(r, r.killed)
		default:
			r.thaw(m.now)
			m.gone(r, r.outcome(job.NodeFailed, m.now))
		}
	}
}

// found are the run directories of a node.
func (m *machine) found(party int) (list []protocol.Found) {
	for _, r := range m.of(party) {
		list = append(list, protocol.Found{
			Token: r.start.Token, Job: r.start.Job, Slice: r.work().Slice, Alive: r.result == nil, Still: r.memory.since != 0,
			Started: r.shown,
			Result:  r.result,
		})
	}
	return list
}
