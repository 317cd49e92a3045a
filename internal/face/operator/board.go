//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// board serves liveness, readiness and metrics to the cluster. It shows nothing of jobs.
type board struct {
	of atomic.Pointer[pages]
	// leads: this process has the lease.
	leads atomic.Bool
}

// pages are the running daemon's.
type pages struct{ metrics, health, ready http.Handler }

// show sets the daemon whose pages are served; nil: none runs.
func (b *board) show(p *pages) { b.of.Store(p) }

// ServeHTTP answers /healthz, /readyz and /metrics.
func (b *board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, why := b.of.Load(), "it waits for its lease"
	if b.leads.Load() {
		why = "it has the lease, and reads its journal and what the cluster has"
	}
	switch {
	case r.URL.Path == "/metrics" && p != nil:
		p.metrics.ServeHTTP(w, r)
	case r.URL.Path == "/readyz" && p != nil:
		p.ready.ServeHTTP(w, r)
	case r.URL.Path == "/healthz" && p != nil:
		p.health.ServeHTTP(w, r)
	case r.URL.Path == "/healthz":
		fmt.Fprintln(w, "ok: "+why)
	case r.URL.Path == "/readyz", r.URL.Path == "/metrics":
		http.Error(w, why, http.StatusServiceUnavailable)
	default:
		http.NotFound(w, r)
	}
}

// notices is the board's HTTP server.
type notices struct {
	listener net.Listener
	server   *http.Server
	done     sync.WaitGroup
}

// listen serves the board at an address; an empty one serves nothing.
func (b *board) listen(address string, log *slog.Logger) (*notices, error) {
	n := &notices{server: &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}}
	if address == "" {
		return n, nil
	}
	var err error
	if n.listener, err = net.Listen("tcp", address); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "--health: %w", err)
	}
	n.done.Go(func() {
		if err := n.server.Serve(n.listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("nobody is told any more how this operator is", "error", err)
		}
	})
	return n, nil
}

// addr is the listening address; empty: none.
func (n *notices) addr() string {
	if n.listener == nil {
		return ""
	}
	return n.listener.Addr().String()
}

func (n *notices) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdown)
	defer cancel()
	if err := n.server.Shutdown(ctx); err != nil {
		_ = n.server.Close() // cuts off open requests
	}
	n.done.Wait()
}
