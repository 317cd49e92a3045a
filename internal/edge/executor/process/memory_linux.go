package process

import "sluice.dev/sluice/internal/core/job"

// memory holds how the last subjobs that were settled have ended, so that a Start that comes late does not start one of them again.
// It need not outlast the daemon: a node never starts what was leased before its own boot.
type memory struct {
	// most is how many are held; the oldest goes first.
	most    int
	results map[job.Token]*job.Result
	order   []job.Token
	next    int
}

// add takes one in.
func (m *memory) add(t job.Token, r *job.Result) {
	if m.results == nil {
		m.results = map[job.Token]*job.Result{}
	}
	if _, known := m.results[t]; !known {
		if len(m.order) < m.most {
			m.order = append(m.order, t)
		} else {
			delete(m.results, m.order[m.next])
			m.order[m.next] = t
			m.next = (m.next + 1) % m.most
		}
	}
	m.results[t] = r
}

// of is how a subjob has ended; nil if it is not remembered.
func (m *memory) of(t job.Token) *job.Result { return m.results[t] }
