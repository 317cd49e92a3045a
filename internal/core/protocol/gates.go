package protocol

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
)

// Gates names the gates of a cluster, in order. Each job belongs to one of them by its name, for all its lives, so that every sender knows
// a job's gate, and a name is given out once. The first owns the settings of queues. A list of none stands for one gate without a name.
type Gates []job.GateID

// Of is the gate of the job of a name.
func (g Gates) Of(name job.ID) Address {
	if len(g) < 2 {
		return g.First()
	}
	stream := prng.New(prng.Name(string(name)))
	high, _ := bits.Mul64(stream.Uint64(), uint64(len(g)))
	return gateAt(g[high])
}

// First is the one that owns the settings of queues.
func (g Gates) First() Address {
	if len(g) == 0 {
		return Address{Role: Gate}
	}
	return gateAt(g[0])
}

// All are the addresses of all of them, in order.
func (g Gates) All() []Address {
	all := []Address{g.First()}
	for i := 1; i < len(g); i++ {
		all = append(all, gateAt(g[i]))
	}
	return all
}

func gateAt(id job.GateID) Address { return Address{Role: Gate, ID: string(id)} }
