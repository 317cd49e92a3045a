package head

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
)

// patience bounds every wait of the tests.
const patience = 30 * time.Second

// brisk is a timing under which a test need not wait long for a silent peer. It is wide enough for a busy machine.
var brisk = Timing{Beat: 20 * time.Millisecond, Silence: 2 * time.Second, Stall: 2 * time.Second, Answer: 5 * time.Second, Tries: 12,
	PauseFirst: 5 * time.Millisecond, PauseLast: 200 * time.Millisecond}

// authority signs certificates.
type authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(form, form, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(form, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, form, parent, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// party is who a side is, and whom it trusts, as text that another process can read.
type party struct {
	URL             string
	Root, Cert, Key []byte
}

func (a *authority) party(name string) party {
	a.t.Helper()
	key := newKey(a.t)
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return party{Root: a.cert.Raw, Cert: cert.Raw, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

func (p party) config() (*tls.Config, error) {
	root, err := x509.ParseCertificate(p.Root)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	cert, err := tls.X509KeyPair(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Cert}), p.Key)
	return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13}, err
}

// open is the store of a head as the party has it. Its connections are closed after a ping that is not answered for so long.
func (p party) open(timing Timing, ping time.Duration) (*Store, error) {
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	h2 := ClientHTTP2()
	h2.SendPingTimeout, h2.PingTimeout, h2.WriteByteTimeout = ping, ping, ping
	return Open(Options{URL: p.URL, Timing: timing,
		Client: &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, HTTP2: h2}}})
}

// openSpec is open of what spec has written.
func openSpec(text string) (store.Store, error) {
	var p party
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	return p.open(Timing{}, patience)
}

func (p party) spec(t testing.TB) string {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// callerName is the name in the certificate of the caller, as a test's server puts it into the context.
type callerName struct{}

func caller(ctx context.Context) (job.NodeID, error) {
	name, _ := ctx.Value(callerName{}).(string)
	return job.NodeID(name), nil
}

func everything(context.Context, Call) error { return nil }

// listening is a head that listens.
type listening struct {
	*Service
	t      testing.TB
	a      *authority
	addr   string
	server *http.Server
}

// serve opens a head at an address of this machine; an empty one is any.
func serve(t testing.TB, a *authority, addr string, o ServiceOptions) *listening {
	t.Helper()
	if o.Caller == nil {
		o.Caller = caller
	}
	if o.May == nil {
		o.May = everything
	}
	s, err := NewService(o)
	if err != nil {
		t.Fatal(err)
	}
	path, handler := s.Handler()
	mux := http.NewServeMux()
	mux.Handle(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.TLS.PeerCertificates[0].Subject.CommonName
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerName{}, name)))
	}))
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var l net.Listener
	for end := time.Now().Add(patience); l == nil; time.Sleep(time.Millisecond) {
		if l, err = net.Listen("tcp", addr); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	config, err := a.party("head").config()
	if err != nil {
		t.Fatal(err)
	}
	h := &listening{Service: s, t: t, a: a, addr: l.Addr().String(), server: &http.Server{Handler: mux, TLSConfig: config,
		ReadHeaderTimeout: patience, HTTP2: ServerHTTP2(), ErrorLog: log.New(io.Discard, "", 0)}}
	go func() { _ = h.server.ServeTLS(l, "", "") }()
	t.Cleanup(h.shut)
	return h
}

// shut ends the head as its process does.
func (h *listening) shut() {
	h.Close()
	_ = h.server.Close()
}

// kill ends it without a word to anybody: connections are gone before any call knows.
func (h *listening) kill() {
	_ = h.server.Close()
	h.Close()
}

// at is the party of a machine that calls an address.
func (a *authority) at(name, addr string) party {
	p := a.party(name)
	p.URL = "https://" + addr
	return p
}

// join is the store as a machine has it.
func (h *listening) join(name string) *Store { return h.a.join(name, h.addr) }

func (a *authority) join(name, addr string) *Store {
	a.t.Helper()
	s, err := a.at(name, addr).open(brisk, brisk.Silence)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = s.Close() })
	return s
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// network is what lies between machines and their head, which can be cut, at a byte too, or fall silent.
type network struct {
	listen net.Listener

	mu     sync.Mutex
	to     string
	conns  []net.Conn
	silent chan struct{} // closed: bytes flow
	left   int64         // bytes until it is cut; below 0: it is not
	cuts   []int64       // what left becomes after each cut
	passed int64
}

// between makes a network in front of an address.
func between(t testing.TB, to string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{listen: l, to: to, silent: make(chan struct{}), left: -1}
	close(n.silent)
	t.Cleanup(func() { _ = l.Close(); n.cut() })
	go n.accept()
	return n
}

func (n *network) addr() string { return n.listen.Addr().String() }

func (n *network) accept() {
	for {
		a, err := n.listen.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", n.to)
		if err != nil {
			_ = a.Close()
			continue
		}
		n.mu.Lock()
		n.conns = append(n.conns, a, b)
		n.mu.Unlock()
		go n.copy(a, b)
		go n.copy(b, a)
	}
}

func (n *network) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		k, err := from.Read(buf)
		n.mu.Lock()
		flows := n.silent
		n.mu.Unlock()
		<-flows
		k, cut := n.count(k)
		if _, failed := to.Write(buf[:k]); errors.Join(failed, err) != nil {
			return
		}
		if cut {
			n.cut()
			return
		}
	}
}

// count is how many of some bytes may pass, and whether the network is cut behind them.
func (n *network) count(k int) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left < 0 || int64(k) < n.left {
		if n.left >= 0 {
			n.left -= int64(k)
		}
		n.passed += int64(k)
		return k, false
	}
	k, n.left = int(n.left), -1
	n.passed += int64(k)
	if len(n.cuts) > 0 {
		n.left, n.cuts = n.cuts[0], n.cuts[1:]
	}
	return k, true
}

// cutAfter cuts it after so many bytes more, of both directions, then after so many more than that, and so on.
func (n *network) cutAfter(bytes ...int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.left, n.cuts = bytes[0], bytes[1:]
}

// pending is how many cuts are still to come.
func (n *network) pending() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left < 0 {
		return 0
	}
	return 1 + len(n.cuts)
}

// bytes that have passed.
func (n *network) bytes() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.passed
}

// hush holds back all bytes from now on, until the function it returns is called.
func (n *network) hush() (speak func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	flows := make(chan struct{})
	n.silent = flows
	return sync.OnceFunc(func() { close(flows) })
}

// cut ends all connections.
func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.conns = nil
}
