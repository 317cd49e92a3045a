// Package names keeps the names of forgotten jobs until their files and their home's record are gone. The next life of any name is above
// every one that was ever forgotten, so that late messages about an old life are never taken for it (docs/adr/0017-lives.md).
package names

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostTold bounds the unconfirmed messages of one retry interval.
const mostTold = 256

// Names holds the names of one gate.
type Names struct {
	self     protocol.Address
	archives bool
	// Durable. highest is the latest generation that was ever forgotten.
	leaving map[job.ID]*name
	highest job.Generation
	sum     uint64
	// Soft.
	telling outbox.Box[*name]
	told    []*name // room
}

// Name is one whose earlier lives, up to the last, are on their way out: the zone was its home under this epoch.
type Name struct {
	ID    job.ID
	Last  job.Generation
	Zone  job.ZoneID
	Epoch uint32
}

type name struct {
	Name

	// Soft: who has confirmed (executor, home, archive), and that the others are to be told.
	purged, forgotten, discarded bool
	telling                      *outbox.Item[*name]
}

// New knows no name. archives: there is an archive, which is told too.
func New(self protocol.Address, archives bool, retry time.Duration) *Names {
	return &Names{self: self, archives: archives, leaving: map[job.ID]*name{}, telling: outbox.New[*name](retry, mostTold)}
}

// Next is the generation of the next job of a name that is free.
func (n *Names) Next() job.Generation { return n.highest + 1 }

// Highest is the latest generation that was ever forgotten.
func (n *Names) Highest() job.Generation { return n.highest }

// Last is the last life of a forgotten job that is still being purged, 0 for none.
func (n *Names) Last(id job.ID) job.Generation {
	if x := n.leaving[id]; x != nil {
		return x.Last
	}
	return 0
}

// Leaves says whether an earlier life of a name is on its way out.
func (n *Names) Leaves(id job.ID) bool { return n.leaving[id] != nil }

// Raise has later lives be above one that was forgotten.
func (n *Names) Raise(to job.Generation) {
	n.sum -= n.highestHash()
	n.highest = max(n.highest, to)
	n.sum += n.highestHash()
}

// highestHash is 0 of a gate that has forgotten nothing.
func (n *Names) highestHash() uint64 {
	if n.highest == 0 {
		return 0
	}
	return digest.New().Text("floor").Int(int64(n.highest)).Sum()
}

// Forget folds that a job is forgotten. Its name is leaving until it is purged, unless the fact is from a version that left it to the next
// boot to remove files.
func (n *Names) Forget(f *protocol.Fact) {
	n.Raise(f.Generation)
	if f.Job == "" || f.Generation == 0 {
		return
	}
	if was := n.leaving[f.Job]; was != nil {
		n.drop(was)
	}
	x := &name{Name: Name{f.Job, f.Generation, f.Body.(*protocol.Forgetting).Zone, f.Epoch}}
	n.leaving[f.Job] = x
	n.sum += x.hash()
	x.telling = n.telling.Say(nil, x)
}

// Purge folds that nothing is left of lives up to one, and says whether that changes anything.
func (n *Names) Purge(f *protocol.Fact) bool {
	x := n.leaving[f.Job]
	if x == nil || x.Last > f.Generation {
		return false
	}
	n.drop(x)
	return true
}

func (n *Names) drop(x *name) {
	n.sum -= x.hash()
	n.telling.Confirm(x.telling)
	delete(n.leaving, x.ID)
}

func (x *name) hash() uint64 {
	return digest.New().Text("forgotten").Text(string(x.ID)).Int(int64(x.Last), int64(x.Epoch)).Text(string(x.Zone)).Sum()
}

// Left notes that the executor, a home or the archive has nothing more of earlier lives, and returns the life up to which none of them has
// anything: 0 if one of them may.
func (n *Names) Left(in *protocol.Message, out *protocol.Out) job.Generation {
	x := n.leaving[in.Job]
	if x == nil {
		return 0
	}
	switch {
	case in.Kind == protocol.Forgotten && in.Generation >= x.Last && in.From == (protocol.Address{Role: protocol.Zone, ID: string(x.Zone)}):
		if !x.forgotten {
			x.forgotten = true
			n.discard(x, out)
		}
	case in.Kind == protocol.Purged && in.Generation > x.Last && in.From.Role == protocol.Archive:
		x.discarded = true
	case in.Kind == protocol.Purged && in.Generation > x.Last:
		x.purged = true
	}
	if x.purged && x.forgotten && (x.discarded || !n.archives) {
		return x.Last
	}
	return 0
}

// Tell repeats what nobody has confirmed, by name. A zone that is gone has nothing. The archive is asked last, so that the home finds its
// part there for as long as it is asked.
func (n *Names) Tell(now quantity.Instant, gone func(job.ZoneID) bool, out *protocol.Out) {
	n.told = n.telling.Take(now, n.told[:0])
	slices.SortFunc(n.told, func(a, b *name) int { return cmp.Compare(a.ID, b.ID) })
	for _, x := range n.told {
		n.dismiss(x, gone, out)
	}
}

func (n *Names) dismiss(x *name, gone func(job.ZoneID) bool, out *protocol.Out) {
	if x.forgotten = x.forgotten || gone(x.Zone); !x.forgotten {
		n.send(out, protocol.Message{Kind: protocol.Forget, To: protocol.Address{Role: protocol.Zone, ID: string(x.Zone)}, Job: x.ID,
			Epoch: x.Epoch, Generation: x.Last})
	}
	if !x.purged {
		n.send(out, protocol.Message{Kind: protocol.Purge, To: protocol.Address{Role: protocol.Executor}, Job: x.ID, Generation: x.Last +
			1})
	}
	n.discard(x, out)
}

// discard asks the archive once the home has let go.
func (n *Names) discard(x *name, out *protocol.Out) {
	if x.forgotten && !x.discarded && n.archives {
		n.send(out, protocol.Message{Kind: protocol.Purge, To: protocol.Address{Role: protocol.Archive}, Job: x.ID, Generation: x.Last + 1})
	}
}

func (n *Names) send(out *protocol.Out, m protocol.Message) {
	m.From = n.self
	out.Effects = append(out.Effects, m)
}

// Wake is when Tell has something to send.
func (n *Names) Wake() quantity.Instant { return n.telling.Wake() }

// Leaving yields the names, in no order.
func (n *Names) Leaving(yield func(Name)) {
	//sluice:sorted who asks takes the first name in any order
	for _, x := range n.leaving {
		yield(x.Name)
	}
}

// AppendFacts says all of it for a snapshot.
func (n *Names) AppendFacts(out []protocol.Fact) []protocol.Fact {
	if n.highest > 0 {
		out = append(out, protocol.Fact{Kind: protocol.JobForgotten, Generation: n.highest, Body: &protocol.Forgetting{}})
	}
	for _, id := range slices.Sorted(maps.Keys(n.leaving)) {
		x := n.leaving[id]
		out = append(out, protocol.Fact{Kind: protocol.JobForgotten, Job: x.ID, Generation: x.Last, Epoch: x.Epoch,
			Body: &protocol.Forgetting{Zone: x.Zone}})
	}
	return out
}

// Sum is the digest of all of it.
func (n *Names) Sum() uint64 { return n.sum }
