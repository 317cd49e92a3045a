package measure

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// Span is a run, for pictures. Of several slices held at once only the first is known; they are drawn as neighbours.
type Span struct {
	// Job is its number in the workload, Queue an index into the recording's.
	Job   int64
	Queue int32
	Piece
}

// Depth is how many jobs of a queue hold no slice, from an instant on.
type Depth struct {
	At    quantity.Instant
	Queue int32
	Jobs  int32
}

// Recording is what a Recorder kept. Runs and changes of depth beyond its cap are counted, not kept.
type Recording struct {
	Classes []Class
	Queues  []string
	Spans   []Span
	Depths  []Depth
	// DroppedSpans and DroppedDepths came after the cap was reached.
	DroppedSpans, DroppedDepths int64
}

// waiter is a live job.
type waiter struct {
	number         int64
	queue, running int32
}

// Recorder is an Observer that keeps every run for pictures, up to a cap. Runs that have not ended are not in it. Not safe
// for concurrent use.
type Recorder struct {
	most    int
	jobs    []waiter
	waiting []int32
	queueOf map[string]int32
	kept    Recording
}

var _ Observer = (*Recorder)(nil)

// NewRecorder keeps up to most runs and up to most changes of depth.
func NewRecorder(classes []Class, most int) *Recorder {
	return &Recorder{most: most, queueOf: map[string]int32{}, kept: Recording{Classes: classes}}
}

// Recording is what was kept so far; it is valid until the next event.
func (r *Recorder) Recording() *Recording { return &r.kept }

// Arrived keeps the job's number and queue.
func (r *Recorder) Arrived(at quantity.Instant, s Slot, j *workload.Job) {
	for int(s) >= len(r.jobs) {
		r.jobs = append(r.jobs, waiter{})
	}
	q, ok := r.queueOf[j.Queue]
	if !ok {
		q = int32(len(r.kept.Queues))
		r.queueOf[j.Queue] = q
		r.kept.Queues = append(r.kept.Queues, j.Queue)
		r.waiting = append(r.waiting, 0)
	}
	r.jobs[s] = waiter{number: j.Number, queue: q}
	r.depth(at, q, 1)
}

// Began ends a wait.
func (r *Recorder) Began(at quantity.Instant, s Slot, _ uint8, _ int32) {
	j := &r.jobs[s]
	if j.running++; j.running == 1 {
		r.depth(at, j.queue, -1)
	}
}

// Ended keeps the run.
func (r *Recorder) Ended(at quantity.Instant, p *Piece) {
	j := &r.jobs[p.Slot]
	if j.running--; j.running == 0 {
		r.depth(at, j.queue, 1)
	}
	if len(r.kept.Spans) >= r.most {
		r.kept.DroppedSpans++
		return
	}
	r.kept.Spans = append(r.kept.Spans, Span{Job: j.number, Queue: j.queue, Piece: *p})
}

// Done ends a wait for good.
func (r *Recorder) Done(at quantity.Instant, s Slot, _ job.State) { r.depth(at, r.jobs[s].queue, -1) }

// Sent is not drawn.
func (r *Recorder) Sent(int) {}

// depth keeps a change, or corrects the one of the same instant.
func (r *Recorder) depth(at quantity.Instant, q, by int32) {
	r.waiting[q] += by
	for i := len(r.kept.Depths) - 1; i >= 0 && r.kept.Depths[i].At == at; i-- {
		if d := &r.kept.Depths[i]; d.Queue == q {
			d.Jobs = r.waiting[q]
			return
		}
	}
	if len(r.kept.Depths) >= r.most {
		r.kept.DroppedDepths++
		return
	}
	r.kept.Depths = append(r.kept.Depths, Depth{At: at, Queue: q, Jobs: r.waiting[q]})
}

// Observers passes everything on to each of them in turn.
type Observers []Observer

var _ Observer = Observers(nil)

// Arrived is passed on.
func (o Observers) Arrived(at quantity.Instant, s Slot, j *workload.Job) {
	for _, x := range o {
		x.Arrived(at, s, j)
	}
}

// Began is passed on.
func (o Observers) Began(at quantity.Instant, s Slot, class uint8, n int32) {
	for _, x := range o {
		x.Began(at, s, class, n)
	}
}

// Ended is passed on.
func (o Observers) Ended(at quantity.Instant, p *Piece) {
	for _, x := range o {
		x.Ended(at, p)
	}
}

// Done is passed on.
func (o Observers) Done(at quantity.Instant, s Slot, state job.State) {
	for _, x := range o {
		x.Done(at, s, state)
	}
}

// Sent is passed on.
func (o Observers) Sent(n int) {
	for _, x := range o {
		x.Sent(n)
	}
}
