package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const history = `{"from":"2026-01-01T00:00:00Z","to":"2026-01-01T00:01:00Z","slices":[{"slice":{"id":"gpu0"},"spans":[
	{"kind":"lease","start":"2026-01-01T00:00:10Z","end":"2026-01-01T00:01:00Z","job":"train","usedStart":"2026-01-01T00:00:10Z","usedEnd":"2026-01-01T00:00:35Z"}]}]}`

func TestFetchAndDraw(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/sluice.v1alpha1.SluiceService/History" || r.Header.Get("Content-Type") != "application/json" {
			http.Error(w, "not asked for", http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(history))
	}))
	defer server.Close()

	var fetched, drawn bytes.Buffer
	if err := run([]string{"fetch", strings.TrimPrefix(server.URL, "http://")}, &fetched); err != nil {
		t.Fatal(err)
	}
	file, picture := filepath.Join(t.TempDir(), "a.json"), filepath.Join(t.TempDir(), "a.svg")
	if err := os.WriteFile(file, fetched.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"draw", picture, "One=" + file, "Two=" + file}, &drawn); err != nil {
		t.Fatal(err)
	}
	if want := "One  (filled 50%: 25.0 of 50.0 slice-seconds in 50s)"; !strings.Contains(drawn.String(), want) {
		t.Errorf("the picture lacks %q:\n%s", want, drawn.String())
	}
	svg, err := os.ReadFile(picture)
	if err != nil || !bytes.Contains(svg, []byte(">train</text>")) {
		t.Errorf("the SVG lacks the job (%v):\n%s", err, svg)
	}
}

func TestWrongUse(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"slices":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, args := range [][]string{
		nil, {"fetch"}, {"draw", "x.svg"}, {"fetch", strings.TrimPrefix(server.URL, "http://")},
		{"draw", "x.svg", "a"}, {"draw", "x.svg", "a=" + bad}, {"draw", "x.svg", "a=" + bad + ".missing"},
	} {
		if err := run(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
