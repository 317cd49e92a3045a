//go:build kubernetes

package plane

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Wire is between one client and the API server: what it asks is counted, and its connections can be cut.
type Wire struct {
	mu    sync.Mutex
	open  map[net.Conn]bool
	down  bool
	calls map[string]int
}

// Wire is a configuration as Config is, whose clients have their connections in the Wire that is returned with it.
func (p *Plane) Wire() (*rest.Config, *Wire) {
	w := &Wire{open: map[net.Conn]bool{}, calls: map[string]int{}}
	c := p.Config()
	c.Dial = w.dial
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{w, next} })
	return c, w
}

var errDown = errors.New("the wire is down")

func (w *Wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		_ = c.Close()
		return nil, errDown
	}
	w.open[c] = true
	return &wired{c, w}, nil
}

// wired is a connection of a Wire.
type wired struct {
	net.Conn
	wire *Wire
}

func (c *wired) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.open, c.Conn)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}

// Cut ends every connection, with the watches and calls that are on their way. Clients may connect again at once.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		_ = c.Close()
	}
	clear(w.open)
}

// Down cuts the wire and keeps it so, Up ends that: between them the API server cannot be reached by this client, and by others can.
func (w *Wire) Down() {
	w.mu.Lock()
	w.down = true
	w.mu.Unlock()
	w.Cut()
}

// Up lets clients connect again.
func (w *Wire) Up() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

// Calls is how often what was asked so far, as "POST pods", "GET pods", "WATCH pods", "PATCH pods/status"; a watch counts when it begins.
func (w *Wire) Calls() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.calls)
}

type counted struct {
	wire *Wire
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := r.Method
	if verb == http.MethodGet && r.URL.Query().Get("watch") != "" {
		verb = "WATCH"
	}
	c.wire.mu.Lock()
	c.wire.calls[verb+" "+resourceOf(r.URL.Path)]++
	c.wire.mu.Unlock()
	return c.next.RoundTrip(r)
}

// resourceOf is what a path of the API is about: pods for /api/v1/namespaces/x/pods/y, pods/status for one with /status behind it.
func resourceOf(path string) string {
	words := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(words) > 2 && words[0] == "api":
		words = words[2:]
	case len(words) > 3 && words[0] == "apis":
		words = words[3:]
	default:
		return path
	}
	if len(words) > 2 && words[0] == "namespaces" {
		words = words[2:]
	}
	if len(words) > 2 {
		return words[0] + "/" + words[2]
	}
	return words[0]
}
