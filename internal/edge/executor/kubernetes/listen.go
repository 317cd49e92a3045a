//go:build kubernetes

package kubernetes

import (
	"context"
	"encoding/json"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

const (
	// firstPeek is the first interval between reads of a subjob's word. It is short since the word says when the subjob began.
	firstPeek = 50 * time.Millisecond
	// seldom is the longest interval, after reads without news.
	seldom = 30 * time.Second
	// wordless is how long a running container may be without a word before it counts as begun: what has not begun can't be stopped in
	// order.
	wordless = 10 * time.Second
	// mostWord bounds a word, in bytes.
	mostWord = 4 << 10
	// peeking bounds one read.
	peeking = 10 * time.Second
	// spread is the time between the first reads of two found subjobs; all come within seldom.
	spread = time.Millisecond
)

// listen reads the subjob's word if that is due, and says how long to wait before the next step.
func (r *run) listen(v *view, now quantity.Instant) time.Duration {
	next := r.until(v, now)
	for _, at := range []quantity.Instant{v.want.order.End, v.want.order.End.Add(r.e.o.Linger)} {
		if at > now {
			next = min(next, at)
		}
	}
	switch over := now >= v.want.order.End; {
	case v.pod == nil:
	case running(v.pod):
		if now >= r.peek || over && r.looked < v.want.order.End { // after its end it is read whatever the interval has grown to
			r.looked = now
			r.look(over)
			if over || r.word.Storing || v.want.order != (pod.Order{End: r.rec.End}) { // its home waits to be told
				r.every = min(r.every, r.e.o.Report)
			}
			r.peek = r.e.now().Add(r.every)
			if at := quantity.At(ours(v.pod).State.Running.StartedAt.Time); now >= at.Add(wordless) {
				r.begun(at)
			}
		}
		next = min(next, r.peek)
	case parted(v.pod): // its end is known, and is reported once the kubelet says that the Pod is over
		if now >= r.parting {
			r.report(true)
			r.parting = now.Add(r.e.o.Report)
		}
		next = min(next, r.parting)
	default: // waits for an image, or a key
		if r.pends(v) {
			next = min(next, r.proven.Add(checkKeys))
		}
		if at := quantity.At(v.pod.CreationTimestamp.Time).Add(pulling + time.Second); at > now {
			next = min(next, at)
		}
	}
	if r.storing != 0 {
		if at := r.storing.Add(r.e.o.Linger); at > now {
			next = min(next, at)
		}
	}
	if next == quantity.Never {
		return forever
	}
	return max(0, next.Sub(r.e.now()))
}

// look reads the subjob's word and reports it if it is news. A store that can't be reached costs reports alone. A subjob past its end
// whose Pod still runs must be storing: its home has to hear that whether or not the store answers.
func (r *run) look(over bool) {
	r.every = min(2*r.every, max(r.e.o.Report, seldom))
	quiet := func() {}
	if over || r.word.Storing { // and meanwhile: a store that hangs may take longer than its home waits
		quiet = r.saysStoring()
	}
	w, ok := r.e.peek(r.e.ctx, r)
	quiet()
	if !ok || w == r.word && !w.Storing {
		if over || r.word.Storing {
			r.report(true)
		}
		return
	}
	r.word, r.every = w, r.e.o.Report
	r.begun(w.Started)
	r.report(w.Storing)
}

// peek reads a subjob's word; false: there is none.
func (e *Executor) peek(ctx context.Context, r *run) (w pod.Word, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, peeking) // includes the wait for a turn: a stuck store delays an order by no more
	defer cancel()
	var data []byte
	err := e.atStore(ctx, peeking, func(ctx context.Context) (err error) {
		data, err = e.lender.Peek(ctx, r.place(progressPlace), mostWord)
		return err
	})
	if err != nil || json.Unmarshal(data, &w) != nil {
		return pod.Word{}, false
	}
	w.Progress = max(r.rec.Range.From, min(w.Progress, r.rec.Range.To))
	return w, true
}
