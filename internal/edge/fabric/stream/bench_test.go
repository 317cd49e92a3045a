package stream

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// BenchmarkRoundTrip is a message to a node and its answer, over TLS on the loopback. bench/fabric has it beside NATS.
func BenchmarkRoundTrip(b *testing.B) {
	for _, machines := range []int{1, 20} {
		b.Run(fmt.Sprintf("%d machines", machines), func(b *testing.B) {
			a := newAuthority(b)
			h := serve(b, a, "", Timing{})
			answers := make(chan struct{}, 1)
			if err := h.Attach(zone, func(protocol.Message) { answers <- struct{}{} }); err != nil {
				b.Fatal(err)
			}
			list := make([]protocol.Address, machines)
			for i := range list {
				name := fmt.Sprint("n", i)
				list[i] = protocol.Address{Role: protocol.Node, ID: name}
				m := join(b, a, name, h.addr, Timing{})
				if err := m.Attach(list[i], func(said protocol.Message) {
					m.Send(protocol.Message{Kind: protocol.Published, From: said.To, To: said.From, Token: said.Token})
				}); err != nil {
					b.Fatal(err)
				}
				linkedUp(b, h, m)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				h.Send(protocol.Message{Kind: protocol.ResultAck, From: zone, To: list[i%machines],
					Token: job.Token{Epoch: 1, Seq: uint64(i)}, Body: &protocol.Acknowledgement{}})
				<-answers
			}
		})
	}
}

// BenchmarkFlood is messages of one machine as fast as they go.
func BenchmarkFlood(b *testing.B) {
	a := newAuthority(b)
	h := serve(b, a, "", Timing{})
	var got atomic.Int64
	if err := h.Attach(zone, func(protocol.Message) { got.Add(1) }); err != nil {
		b.Fatal(err)
	}
	m := join(b, a, "n", h.addr, Timing{})
	linkedUp(b, h, m)
	b.ReportAllocs()
	sent := int64(0)
	for b.Loop() {
		for sent-got.Load() >= room/2 {
			time.Sleep(10 * time.Microsecond)
		}
		m.Send(protocol.Message{Kind: protocol.Report, From: nodeN, To: zone, Body: &protocol.Observation{Progress: 7}})
		sent++
	}
	for got.Load() < sent {
		time.Sleep(10 * time.Microsecond)
	}
	l, _ := m.State()
	b.ReportMetric(float64(l.BytesSent)/float64(sent), "B/message")
}
