// Package contract_test measures what the form of the core's contract costs (docs/adr/0001-deterministic-core.md): a
// small handler that takes five kinds of input in turn and asks for 1.2 effects a step; the flat messages have their real size.
//
//	go test -run '^$' -bench Contract -benchmem ./bench/contract
package contract_test

import (
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// input is the rejected form: one type for each kind behind an interface.
type input interface{ kind() protocol.Kind }

// boxed is as large as a kind's own type would typically be (56 bytes), far smaller than the flat message.
type boxed struct {
	k   protocol.Kind
	ask uint64
	_   [5]uint64
}

func (b *boxed) kind() protocol.Kind { return b.k }

// box makes the value that a caller of the interface form sends.
func box(n int) input { return &boxed{k: protocol.Kind(n%5 + 1), ask: uint64(n)} }

// handler counts, which is the least a handler can do.
type handler struct {
	seen uint64
	last quantity.Instant
}

// effects is how many effects a step asks for: 1.2 on average.
func effects(n int) int {
	if n%5 == 0 {
		return 2
	}
	return 1
}

func (h *handler) flat(now quantity.Instant, m protocol.Message, out *protocol.Out) {
	h.seen += uint64(m.Kind)
	h.last = now
	for range effects(int(m.Session)) {
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Redeem, Session: h.seen})
	}
}

func (h *handler) fresh(now quantity.Instant, m input) []input {
	h.seen += uint64(m.kind())
	h.last = now
	var out []input
	for range effects(int(h.seen)) {
		out = append(out, &boxed{k: protocol.Redeem, ask: h.seen})
	}
	return out
}

func (h *handler) appended(now quantity.Instant, m input, out []input) []input {
	h.seen += uint64(m.kind())
	h.last = now
	for range effects(int(h.seen)) {
		out = append(out, &boxed{k: protocol.Redeem, ask: h.seen})
	}
	return out
}

func message(n int) protocol.Message {
	return protocol.Message{Kind: protocol.Kind(n%5 + 1), Session: uint64(n)}
}

func BenchmarkContract(b *testing.B) {
	b.Run("interface-fresh", func(b *testing.B) {
		b.ReportAllocs()
		h, sum, n := &handler{}, 0, 0
		for b.Loop() {
			sum += len(h.fresh(quantity.Instant(n), box(n)))
			n++
		}
	})
	b.Run("interface-appended", func(b *testing.B) {
		b.ReportAllocs()
		h, n := &handler{}, 0
		var out []input
		for b.Loop() {
			out = h.appended(quantity.Instant(n), box(n), out[:0])
			n++
		}
	})
	b.Run("flat-appended", func(b *testing.B) {
		b.ReportAllocs()
		h, n := &handler{}, 0
		var out protocol.Out
		for b.Loop() {
			out.Reset()
			h.flat(quantity.Instant(n), message(n), &out)
			n++
		}
	})
}

// TestFlatAllocatesNothing holds what the decision rests on.
func TestFlatAllocatesNothing(t *testing.T) {
	h, n := &handler{}, 0
	var out protocol.Out
	out.Effects = make([]protocol.Message, 0, 2)
	if got := testing.AllocsPerRun(1000, func() {
		out.Reset()
		h.flat(quantity.Instant(n), message(n), &out)
		n++
	}); got != 0 {
		t.Errorf("the flat form allocates %v times a step, want none", got)
	}
}
