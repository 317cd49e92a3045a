package protocol

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Requested is what a person calls, and what answers it. The request is chosen by the caller: a call that comes again under the same one is
// the same call.
type Requested interface {
	Body
	RequestID() string
}

// Asker is who asks for a change of a job, as whoever let the caller in says. The zero value may change every job: the daemon itself asks,
// or a system that decides by itself who may (Kubernetes).
type Asker struct {
	// Name of the user.
	Name string
	// Own: the user may change no jobs but their own.
	Own bool
}

// May reports whether the asker may change a job of this owner.
func (a Asker) May(owner string) bool { return !a.Own || a.Name != "" && a.Name == owner }

// Submission is a job that somebody wants accepted.
type Submission struct {
	Request string
	// Digest of the submission, which tells the same job from another of its name.
	Digest string
	Spec   *job.Spec
	// Replace puts it in place of a job of that name that is over.
	Replace bool
	// By is who submits it, whose name the spec has as the job's owner.
	By Asker
}

// Cancellation ends a job. Text says why, to people.
type Cancellation struct {
	Request, Text string
	// At is when its owner asked for it, as the gate tells the home; 0: not known.
	At quantity.Instant
	// By is who asks the gate.
	By Asker
}

// Pause says whether a job is paused: it gets no new windows.
type Pause struct {
	Request string
	Paused  bool
	By      Asker
}

// QueueSetting creates or changes a queue.
type QueueSetting struct {
	Request string
	Queue   *Queue
}

// Requeueing begins another life of a job.
type Requeueing struct {
	Request string
	// Deadline of that life; 0: the one it has, Never: none.
	Deadline quantity.Instant
	By       Asker
}

// Deletion forgets a job that is over.
type Deletion struct {
	Request string
	By      Asker
}

// Draining names a zone whose jobs are to leave it for good.
type Draining struct {
	Request string
	Zone    job.ZoneID
}

// Booking takes time off the market.
type Booking struct {
	Request string
	// Ask numbers a zone's, for its head rigid job, and Slice is where that is.
	Ask   uint64
	Slice job.SliceID
	// Reservation is what is wanted, with an empty Slice of all slices of the node. To be withdrawn it is its id that counts.
	Reservation *Reservation
}

// Clearance lifts a slice's quarantine after a person has looked.
type Clearance struct {
	Request string
	Slice   job.SliceID
}

// Receipt answers a person's call.
type Receipt struct {
	Request string
	// Changed: this call did it. A call that came again, or asked for what was so already, changed nothing.
	Changed bool
	// Text is what there is to say about it; Err why it was refused, nil: it was done.
	Text string
	Err  error
	// Verdict of a submitted job that is over already.
	Verdict job.Verdict
	// Made are the reservations that the call stands for, one for each slice.
	Made []Made
}

// Body marks the bodies of calls and of their answers.
func (*Submission) Body()   {}
func (*Cancellation) Body() {}
func (*Pause) Body()        {}
func (*QueueSetting) Body() {}
func (*Requeueing) Body()   {}
func (*Deletion) Body()     {}
func (*Draining) Body()     {}
func (*Booking) Body()      {}
func (*Clearance) Body()    {}
func (*Receipt) Body()      {}

// RequestID is the request of a call, or of the one that is answered.
func (b *Submission) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Cancellation) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Pause) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *QueueSetting) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Requeueing) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Deletion) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Draining) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Booking) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Clearance) RequestID() string { return b.Request }

// RequestID implements Requested.
func (b *Receipt) RequestID() string { return b.Request }
