//go:build kubernetes

package operator

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBoard: it lives while it waits and while it opens, and says which; it is ready, and has metrics, when a daemon works.
func TestBoard(t *testing.T) {
	b := &board{}
	says := func(path string, code int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != code || !strings.Contains(w.Body.String(), text) {
			t.Errorf("%s: %d %s, want %d %s", path, w.Code, w.Body, code, text)
		}
	}
	says("/healthz", http.StatusOK, "ok: it waits for its lease")
	says("/readyz", http.StatusServiceUnavailable, "it waits for its lease")
	b.leads.Store(true)
	says("/healthz", http.StatusOK, "ok: it has the lease")
	says("/metrics", http.StatusServiceUnavailable, "it has the lease")
	page := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	}
	b.show(&pages{page("metrics"), page("fine"), page("open")})
	says("/healthz", http.StatusOK, "fine")
	says("/readyz", http.StatusOK, "open")
	says("/metrics", http.StatusOK, "metrics")
	says("/jobs", http.StatusNotFound, "")
}
