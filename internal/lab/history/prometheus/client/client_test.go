package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/history"
)

const begin = 1_700_000_040

// server answers as a Prometheus that has one Pod and one node over ten days: with its limit of points, its errors and its form.
func server(t *testing.T, token string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(code int, kind, text string) {
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": kind, "error": text})
		}
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path != "/prom/api/v1/query_range" {
			http.NotFound(w, r)
			return
		}
		number := func(name string) float64 {
			x, err := strconv.ParseFloat(r.FormValue(name), 64)
			if err != nil {
				t.Errorf("%s=%s", name, r.FormValue(name))
			}
			return x
		}
		from, to, step := number("start"), number("end"), number("step")
		if to < from || step <= 0 {
			refuse(http.StatusBadRequest, "bad_data", "invalid parameter")
			return
		}
		if (to-from)/step > 11000 {
			refuse(http.StatusBadRequest, "bad_data",
				"exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution")
			return
		}
		labels := map[string]string{}
		begun, ended := float64(begin), float64(begin+10*86400)
		switch metric, _, _ := strings.Cut(r.FormValue("query"), "{"); metric {
		case "kube_pod_container_resource_requests":
			labels = map[string]string{"__name__": metric, "namespace": "x", "pod": "a", "uid": "u", "container": "c", "node": "n",
				"resource": "nvidia_com_gpu"}
			begun, ended = begun+86400, ended-86400
		case "kube_node_status_allocatable":
			labels = map[string]string{"__name__": metric, "node": "n", "resource": "nvidia_com_gpu"}
		default:
			ended = begun - 1
		}
		values := [][]any{}
		for at := from; at <= to; at += step {
			if at >= begun && at <= ended {
				values = append(values, []any{at, "1"})
			}
		}
		result := []any{}
		if len(values) > 0 {
			result = append(result, map[string]any{"metric": labels, "values": values})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestRead(t *testing.T) {
	at, last := server(t, "secret"), 0
	s := Server{URL: at.URL + "/prom", Token: "secret", Client: at.Client(), Step: time.Minute, Progress: func(done, total int) {
		if last++; done != last || done > total {
			t.Errorf("%d of %d after %d", done, total, last-1)
		}
	}}
	b := history.NewBook(history.Options{})
	if err := s.Read(context.Background(), b, time.Unix(begin, 0), time.Unix(begin+10*86400+30, 0)); err != nil {
		t.Fatal(err)
	}
	h, err := b.Close()
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Runs) != 1 || h.Runs[0].Start.Time().Unix() != begin+86400 || h.Runs[0].End.Time().Unix() != begin+9*86400+60 ||
		len(h.Oddities) != 0 || h.From.Time().Unix() != begin || h.To.Time().Unix() != begin+10*86400 {
		t.Errorf("%+v, %+v", h.Runs, h.Oddities)
	}
}

// TestQuestionsCoverARange: every instant of the grid is asked for once, and no question has too many points.
func TestQuestionsCoverARange(t *testing.T) {
	for _, step := range []time.Duration{time.Second, 7 * time.Second, 15 * time.Second, time.Minute, time.Hour} {
		s := Server{Step: step}
		seen := map[string]map[int64]bool{}
		from, to := time.Unix(begin+3, 0), time.Unix(begin+2*86400, 0)
		for _, q := range s.questions(from, to) {
			points := 0
			for at := q.from; !at.After(q.to); at = at.Add(step) {
				if seen[q.query] == nil {
					seen[q.query] = map[int64]bool{}
				}
				if points++; seen[q.query][at.Unix()] || at.UnixNano()%int64(step) != 0 && step != 7*time.Second {
					t.Fatalf("%s: %s twice, or off the grid", step, at)
				}
				seen[q.query][at.Unix()] = true
			}
			if points > 11000 || points == 0 {
				t.Fatalf("%s: %d points", step, points)
			}
		}
		first := from.Truncate(step)
		for query, got := range seen {
			if want := int(to.Truncate(step).Sub(first)/step) + 1; len(got) != want {
				t.Errorf("%s: %d instants of %s, want %d", step, len(got), query, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	open := server(t, "")
	answering := func(code int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, text)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	short := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"status":"success","data":{`)
	}))
	t.Cleanup(short.Close)
	asleep := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-asleep:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(asleep) })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		url  string
		kind errkind.Kind
		says []string
	}{
		{"prometheus:9090", errkind.Invalid, []string{"such as http://prometheus:9090"}},
		{"ftp://x", errkind.Invalid, []string{"such as http://"}},
		{"http://x/?a=b", errkind.Invalid, []string{"without ?"}},
		{open.URL, errkind.Invalid, []string{"404 Not Found", "is it the address of a Prometheus?"}},
		{server(t, "t").URL + "/prom", errkind.Denied, []string{"401 Unauthorized", "--prometheus-token FILE"}},
		{answering(422, `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory"}`),
			errkind.Invalid, []string{"422 Unprocessable Entity: execution: query processing would load too many samples",
				"a longer --step",
				`kube_pod_container_resource_requests{resource=~"nvidia_com_.*`, "from 2023-11-14T22:14:00Z to "}},
		{answering(503, `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`), errkind.Unavailable,
			[]string{"503 Service Unavailable: timeout: query timed out", "try again later"}},
		{answering(400, `{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution"}`), errkind.Invalid,
			[]string{"400 Bad Request: bad_data: exceeded maximum resolution"}},
		{answering(502, "<html>"), errkind.Unavailable, []string{"502 Bad Gateway: it has too much to do"}},
		{answering(200, "<html>Log in</html>"), errkind.Unavailable, []string{"is no JSON", "is the address right"}},
		{short.URL, errkind.Unavailable, []string{"unexpected EOF"}},
		{slow.URL, errkind.Unavailable, []string{"a longer --step"}},
		{gone.URL, errkind.Unavailable, []string{"connection refused", "can it be reached from here?"}},
		{strings.Replace(gone.URL, "http://", "http://user:secret@", 1), errkind.Unavailable, []string{"connection refused"}},
	} {
		client := &http.Client{}
		if c.url == slow.URL {
			client.Timeout = 50 * time.Millisecond
		}
		s := Server{URL: c.url, Client: client, Step: time.Minute}
		err := s.Read(context.Background(), history.NewBook(history.Options{}), time.Unix(begin, 0), time.Unix(begin+86400, 0))
		if errkind.Of(err) != c.kind || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v, of kind %v; want %v", c.url, err, errkind.Of(err), c.kind)
		}
		for _, text := range c.says {
			if !strings.Contains(fmt.Sprint(err), text) {
				t.Errorf("%s: %v; want %q", c.url, err, text)
			}
		}
	}
}

// TestCancel: whoever has enough of it hears of no fault of the server's.
func TestCancel(t *testing.T) {
	at := server(t, "")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var asked atomic.Int64
	s := Server{URL: at.URL + "/prom", Client: at.Client(), Step: time.Minute, Progress: func(int, int) {
		asked.Add(1)
		stop()
	}}
	err := s.Read(ctx, history.NewBook(history.Options{}), time.Unix(begin, 0), time.Unix(begin+86400, 0))
	if !errors.Is(err, context.Canceled) || asked.Load() != 1 {
		t.Errorf("%v after %d answers", err, asked.Load())
	}
}
