package machine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/trouble"
)

// chatty is an inventory that sees something new as fast as it is heard.
type chatty struct{ inventory.Inventory }

func (chatty) Watch(ctx context.Context, _ func(job.SliceID, int) bool, report func(inventory.Sighting)) error {
	for ctx.Err() == nil {
		report(inventory.Sighting{Slice: "s", Present: true})
	}
	return nil
}

// TestTheInventoryWaits while nobody takes what it has said: none of that may be lost, and it must not grow for ever.
func TestTheInventoryWaits(t *testing.T) {
	b, log, names := inbox.New(nil), slog.New(slog.DiscardHandler), nodes.Nodes{"n"}
	state := trouble.New(names, b, observe.New(observe.Options{Log: log}), log)
	stop := New(chatty{}, func(job.SliceID, int) bool { return false }, nil, names, b, state, 0, log).Watch(t.Context())
	for waiting, _ := b.Load(); waiting[inbox.World] < patientRoom; waiting, _ = b.Load() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond) // a chance to go on, were it not to wait
	stop()
	// Once it is to end it says what it was about to say.
	if waiting, dropped := b.Load(); waiting[inbox.World] > patientRoom+1 || dropped[inbox.World] != 0 {
		t.Errorf("%d wait, %d were dropped", waiting[inbox.World], dropped[inbox.World])
	}
}
