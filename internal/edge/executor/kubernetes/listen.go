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
	// firstPeek is the time between the first two looks at how far a subjob is, which come soon: when it began is there.
	firstPeek = 50 * time.Millisecond
	// seldom is the longest time between two looks that found nothing new.
	seldom = 30 * time.Second
	// wordless is after how long a container counts as begun though no word of it has come: whoever waits for one can't be stopped.
	wordless = 10 * time.Second
	// mostWord is how long a word is at most, in bytes.
	mostWord = 4 << 10
	// peeking bounds one look.
	peeking = 10 * time.Second
	// spread is how far apart the first looks of two subjobs are that were found; together they are within seldom.
	spread = time.Millisecond
)

// listen looks at how far the subjob is, if it is time for that, and says when to look at it again for whatever.
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
		if now >= r.peek || over && r.looked < v.want.order.End { // whoever has ended is looked at, however long ago there was news
			r.looked = now
			r.look(over)
			if over || r.word.Storing || v.want.order != (pod.Order{End: r.rec.End}) { // its home counts on being told
				r.every = min(r.every, r.e.o.Report)
			}
			r.peek = r.e.now().Add(r.every)
			if at := quantity.At(ours(v.pod).State.Running.StartedAt.Time); now >= at.Add(wordless) {
				r.begun(at)
			}
		}
		next = min(next, r.peek)
	case parted(v.pod): // how it ended is there, and is told once its kubelet says that the Pod is over
		if now >= r.parting {
			r.report(true)
			r.parting = now.Add(r.e.o.Report)
		}
		next = min(next, r.parting)
	default: // an image that does not come, or a key
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

// look reads the subjob's latest word, and passes it on if it is news. A store that can't be reached costs reports alone. Of what is over, and whose Pod still runs, only
// what it has left can be under way: its home has to hear that, whether or not the store is there.
func (r *run) look(over bool) {
	r.every = min(2*r.every, max(r.e.o.Report, seldom))
	quiet := func() {}
	if over || r.word.Storing { // a store that does not answer may take longer than its home waits
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

// peek is a subjob's latest word; false: there is none now.
func (e *Executor) peek(ctx context.Context, r *run) (w pod.Word, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, peeking) // with the wait for its turn: a store that is stuck holds no order up for longer
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
