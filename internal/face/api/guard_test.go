package api_test

import (
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestOpenDoors: no option leaves a door open without saying so.
func TestOpenDoors(t *testing.T) {
	const token = "0123456789abcdef"
	for _, c := range []struct {
		o    api.Options
		want []string
	}{
		{api.Options{Listen: "0.0.0.0:0"}, []string{"give --tls-cert and --tls-key", "give a --token"}},
		{api.Options{Listen: ":0"}, []string{"can be reached from other machines"}},
		{api.Options{Listen: "[::]:0"}, []string{"can be reached from other machines"}},
		{api.Options{Listen: "example.com:0"}, []string{"can be reached from other machines"}},
		{api.Options{Listen: "localhost.example.com:0"}, []string{"can be reached from other machines"}},
		{api.Options{Listen: "0.0.0.0:0", CertFile: "c", KeyFile: "k"}, []string{"give a --token"}},
		{api.Options{Listen: "0.0.0.0:0", CertFile: "c", KeyFile: "k", Token: "short"}, []string{"at least 16"}},
		{api.Options{Listen: "0.0.0.0:0", Token: token}, []string{"give --tls-cert"}},
		{api.Options{Listen: "0.0.0.0:0", Token: token, CertFile: "c", KeyFile: "k"}, []string{"TLS certificate c"}},
		{api.Options{Listen: "127.0.0.1:0", CertFile: "c"}, []string{"needs both a certificate and its key"}},
		{api.Options{Listen: "7117"}, []string{"is no address"}},
	} {
		c.o.Service = apitest.New()
		s, err := api.Listen(c.o)
		if err == nil {
			s.Close()
			t.Errorf("%+v: it listens on %s", c.o, s.Addr())
			continue
		}
		for _, want := range c.want {
			if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %v, want %q in it", c.o, err, want)
			}
		}
	}
}

// TestBrowsers: a page of another site can't call a daemon on its visitor's machine.
func TestBrowsers(t *testing.T) {
	url, _ := serve(t, api.Options{Service: apitest.New()})
	port := url[strings.LastIndex(url, ":"):]
	for _, c := range []struct {
		name   string
		header []string
		code   int
	}{
		{"curl", nil, 200},
		{"by name", []string{"Host", "localhost" + port}, 200},
		{"its own page", []string{"Origin", url, "Sec-Fetch-Site", "same-origin"}, 200},
		{"DNS rebinding", []string{"Host", "evil.example" + port}, 403},
		{"DNS rebinding, same origin", []string{"Host", "evil.example" + port, "Origin", "http://evil.example" + port, "Sec-Fetch-Site",
			"same-origin"}, 403},
		{"look-alike name", []string{"Host", "localhost.evil.example"}, 403},
		{"another site", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"another site, old browser", []string{"Origin", "https://evil.example"}, 403},
		{"sandboxed page", []string{"Origin", "null"}, 403},
		{"a form", []string{"Content-Type", "text/plain"}, 415},
		{"a form", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
	} {
		if code, body := post(t, url, "ListSlices", "{}", c.header...); code != c.code {
			t.Errorf("%s: %d %s, want %d", c.name, code, body, c.code)
		}
	}
	resp, err := http.Get(url + "/sluice.v1alpha1.SluiceService/Cancel?message=%7B%22name%22%3A%22gang%22%7D&encoding=json&connect=v1")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET changes things: %d", resp.StatusCode)
	}
}

// TestToken: with a token every call needs it, the health check does not.
func TestToken(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	url, _ := serve(t, api.Options{Service: apitest.New(), Token: "0123456789abcdef", Metrics: ok, Health: ok, Ready: ok, Page: ok})
	for _, c := range []struct {
		header []string
		code   int
	}{
		{nil, 401},
		{[]string{"Authorization", "Bearer wrong"}, 401},
		{[]string{"Authorization", "0123456789abcdef"}, 401},
		{[]string{"Authorization", "Basic 0123456789abcdef"}, 401},
		{[]string{"Authorization", "Bearer 0123456789abcdef"}, 200},
		{[]string{"Authorization", "bearer 0123456789abcdef", "Host", "sluice.example"}, 200},
	} {
		if code, body := post(t, url, "ListSlices", "{}", c.header...); code != c.code {
			t.Errorf("%q: %d %s, want %d", c.header, code, body, c.code)
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/": 401} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestLimits: what is too large is refused. It is too large by so little that all of it is on its way when the answer comes: of what is
// not, a client may see a broken connection and no answer.
func TestLimits(t *testing.T) {
	url, _ := serve(t, api.Options{Service: apitest.New()})
	if code, body := post(t, url, "GetJob", `{"name": "`+strings.Repeat("a", 4<<20+16<<10)+`"}`); code != 413 ||
		!strings.Contains(body, "more than 4194304 bytes") {
		t.Errorf("4 MiB and a little: %d %.200s", code, body)
	}
	for _, method := range []string{"GetJob", "Negotiate"} {
		if code, body := post(t, url, method, zipped(t, `{"name": "`+strings.Repeat("a", 5<<20)+`"}`), "Content-Encoding",
			"gzip"); code != 413 ||
			!strings.Contains(body, "resource_exhausted") {
			t.Errorf("%s of 5 MiB in a few KiB: %d %.200s", method, code, body)
		}
	}
	if code, body := post(t, url, "Submit", zipped(t, `{"job": "`+strings.Repeat("a", 100<<20)+`"}`), "Content-Encoding",
		"gzip"); code != 413 || !strings.Contains(body, "resource_exhausted") {
		t.Errorf("a submission of 100 MiB in a few KiB: %d %.200s", code, body)
	}
	full := apitest.New()
	full.Err = errkind.Errorf(errkind.Exhausted, "there are as many jobs as are taken")
	busy, _ := serve(t, api.Options{Service: full})
	if code, body := post(t, busy, "GetJob", `{"name": "a"}`); code != 429 {
		t.Errorf("a small call that is refused for want of room: %d %.200s", code, body)
	}
	if code, body := post(t, url, "DryRun", `{"job": "`+strings.Repeat("a", 2<<20)+`"}`); code != 400 ||
		!strings.Contains(body, "at most 1048576 are read") {
		t.Errorf("a job file of 2 MiB: %d %.200s", code, body)
	}
}

// zipped is text as gzip packs it.
func zipped(t *testing.T, text string) string {
	var out strings.Builder
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestTLS: beyond this machine, with a certificate and a token.
func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	s, err := api.Listen(api.Options{Service: apitest.New(), Listen: "0.0.0.0:0", CertFile: cert, KeyFile: key, Token: "0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context()) }()
	_, port, _ := net.SplitHostPort(s.Addr())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	req, _ := http.NewRequest(http.MethodPost, "https://127.0.0.1:"+port+"/sluice.v1alpha1.SluiceService/About", strings.NewReader("{}"))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 {
		t.Errorf("%s %s", resp.Status, resp.Proto)
	}
}

// certificate makes one for 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err1 := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	secret, err2 := x509.MarshalECPrivateKey(private)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	err3 := os.WriteFile(cert, public, 0o600)
	err4 := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return cert, key, pool
}
