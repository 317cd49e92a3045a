package sim

import (
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/lab/workload"
)

// agents plays the agents of external jobs: they attend from the moment in which the home has their job to its end, and
// again after a crash of the zone, as those do whose connection breaks.
type agents struct {
	*ground
	jobs *arrivals
	of   map[job.ID]*attendant
	// said counts the messages from and to all agents.
	said int64
}

// attendant is an agent with its connection.
type attendant struct {
	Agent
	job     job.ID
	key     uint64 // names it in random draws
	session uint64
	home    int       // its job's zone, among the parties
	heard   bool      // of the zone, in this session
	sent    [2]uint64 // messages to it and from it, which numbers them
}

// attendAgain is how long an agent that has heard nothing waits before it attends again, where messages may be lost.
const attendAgain = 5 * time.Second

// learn handles a zone's decision: a job has a home, or is over.
func (a *agents) learn(f *protocol.Fact) {
	switch f.Kind {
	case protocol.HomeTaken:
		its := f.Body.(*protocol.Taking).Spec
		if a.o.Agent == nil || !its.External {
			return
		}
		var j *workload.Job
		if i, ok := a.jobs.slots[f.Job]; ok {
			j = &a.jobs.list[i].job
		}
		spec := *its // an agent knows its own
		spec.Name = f.Job
		if agent := a.o.Agent(j, &spec); agent != nil {
			x := &attendant{Agent: agent, job: f.Job, key: uint64(protocol.Bidder)<<56 ^ prng.Name(string(f.Job)),
				home: a.index[f.Actor]}
			a.of[f.Job] = x
			a.attend(x)
		}
	case protocol.Ended:
		if x := a.of[f.Job]; x != nil {
			a.say(x, 0, &protocol.Message{Kind: protocol.Attend, Body: &protocol.Attendance{}})
			delete(a.of, f.Job)
		}
	}
}

// attend opens a session.
func (a *agents) attend(x *attendant) {
	x.session++
	x.heard = false
	a.present(x)
}

func (a *agents) present(x *attendant) {
	m := protocol.Message{Kind: protocol.Attend, Body: &protocol.Attendance{Present: true}}
	a.say(x, 0, &m)
	if a.network.ZoneBidder.Loss > 0 {
		a.events.Put(a.now.Add(attendAgain), event{kind: attends, index: a.mail.post(&m)})
	}
}

// remind sets the time at which the agent of an Attend that may be lost checks whether it arrived.
func (a *agents) remind(i int32) {
	m := a.mail.messages[i]
	a.mail.drop(i)
	if x := a.of[m.Job]; x != nil && x.session == m.Session && !x.heard {
		a.present(x)
	}
}

// again is a zone that has come back and knows no session.
func (a *agents) again(zone int) {
	for _, id := range slices.Sorted(maps.Keys(a.of)) {
		if a.of[id].home == zone {
			a.attend(a.of[id])
		}
	}
}

// say puts a message of an agent under way.
func (a *agents) say(x *attendant, think time.Duration, m *protocol.Message) {
	zone := &a.parties[x.home]
	m.From, m.To, m.Job = protocol.Address{Role: protocol.Bidder, ID: string(x.job)}, zone.Address, x.job
	if m.Session == 0 {
		m.Session = x.session
	}
	a.told++
	a.said++
	x.sent[outbound]++
	a.carry(&a.network.ZoneBidder, prng.New(a.network.seed, forMessage, x.key, zone.key, x.sent[outbound]), max(0, think), m)
}

// tell puts a message of the zone to an agent under way.
func (a *agents) tell(m *protocol.Message) {
	a.told++
	a.said++
	x := a.of[job.ID(m.To.ID)]
	if x == nil {
		return // it has left
	}
	x.sent[inbound]++
	a.carry(&a.network.ZoneBidder, prng.New(a.network.seed, forMessage, a.parties[x.home].key, x.key, x.sent[inbound]), 0, m)
}

// hear hands a message that has arrived to its agent. If the message is for a connection that is gone, the zone took a late Attend for the
// last one: it is told so, as a live daemon does.
func (a *agents) hear(m *protocol.Message) {
	x := a.of[job.ID(m.To.ID)]
	if x == nil {
		return
	}
	if m.Session != x.session {
		if m.Kind == protocol.Announce {
			a.say(x, 0, &protocol.Message{Kind: protocol.Attend, Session: m.Session, Body: &protocol.Attendance{}})
			a.say(x, 0, &protocol.Message{Kind: protocol.Attend, Body: &protocol.Attendance{Present: true}})
		}
		return
	}
	x.heard = true
	answers, think := x.Hear(a.now, m)
	for i := range answers {
		a.say(x, think, &answers[i])
	}
}
