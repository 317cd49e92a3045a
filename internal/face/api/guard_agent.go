package api

import "net/http"

// forAgents bounds the calls of agents apart from those of people, so that no number of agents, and nothing that one of them
// does, keeps people from being answered. An agent has a job's key and need not know the daemon's token, nor be its user. How
// often it may call is counted where its session is known; here it is how many at once, how long, and how slowly.
func (r refusal) forAgents(next http.Handler) http.Handler {
	in := newIntake(func(*http.Request) int64 { return MaxAgentBytes }, maxAgentBodies)
	return r.received(in, r.places(MaxAgentCalls, "calls of agents", next))
}
