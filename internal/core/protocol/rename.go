package protocol

import (
	"strings"

	"sluice.dev/sluice/internal/core/job"
)

// Renames are the names that nodes had before, with those that they have now. Facts under an old name are read as if under the new one:
// nothing stored is rewritten for it.
type Renames map[job.NodeID]job.NodeID

// Node is a node's present name.
func (r Renames) Node(id job.NodeID) job.NodeID {
	if now, renamed := r[id]; renamed {
		return now
	}
	return id
}

// Slice is a slice's present name: its node's is in front.
func (r Renames) Slice(id job.SliceID) job.SliceID {
	owner, own, ok := strings.Cut(string(id), "/")
	if now, renamed := r[job.NodeID(owner)]; ok && renamed {
		return job.SliceID(now) + "/" + job.SliceID(own)
	}
	return id
}

// Fact gives the nodes and slices of a fact that nobody else holds their present names, and says whether any had another.
func (r Renames) Fact(f *Fact) bool {
	if len(r) == 0 {
		return false
	}
	n := renaming{Renames: r}
	if f.Actor.Role == Node {
		id := job.NodeID(f.Actor.ID)
		n.node(&id)
		f.Actor.ID = string(id)
	}
	n.slice(&f.Slice)
	switch b := f.Body.(type) {
	case *Sale:
		n.sale(b)
	case *Terms:
		n.slice(&b.Slice)
		n.slices(b.Also)
	case *Reservation:
		n.slice(&b.Slice)
	case *Keeping:
		n.record(b.Record)
	}
	return n.changed
}

// renaming renames what it is shown, and remembers whether anything was.
type renaming struct {
	Renames
	changed bool
}

func (n *renaming) node(id *job.NodeID) {
	if now := n.Node(*id); now != *id {
		*id, n.changed = now, true
	}
}

func (n *renaming) slice(id *job.SliceID) {
	if now := n.Slice(*id); now != *id {
		*id, n.changed = now, true
	}
}

func (n *renaming) slices(list []job.SliceID) {
	for i := range list {
		n.slice(&list[i])
	}
}

func (n *renaming) sale(s *Sale) {
	n.node(&s.Node)
	n.slice(&s.Slice)
	n.slices(s.Also)
	for i := range s.Members {
		n.node(&s.Members[i].Node)
	}
}

func (n *renaming) record(r *Record) {
	for i := range r.Claims {
		n.sale(&r.Claims[i].Sale)
	}
	for i := range r.Past {
		n.sale(&r.Past[i].Sale)
	}
	for i := range r.Unpublished {
		n.node(&r.Unpublished[i].Node)
	}
}
