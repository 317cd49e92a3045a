// Package output tracks one job's ranges that are committed and not known to be published. A commit makes a range count; only then does its
// node move the output to its place. Until the node has sent Published neither the commit nor the verdict COMPLETED is shown: when a user
// sees them the output is there.
package output

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostAsked bounds how many publications of one job are asked about at once.
const mostAsked = 16

// Output are the publications of one job that its nodes have not confirmed. Invariant: they are in order of their tokens, each once.
// Its reading methods may be called on nil.
type Output struct {
	list []protocol.Publication // durable
	// asked is when nodes were last asked about them, tries how often since anything was published or committed, turn the one asked about
	// last.
	asked       quantity.Instant
	tries, turn int
}

// Restore makes it the one of a record.
func (o *Output) Restore(r *protocol.Record) { *o = Output{list: slices.Clone(r.Unpublished)} }

// Save puts it into a record.
func (o *Output) Save(r *protocol.Record) { r.Unpublished = slices.Clone(o.List()) }

// List are those that are not confirmed, by token.
func (o *Output) List() []protocol.Publication {
	if o == nil {
		return nil
	}
	return o.list
}

// Mix adds them to a digest.
func (o *Output) Mix(h digest.Hash) digest.Hash { return digest.List(h, o.List()) }

// Units is how many units they are of: all members of a gang have the same.
func (o *Output) Units() (n int64) {
	list := o.List()
	for i := range list {
		if i == 0 || list[i].Range != list[0].Range {
			n += list[i].Range.Len()
		}
	}
	return n
}

// Find is where the one with a token stands, or would.
func (o *Output) Find(t job.Token) (int, bool) {
	return slices.BinarySearchFunc(o.List(), t, func(p protocol.Publication, t job.Token) int { return p.Token.Compare(t) })
}

// Await adds what a claim has committed, that of each member of a gang.
func (o *Output) Await(c *protocol.Claim, committed job.Range) {
	o.add(protocol.Publication{Token: c.Token, Node: c.Node, Range: committed})
	for i := range c.Members {
		o.add(protocol.Publication{Token: c.Members[i].Token, Node: c.Members[i].Node, Range: committed})
	}
}

func (o *Output) add(p protocol.Publication) {
	if i, found := o.Find(p.Token); !found {
		o.list = slices.Insert(o.list, i, p)
	}
}

// Published takes out one that is in its place.
func (o *Output) Published(t job.Token) {
	if i, found := o.Find(t); found {
		o.list = slices.Delete(o.list, i, i+1)
	}
	o.tries = 0 // nodes publish
}

// Told notes that nodes are told of a commit now.
func (o *Output) Told(now quantity.Instant) { o.asked, o.tries = now, 0 }

// Again is when nodes are asked again: after retry, which doubles while nothing is published. Never if there is nothing to ask about.
func (o *Output) Again(retry time.Duration) quantity.Instant {
	if len(o.List()) == 0 {
		return quantity.Never
	}
	return o.asked.Add(retry << min(o.tries, outbox.Doublings))
}

// Ask has ask called with those that nodes are asked about now, in turn.
func (o *Output) Ask(now quantity.Instant, ask func(p *protocol.Publication)) {
	o.asked = now
	o.tries++
	for range min(mostAsked, len(o.list)) {
		o.turn = (o.turn + 1) % len(o.list)
		ask(&o.list[o.turn])
	}
}
