package host

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

func TestTwoDaemons(t *testing.T) {
	r := newRig(t)
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("second daemon: got %v, want a conflict naming pid %d", err, os.Getpid())
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h, err = r.open()
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFactsOfAnotherNodeAreRefused(t *testing.T) {
	r := newRig(t)
	h, stop := r.start(t)
	if _, err := h.Submit(context.Background(), "r", spec("a"), nil); err != nil {
		t.Fatal(err)
	}
	h.daemon.machine.Hear(protocol.Message{Kind: protocol.Settled})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// The gate's facts have no name in them; the zone's and node's do.
	first := r.actors
	r.actors = func() actor.Set {
		booted := toy{step: func(a *toy, _ quantity.Instant, in protocol.Message, out *protocol.Out) {
			if in.Kind == protocol.Inventory {
				a.fact(out, protocol.Fact{Kind: protocol.Booted, Epoch: 1})
			}
		}}
		return actor.Alone("other", "other", &toyGate{toy{step: accept}}, &toyZone{}, &toyNode{toy: booted})
	}
	r.boot(t)
	r.actors = first
	if _, err := r.open(); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "node other") {
		t.Errorf("got %v, want an error of kind invalid naming node other", err)
	}
}
