// Package agents connects the agents of external jobs, which call the API, with the zone: sessions, undelivered events, keys.
package agents

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

const (
	// How often an agent may open a session, per second and at once.
	openRate, openBurst = 1, 10
	// sayAgain is how often the zone is sent an agent's presence: a message may be lost, and a job may be moving.
	sayAgain = 2 * time.Second
	// keptSuperseded is how many ended sessions of a job are remembered, so that their agents learn why they ended.
	keptSuperseded = 8
)

// Agents holds the sessions of external jobs' agents. Their answers become messages to the zone like any other; the zone's messages to
// them are queued here until they call. Memory is bounded by the number of jobs, and no agent can block the loop. All of it is soft state:
// a restarted daemon knows no session.
type Agents struct {
	keys   keyring
	send   func(protocol.Message)
	try    func(protocol.Message) error
	recall func(job.ID) *protocol.Acceptance

	mu   sync.Mutex
	jobs map[job.ID]*agent
	// ended jobs whose last messages have not left yet. It belongs to the goroutine of the loop.
	ended []job.ID
}

// agent is the state of one external job's agent.
type agent struct {
	identity   string // what its key is made of (identityOf)
	open       quota
	over       bool
	archived   bool     // kept only while it has a session
	session    *session // nil: no agent is connected
	superseded []uint64
}

// New returns the agents of a data directory, which holds the secret that their keys are derived from. send delivers a message to an actor
// and never refuses, try refuses when the inbox is full; recall returns the acceptance of an archived external job, nil for none.
func New(dataDir string, send func(protocol.Message), try func(protocol.Message) error, recall func(job.ID) *protocol.Acceptance) *Agents {
	return &Agents{keys: keyring{dir: dataDir}, send: send, try: try, recall: recall, jobs: map[job.ID]*agent{}}
}

// Fact notes which external jobs there are and which have ended.
func (a *Agents) Fact(f *protocol.Fact) {
	accepted, _ := f.Body.(*protocol.Acceptance)
	switch {
	case accepted != nil && accepted.Spec != nil && accepted.Spec.External:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.jobs[f.Job] = &agent{identity: identityOf(accepted), open: quota{rate: openRate, burst: openBurst}}
	case f.Kind == protocol.Ended, f.Kind == protocol.JobClosed:
		a.ended = append(a.ended, f.Job)
	case f.Kind == protocol.JobRequeued:
		a.ended = slices.DeleteFunc(a.ended, func(name job.ID) bool { return name == f.Job })
		a.mu.Lock()
		defer a.mu.Unlock()
		if at := a.jobs[f.Job]; at != nil && at.over {
			at.over, at.session = false, nil // its agent knows that it was over
		}
	case f.Kind == protocol.JobForgotten, f.Kind == protocol.JobArchived:
		a.ended = slices.DeleteFunc(a.ended, func(name job.ID) bool { return name == f.Job })
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.jobs, f.Job)
	}
}

// Settle ends the sessions of jobs that are over, after their last messages have gone out.
func (a *Agents) Settle() {
	if len(a.ended) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range a.ended {
		at := a.jobs[name]
		if at == nil || at.over {
			continue
		}
		at.over = true
		if s := at.session; s != nil {
			s.over = true
			s.wake()
		}
	}
	a.ended = a.ended[:0]
}

// Deliver queues a message of the zone to an agent. If the job has no agent, the zone is told.
func (a *Agents) Deliver(m *protocol.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.jobs[job.ID(m.To.ID)]
	if at == nil || at.session == nil || at.session.number != m.Session {
		if m.Kind == protocol.Announce {
			a.send(a.attend(job.ID(m.To.ID), m.Session, false))
		}
		return
	}
	s := at.session
	s.hear(m)
	if !s.ready && s.held == nil && len(s.events) > 0 {
		s.held = time.AfterFunc(heldNotices, func() { a.release(s) })
	}
}

// release delivers held notices that no other event came to be delivered with.
func (a *Agents) release(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.held, s.ready = nil, len(s.events) > 0
	s.wake()
}

// message is from a job's agent to the job's home, whose address the loop fills in.
func (a *Agents) message(k protocol.Kind, name job.ID, session uint64, body protocol.Body) protocol.Message {
	return protocol.Message{Kind: k, From: protocol.Address{Role: protocol.Bidder, ID: string(name)},
		To: protocol.Address{Role: protocol.Zone}, Job: name, Session: session, Body: body}
}

// attend tells the zone that an agent has connected or gone.
func (a *Agents) attend(name job.ID, session uint64, here bool) protocol.Message {
	return a.message(protocol.Attend, name, session, &protocol.Attendance{Present: here})
}

// enter finds the session of a call, or opens one if the key is right.
func (a *Agents) enter(n *Negotiation, now time.Time) (*session, uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.jobs[n.Job]
	var s *session
	var err error
	if n.Session == 0 {
		if at == nil {
			if accepted := a.recall(n.Job); accepted != nil {
				at = &agent{identity: identityOf(accepted), open: quota{rate: openRate, burst: openBurst}, over: true, archived: true}
			}
		}
		s, err = a.opened(at, n, now)
	} else {
		s, err = at.known(n.Session)
	}
	if err != nil {
		return nil, 0, err
	}
	if !s.rate.take(now) {
		return nil, 0, errkind.Errorf(errkind.Exhausted,
			"the agent of job %s calls more than %d times a second: wait for events instead of asking again", n.Job, pollRate)
	}
	if now.Sub(s.said) >= sayAgain && !at.over {
		s.said = now
		a.send(a.attend(n.Job, s.number, true))
	}
	s.turn++
	s.polls++
	if s.gone != nil {
		s.gone.Stop()
	}
	s.wake() // an older call of the same agent waits no longer
	return s, s.turn, nil
}

// opened returns a new session, which replaces the job's present one.
func (a *Agents) opened(at *agent, n *Negotiation, now time.Time) (*session, error) {
	identity := ""
	if at != nil {
		identity = at.identity
	}
	// The same computation and the same answer for an unknown job, so that a caller can't find out which jobs exist.
	ok, err := a.keys.opens(n.Key, n.Job, identity)
	if err != nil {
		return nil, err
	}
	if !ok || at == nil {
		return nil, errkind.Errorf(errkind.Denied, "this is not the key of an external job %s: ask for it with `sluice agent key %s`",
			n.Job, n.Job)
	}
	if !at.open.take(now) {
		return nil, errkind.Errorf(errkind.Exhausted, "agents of job %s open sessions too often: one at a time, and keep it", n.Job)
	}
	s := newSession(number())
	s.over = at.over
	if old := at.session; old != nil {
		at.superseded = append(at.superseded[max(0, len(at.superseded)-keptSuperseded+1):], old.number)
		old.end = errSuperseded()
		old.wake()
		if old.gone != nil {
			old.gone.Stop()
		}
	}
	at.session, a.jobs[n.Job] = s, at
	return s, nil
}

// known returns the session with a number.
func (at *agent) known(session uint64) (*session, error) {
	switch {
	case at == nil:
		return nil, errNoSession()
	case at.session != nil && at.session.number == session:
		return at.session, nil
	case slices.Contains(at.superseded, session):
		return nil, errSuperseded()
	}
	return nil, errNoSession()
}

// number returns a new session number, unique across restarts of the daemon.
func number() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails (package crypto/rand)
		if n := binary.LittleEndian.Uint64(b[:]); n != 0 {
			return n
		}
	}
}

// answer sends answers to the zone: one for each round that was announced to this session, cut to as many variants as the round considers.
// The notes list what was not taken.
func (a *Agents) answer(name job.ID, s *session, answers []Answer) (notes []string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.end != nil {
		return nil, s.end
	}
	for i := range answers {
		said := &answers[i]
		most, ok := s.waiting(said.Round)
		if !ok {
			notes = append(notes, fmt.Sprintf("round %d: no answer is waited for: it was answered, or not announced in this session",
				said.Round))
			continue
		}
		if cut := len(said.Variants) - most; cut > 0 {
			notes = append(notes, fmt.Sprintf("round %d: the last %d variants were cut off: it looks at %d", said.Round, cut, most))
			said.Variants = said.Variants[:most]
		}
		m := a.message(protocol.Answer, name, s.number, &protocol.Proposal{Round: said.Round, Variants: said.Variants})
		if err := a.try(m); err != nil {
			return notes, err
		}
		s.answered(said.Round)
	}
	return notes, nil
}

// hear returns the events that a call can return with; changed is closed when to look again, nil if the call returns now. Of several calls
// of one agent only the latest waits.
func (a *Agents) hear(s *session, turn uint64, last bool) (heard Heard, changed <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case s.end != nil:
		return Heard{}, nil, s.end
	case turn != s.turn:
		return Heard{Session: s.number}, nil, nil
	case last || s.over || s.ready:
		return s.take(), nil, nil
	}
	return Heard{}, s.changed, nil
}

// leave notes the end of a call. An agent that does not call again in time counts as gone.
func (a *Agents) leave(name job.ID, s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.polls--; s.polls > 0 || s.end != nil {
		return
	}
	turn := s.turn
	s.gone = time.AfterFunc(AgentGone, func() { a.expire(name, s, turn) })
}

// expire ends the session of an agent that has not called since its call number turn.
func (a *Agents) expire(name job.ID, s *session, turn uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.jobs[name]
	if s.turn != turn || s.end != nil {
		return
	}
	s.end = errNoSession()
	if at != nil && at.session == s {
		at.session = nil
		if at.archived {
			delete(a.jobs, name)
		}
	}
	a.send(a.attend(name, s.number, false))
}
