package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/inventory"
)

// slices lists what each node has, by its place, under names that are unique in a cluster: the node's name in front. Where there are several
// nodes the GPUs are dealt to them in turn: all slices of the i-th GPU, in order of id, are of node i mod n.
func (h *Host) slices(ctx context.Context) ([][]protocol.Slice, error) {
	list, err := h.opts.Inventory.Slices(ctx)
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "list the slices of this machine: %w", err)
	}
	dealt := make([][]protocol.Slice, len(h.nodes))
	byID, own := make(map[job.SliceID]protocol.Slice, len(list)), make(map[job.SliceID]job.SliceID, len(list))
	gpus := map[string]bool{}
	for _, s := range list {
		gpu, _, _ := strings.Cut(string(s.ID), "/")
		gpus[gpu] = true
		at := h.dealtTo(gpu)
		full := job.SliceID(h.nodes[at]) + "/" + s.ID
		own[s.ID], s.ID = full, full
		dealt[at] = append(dealt[at], s)
		byID[full] = s
	}
	if len(h.nodes) > 1 && len(gpus) < len(h.nodes) {
		return nil, errkind.Errorf(errkind.Invalid, "nodes: there are %d, and this machine has %d GPUs to deal among them: say at most %d nodes, and as many zones", len(h.nodes), len(gpus), len(gpus))
	}
	h.named.Store(&byID)
	h.fullNames.Store(&own)
	return dealt, nil
}

// dealtTo is the place of the node that a GPU is dealt to. One that has been away comes back to the same.
func (h *Host) dealtTo(gpu string) int {
	if len(h.nodes) == 1 {
		return 0
	}
	at, known := h.deal[gpu]
	if !known {
		at = len(h.deal) % len(h.nodes)
		if h.deal == nil {
			h.deal = map[string]int{}
		}
		h.deal[gpu] = at
	}
	return at
}

// restock tells the nodes which slices there are now.
func (h *Host) restock(ctx context.Context) {
	dealt, err := h.slices(ctx)
	if err != nil {
		h.log.Warn("slices have come or gone, and can't be listed: those known before stay as they are", "error", err)
		return
	}
	for _, m := range h.inventories(dealt, nil) {
		h.inbox.put(m)
	}
}

// held are the messages that say what others hold of slices that nobody has offered yet.
func (h *Host) held() (first []protocol.Message) {
	live, ok := h.opts.Inventory.(inventory.Live)
	if !ok {
		return nil
	}
	for _, s := range live.Held() {
		first = append(first, h.addressed(h.sighted(s)))
	}
	return first
}

// sighted is what an inventory says of a slice, of a GPU or of who waits, as its node hears it. The slices need not have been listed yet.
func (h *Host) sighted(s inventory.Sighting) protocol.Message { return s.Message(h.ofMachine) }

// ofMachine is a slice's name in the cluster, whether or not it has been listed.
func (h *Host) ofMachine(own job.SliceID) job.SliceID {
	gpu, _, _ := strings.Cut(string(own), "/")
	return job.SliceID(h.nodes[h.dealtTo(gpu)]) + "/" + own
}

// inventories are the first messages to the nodes: what each has, and what was found of its subjobs.
func (h *Host) inventories(dealt [][]protocol.Slice, found []protocol.Found) (first []protocol.Message) {
	for i := range h.nodes {
		stock := &protocol.Stock{Slices: dealt[i]}
		m := protocol.Message{Kind: protocol.Inventory, From: h.executorAddress(i), To: h.nodeAddress(i), Body: stock}
		for _, f := range found {
			if h.nodeOfToken(f.Token) == i {
				stock.Found = append(stock.Found, f)
			}
		}
		first = append(first, m)
	}
	return first
}

func (h *Host) nodeAddress(i int) protocol.Address {
	return protocol.Address{Role: protocol.Node, ID: string(h.nodes[i])}
}

func (h *Host) executorAddress(i int) protocol.Address {
	return protocol.Address{Role: protocol.Executor, ID: string(h.nodes[i])}
}

// nodeOfToken is the node that made a token, by its number; nodeOfReservation that of a reservation's id. The first, where there is none
// of that number: it says that it does not know it.
func (h *Host) nodeOfToken(t job.Token) int { return h.numbered(node.NumberOf(t)) }

func (h *Host) nodeOfReservation(id uint64) int { return h.numbered(node.NumberOfReservation(id)) }

func (h *Host) numbered(i int) int {
	if i < 0 || i >= len(h.nodes) {
		return 0
	}
	return i
}

// ownerOf is the node in front of a slice's name.
func (h *Host) ownerOf(slice job.SliceID) job.NodeID {
	owner, _, _ := strings.Cut(string(slice), "/")
	return job.NodeID(owner)
}

// heard takes what the executor says; it can only speak to the nodes of this machine, and to the gate about purged files.
func (h *Host) heard(m protocol.Message) {
	m = h.addressed(m)
	switch m.Kind {
	case protocol.Purged:
		m.To = h.gateAddress()
	case protocol.Ailing: // is the machine's, and every node's
		h.ail("executor", m.Body.(*protocol.Ailment))
		return
	case protocol.Pressure:
		h.pressed(m.Body.(*protocol.Strain))
		return
	default: // about a subjob or a slice of one node
	}
	h.inbox.put(m)
}

// addressed is what the world says of a subjob or of a slice, from its node's executor to its node.
func (h *Host) addressed(m protocol.Message) protocol.Message {
	at := h.nodeOfToken(m.Token)
	if i, ok := m.Body.(*protocol.Intrusion); ok && i.Slice != "" {
		at = h.nodesOf(i.Slice)[0]
	}
	if v, ok := m.Body.(*protocol.Vitals); ok && len(v.Slices) > 0 {
		at = h.nodesOf(v.Slices[0])[0]
	}
	m.From, m.To = h.executorAddress(at), h.nodeAddress(at)
	return m
}

// pressed tells every node of this machine what its memory is like. Where they have not taken the last word they get this one in its place: where the loop is
// held up they would pile up, and none but the last is worth anything.
func (h *Host) pressed(s *protocol.Strain) {
	if h.lastStrain.Swap(s) != nil {
		return
	}
	for i := range h.nodes {
		h.inbox.put(protocol.Message{Kind: protocol.Pressure, From: h.executorAddress(i), To: h.nodeAddress(i), Body: &protocol.Strain{}})
	}
}

// strained is what each node is told of a word: what its own subjobs have of the memory, and what the others know of theirs. All of it is of one moment, so that
// all decide of the same.
func (h *Host) strained(s *protocol.Strain) []*protocol.Strain {
	if len(h.nodes) == 1 {
		return []*protocol.Strain{s}
	}
	words := make([]*protocol.Strain, len(h.nodes))
	for i := range words {
		own := *s
		own.Uses = nil
		for _, u := range s.Uses {
			if h.nodeOfToken(u.Token) == i {
				own.Uses = append(own.Uses, u)
			}
		}
		words[i] = &own
	}
	for i := range words {
		n, ok := h.actors.Nodes[i].Node.(actor.Neighbourly)
		if !ok {
			continue
		}
		all := n.Neighbours(words[i].Uses)
		for j := range words {
			if j != i {
				words[j].Others = append(words[j].Others, all...)
			}
		}
	}
	return words
}

// route fills in the last word of a machine's memory, and addresses what an agent says to its job's home: where that is the gate knows.
func (h *Host) route(m *protocol.Message) {
	if m.Kind == protocol.Pressure && m.From.Role == protocol.Executor {
		i := slices.Index(h.nodes, job.NodeID(m.To.ID))
		if i == 0 { // the first takes it for all
			if last := h.lastStrain.Swap(nil); last != nil {
				h.words = h.strained(last)
			}
		}
		if i >= 0 && i < len(h.words) {
			m.Body = h.words[i]
		}
		return
	}
	if m.From.Role != protocol.Bidder || m.To.ID != "" {
		return
	}
	m.To.ID = string(h.actors.Zones[0].ID)
	if home := h.actors.GateOf(m.Job).Home(m.Job); len(h.actors.Zones) > 1 && home != "" {
		m.To.ID = string(home)
	}
}

// full is a slice's name in the cluster, by its name on this machine.
func (h *Host) full(own job.SliceID) job.SliceID {
	if all := h.fullNames.Load(); all != nil {
		if id, ok := (*all)[own]; ok {
			return id
		}
	}
	return job.SliceID(h.nodes[0]) + "/" + own
}

// slice describes one of them.
func (h *Host) slice(id job.SliceID) (protocol.Slice, bool) {
	if all := h.named.Load(); all != nil {
		s, ok := (*all)[id]
		return s, ok
	}
	return protocol.Slice{}, false
}

// use asks the inventory what processes use of a slice's own memory; nil if it can't tell.
func (h *Host) use() func(job.SliceID) (map[int]int64, error) {
	meter, ok := h.opts.Inventory.(inventory.Meter)
	if !ok {
		return nil
	}
	return func(id job.SliceID) (map[int]int64, error) {
		owner, own, ok := strings.Cut(string(id), "/")
		if !ok || !slices.Contains(h.nodes, job.NodeID(owner)) {
			return nil, errkind.Errorf(errkind.NotFound, "slice %s is not of this machine", id)
		}
		return meter.Use(job.SliceID(own))
	}
}

// patientRoom is how many messages of the world may wait for the inventory to add one.
const patientRoom = 4096

// pause waits; it says false if ctx was done first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// watch looks for whoever is not ours on the slices for as long as the daemon runs, and tells the node. The
// function it returns ends that.
func (h *Host) watch(ctx context.Context) (stop func()) {
	_, live := h.opts.Inventory.(inventory.Live)
	if h.opts.Ours == nil && !live {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ours := func(s job.SliceID, pid int) bool { return h.opts.Ours != nil && h.opts.Ours(h.full(s), pid) }
	report := func(s inventory.Sighting) {
		// It says each thing once, and none may be dropped: where too much waits it looks again later.
		for waiting, _ := h.inbox.load(); waiting[world] >= patientRoom && pause(ctx, retryFirst); waiting, _ = h.inbox.load() {
			continue
		}
		switch {
		case s.Restocked:
			h.restock(ctx)
			return
		case s.Ailment != nil:
			h.ail("inventory", s.Ailment)
			return
		}
		h.heard(h.sighted(s))
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := h.opts.Inventory.Watch(ctx, ours, report); err != nil {
			h.log.Warn("nobody looks for foreign processes on the slices any more", "error", fmt.Errorf("watch %s: %w",
				strings.TrimSpace(h.opts.Inventory.Describe()), err))
		}
	})
	return func() { cancel(); done.Wait() }
}
