package process

import "sluice.dev/sluice/internal/core/job"

// memory remembers how the last settled subjobs ended, so that a late Start does not start one of them again. It need not outlast the
// daemon: a node never starts a subjob that was leased before its own boot.
type memory struct {
	// most is how many are remembered; the oldest is dropped first.
	most    int
	results map[job.Token]*job.Result
	order   []job.Token
	next    int
}

// add remembers one.
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

// of returns how a subjob ended; nil if it is not remembered.
func (m *memory) of(t job.Token) *job.Result { return m.results[t] }
