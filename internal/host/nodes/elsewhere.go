package nodes

import (
	"cmp"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
)

// Elsewhere are machines that have joined this daemon, each with a node of its name. Safe for concurrent use.
type Elsewhere interface {
	// Named is the machine of a node's number; empty: none has it.
	Named(number int) job.NodeID
	// Away is why nothing reaches a machine now; nil: its link is up. NotFound: no such machine has joined.
	Away(machine job.NodeID) error
}

// Directory finds nodes, of this machine and of others.
type Directory struct {
	Own Nodes
	// Others may be nil.
	Others Elsewhere
}

// Local reports whether a node is of this machine.
func (d Directory) Local(id job.NodeID) bool {
	for _, own := range d.Own {
		if own == id {
			return true
		}
	}
	return false
}

// Elsewhere reports whether a slice is of a machine that has joined.
func (d Directory) Elsewhere(slice job.SliceID) bool {
	owner, _, _ := strings.Cut(string(slice), "/")
	at, err := d.elsewhere(job.NodeID(owner))
	return at != nil || err != nil
}

// Maker is the machine that made a subjob's token; empty: this one.
func (d Directory) Maker(t job.Token) job.NodeID {
	number := node.NumberOf(t)
	if d.Others == nil || number < len(d.Own) {
		return ""
	}
	return cmp.Or(d.Others.Named(number), job.NodeID(fmt.Sprintf("number %d, which was removed", number)))
}

// OfSlice are the nodes that may have a slice: all of this machine for no slice. The error says why a machine elsewhere can't be asked.
func (d Directory) OfSlice(slice job.SliceID) ([]protocol.Address, error) {
	owner, _, _ := strings.Cut(string(slice), "/")
	if at, err := d.elsewhere(job.NodeID(owner)); at != nil || err != nil {
		return at, err
	}
	var all []protocol.Address
	for _, i := range d.Own.OfSlice(slice) {
		all = append(all, d.Own.Address(i))
	}
	return all, nil
}

// OfReservation is the node that made a reservation. Errors are those of OfSlice.
func (d Directory) OfReservation(id uint64) (protocol.Address, error) {
	if number := node.NumberOfReservation(id); d.Others != nil && number >= len(d.Own) {
		if at, err := d.elsewhere(d.Others.Named(number)); at != nil || err != nil {
			return append(at, protocol.Address{})[0], err
		}
	}
	return d.Own.Address(d.Own.OfReservation(id)), nil
}

// elsewhere is a machine that has joined; nil: there is none of that name.
func (d Directory) elsewhere(machine job.NodeID) ([]protocol.Address, error) {
	if d.Others == nil || machine == "" || d.Local(machine) {
		return nil, nil
	}
	switch err := d.Others.Away(machine); {
	case errkind.Of(err) == errkind.NotFound:
		return nil, nil
	case err != nil:
		return nil, errkind.Errorf(errkind.Unavailable, "machine %s is away, ask again once it is back: %w", machine, err)
	}
	return []protocol.Address{{Role: protocol.Node, ID: string(machine)}}, nil
}
