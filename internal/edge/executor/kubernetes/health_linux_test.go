//go:build kubernetes

package kubernetes_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

// absent is a store that takes nothing while it is away.
type absent struct {
	*storetest.Lent
	away atomic.Bool
}

func (s *absent) Now(ctx context.Context) (time.Time, error) {
	if s.away.Load() {
		return time.Time{}, errors.New("connection refused")
	}
	return s.Lent.Now(ctx)
}

// TestWhileTheStoreIsAwayNothingIsToBeStarted: an operator begins all the same, and says so before anything could be sold; and what is
// there already runs to its end.
func TestWhileTheStoreIsAwayNothingIsToBeStarted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	where := &absent{Lent: d.Store}
	where.away.Store(true)
	said := make(chan *protocol.Condition, 10)
	ex := d.Open(func(m protocol.Message) {
		if m.Kind == protocol.Unhealthy {
			said <- m.Body.(*protocol.Condition)
		} else {
			d.hear(m)
		}
	}, func(o *pods.Options) { o.Store = where })
	d.ex = ex
	if _, err := ex.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := func() *protocol.Condition {
		t.Helper()
		select {
		case a := <-said:
			return a
		case <-time.After(time.Minute):
			t.Fatal("nothing is said")
		}
		return nil
	}
	if a := next(); !a.Unhealthy || !strings.Contains(a.Text, "connection refused") {
		t.Errorf("%+v", a)
	}
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	if r := d.result(tok(1)); r.Outcome != job.Done {
		t.Errorf("%+v", r)
	}
	where.away.Store(false)
	if a := next(); a.Unhealthy {
		t.Errorf("%+v", a)
	}
}
