//go:build kubernetes

package podtest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// serveLogs is what the API server asks for a Pod's logs: the way of a kubelet's own server, and no more of it.
func (k *Kubelet) serveLogs(t testing.TB) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	s := httptest.NewTLSServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	k.port = int32(s.Listener.Addr().(*net.TCPAddr).Port)
}

// logs sends what a container wrote, with ?follow=true until its Pod has ended.
func (k *Kubelet) logs(w http.ResponseWriter, req *http.Request) {
	var r *running
	k.mu.Lock()
	for _, one := range k.pods {
		if one.name == req.PathValue("pod") {
			r = one
		}
	}
	k.mu.Unlock()
	if r == nil {
		http.Error(w, "no such Pod here", http.StatusNotFound)
		return
	}
	f, err := os.Open(filepath.Join(r.dir, req.PathValue("container")+".log"))
	if err != nil {
		http.Error(w, "container is waiting to start: ContainerCreating", http.StatusBadRequest)
		return
	}
	defer func() { _ = f.Close() }()
	for last := false; ; {
		if _, err := io.Copy(w, f); err != nil || last || req.FormValue("follow") != "true" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.ended:
			last = true
		case <-time.After(k.o.Every):
		case <-req.Context().Done():
			return
		}
	}
}
