package process

import "sluice.dev/sluice/internal/core/protocol"

// purge clears the job's folders of files of lives before a generation, 0: of all. When it answers no reader finds any of them; the space
// is freed a little later. The snapshot may be another job's too: see PruneSnapshots.
func (e *Executor) purge(m protocol.Message, answer func(protocol.Message)) {
	if err := e.lives.Clear(m.Job, m.Generation, e.artifacts.ForgetJob); err != nil {
		e.o.Logger.Error("removing what is kept of a job; it is asked for again", "job", string(m.Job), "err", err)
		return
	}
	if m.Generation != 0 {
		answer(protocol.Message{Kind: protocol.Purged, From: m.To, To: m.From, Job: m.Job, Generation: m.Generation})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.tasks.Go(e.emptyTrash)
	}
}

// emptyTrash removes what was purged.
func (e *Executor) emptyTrash() {
	if err := e.lives.Empty(e.isClosed); err != nil {
		e.o.Logger.Warn("removing what was purged", "err", err)
	}
}
