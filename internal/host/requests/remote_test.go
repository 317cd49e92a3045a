package requests

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric"
)

// lossy is a fabric that hands messages to a test instead of carrying them.
type lossy struct {
	fabric.Fabric
	deliver fabric.Deliver
	sent    func(protocol.Message)
}

func (l *lossy) Attach(_ protocol.Address, deliver fabric.Deliver) error {
	l.deliver = deliver
	return nil
}

func (l *lossy) Send(m protocol.Message) { l.sent(m) }

// TestARequestIsRepeatedUntilItsNodeAnswers: links lose messages. Another node's answer under the same request is not taken for it.
func TestARequestIsRepeatedUntilItsNodeAnswers(t *testing.T) {
	node := func(name string) protocol.Address { return protocol.Address{Role: protocol.Node, ID: name} }
	answers := func(from, request string) protocol.Message {
		return protocol.Message{Kind: protocol.Reply, From: node(from), To: Here(), Body: &protocol.Receipt{Request: request}}
	}
	for _, c := range []struct {
		name string
		// lost is how many are lost before one gets through; the answers come to it in this order.
		lost    int
		answers []protocol.Message
		want    time.Duration // when it is answered; 0: never
	}{
		{"at once", 0, []protocol.Message{answers("n", "r")}, time.Nanosecond},
		{"three are lost", 3, []protocol.Message{answers("n", "r")}, 3 * sayAgain},
		{"another node answers first", 1, []protocol.Message{answers("m", "r"), answers("n", "r")}, sayAgain},
		{"another node answers", 0, []protocol.Message{answers("m", "r")}, 0},
		{"another request is answered", 0, []protocol.Message{answers("n", "s")}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, sent := &lossy{}, 0
				l.sent = func(m protocol.Message) {
					if sent++; m.From != Here() || m.To != node("n") {
						t.Errorf("sent by %v to %v", m.From, m.To)
					}
					if sent > c.lost {
						for _, a := range c.answers {
							go l.deliver(a)
						}
					}
				}
				r, err := NewRemote(l)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				got, err := r.call(ctx, protocol.Message{Kind: protocol.Reserve, To: node("n"), Body: &protocol.Booking{Request: "r"}})
				switch took := time.Since(began); {
				case c.want == 0 && errkind.Of(err) != errkind.Unavailable:
					t.Errorf("answered by %v, %v", got.From, err)
				case c.want != 0 && (err != nil || got.From != node("n") || took.Round(time.Second) != c.want.Round(time.Second)):
					t.Errorf("answered by %v after %v, %v; want after %v", got.From, took, err, c.want)
				}
			})
		})
	}
}
