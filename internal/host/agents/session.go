package agents

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// How often an agent may call within a session, per second and at once.
const pollRate, pollBurst = 200, 400

// Bounds of what is queued for an agent that does not call. A call for bids that is older than its round is worthless, so the oldest are
// dropped first; notices are for learning, and a few hundred teach as much as all.
const (
	keptCalls   = 16
	keptNotices = 256
	// Notices of lost bids are held this long for another event to be delivered with, so that a round does not wake every agent twice.
	heldNotices = 250 * time.Millisecond
)

// session is one connection of one job's agent, with its undelivered events. Guarded by agents.mu.
type session struct {
	number uint64
	events []Event
	calls  int
	told   int
	// dropped calls and notices since the agent last heard of it.
	dropped int64
	// ready: an event is queued that must not be held back. held is the timer that ends the wait of those that may be.
	ready bool
	held  *time.Timer
	// rounds are those announced and not answered, at most keptCalls, oldest first.
	rounds []announced
	// changed is closed at every change, to wake waiters.
	changed chan struct{}
	// turn counts the calls of the agent: only the latest waits. polls are in progress.
	turn  uint64
	polls int
	gone  *time.Timer
	// said is when the zone was last sent the agent's presence.
	said time.Time
	rate quota
	// end says why the session is over, nil while it is not; over: because its job is.
	end  error
	over bool
}

// announced is a round and how many variants an answer to it may have.
type announced struct {
	round uint64
	most  int
}

func newSession(number uint64) *session {
	return &session{number: number, changed: make(chan struct{}), rate: quota{rate: pollRate, burst: pollBurst}}
}

// wake makes the waiting calls look again.
func (s *session) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hear queues a message of the zone, and drops the oldest of its kind beyond the bound.
func (s *session) hear(m *protocol.Message) {
	switch m.Kind {
	case protocol.Announce:
		call := m.Body.(*protocol.Call)
		if len(s.rounds) == keptCalls {
			s.rounds = slices.Delete(s.rounds, 0, 1)
		}
		s.rounds = append(s.rounds, announced{call.Round, call.Most * len(call.Windows)})
		s.calls++
		s.events = append(s.events, Event{Call: call, Round: call.Round})
	case protocol.Told:
		news := m.Body.(*protocol.News)
		kept := news.Notices[max(0, len(news.Notices)-keptNotices):]
		s.dropped += int64(len(news.Notices) - len(kept))
		s.told += len(kept)
		s.events = append(s.events, Event{Round: news.Round, Notices: kept})
		if !slices.ContainsFunc(kept, func(n protocol.Notice) bool { return n.Kind == protocol.Awarded || n.Kind == protocol.Concluded }) {
			s.bound()
			return
		}
	default: // nothing else is for an agent
		return
	}
	s.bound()
	s.ready = true
	s.wake()
}

// bound drops the oldest events beyond the bounds.
func (s *session) bound() {
	for s.calls > keptCalls {
		s.drop(func(e *Event) bool { return e.Call != nil })
	}
	for s.told > keptNotices {
		s.drop(func(e *Event) bool { return e.Call == nil })
	}
}

// drop forgets the oldest event of a kind.
func (s *session) drop(kind func(*Event) bool) {
	for i := range s.events {
		e := &s.events[i]
		if !kind(e) {
			continue
		}
		if e.Call != nil {
			s.calls--
			s.dropped++
		} else {
			s.told -= len(e.Notices)
			s.dropped += int64(len(e.Notices))
		}
		s.events = slices.Delete(s.events, i, i+1)
		return
	}
}

// take returns all undelivered events.
func (s *session) take() Heard {
	h := Heard{Session: s.number, Events: s.events, Dropped: s.dropped, Over: s.over}
	s.events, s.calls, s.told, s.dropped, s.ready = nil, 0, 0, 0, false
	return h
}

// waiting returns how many variants an answer to a round may have; false if the round is not open for this session.
func (s *session) waiting(round uint64) (most int, ok bool) {
	i := slices.IndexFunc(s.rounds, func(a announced) bool { return a.round == round })
	if i < 0 {
		return 0, false
	}
	return s.rounds[i].most, true
}

// answered: the first answer to a round counts, and there is no second.
func (s *session) answered(round uint64) {
	s.rounds = slices.DeleteFunc(s.rounds, func(a announced) bool { return a.round == round })
}

// quota is a token bucket: rate per second over time, burst at once after a rest.
type quota struct {
	rate, burst float64
	used        float64
	last        time.Time
}

func (q *quota) take(now time.Time) bool {
	if d := now.Sub(q.last); d > 0 {
		q.used, q.last = max(0, q.used-d.Seconds()*q.rate), now
	}
	if q.used+1 > q.burst {
		return false
	}
	q.used++
	return true
}

func errSuperseded() error {
	return errkind.Errorf(errkind.Conflict, "another agent of this job has opened a session since, and the newest counts: end one of "+
		"the two")
}

func errNoSession() error {
	return errkind.Errorf(errkind.NotFound, "there is no such session: the daemon was started again, or the agent was away for %v; open "+
		"one again (session 0)", AgentGone)
}

// MaxWait is how long an agent may wait for an event in one call, AgentGone how long it may stay away between two.
const (
	MaxWait   = 30 * time.Second
	AgentGone = 10 * time.Second
)

// Negotiation is one call of the agent of an external job: its answers, and how long it waits for events.
type Negotiation struct {
	Job job.ID
	// Key of the job opens a session. Session is the one that is open, 0 to open one.
	Key     string
	Session uint64
	Answers []Answer
	// Wait for an event at most this long, up to MaxWait.
	Wait time.Duration
}

// Answer is an agent's answer to a round.
type Answer struct {
	Round    uint64
	Variants []protocol.Variant
}

// Heard is what the call returns to the agent.
type Heard struct {
	Session uint64
	Events  []Event
	// Dropped calls and notices: nobody asked for them in time.
	Dropped int64
	// Notes list what was ignored in the answers, and why.
	Notes []string
	// Over: the job has ended, and with it the session.
	Over bool
}

// Event is a call to a round, or notices of one.
type Event struct {
	Call    *protocol.Call
	Round   uint64
	Notices []protocol.Notice
}
