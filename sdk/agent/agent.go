// Package agent is the other side of a job of kind external: a program of its owner's that hears which windows are on offer
// and says which pieces of the job it would run there. Whoever knows more about a job than its job file can say, how long its
// next steps take, how its memory grows, where it may be cut, cuts it better.
//
//	err := agent.Serve(ctx, agent.Options{Job: "train", Key: os.Getenv("SLUICE_AGENT_KEY")}, func(c agent.Call) []agent.Variant {
//		...
//	})
//
// A variant is complete: what is sold runs and counts even if the agent is gone by then. The scheduler verifies every variant
// again, and holds what is declared against what is observed: who declares more than it delivers wins less. An agent that is
// slow or silent loses windows and harms nobody. Under mechanism sja the same program signals and then cuts (Call.Wanted).
//
// The key comes from `sluice agent key JOB`. It opens one job's negotiation and nothing else.
package agent

import (
	"errors"
	"time"
)

// What a call asks for. A program that answers every call with the pieces it would run need not look: its pieces are bids, signals
// and the piece itself.
const (
	// Bids (mechanism jasda): variants compete, and what wins is sold as it was declared.
	Bids = "bids"
	// Interest (mechanism sja): which of the windows the job could use. Nothing is sold by it, so nothing need be worked out: a
	// Variant of its Window alone is enough.
	Interest = "interest"
	// Subjob (mechanism sja): the policy has picked the job for the one window of this call. The first variant that fits is sold. None
	// declines, and so does an answer that comes late or does not fit: the next in order is asked, and the job rests for a second,
	// twice as long with each time in a row, up to a minute.
	Subjob = "subjob"
)

// Call is a round of the market: windows on offer, and the work that could be done in them.
type Call struct {
	Round uint64
	// Wanted is Bids, Interest or Subjob.
	Wanted string
	// Closes is when it is cleared at the latest, by the daemon's clock. An answer that comes later is not looked at. It is
	// cleared earlier once all agents have answered.
	Closes time.Time
	// Most variants are looked at for each window.
	Most int
	// Free are the units for sale, in order. Of a chain only the first stretch can be sold, and from its beginning.
	Free []Range
	// Left is how many units are neither done nor sold.
	Left int64
	// MemoryScale is what memory kills have taught to multiply the job's profile by. Pace is how long its subjobs take over what
	// was planned for them: the daemon adds that to a plan before it looks whether it fits. 1 for as declared.
	MemoryScale, Pace float64
	// First: nothing has been committed yet, so a piece restores nothing.
	First   bool
	Windows []Window
}

// Range is the units [From, To) of the job.
type Range struct{ From, To int64 }

// Window is one gap on offer.
type Window struct {
	ID             uint64
	Slice, Profile string
	// Speed is how fast the job runs there; 1 is the speed its run times are declared for.
	Speed float64
	// Memory the slice has, in bytes.
	Memory     int64
	Start, End time.Time
	// Open: nothing is known to come at its end, which is only as far as windows are sold. Propose no late starts in it: they
	// gain nothing, and can be proposed again when their time has come.
	Open bool
}

// Length of the window. A piece with its restore, its checkpoint and the job's grace must fit.
func (w Window) Length() time.Duration { return w.End.Sub(w.Start) }

// Variant is one piece that the job would run; with its Window alone a signal of interest. Two variants of one answer in one window must
// overlap in time or have disjoint ranges, or both could be sold.
type Variant struct {
	// ID is the agent's own number, to know it again in notices. Left out in all of an answer, they are numbered from 1.
	ID     uint32
	Window uint64
	Range  Range
	// Start is when it begins; zero: with its window.
	Start time.Time
	// Run is the planned time of the work itself, more than 0; Wall adds restore and checkpoint, zero: there are none.
	Run, Wall time.Duration
	// Memory that it needs, in bytes. What the job file's profile says counts where that is more.
	Memory int64
	// Option of the job to run with; empty: none.
	Option string
	// Score is what it is worth to the job, 0 to 1.
	Score float64
}

// Kinds of notices.
const (
	// Awarded: the variant has won, and its node is asked for the place. It runs unless the node refuses, of which no notice comes: the
	// work is free again in the next call.
	Awarded = "awarded"
	// Planned: it is part of the best plan, but begins too late to be sold now; the window is announced again.
	Planned = "planned"
	// Lost: others were worth more, or came first by policy.
	Lost = "lost"
	// Denied: it breaks a rule, which Text says; or no piece came that fits, and the job rests.
	Denied = "denied"
	// Concluded: a piece that was won has ended.
	Concluded = "concluded"
)

// Notice is what became of a variant, or of a piece that was won.
type Notice struct {
	Kind    string
	Round   uint64
	Window  uint64
	Variant uint32
	Text    string
	// Score is what the scheduler made of the declared one, Clearing what the winner that was in its way had; 0 to 1.
	Score, Clearing float64
	// Of a piece that has ended: its id, what counts of it, how it ended (done, yielded, failed, memory, deadline, ...), how
	// long it ran, and its peak in bytes.
	Subjob  string
	Range   Range
	Outcome string
	Ran     time.Duration
	Peak    int64
}

// Why Serve ends before the job does.
var (
	// ErrKey: the key is not this job's, or there is no such external job any more.
	ErrKey = errors.New("the daemon does not take the key")
	// ErrSuperseded: another agent of this job has come, and the newest counts.
	ErrSuperseded = errors.New("another agent of this job has taken over")
	// ErrRefused: what was said is not valid. Nothing of it was looked at.
	ErrRefused = errors.New("the daemon refuses the answer")
)
