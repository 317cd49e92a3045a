package caps

import (
	"testing"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// silent is told of everything and does nothing, and offers no slice.
type silent struct {
	home.Watcher
	home.Supply
}

func (silent) Make(*job.Spec) *home.Job          { return &home.Job{} }
func (silent) Opened(*home.Job)                  {}
func (silent) Changed(*home.Job)                 {}
func (silent) Touched(*home.Job)                 {}
func (silent) Came(quantity.Instant, *home.Job)  {}
func (silent) QueuesChanged()                    {}
func (silent) Largest(*job.Spec) quantity.Amount { return 0 }

// TestWaitingGangReservesItsQueueCap: later jobs of a capped queue wait while its first gang does.
func TestWaitingGangReservesItsQueueCap(t *testing.T) {
	l, out := home.New(home.Config{Self: protocol.Address{Role: protocol.Zone, ID: "z"}}, silent{}, silent{}), protocol.Out{}
	made := func(name job.ID, slices int, submitted quantity.Instant) *home.Job {
		spec := &job.Spec{Name: name, Queue: "q", Kind: job.Rigid, Total: 1, Slices: slices, MaxFailures: 1}
		l.Step(submitted, &protocol.Message{
			Kind: protocol.Adopt, Job: name, Epoch: 1, Generation: 1, Body: &protocol.Adoption{Since: 1, At: submitted, Spec: spec,
				Queue: &protocol.Queue{Name: "q", Weight: 1, Cap: 2}},
		}, &out)
		return l.Book().Job(name)
	}
	first, later, second := made("first", 2, 1), made("later", 1, 2), made("second", 2, 3)
	c, changed := New(), 0
	c.Keep(10, []*home.Job{second, first}, func(*home.Queue) { changed++ })
	if c.first[first.Queue()] != first || !c.Keeps(first.Queue()) {
		t.Fatalf("kept is %v", c.first)
	}
	if why := c.Waits(10, first); why != explain.Eligible {
		t.Errorf("the gang itself waits: %v", why)
	}
	if why := c.Waits(10, later); why != explain.QueueCap {
		t.Errorf("who comes later may take its room: %v", why)
	}
	c.Keep(11, nil, func(*home.Queue) { changed++ })
	if why := c.Waits(11, later); why != explain.Eligible || changed != 1 || c.Keeps(first.Queue()) {
		t.Errorf("nobody is kept in mind any more, and it waits: %v; %d queues are told", why, changed)
	}
}
