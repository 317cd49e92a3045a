package fake

import (
	"cmp"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
)

// Notice returns what a subjob's program could read of what was done to it; false if nothing.
func (e *Executor) Notice(t job.Token) (executor.Notice, bool) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	r, ok := e.w.runs[t]
	if ok && r.result == nil {
		r.tell(now())
	}
	if !ok || r.told.Kind == "" {
		return executor.Notice{}, false
	}
	return r.told, true
}

// tell brings what the program can read up to an instant. It is called before and after every change, so that nothing is left out.
func (r *run) tell(at quantity.Instant) {
	n := executor.Notice{Sequence: r.told.Sequence}
	r.asked = r.asked || r.running && at >= min(r.end.Add(-r.grace()), r.stop)
	switch {
	case !r.running:
	case r.asked:
		n.Kind, n.Until, n.Why = executor.NoticeYield, r.end, "its lease ends"
		if r.stop != quantity.Never {
			n.Until = min(r.end, r.stop.Add(r.grace()))
		}
	case r.cut:
		n.Kind, n.Until = executor.NoticeTruncated, r.end
	}
	if n.Kind != "" && (r.cut || r.stop != quantity.Never) {
		n.Why = cmp.Or(r.why, "its node ends it")
	}
	if n != r.told {
		if n.Kind != "" {
			n.Sequence++
		}
		r.told = n
	}
}
