package home

import (
	"cmp"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// desk is a ledger with nothing around it: nobody sells, and there are no slices. It hears what the gate and nodes say, and counts
// what it is told.
type desk struct {
	*Ledger
	woken quantity.Instant
	// open are the jobs that the ledger has said are open.
	open map[*Job]bool
	// barred: nothing is sold on any slice.
	barred bool
}

// self is the ledger of a desk.
var self = protocol.Address{Role: protocol.Zone, ID: "z"}

// newDesk makes one, with the ordinary times.
func newDesk(c Config) *desk {
	c.Self = self
	c.Retry, c.AskTTL, c.Skew, c.Backoff, c.MaxKills = time.Second, time.Second, 5*time.Second, 500*time.Millisecond,
		cmp.Or(c.MaxKills, 1000)
	d := &desk{open: map[*Job]bool{}}
	d.Ledger = New(c, d, d)
	return d
}

// Step takes in one message.
func (d *desk) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if !d.AnswerArchived(&in, out) {
		d.Ledger.Step(now, &in, out)
	}
	d.woken = d.Settle().Overdue(now, out)
}

// Recover comes up.
func (d *desk) Recover(now quantity.Instant, out *protocol.Out) {
	d.Ledger.Recover(now, out)
	d.woken = d.Settle().Overdue(now, out)
}

func (d *desk) Make(*job.Spec) *Job { return &Job{} }

func (d *desk) Opened(j *Job)                                                     { d.open[j] = true }
func (d *desk) Closed(j *Job)                                                     { delete(d.open, j) }
func (d *desk) Reopened(*Job)                                                     {}
func (d *desk) Changed(*Job)                                                      {}
func (d *desk) Touched(*Job)                                                      {}
func (d *desk) Moved(*Job)                                                        {}
func (d *desk) QueuesChanged()                                                    {}
func (d *desk) Sold(*Job, *protocol.Claim)                                        {}
func (d *desk) Resold(*Job, *protocol.Claim)                                      {}
func (d *desk) Freed(*Job, *protocol.Claim, quantity.Instant)                     {}
func (d *desk) Taken(*Job, *protocol.Claim)                                       {}
func (d *desk) TurnedDown(quantity.Instant, *Job, []job.SliceID)                  {}
func (d *desk) Came(quantity.Instant, *Job)                                       {}
func (d *desk) Paused(*Job)                                                       {}
func (d *desk) Rests(*Job)                                                        {}
func (d *desk) Began(*Job, quantity.Instant)                                      {}
func (d *desk) Ends(*Job, *protocol.Claim, *job.Result, job.Range, *protocol.Out) {}

func (d *desk) Slices() int                        { return 0 }
func (d *desk) Node(job.SliceID) job.NodeID        { return "" }
func (d *desk) Address(job.SliceID) string         { return "" }
func (d *desk) Memory(job.SliceID) quantity.Amount { return 0 }
func (d *desk) Largest(*job.Spec) quantity.Amount  { return 0 }
func (d *desk) Barred(job.SliceID) bool            { return d.barred }
func (d *desk) Beyond(*Job) string                 { return "" }

// TestWhoIsOpenHasNoVerdict: the ledger says of each job once that it may be sold to, and takes it back when it is over.
func TestWhoIsOpenHasNoVerdict(t *testing.T) {
	d := newDesk(Config{})
	var out protocol.Out
	now := quantity.Instant(1e12)
	for _, id := range []job.ID{"a", "b"} {
		spec := &job.Spec{Name: id, Queue: "q", Kind: job.Items, Total: 10, Grid: 1, Parallelism: 1, PerUnit: time.Second, MaxFailures: 3}
		d.Step(now, protocol.Message{Kind: protocol.Adopt, Job: id, Epoch: 1, Generation: 1, Body: &protocol.Adoption{Since: 1, Spec: spec,
			At: now}}, &out)
	}
	a, b := d.Book().Job("a"), d.Book().Job("b")
	if !d.open[a] || !d.open[b] {
		t.Fatalf("of two jobs that wait %d are open", len(d.open))
	}
	token := job.Token{Epoch: 1, Seq: 1}
	d.Apply(protocol.Fact{Kind: protocol.Claimed, Job: "a", Token: token,
		Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s", Range: job.Range{To: 10}, Start: now, End: now.Add(time.Minute)}}})
	d.Apply(protocol.Fact{Kind: protocol.Committed, Job: "a", Token: token, At: now, Body: &protocol.ClaimEnd{Range: job.Range{To: 10},
		Result: &job.Result{Progress: 10}}})
	if d.open[a] {
		t.Error("nothing of it is left to sell, and it is open")
	}
	d.Step(now, protocol.Message{Kind: protocol.Cancel, Job: "b", Epoch: 1, Generation: 1, Body: &protocol.Cancellation{}}, &out)
	if d.open[b] {
		t.Error("it is cancelled and open")
	}
	again := protocol.Message{Kind: protocol.Adopt, Job: "b", Epoch: 1, Generation: 2, Body: &protocol.Adoption{Since: 1, Spec: b.Spec,
		At: now}}
	if d.Step(now, again, &out); !d.open[b] {
		t.Error("its next life has begun, and it is not open")
	}
}
