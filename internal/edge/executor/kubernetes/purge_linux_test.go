//go:build kubernetes

package kubernetes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/store"
)

// slowToName is a store that is slow to name an output: until it may.
type slowToName struct {
	store.Store
	asked, may chan struct{}
}

func (s *slowToName) SetName(ctx context.Context, name string, refs store.Refs) error {
	if strings.HasPrefix(name, "outputs/") {
		close(s.asked)
		<-s.may
	}
	return s.Store.SetName(ctx, name, refs)
}

// TestAPurgeWaitsForWhatIsPutAway: a job is removed while what its last subjob has committed is being given its name. Nothing of it is
// left once it is purged.
func TestAPurgeWaitsForWhatIsPutAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	slow := &slowToName{Store: d.Store.Store, asked: make(chan struct{}), may: make(chan struct{})}
	d.Store.Store = slow
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "echo x > $SLUICE_OUTPUT_DIR/out; p 10"))
	if r := d.result(tok(1)); r.Outcome != job.Done {
		t.Fatalf("%+v", r)
	}
	d.do(protocol.Message{Kind: protocol.Settle, Token: tok(1), Job: "train", Body: &protocol.Settlement{Range: job.Range{To: 10},
		Committed: true}})
	<-slow.asked
	d.do(protocol.Message{Kind: protocol.Purge, Job: "train", Generation: 2})
	go func() { time.Sleep(500 * time.Millisecond); close(slow.may) }()
	d.Until("it is purged and settled", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.purged > 0 && d.settled[tok(1)] > 0
	})
	err := d.Store.Names(t.Context(), "", func(n store.Named) error { t.Errorf("%s is left", n.Name); return nil })
	if err != nil {
		t.Fatal(err)
	}
}
