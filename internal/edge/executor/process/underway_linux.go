package process

import (
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// underway tracks requests that are repeated until they are done: settling a subjob, or removing a job's files.
type underway struct {
	kind       protocol.Kind
	token      job.Token
	name       job.ID
	generation job.Generation
}

// mostUnderway bounds how many of these are under way at once; requests beyond it are dropped, and come again.
const mostUnderway = 1024

// once carries out a request, unless the same is under way: on a disk that does not answer, a request each second would otherwise add one
// more waiting goroutine each second. Its answer ends it: a request after that is carried out again. The caller holds e.mu.
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
