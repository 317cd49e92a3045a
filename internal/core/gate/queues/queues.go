// Package queues keeps the settings of a gate's queues, and which zones and gates have confirmed them. The default queue is always there,
// and the shares of a cap over all zones add up to it. It must not know jobs.
package queues

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Default always exists.
const Default = "default"

// Most bounds the queues, and mostTold the unconfirmed settings of one retry interval.
const (
	Most     = 1000
	mostTold = 256
)

// Queues holds the queues of one gate, by name.
type Queues struct {
	zones, listeners int
	list             []*queue
	telling          outbox.Box[setting]
	sum              uint64
}

// queue is a queue's settings, and what tells them to each listener, nil where it has them.
type queue struct {
	*protocol.Queue
	telling []*outbox.Item[setting]
}

// setting is a queue's settings for one listener.
type setting struct {
	queue *queue
	to    int
}

// Telling is the settings of a queue, due to listener To; the first listeners are the zones.
type Telling struct {
	To    int
	Queue *protocol.Queue
}

// New has the default queue, which every listener knows. The first listeners are the zones.
func New(zones, listeners int, retry time.Duration) *Queues {
	q := &Queues{zones: zones, listeners: listeners, telling: outbox.New[setting](retry, mostTold)}
	q.list = []*queue{q.made(&protocol.Queue{Name: Default, Weight: 1})}
	return q
}

func (q *Queues) made(of *protocol.Queue) *queue {
	return &queue{Queue: of, telling: make([]*outbox.Item[setting], q.listeners)}
}

func (q *Queues) find(name string) (int, bool) {
	return slices.BinarySearchFunc(q.list, name, func(of *queue, name string) int { return cmp.Compare(of.Name, name) })
}

// Find is the queue of a name, nil if there is none. It is only read.
func (q *Queues) Find(name string) *protocol.Queue {
	if i, found := q.find(name); found {
		return q.list[i].Queue
	}
	return nil
}

// All are the settings of all queues by name.
func (q *Queues) All() (all []protocol.Queue) {
	for _, x := range q.list {
		all = append(all, *x.Queue)
	}
	return all
}

// Refuse says why there can't be a queue of these settings.
func (q *Queues) Refuse(as *protocol.Queue) (errs []error) {
	if !job.ValidName(as.Name) {
		errs = append(errs, fmt.Errorf("queue name %.80q: want %s", as.Name, job.NameRule))
	}
	if as.Weight < 1 || as.Weight > 1_000_000 {
		errs = append(errs, fmt.Errorf("queue %s: weight is %d, want 1 to 1000000", as.Name, as.Weight))
	}
	if as.Cap < 0 || as.MaxJobs < 0 || as.MaxWindow < 0 {
		errs = append(errs, fmt.Errorf("queue %s: cap %d, maxJobs %d and maxWindow %v must not be negative; 0 means no limit", as.Name,
			as.Cap, as.MaxJobs, as.MaxWindow))
	}
	if q.Find(as.Name) == nil && len(q.list) >= Most {
		errs = append(errs, fmt.Errorf("queue %s: there are %d queues already, the most there may be", as.Name, Most))
	}
	return errs
}

// Set folds the settings of a queue, which everybody is told.
func (q *Queues) Set(as *protocol.Queue) {
	i, found := q.find(as.Name)
	if found {
		q.sum -= q.list[i].hash()
		q.list[i].Queue = as
	} else {
		q.list = slices.Insert(q.list, i, q.made(as))
	}
	x := q.list[i]
	q.sum += x.hash()
	for to := range x.telling {
		x.telling[to] = q.telling.Say(x.telling[to], setting{x, to})
	}
}

// hash is 0 for the default queue as it is without any fact.
func (q *queue) hash() uint64 {
	if q.pristine() {
		return 0
	}
	return q.Mix(digest.New()).Sum()
}

func (q *queue) pristine() bool { return *q.Queue == (protocol.Queue{Name: Default, Weight: 1}) }

// Sum is the digest of all of them.
func (q *Queues) Sum() uint64 { return q.sum }

// AppendFacts says them for a snapshot.
func (q *Queues) AppendFacts(out []protocol.Fact) []protocol.Fact {
	for _, x := range q.list {
		if !x.pristine() {
			c := *x.Queue
			out = append(out, protocol.Fact{Kind: protocol.QueueSet, Body: &c})
		}
	}
	return out
}

// Recover is called when the last fact is folded: what was never set everybody has.
func (q *Queues) Recover() {
	for _, x := range q.list {
		if x.pristine() {
			for to := range x.telling {
				x.telling[to] = q.telling.Confirm(x.telling[to])
			}
		}
	}
}

// Heard records a listener's version of a queue. Where an older message overtook a newer one it is sent again.
func (q *Queues) Heard(from int, has *protocol.Queue) {
	i, found := q.find(has.Name)
	if !found || from < 0 || from >= q.listeners {
		return
	}
	x := q.list[i]
	if x.telling[from] = q.telling.Confirm(x.telling[from]); *q.Of(x.Queue, from) != *has {
		x.telling[from] = q.telling.Say(x.telling[from], setting{x, from})
	}
}

// Told are the messages due now, by queue, then by listener.
func (q *Queues) Told(now quantity.Instant) (all []Telling) {
	for _, s := range q.telling.Take(now, nil) {
		all = append(all, Telling{s.to, q.Of(s.queue.Queue, s.to)})
	}
	slices.SortFunc(all, func(a, b Telling) int {
		return cmp.Or(cmp.Compare(a.Queue.Name, b.Queue.Name), cmp.Compare(a.To, b.To))
	})
	return all
}

// Wake is when Told has something to send.
func (q *Queues) Wake() quantity.Instant { return q.telling.Wake() }

// Of is what a listener is to know of a queue: a zone of several its share of the cap, another gate all of it.
func (q *Queues) Of(x *protocol.Queue, to int) *protocol.Queue {
	if q.zones == 1 || x.Cap == 0 || to >= q.zones {
		return x
	}
	part := *x
	part.Cap = Share(x.Cap, to, q.zones)
	return &part
}

// MayHold says whether zone i's share of the queue's cap has room for as many slices as a job needs at once.
func (q *Queues) MayHold(x *protocol.Queue, slices, i int) bool {
	part := Share(x.Cap, i, q.zones)
	return part == 0 || part >= max(1, slices)
}

// Longest is the longest window that jobs of a queue may count on, within the horizon.
func Longest(x *protocol.Queue, horizon time.Duration) time.Duration {
	if x.MaxWindow > 0 {
		return min(horizon, x.MaxWindow)
	}
	return horizon
}

// Share is the i-th part of a cap over n: 0 for no cap, protocol.NoShare if the cap is too small for all of them. Over all the shares add
// up to the cap, and none falls when the cap rises, so a change of the cap that has not reached every zone yet never allows more than the
// larger of the two.
func Share(limit, i, n int) int {
	if limit == 0 {
		return 0
	}
	part := limit / n
	if i < limit%n {
		part++
	}
	if part == 0 {
		return protocol.NoShare
	}
	return part
}
