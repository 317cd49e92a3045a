package stream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// patience bounds every wait of the tests.
const patience = 20 * time.Second

// brisk is a timing under which a test need not wait long for a silent peer. It is wide enough for a busy machine.
var brisk = Timing{Beat: 50 * time.Millisecond, Silence: time.Second, RetryFirst: 5 * time.Millisecond, RetryLast: 50 * time.Millisecond}

// certifier signs certificates.
type certifier struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *certifier {
	t.Helper()
	a := &certifier{t: t, pool: x509.NewCertPool()}
	a.key = newKey(t)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert = a.sign(form, form, a.key)
	a.pool.AddCert(a.cert)
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

func (a *certifier) sign(form, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
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

// config is that of a party of the given name.
func (a *certifier) config(name string) *tls.Config {
	a.t.Helper()
	key := newKey(a.t)
	cert := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, key)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
		RootCAs:      a.pool, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
}

// callerName is the name in the certificate of the caller, as a test's server puts it into the context.
type callerName struct{}

func caller(ctx context.Context) (job.NodeID, error) {
	name, _ := ctx.Value(callerName{}).(string)
	if name == "stranger" {
		return "", errkind.Errorf(errkind.Denied, "machine %s was removed", name)
	}
	return job.NodeID(name), nil
}

// listening is a head that listens.
type listening struct {
	*Head
	addr   string
	server *http.Server
}

// serve opens a head at an address of this machine; an empty one is any.
func serve(t testing.TB, a *certifier, addr string, timing Timing) *listening {
	t.Helper()
	return serveTo(t, a, addr, HeadOptions{Caller: caller, Build: "head", Timing: timing})
}

// serveTo is serve of a head with options of its own.
func serveTo(t testing.TB, a *certifier, addr string, o HeadOptions) *listening {
	t.Helper()
	h := NewHead(o)
	path, handler := h.Handler(nil)
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
		var err error
		if l, err = net.Listen("tcp", addr); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s := &listening{Head: h, addr: l.Addr().String(), server: &http.Server{Handler: mux, TLSConfig: a.config("head"),
		ReadHeaderTimeout: patience, ConnContext: WithConn}}
	go func() { _ = s.server.ServeTLS(l, "", "") }()
	t.Cleanup(s.shut)
	return s
}

// shut ends the head as its process does.
func (s *listening) shut() { _, _ = s.Head.Close(), s.server.Close() }

// join makes the side of a machine.
func join(t testing.TB, a *certifier, name, head string, timing Timing) *Member {
	t.Helper()
	config := a.config(name)
	m := Join(MemberOptions{Machine: job.NodeID(name), Head: head, TLS: func() (*tls.Config, error) { return config, nil }, Build: name,
		Timing: timing})
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// client calls a head as a machine of that name, frame by frame.
func (a *certifier) client(name, head string, o ...connect.ClientOption) sluicev1alpha1connect.ClusterServiceClient {
	transport := &http.Transport{TLSClientConfig: a.config(name), ForceAttemptHTTP2: true}
	a.t.Cleanup(transport.CloseIdleConnections)
	return sluicev1alpha1connect.NewClusterServiceClient(&http.Client{Transport: transport}, "https://"+head,
		append(o, connect.WithGRPC())...)
}

// ended is what ends a stream that sends nothing more.
func ended(s *connect.BidiStreamForClient[pb.Frame, pb.Frame]) error {
	for {
		if _, err := s.Receive(); err != nil {
			return err
		}
	}
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

// linkedUp waits for the link of a machine, as both sides see it.
func linkedUp(t testing.TB, h *listening, m *Member) {
	t.Helper()
	until(t, "the link is up", func() bool {
		_, err := m.State()
		if err != nil {
			return false
		}
		for _, one := range h.Machines() {
			if one.Name == m.options.Machine && one.Up {
				return true
			}
		}
		return false
	})
}

// network is what lies between machines and their head, which can be cut or fall silent.
type network struct {
	t      testing.TB
	listen net.Listener
	to     string

	mu     sync.Mutex
	conns  []net.Conn
	silent chan struct{} // closed: bytes flow
}

// between makes a network in front of an address.
func between(t testing.TB, to string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t: t, listen: l, to: to, silent: make(chan struct{})}
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
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:k]); err != nil {
			return
		}
	}
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
