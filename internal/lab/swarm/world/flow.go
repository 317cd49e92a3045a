package world

import (
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// arrivals is the stream of jobs: the next one, and when.
type arrivals struct {
	*tasks
	at   quantity.Instant // Never when there are no more
	gap  time.Duration    // mean
	next uint64
	// logGap is the mean gap of a log, whose lines are counted from first.
	logGap time.Duration
	first  uint64
	mix    [swarm.MaxClasses]int64 // cumulated
	job    []swarm.Task            // scratch
}

func (w *arrivals) begin() {
	w.gap = w.o.jobGap()
	sum := int64(0)
	for i, m := range w.o.Flow.Mix {
		sum += m
		w.mix[i] = sum
	}
	if n := len(w.o.Flow.Log); n > 0 {
		for _, q := range w.o.Flow.Log {
			w.logGap += q.Gap
		}
		w.logGap = max(1, w.logGap/time.Duration(n))
		w.first = keyed(w.o.Seed, forLog) % uint64(n)
	}
	w.scheduleJob()
}

// logged is the line of the next job, nil if there is no log.
func (w *arrivals) logged() *Request {
	if n := uint64(len(w.o.Flow.Log)); n > 0 {
		return &w.o.Flow.Log[(w.first+w.next)%n]
	}
	return nil
}

// scheduleJob draws when the next job arrives.
func (w *arrivals) scheduleJob() {
	w.next++
	s := prng.New(w.o.Seed, forJob, w.next)
	gap := exponential(&s, w.gap)
	if q := w.logged(); q != nil {
		gap = time.Duration(quantity.MulDiv(int64(q.Gap), int64(w.gap), int64(w.logGap)))
	}
	if w.at = w.now.Add(gap); w.at >= w.o.Until || w.gap == never {
		w.at = quantity.Never
	}
}

// arrive brings the next job to its gate. Everything about it is a draw of its own number.
func (w *arrivals) arrive() {
	f := &w.o.Flow
	s := prng.New(w.o.Seed, forJob, w.next)
	s.Uint64() // the gap
	gate := int32(s.IntN(w.o.Gates))
	x := int64(s.IntN(int(w.mix[len(w.mix)-1])))
	class := uint8(0)
	for x >= w.mix[class] {
		class++
	}
	mean, patience, long := f.Mean, f.Patience, int64(s.IntN(Million)) < f.LongShare
	if long {
		mean, patience = f.LongMean, f.LongPatience
	}
	w.job = w.job[:0]
	for range f.Batch {
		t := swarm.Task{Job: w.next, Arrived: w.now, Deadline: quantity.Never, Gate: gate, Class: class, Long: long}
		if patience != Forever {
			t.Deadline = w.now.Add(patience)
		}
		length := exponential(&s, mean)
		if q := w.logged(); q != nil {
			length = q.Length
		}
		w.job = append(w.job, w.admit(t, length))
	}
	w.scheduleJob()
	w.here = w.c.GateAt(gate)
	w.m.Arrive(w.now, gate, w.job)
}
