package host

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/pages"
)

// Monitor is what programs ask of a daemon that watch over it.
type Monitor struct {
	// Metrics are for Prometheus.
	Metrics http.Handler
	// Health answers 200 while the daemon lives, and 503 once it stops. Trouble such as a full disk is not told here: a liveness probe
	// would restart the daemon, which helps with none of it.
	Health http.Handler
	// Ready answers 200 while something can be started, and 503 with the reason otherwise: what keeps the daemon from working, or why each
	// slice is closed.
	Ready http.Handler
	// HostWaits lists the latest waits that are over, of workloads outside Sluice for what subjobs of this machine had: of each node those
	// with numbers above after's.
	HostWaits func(ctx context.Context, after map[job.NodeID]uint64) ([]status.HostWait, error)
}

// Monitor answers for the daemon. It is asked for once.
func (h *Host) Monitor() Monitor {
	return Monitor{
		Metrics: h.daemon.observer.Metrics(), Health: probe(h.daemon.stops), Ready: h.ready(), HostWaits: pages.HostWaits(h.Pages),
	}
}

// ready is Monitor.Ready. Anybody may ask, so the slices are looked at no more than once in readyTime.
func (h *Host) ready() http.Handler {
	var mu sync.Mutex
	var looked time.Time
	var said string
	return probe(func() string {
		if why := cmp.Or(h.daemon.stops(), h.daemon.text()); why != "" {
			return why
		}
		mu.Lock()
		defer mu.Unlock()
		if looked.IsZero() || time.Since(looked) >= readyTime {
			ctx, cancel := context.WithTimeout(context.Background(), readyWait)
			defer cancel()
			list, err := h.Slices(ctx)
			if said = closed(list); err != nil {
				said = err.Error()
			}
			looked = time.Now()
		}
		return said
	})
}

const (
	readyTime = time.Second
	readyWait = 5 * time.Second
)

// probe answers with what is wrong.
func probe(wrong func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, code := wrong(), http.StatusServiceUnavailable
		if text == "" {
			text, code = "ok", http.StatusOK
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text + "\n")) // a probe that hung up needs no answer
	})
}

// stops says that the daemon stops; empty if it does not.
func (d *daemon) stops() string {
	select {
	case <-d.inbox.Done():
		return inbox.ErrStopping().Error()
	default:
		return ""
	}
}

// closed says that no slice can be sold, and why the first is not; empty if one can, or there are none.
func closed(list []status.Slice) string {
	for i := range list {
		if s := list[i].State; s != "quarantined" && s != "unconfirmed" {
			return ""
		}
	}
	switch n := len(list); n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("nothing can be started: slice %s is %s: %s", list[0].Slice.ID, list[0].State, list[0].Reason)
	default:
		return fmt.Sprintf("nothing can be started: none of %d slices is open; the first, %s, is %s: %s", n, list[0].Slice.ID,
			list[0].State,
			list[0].Reason)
	}
}
