package standing

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Claims are the standing claims of one job. Invariant: they are in order of their tokens, each once, and each has exactly one ClaimState;
// these stand in the order in which they were claimed. Its reading methods may be called on nil: nothing of the job was ever sold.
type Claims struct {
	claims []protocol.Claim // durable
	states []ClaimState
	// one is room for what most jobs have no more of at a time.
	one struct {
		claim [1]protocol.Claim
		state [1]ClaimState
	}
}

// Init makes room.
func (s *Claims) Init() { s.claims, s.states = s.one.claim[:0], s.one.state[:0] }

// Restore makes them the ones of a record. Nothing is known of them.
func (s *Claims) Restore(r *protocol.Record) {
	*s = Claims{claims: slices.Clone(r.Claims)}
	for i := range s.claims {
		s.states = append(s.states, ClaimState{token: s.claims[i].Token})
	}
}

// All are the claims, by token; States what is known of them.
func (s *Claims) All() []protocol.Claim {
	if s == nil {
		return nil
	}
	return s.claims
}

// States are what is known of them, the first that was claimed first.
func (s *Claims) States() []ClaimState {
	if s == nil {
		return nil
	}
	return s.states
}

// Claim under a token; nil if none stands.
func (s *Claims) Claim(t job.Token) *protocol.Claim {
	if s != nil {
		for i := range s.claims { // there are few, and they are large
			if s.claims[i].Token == t {
				return &s.claims[i]
			}
		}
	}
	return nil
}

// State is what is known of the claim under a token; nil if none stands.
func (s *Claims) State(t job.Token) *ClaimState {
	if s != nil {
		for i := range s.states {
			if s.states[i].token == t {
				return &s.states[i]
			}
		}
	}
	return nil
}

// Member finds the claim of the gang that has a member with this token, and the member's index; nil if there is none.
func (s *Claims) Member(t job.Token) (st *ClaimState, c *protocol.Claim, i int) {
	if s != nil {
		for k := range s.claims {
			c = &s.claims[k]
			if i = protocol.MemberOf(c.Members, t); i >= 0 {
				return s.State(c.Token), c, i
			}
		}
	}
	return nil, nil, 0
}

// Add adds a claim. It returns nil if there is one under its token.
func (s *Claims) Add(c *protocol.Claim) *protocol.Claim {
	i := 0
	for ; i < len(s.claims) && s.claims[i].Token.Compare(c.Token) <= 0; i++ {
		if s.claims[i].Token == c.Token {
			return nil
		}
	}
	s.claims = slices.Insert(s.claims, i, *c)
	s.states = append(s.states, ClaimState{token: c.Token})
	return &s.claims[i]
}

// Remove takes one out that stands.
func (s *Claims) Remove(t job.Token) (c protocol.Claim, st ClaimState) {
	c, st = *s.Claim(t), *s.State(t)
	s.claims = slices.DeleteFunc(s.claims, func(c protocol.Claim) bool { return c.Token == t })
	s.states = slices.DeleteFunc(s.states, func(st ClaimState) bool { return st.token == t })
	return c, st
}

// Move changes a claim's range and end. A peak of zero changes nothing.
func (s *Claims) Move(c *protocol.Claim, r job.Range, end quantity.Instant, peak trp.Peak) {
	c.Plan.Extended += end.Sub(c.End)
	c.Range, c.End = r, end
	if peak != (trp.Peak{}) {
		c.Peak = peak
	}
}

// Resend makes all nodes' messages due at once.
func (s *Claims) Resend() {
	for i := range s.States() {
		s.states[i].sent = 0
	}
}

// Began is when the first of them began; 0 if none is known to have.
func (s *Claims) Began() (first quantity.Instant) {
	for _, st := range s.States() {
		if st.running != 0 && (first == 0 || st.running < first) {
			first = st.running
		}
	}
	return first
}

// Had is what its running subjobs have had so far, in MiB-milliseconds.
func (s *Claims) Had(now quantity.Instant) (sum int64) {
	for i := range s.All() {
		if st := s.State(s.claims[i].Token); st.running != 0 && st.running < now {
			sum += policy.MemoryTime(s.claims[i].Demand, now.Sub(st.running))
		}
	}
	return sum
}

// Slices are all those of a claim or an ask.
func Slices(first job.SliceID, also []job.SliceID) []job.SliceID {
	return append(append(make([]job.SliceID, 0, 1+len(also)), first), also...)
}
