package host

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// TestReadyWhileSomethingCanStart: a daemon that lives is not ready while every slice is closed, and says why.
func TestReadyWhileSomethingCanStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, n := newRig(t), &toyNode{}
		r.actors = func() actor.Set { return actor.Alone("z", "n", &toyGate{toy{step: accept}}, &toyZone{}, n) }
		h, stop := r.start(t)
		m := h.Monitor()
		health, ready := m.Health, m.Ready
		says := func(page http.Handler, code int, text string) {
			t.Helper()
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if w.Code != code || !strings.Contains(w.Body.String(), text) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, code, text)
			}
		}
		slice := func(id job.SliceID, state, reason string) status.Slice {
			return status.Slice{Slice: protocol.Slice{ID: id}, State: state, Reason: reason}
		}
		for _, c := range []struct {
			list []status.Slice
			code int
			text string
		}{
			{nil, 200, "ok"},
			{[]status.Slice{slice("a", "quarantined", "1 process remains")}, 503, "slice a is quarantined: 1 process remains"},
			{[]status.Slice{slice("a", "quarantined", "1 process remains"), slice("b", "unconfirmed", "the node is starting")}, 503,
				"none of 2 slices is open; the first, a, is quarantined: 1 process remains"},
			{[]status.Slice{slice("a", "quarantined", "1 process remains"), slice("b", "running", "")}, 200, "ok"},
			{[]status.Slice{slice("a", "reserved", "maintenance")}, 200, "ok"},
		} {
			n.shown.Store(&c.list)
			time.Sleep(readyTime)
			says(ready, c.code, c.text)
			says(health, 200, "ok")
		}
		h.daemon.trouble.Report("executor", &protocol.Condition{Unhealthy: true, Text: "no descriptors"})
		says(ready, 503, "no descriptors")
		says(health, 200, "ok")
		if err := stop(); err != nil {
			t.Error(err)
		}
		says(ready, 503, "stopping")
		says(health, 503, "stopping")
	})
}
