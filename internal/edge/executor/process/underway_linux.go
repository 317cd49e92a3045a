package process

import (
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// underway is what somebody asks for again until it is done: settling a subjob, or removing what is kept of a job.
type underway struct {
	kind       protocol.Kind
	token      job.Token
	name       job.ID
	generation job.Generation
}

// mostUnderway bounds how many of these are under way at once; what is asked for beyond them is dropped, and asked for again.
const mostUnderway = 1024

// once begins what a message asks for, unless the same is under way: on a disk that does not answer, asking each second would
// otherwise leave one more that waits for it each second. What it answers ends it: who has the answer and asks again gets another. The
// caller holds e.mu.
func (e *Executor) once(m protocol.Message, do func(m protocol.Message, answer func(protocol.Message))) {
	u := underway{m.Kind, m.Token, m.Job, m.Generation}
	if e.underway[u] || len(e.underway) >= mostUnderway {
		return
	}
	e.underway[u] = true
	e.tasks.Go(func() {
		over := sync.OnceFunc(func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.underway, u)
		})
		defer over()
		do(m, func(out protocol.Message) {
			over()
			e.box.Post(out)
		})
	})
}
