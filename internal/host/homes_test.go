package host

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory"
)

// elsewhere is a gate whose jobs have their home in zone y.
type elsewhere struct{ toyGate }

func (g *elsewhere) Home(job.ID) job.ZoneID { return "y" }

// heardBy is a node that notes what it is told.
type heardBy struct {
	toyNode
	mu   sync.Mutex
	told []protocol.Message
}

func (n *heardBy) Step(_ quantity.Instant, in protocol.Message, _ *protocol.Out) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = append(n.told, in)
}

// Neighbours are what it uses, ranked by how often it was told something.
func (n *heardBy) Neighbours(uses []protocol.Use) (list []protocol.Neighbour) {
	told := int32(len(n.kinds()))
	for _, u := range uses {
		list = append(list, protocol.Neighbour{Use: u, Rank: protocol.Rank{Priority: told}})
	}
	return list
}

// kinds are those of what it was told, in order.
func (n *heardBy) kinds() (list []protocol.Kind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.told {
		list = append(list, n.told[i].Kind)
	}
	return list
}

// gpus is an inventory of slices of these names.
type gpus struct {
	fixed
	ids []job.SliceID
}

func (g gpus) Slices(context.Context) (list []protocol.Slice, err error) {
	for _, id := range g.ids {
		list = append(list, protocol.Slice{ID: id})
	}
	return list, nil
}

// sees is an inventory that reports what a test says.
type sees struct {
	inventory.Inventory
	all <-chan inventory.Sighting
}

func (v sees) Watch(ctx context.Context, _ func(job.SliceID, int) bool, report func(inventory.Sighting)) error {
	for {
		select {
		case s := <-v.all:
			report(s)
		case <-ctx.Done():
			return nil
		}
	}
}

// severalRig is a host of two zones, where y is home to all jobs, and two nodes on three GPUs.
func severalRig(t *testing.T) (r *rig, b *book, nodes [2]*heardBy) {
	t.Helper()
	r, b = newRig(t), &book{}
	nodes = [2]*heardBy{{}, {}}
	r.actors = func() actor.Set {
		return actor.Set{
			Gates: actor.OneGate(&elsewhere{toyGate{toy{step: accept}}}),
			Zones: []actor.ZoneAt{{ID: "z", Zone: &toyZone{}}, {ID: "y", Zone: &caller{book: b, seen: map[job.ID]uint64{}}}},
			Nodes: []actor.NodeAt{{ID: "n-1", Zone: "z", Node: nodes[0]}, {ID: "n-2", Zone: "y", Node: nodes[1]}},
		}
	}
	r.options = func(o *Options) { o.Inventory = gpus{ids: []job.SliceID{"gpu0", "gpu1/a", "gpu1/b", "gpu2"}} }
	return r, b, nodes
}

// TestAnAgentSpeaksToItsJobsHome, of several zones.
func TestAnAgentSpeaksToItsJobsHome(t *testing.T) {
	r, b, _ := severalRig(t)
	_, stop, session, _ := attended(t, r)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if told := b.all(protocol.Attend); session == 0 || len(told) == 0 || told[0].To != (protocol.Address{Role: protocol.Zone, ID: "y"}) {
		t.Errorf("the home was told %+v", told)
	}
}

// TestTheExecutorIsHeardByTheNode whose token or slice it speaks of, and by all nodes of what is the machine's.
func TestTheExecutorIsHeardByTheNode(t *testing.T) {
	r, _, nodes := severalRig(t)
	options, sighted := r.options, make(chan inventory.Sighting)
	r.options = func(o *Options) {
		options(o)
		o.Inventory, o.Ours = sees{o.Inventory, sighted}, func(job.SliceID, int) bool { return false }
	}
	h, stop := r.start(t)
	second := job.Token{Epoch: 1, Seq: 1<<40 | 5}
	for _, m := range []protocol.Message{
		{Kind: protocol.Exited, Token: job.Token{Epoch: 1, Seq: 5}, Body: &protocol.Conclusion{}},
		{Kind: protocol.Started, Token: second, Body: &protocol.Beginning{}},
		{Kind: protocol.Foreign, Body: &protocol.Intrusion{Slice: h.daemon.machine.Full("gpu1/b")}},
		{Kind: protocol.Foreign, Body: &protocol.Intrusion{Slice: h.daemon.machine.Full("gpu2")}},
		{Kind: protocol.Unhealthy, Body: &protocol.Condition{Unhealthy: true, Text: "no space"}}, {Kind: protocol.Settled, Token: second},
	} {
		h.daemon.machine.Hear(m)
	}
	sighted <- inventory.Sighting{Vitals: &protocol.Vitals{Slices: []job.SliceID{"gpu1/a", "gpu1/b"},
		Errors: []protocol.Xid{{Code: 79, On: "gpu1/b"}, {Code: 48}}}}
	want := [2][]protocol.Kind{
		{protocol.Inventory, protocol.Exited, protocol.Foreign, protocol.Unhealthy},
		{protocol.Inventory, protocol.Started, protocol.Foreign, protocol.Unhealthy, protocol.Settled, protocol.Checkup},
	}
	for range 1000 {
		if len(nodes[0].kinds()) >= len(want[0]) && len(nodes[1].kinds()) >= len(want[1]) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		if got := n.kinds(); !slices.Equal(got, want[i]) {
			t.Errorf("node %d heard %v, want %v", i+1, got, want[i])
		}
	}
	said := nodes[1].told[len(want[1])-1].Body
	if v := (&protocol.Vitals{Slices: []job.SliceID{"n-2/gpu1/a", "n-2/gpu1/b"},
		Errors: []protocol.Xid{{Code: 79, On: "n-2/gpu1/b"}, {Code: 48}}}); !reflect.DeepEqual(said, v) {
		t.Errorf("of its GPU it heard %+v, want %+v", said, v)
	}
	var dealt [2][]string
	for i, n := range nodes {
		for _, s := range n.told[0].Body.(*protocol.Stock).Slices {
			dealt[i] = append(dealt[i], string(s.ID))
		}
	}
	if a, b := strings.Join(dealt[0], " "), strings.Join(dealt[1], " "); a != "n-1/gpu0 n-1/gpu2" || b != "n-2/gpu1/a n-2/gpu1/b" {
		t.Errorf("dealt %q and %q", a, b)
	}
	if s, ok := h.daemon.machine.Slice("n-2/gpu1/a"); !ok || s.ID != "n-2/gpu1/a" {
		t.Errorf("a slice of the second node is %+v", s)
	}
}

// TestEachNodeHearsOfItsOwnSubjobs what they have of the machine's memory, and what the others' have, as all ranked them before any of
// them heard the word. Where it has not taken the last word yet it gets this one in its place.
func TestEachNodeHearsOfItsOwnSubjobs(t *testing.T) {
	r, _, nodes := severalRig(t)
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	first, second := job.Token{Epoch: 1, Seq: 5}, job.Token{Epoch: 1, Seq: 1<<40 | 5}
	for used := range quantity.Amount(3) {
		h.daemon.machine.Hear(protocol.Message{Kind: protocol.Pressure, Body: &protocol.Strain{
			Capacity: 10, Used: used, Growth: 3, Room: 4, Stall: 5, Watch: 6, Uses: []protocol.Use{{Token: first, Resident: 1},
				{Token: second, Resident: 2}},
		}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	for range 10000 {
		if len(nodes[0].kinds()) >= 2 && len(nodes[1].kinds()) >= 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		if got := n.kinds(); !slices.Equal(got, []protocol.Kind{protocol.Inventory, protocol.Pressure}) {
			t.Errorf("node %d heard %v", i+1, got)
			continue
		}
		s := n.told[1].Body.(*protocol.Strain)
		own := protocol.Use{Token: []job.Token{first, second}[i], Resident: quantity.Amount(i + 1)}
		other := protocol.Neighbour{Use: protocol.Use{Token: []job.Token{second, first}[i], Resident: quantity.Amount(2 - i)},
			Rank: protocol.Rank{Priority: 1}}
		if s.Capacity != 10 || s.Used != 2 || s.Growth != 3 || s.Room != 4 || s.Stall != 5 || s.Watch != 6 ||
			!slices.Equal(s.Uses, []protocol.Use{own}) ||
			!slices.Equal(s.Others, []protocol.Neighbour{other}) {
			t.Errorf("node %d heard %+v", i+1, s)
		}
	}
}

// TestMoreNodesThanGPUs is refused with how many there may be.
func TestMoreNodesThanGPUs(t *testing.T) {
	r, _, _ := severalRig(t)
	r.options = func(o *Options) { o.Inventory = gpus{ids: []job.SliceID{"gpu0/a", "gpu0/b"}} }
	if _, err := r.open(); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "at most 1 nodes") {
		t.Errorf("two nodes on one GPU: %v", err)
	}
}
