// Package machine tells the nodes about this machine: which slices each has, and what executor and inventory report of them.
package machine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/trouble"
)

// Machine addresses reports of executor and inventory to the node that they are about, and lists the slices. Safe for concurrent use,
// except Fill.
type Machine struct {
	inventory inventory.Inventory
	ours      func(slice job.SliceID, pid int) bool // nil: foreign processes are not looked for
	nodes     nodes.Nodes
	inbox     *inbox.Inbox
	trouble   *trouble.State
	log       *slog.Logger
	pressure  pressure

	mu    sync.Mutex // so that of two lists the later is told last
	deal  deal
	until quantity.Instant // when the machine is gone for good; 0: that is not known
	// leaves: it is about to.
	leaves bool
}

// New returns the machine of these nodes, which have the given names. It is gone for good at until; 0: that is not known.
func New(inv inventory.Inventory, ours func(slice job.SliceID, pid int) bool, at []actor.NodeAt, n nodes.Nodes, b *inbox.Inbox,
	t *trouble.State, until quantity.Instant,
	log *slog.Logger) *Machine {
	return &Machine{
		inventory: inv, ours: ours, nodes: n, inbox: b, trouble: t, until: until, log: log,
		deal: deal{nodes: n, dealt: map[string]int{}}, pressure: pressure{names: n, nodes: at},
	}
}

// Deal lists the slices of each node, by its number.
func (m *Machine) Deal(ctx context.Context) ([][]protocol.Slice, error) {
	list, err := m.inventory.Slices(ctx)
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "list the slices of this machine: %w", err)
	}
	return m.deal.out(list)
}

// Slice describes a slice by its name in the cluster.
func (m *Machine) Slice(id job.SliceID) (protocol.Slice, bool) { return m.deal.slice(id) }

// Full is a slice's name in the cluster, by its name on this machine.
func (m *Machine) Full(own job.SliceID) job.SliceID { return m.deal.full(own) }

// restock tells the nodes which slices there are now.
func (m *Machine) restock(ctx context.Context) error {
	dealt, err := m.Deal(ctx)
	if err != nil {
		return err
	}
	for _, stock := range m.Stock(dealt, nil) {
		m.inbox.Put(stock)
	}
	return nil
}

// changed tells the nodes that slices have come or gone.
func (m *Machine) changed(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.restock(ctx); err != nil {
		m.log.Warn("slices have come or gone, and can't be listed: those known before stay as they are", "error", err)
	}
}

// Leave tells the nodes that the machine is about to be gone for good, and when. After an error they do not know it.
func (m *Machine) Leave(ctx context.Context, until quantity.Instant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until, m.leaves = until, true
	return m.restock(ctx)
}

// Held are the messages that say what others hold of slices that nobody has offered yet.
func (m *Machine) Held() (first []protocol.Message) {
	live, ok := m.inventory.(inventory.Live)
	if !ok {
		return nil
	}
	for _, s := range live.Held() {
		first = append(first, m.addressed(m.sighted(s)))
	}
	return first
}

// Stock are the first messages to the nodes: what each has, and what was found of its subjobs.
func (m *Machine) Stock(dealt [][]protocol.Slice, found []protocol.Found) (first []protocol.Message) {
	for i := range m.nodes {
		stock := &protocol.Stock{Slices: dealt[i], Until: m.until, Leaves: m.leaves}
		for _, f := range found {
			if m.nodes.OfToken(f.Token) == i {
				stock.Found = append(stock.Found, f)
			}
		}
		first = append(first, protocol.Message{Kind: protocol.Inventory, From: m.nodes.Executor(i), To: m.nodes.Address(i), Body: stock})
	}
	return first
}

// sighted turns a report of an inventory, about a slice, a GPU or a wish, into a message to its node. The slices need not have been listed
// yet.
func (m *Machine) sighted(s inventory.Sighting) protocol.Message { return s.Message(m.deal.name) }

// Hear takes a message of the executor or the inventory; it can only address the nodes of this machine, and the gate about purged files.
func (m *Machine) Hear(said protocol.Message) {
	said = m.addressed(said)
	switch said.Kind {
	case protocol.Purged:
		said.To = protocol.Address{Role: protocol.Gate}
	case protocol.Unhealthy: // about the machine, and so every node
		m.trouble.Report("executor", said.Body.(*protocol.Condition))
		return
	case protocol.Pressure:
		if m.pressure.report(said.Body.(*protocol.Strain)) {
			m.nodes.Tell(protocol.Pressure, &protocol.Strain{}, m.inbox.Put)
		}
		return
	default: // about a subjob or a slice of one node, or wishes, which the first node decides about
	}
	m.inbox.Put(said)
}

// Fill completes a message that announces a memory report with the node's part of the latest one. It belongs to the loop.
func (m *Machine) Fill(told *protocol.Message) {
	if told.Kind != protocol.Pressure || told.From.Role != protocol.Executor {
		return
	}
	if i := slices.Index(m.nodes, job.NodeID(told.To.ID)); i >= 0 {
		if part := m.pressure.take(i); part != nil {
			told.Body = part
		}
	}
}

// addressed returns a report about a subjob or a slice as a message from its node's executor to its node. What names neither, such as
// wishes, goes to the first node (ADR 0062).
func (m *Machine) addressed(said protocol.Message) protocol.Message {
	at := m.nodes.OfToken(said.Token)
	if i, ok := said.Body.(*protocol.Intrusion); ok && i.Slice != "" {
		at = m.nodes.OfSlice(i.Slice)[0]
	}
	if v, ok := said.Body.(*protocol.Vitals); ok && len(v.Slices) > 0 {
		at = m.nodes.OfSlice(v.Slices[0])[0]
	}
	said.From, said.To = m.nodes.Executor(at), m.nodes.Address(at)
	return said
}

// Use asks the inventory what processes use of a slice's own memory; nil if it can't tell.
func (m *Machine) Use() func(job.SliceID) (map[int]int64, error) {
	meter, ok := m.inventory.(inventory.Meter)
	if !ok {
		return nil
	}
	return func(id job.SliceID) (map[int]int64, error) {
		owner, own, ok := strings.Cut(string(id), "/")
		if !ok || !slices.Contains(m.nodes, job.NodeID(owner)) {
			return nil, errkind.Errorf(errkind.NotFound, "slice %s is not of this machine", id)
		}
		return meter.Use(job.SliceID(own))
	}
}

// patientRoom is how many messages of the world may wait for the inventory to add one.
const patientRoom = 4096

// again waits a moment; it says false if ctx was done first.
func again(ctx context.Context) bool {
	select {
	case <-time.After(trouble.RetryFirst):
		return true
	case <-ctx.Done():
		return false
	}
}

// Watch tells the node what others have of the slices or wait for, for as long as the daemon runs. The function it
// returns ends that.
func (m *Machine) Watch(ctx context.Context) (stop func()) {
	_, live := m.inventory.(inventory.Live)
	if m.ours == nil && !live {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ours := func(s job.SliceID, pid int) bool { return m.ours != nil && m.ours(m.deal.full(s), pid) }
	report := func(s inventory.Sighting) {
		// It says each thing once, and none may be dropped: where too much waits it looks again later.
		for waiting, _ := m.inbox.Load(); waiting[inbox.World] >= patientRoom && again(ctx); waiting, _ = m.inbox.Load() {
			continue
		}
		switch {
		case s.Restocked:
			m.changed(ctx)
			return
		case s.Condition != nil:
			m.trouble.Report("inventory", s.Condition)
			return
		}
		m.Hear(m.sighted(s))
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := m.inventory.Watch(ctx, ours, report); err != nil {
			m.log.Warn("nobody looks for foreign processes on the slices any more", "error", fmt.Errorf("watch %s: %w",
				strings.TrimSpace(m.inventory.Describe()), err))
		}
	})
	return func() { cancel(); done.Wait() }
}
