package machine

import (
	"strings"
	"sync/atomic"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/host/nodes"
)

// deal assigns each GPU of this machine to a node, and names its slices in the cluster: with the node's name in front. Where
// there are several nodes the GPUs are dealt to them in turn, in order of id; one that has been away comes back to the same node. All
// slices of a GPU are of one node. Names may be read by any goroutine; only one at a time may deal.
type deal struct {
	nodes     nodes.Nodes
	dealt     map[string]int                                 // the number of the node, by GPU
	named     atomic.Pointer[map[job.SliceID]protocol.Slice] // slices by their names in the cluster
	fullNames atomic.Pointer[map[job.SliceID]job.SliceID]    // those, by their names on this machine
}

// out deals these slices, and returns the slices of each node, by its number.
func (d *deal) out(list []protocol.Slice) ([][]protocol.Slice, error) {
	dealt := make([][]protocol.Slice, len(d.nodes))
	byID, own := make(map[job.SliceID]protocol.Slice, len(list)), make(map[job.SliceID]job.SliceID, len(list))
	gpus := map[string]bool{}
	for _, s := range list {
		gpu, _, _ := strings.Cut(string(s.ID), "/")
		gpus[gpu] = true
		at := d.to(gpu)
		full := job.SliceID(d.nodes[at]) + "/" + s.ID
		own[s.ID], s.ID = full, full
		dealt[at] = append(dealt[at], s)
		byID[full] = s
	}
	if len(d.nodes) > 1 && len(gpus) < len(d.nodes) {
		return nil, errkind.Errorf(errkind.Invalid, "nodes: there are %d, and this machine has %d GPUs to deal among them: "+
			"say at most %d nodes, and as many zones", len(d.nodes), len(gpus), len(gpus))
	}
	d.named.Store(&byID)
	d.fullNames.Store(&own)
	return dealt, nil
}

// to is the number of the node that a GPU is dealt to.
func (d *deal) to(gpu string) int {
	if len(d.nodes) == 1 {
		return 0
	}
	at, known := d.dealt[gpu]
	if !known {
		at = len(d.dealt) % len(d.nodes)
		d.dealt[gpu] = at
	}
	return at
}

// name is a slice's name in the cluster, whether or not it has been listed.
func (d *deal) name(own job.SliceID) job.SliceID {
	gpu, _, _ := strings.Cut(string(own), "/")
	return job.SliceID(d.nodes[d.to(gpu)]) + "/" + own
}

// full is a slice's name in the cluster, by its name on this machine.
func (d *deal) full(own job.SliceID) job.SliceID {
	if all := d.fullNames.Load(); all != nil {
		if id, ok := (*all)[own]; ok {
			return id
		}
	}
	return job.SliceID(d.nodes[0]) + "/" + own
}

// slice describes one of them.
func (d *deal) slice(id job.SliceID) (protocol.Slice, bool) {
	if all := d.named.Load(); all != nil {
		s, ok := (*all)[id]
		return s, ok
	}
	return protocol.Slice{}, false
}
