package host

import (
	"slices"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
)

// lenders is a head's with one pool.
type lenders struct {
	mu     sync.Mutex
	orders []*supply.Order
	came   chan struct{}
}

func (l *lenders) Pools() []supply.Pool {
	return []supply.Pool{{Name: "pool", Slices: []supply.Slice{
		{Capacity: trp.Vector{trp.Memory: 5 << 30}, Speed: 143, Model: "NVIDIA A100-SXM4-40GB", Profile: "1g.5gb"},
		{Capacity: trp.Vector{trp.Memory: 1 << 30}, Speed: 1000},
	}}}
}

func (l *lenders) Providers() []status.Provider { return []status.Provider{{Name: "pool"}} }

func (l *lenders) Ordered(o *supply.Order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders = append(l.orders, o)
	select {
	case l.came <- struct{}{}:
	default:
	}
}

// TestLent: gate and zone hear what pilots may bring before anything else, and what a driver tells the zone comes back as an order.
func TestLent(t *testing.T) {
	var mu sync.Mutex
	heard := map[protocol.Address][]protocol.Message{}
	note := func(self protocol.Address) func(*toy, quantity.Instant, protocol.Message, *protocol.Out) {
		return func(_ *toy, _ quantity.Instant, in protocol.Message, out *protocol.Out) {
			mu.Lock()
			heard[self] = append(heard[self], in)
			mu.Unlock()
			if s, ok := in.Body.(*supply.Sight); ok {
				out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Ordered, From: self, To: in.From,
					Body: &supply.Order{Pool: s.Pool.Name, Number: s.Number, Ask: []time.Duration{time.Hour}}})
			}
		}
	}
	r, l := newRig(t), &lenders{came: make(chan struct{}, 1)}
	gate, zone := protocol.Address{Role: protocol.Gate}, protocol.Address{Role: protocol.Zone, ID: "z"}
	r.options = func(o *Options) { o.Lenders = l }
	r.actors = func() actor.Set {
		return actor.Alone("z", "n", &toyGate{toy{step: note(gate)}}, &toyZone{toy{step: note(zone)}}, &toyNode{})
	}
	h, stop := r.start(t)
	h.Lent.Sighted(&supply.Sight{Number: 7, Pool: l.Pools()[0]})
	<-l.came
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if len(l.orders) != 1 || l.orders[0].Number != 7 || !slices.Equal(l.orders[0].Ask, []time.Duration{time.Hour}) {
		t.Errorf("orders %+v", l.orders)
	}
	for at, from := range map[protocol.Address]protocol.Role{gate: protocol.Node, zone: protocol.Provider} {
		i := slices.IndexFunc(heard[at], func(m protocol.Message) bool { return m.Kind == protocol.Inventory && m.From.ID == "pool" })
		if i < 0 {
			t.Errorf("%v has not heard what pilots bring", at)
			continue
		}
		stock := heard[at][i].Body.(*protocol.Stock).Slices
		if heard[at][i].From.Role != from || len(stock) != 2 || stock[0].ID != "pool/0" || stock[0].Profile != "1g.5gb" ||
			stock[1].Capacity[trp.Memory] != 1<<30 {
			t.Errorf("%v has heard %+v of %+v", at, stock, heard[at][i].From)
		}
	}
	last, driver := heard[zone][len(heard[zone])-1], protocol.Address{Role: protocol.Provider, ID: "pool"}
	if last.Kind != protocol.Sighted || last.From != driver {
		t.Errorf("the zone heard last %+v", last)
	}
}
