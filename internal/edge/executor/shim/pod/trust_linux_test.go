package pod

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
)

// secured is a store that the machine's own certificates don't vouch for, and where its authority lies.
func secured(t *testing.T, serve http.HandlerFunc) (url, authority string) {
	t.Helper()
	_, _ = x509.SystemCertPool() // it is read once: what is set from now on is none of the machine's
	server := httptest.NewTLSServer(serve)
	t.Cleanup(server.Close)
	authority = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL, authority
}

// TestWhatOurImageTrustsTheJobsImageDoes: the installer takes the certificates along, and the first process trusts them beside those of
// the job's image. An installer without any is no failure, but then who has a certificate of an authority of its own is a stranger.
func TestWhatOurImageTrustsTheJobsImageDoes(t *testing.T) {
	url, authority := secured(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	for what, c := range map[string]struct{ file, says string }{
		"an authority of its own": {authority, "404"},
		"no bundle":               {filepath.Join(t.TempDir(), "none"), "certificate"},
	} {
		t.Setenv("SSL_CERT_FILE", c.file)
		dir, p, key := t.TempDir(), made(t), NewKey("20260301T120000Z-abcdef")
		p.run.Work = &Source{URL: url + "/work", Digest: store.Digest(strings.Repeat("a", 64)), Bytes: 1}
		sealed, err := Seal(&key, "pod", &p.run)
		if err != nil {
			t.Fatal(err)
		}
		if err = Prepare(dir, "pod", sealed, key.Text()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Setenv("SSL_CERT_FILE", "") // the job's image has none
		end := filepath.Join(dir, "end")
		Main([]string{filepath.Join(dir, Runs), filepath.Join(dir, RunFile), filepath.Join(dir, "order"), end})
		said, err := os.ReadFile(end)
		if s, ok := Decode(string(said)); err != nil || !ok || !strings.Contains(s.Result.Detail, c.says) {
			t.Errorf("%s: it ended with %s, want it to say %q", what, said, c.says)
		}
	}
}

// TestTheStoreIsTrustedToPutAndToGet, and so are those that the machine trusts otherwise.
func TestTheStoreIsTrustedToPutAndToGet(t *testing.T) {
	var puts atomic.Int32
	url, authority := secured(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPut && r.URL.Path == "/output" {
			puts.Add(1)
		}
	})
	p := made(t)
	p.run.Output = url + "/output"
	p.told = newTeller(p.store, url+"/progress", p.run.Report)
	if err := errors.Join(os.MkdirAll(p.dir.Output(), 0o755), os.WriteFile(filepath.Join(p.dir.Output(), "x"), []byte("y"),
		0o600)); err != nil {
		t.Fatal(err)
	}
	if s := p.putAway(job.Result{Outcome: job.Yielded, Progress: 5}); s.Output != nil || s.Result.Outcome != job.NodeFailed {
		t.Errorf("a stranger is trusted: %+v", s)
	}
	p.store = clientOf(authority)
	p.told = newTeller(p.store, url+"/progress", p.run.Report)
	if s := p.putAway(job.Result{Outcome: job.Yielded, Progress: 5}); s.Output == nil || puts.Load() != 1 {
		t.Errorf("%+v, put %d times", s, puts.Load())
	}
	p.run.Work = &Source{URL: url + "/work", Digest: store.Digest(strings.Repeat("a", 64)), Bytes: 1}
	if err := p.furnish(); errkind.Of(err) != errkind.Corrupt { // it was got, and is nothing
		t.Errorf("%v", err)
	}
	if own, ok := p.store.Transport.(*http.Transport); !ok || own.Proxy == nil || own.TLSHandshakeTimeout == 0 {
		t.Error("it goes other ways than net/http's own client")
	}
}
