package gang

import (
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
)

// DefaultPorts are those that members meet at where nobody chooses others: outside of what kernels give out by themselves (32768 and up on
// Linux).
func DefaultPorts() Ports { return Ports{First: 29400, Last: 30399} }

// Ports is the range from which a gang gets the port where its members may meet. The zero value has none, and members are told nothing.
type Ports struct{ First, Last int }

// Valid reports whether there is a port in the range, and all of them are such as programs without privileges may listen at.
func (p Ports) Valid() bool { return p.First >= 1024 && p.First <= p.Last && p.Last <= 65535 }

// Of is the port of the gang whose claim has a token: another one for the next token of the same node, and for the first tokens of its next
// boot. Nobody keeps it free: where another program has it the gang fails, and has another token when it begins again.
func (p Ports) Of(t job.Token) int {
	if p == (Ports{}) {
		return 0
	}
	const boots = 101 // ports between those of the first tokens of two boots
	n := uint64(p.Last - p.First + 1)
	return p.First + int((t.Seq%n+uint64(t.Epoch)*boots)%n)
}

// loopback is the address of what runs on the same machine.
const loopback = "127.0.0.1"

// Addresses of the members of a gang, of which each node says its own; one that says none is called by its name. What is all on one machine
// meets there, whatever network that has.
func Addresses(nodes []job.NodeID, said []string) []string {
	invariant.Check(len(nodes) == len(said), "%d nodes of a gang say %d addresses", len(nodes), len(said))
	all, one := make([]string, len(said)), true
	for i, a := range said {
		one = one && a == said[0]
		if all[i] = a; a == "" {
			all[i] = string(nodes[i])
		}
	}
	if one {
		for i := range all {
			all[i] = loopback
		}
	}
	return all
}
