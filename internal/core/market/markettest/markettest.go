// Package markettest has owners of jobs and slices for tests of markets: they sell whatever is asked for.
package markettest

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Job is the owner's side of a job that is sold as it likes.
type Job struct {
	Of                 *job.Spec
	Committed, Claimed job.Ranges
	Running            int
	Came, Got, Rests   quantity.Instant
	Learned            protocol.Learned
	Paused, Moves      bool
	Losing             bool // most of its work is lost where a window ends early
	Avoided            *window.Slice
	Sales              func() int // how many there were; its trust moves with them
	Longest            time.Duration
	// Had by what is over, Began when what runs did.
	Had   int64
	Began []quantity.Instant
}

// Name is index.Demand's.
func (d *Job) Name() job.ID { return d.Of.Name }

// Spec is index.Demand's.
func (d *Job) Spec() *job.Spec { return d.Of }

// Queue is index.Demand's.
func (d *Job) Queue() (string, time.Duration) { return d.Of.Queue, d.Longest }

// Busy is index.Demand's.
func (d *Job) Busy() int { return d.Running }

// Submitted is index.Demand's.
func (d *Job) Submitted() quantity.Instant { return d.Came }

// Served is index.Demand's.
func (d *Job) Served() quantity.Instant { return d.Got }

// RestsUntil is index.Demand's.
func (d *Job) RestsUntil() quantity.Instant { return d.Rests }

// Volatile is index.Demand's.
func (d *Job) Volatile() bool { return d.Moves || d.Avoided != nil }

// Loses is index.Demand's.
func (d *Job) Loses() bool { return d.Losing }

// Agent is index.Demand's.
func (d *Job) Agent() protocol.Address {
	return protocol.Address{Role: protocol.Bidder, ID: string(d.Of.Name)}
}

// Avoids is index.Demand's.
func (d *Job) Avoids(s *window.Slice) bool { return d.Avoided == s }

// Attained is index.Demand's.
func (d *Job) Attained() int64 { return d.Had }

// Trust is index.Demand's.
func (d *Job) Trust() protocol.Trust {
	if d.Learned.Trust.Seen > 0 || d.Sales == nil {
		return d.Learned.Trust
	}
	// as others of its queue have shown
	return protocol.Trust{Error: 30_000 * int64(len(d.Of.Queue)*d.Sales()%11), History: 400_000}
}

// Sentence is index.Demand's.
func (d *Job) Sentence(r explain.Reason) string { return fmt.Sprint("reason ", r) }

// Use is index.Demand's.
func (d *Job) Use(now quantity.Instant) (own, queue, weight int64) {
	own = d.Had
	for _, t := range d.Began {
		own += now.Sub(t).Milliseconds()
	}
	return own, int64(len(d.Of.Queue)), 1
}

// Ineligible is index.Demand's.
func (d *Job) Ineligible(now quantity.Instant) explain.Reason {
	switch {
	case d.Paused:
		return explain.Paused
	case d.Rests > now:
		return explain.Resting
	}
	return explain.Eligible
}

// View is index.Demand's.
func (d *Job) View() atomizer.View {
	return atomizer.View{Spec: d.Of, Committed: d.Committed, Claimed: d.Claimed, Running: d.Running, Learned: &d.Learned}
}

// Slice is the owner's side of a slice.
type Slice struct {
	ID   job.SliceID
	On   job.NodeID
	Gaps []protocol.Gap
	// Stays is the program that stays on it; nil: none does.
	Stays *protocol.Resident
	// Lasts is how long a piece on it is likely to last; 0: for ever.
	Lasts time.Duration
}

// Name is window.Supply's.
func (s *Slice) Name() job.SliceID { return s.ID }

// Node is window.Supply's.
func (s *Slice) Node() job.NodeID { return s.On }

// Usable is window.Supply's.
func (s *Slice) Usable() bool { return true }

// Resident is window.Supply's.
func (s *Slice) Resident() *protocol.Resident { return s.Stays }

// Safe is window.Supply's.
func (s *Slice) Safe(start quantity.Instant) quantity.Instant {
	if s.Lasts == 0 {
		return quantity.Never
	}
	return start.Add(s.Lasts)
}

// Unsold is window.Supply's.
func (s *Slice) Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	out = out[:0]
	for _, g := range s.Gaps {
		if g.Start = max(g.Start, now); g.Start < g.End {
			out = append(out, g)
		}
	}
	return out
}

// Spec is one of a kind of jobs: they differ in length, profile and deadline.
func Spec(tb interface{ Fatal(...any) }, i int) *job.Spec {
	s := &job.Spec{
		Name: job.ID(fmt.Sprintf("j%05d", i)), Queue: "q", Kind: job.Steps, Total: int64(5000 + i%50*100), PerUnit: time.Second, Grid: 10,
		Parallelism: 1,
		Restore:     time.Second, Checkpoint: time.Second, TauMin: 20 * time.Second, Deadline: quantity.Never, Worth: job.DefaultWorth,
		Theta: 10_000,
	}
	if i%3 == 0 {
		s.Deadline = quantity.Instant(1e15).Add(time.Duration(i) * time.Minute)
	}
	s.Profile.Form = trp.Phases
	for p := range int64(5) {
		s.Profile.Phases = append(s.Profile.Phases, trp.Phase{UpTo: s.Total * (p + 1) / 5, Mean: quantity.Amount(4+(int64(i)+p)%5) << 30,
			SD: 200 << 20})
	}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		tb.Fatal(err)
	}
	return s
}
