package membership

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/edge/authority"
)

// client calls a head by one connection.
func client(t testing.TB, addr string, config *tls.Config, o ...connect.ClientOption) sluicev1alpha1connect.ClusterServiceClient {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return sluicev1alpha1connect.NewClusterServiceClient(&http.Client{Transport: transport}, "https://"+addr,
		append(o, connect.WithGRPC())...)
}

func answers(t *testing.T, err error, code connect.Code, says string) {
	t.Helper()
	if err == nil || connect.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %v with %q", err, code, says)
	}
}

// Without a certificate of this cluster only Join answers, and a call that shows another's does not get through at all.
func TestWhoHasNoCertificate(t *testing.T) {
	c, other := newCluster(t, nil), newCluster(t, nil)
	theirs := other.join(t.TempDir(), other.invite("a"))
	c.join(t.TempDir(), c.invite("a"))
	_, request, err := authority.NewKey("a")
	if err != nil {
		t.Fatal(err)
	}
	config, err := theirs.TLS()
	if err != nil {
		t.Fatal(err)
	}
	foreign := stranger()
	foreign.Certificates = config.Certificates
	for config, refused := range map[*tls.Config]func(error){
		stranger(): func(err error) { answers(t, err, connect.CodePermissionDenied, "join by a token first") },
		foreign: func(err error) {
			if err == nil || connect.IsWireError(err) {
				t.Errorf("the head has answered: %v", err)
			}
		},
	} {
		k := client(t, c.addr, config)
		_, err = k.Renew(within(t), connect.NewRequest(&pb.RenewRequest{Request: request}))
		refused(err)
		_, err = k.Settings(within(t), connect.NewRequest(&pb.SettingsRequest{}))
		refused(err)
		link := k.Link(within(t))
		_ = link.Send(&pb.Frame{Hello: &pb.Hello{Oldest: 1, Newest: 1}}) // an error: it was refused already
		_, err = link.Receive()
		refused(err)
	}
	if list := c.links.Machines(); len(list) != 0 {
		t.Errorf("linked: %+v", list)
	}
}

// A machine gets certificates in its own name for its own key, whatever it asks for.
func TestAMachineThatAsksForAnother(t *testing.T) {
	c := newCluster(t, nil)
	a, b := c.join(t.TempDir(), c.invite("a")), c.join(t.TempDir(), c.invite("b"))
	config, err := a.TLS()
	if err != nil {
		t.Fatal(err)
	}
	k := client(t, c.addr, config)
	idA, _ := a.present()
	idB, _ := b.present()
	keyA, err := idA.key()
	if err != nil {
		t.Fatal(err)
	}
	keyB, err := idB.key()
	if err != nil {
		t.Fatal(err)
	}
	request, err := authority.Request("b", keyB)
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Renew(within(t), connect.NewRequest(&pb.RenewRequest{Request: request}))
	answers(t, err, connect.CodePermissionDenied, "another key")
	if request, err = authority.Request("b", keyA); err != nil {
		t.Fatal(err)
	}
	got, err := k.Renew(within(t), connect.NewRequest(&pb.RenewRequest{Request: request}))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(got.Msg.GetCertificate())
	if err != nil || cert.Subject.CommonName != "a" || int(got.Msg.GetNumber()) != a.Number() {
		t.Errorf("it got a certificate for %v, number %d, %v", cert.Subject, got.Msg.GetNumber(), err)
	}
	settings, err := k.Settings(within(t), connect.NewRequest(&pb.SettingsRequest{}))
	if err != nil || settings.Msg.GetZone() != "z-a" {
		t.Errorf("settings of %v, %v", settings, err)
	}
	owns := Owns(c.Authority)
	for _, s := range []struct {
		machine job.NodeID
		number  int
		want    bool
	}{
		{"a", a.Number(), true}, {"a", b.Number(), false}, {"b", b.Number(), true}, {"", 7, false}, {"a", 1, false},
	} {
		token := job.Token{Epoch: 1, Seq: uint64(s.number)<<40 | 9}
		if node.NumberOf(token) != s.number {
			t.Fatalf("the number of %v is %d", token, node.NumberOf(token))
		}
		if got := owns(s.machine, token); got != s.want {
			t.Errorf("%s owns a token of number %d: %v", s.machine, s.number, got)
		}
	}
}

// What is too long is not read, and what is compressed, which may be a thousand times of what was sent, is not taken.
func TestWhatIsTooLong(t *testing.T) {
	c := newCluster(t, nil)
	i, err := authority.ReadInvitation(c.token())
	if err != nil {
		t.Fatal(err)
	}
	long := &pb.JoinRequest{Secret: i.Secret(), Name: "a", Request: make([]byte, maxCall)}
	_, err = client(t, c.addr, stranger()).Join(within(t), connect.NewRequest(long))
	answers(t, err, connect.CodeResourceExhausted, "larger than configured max")
	_, err = client(t, c.addr, stranger(), connect.WithSendGzip()).Join(within(t), connect.NewRequest(long))
	answers(t, err, connect.CodeUnimplemented, "gzip")
	_, err = client(t, c.addr, stranger()).Join(within(t), connect.NewRequest(&pb.JoinRequest{Name: strings.Repeat("x", 60<<10)}))
	answers(t, err, connect.CodePermissionDenied, "not known here")
	if text := c.log.String(); len(text) > 8<<10 {
		t.Errorf("the log has %d bytes", len(text))
	}
}

// Whoever is refused waits, and keeps its connection busy meanwhile; others get through, and the end of the server does not wait for it.
func TestARefusalTakesItsTime(t *testing.T) {
	c := newCluster(t, func(o *HeadOptions) { o.RefusedFor, o.CallTime = time.Hour, 2*time.Hour })
	refused := make(chan struct{})
	c.log.when("may not join", func() { close(refused) })
	k := client(t, c.addr, stranger())
	done := make(chan error, 1)
	ctx := within(t)
	go func() {
		_, err := k.Join(ctx, connect.NewRequest(&pb.JoinRequest{Secret: make([]byte, 32), Name: "a"}))
		done <- err
	}()
	select {
	case <-refused:
	case <-ctx.Done():
		t.Fatal("nothing was refused")
	}
	_, err := k.Join(ctx, connect.NewRequest(&pb.JoinRequest{Secret: make([]byte, 32), Name: "a"}))
	answers(t, err, connect.CodeResourceExhausted, "not answered yet")
	c.log.when("nothing", nil)
	c.join(t.TempDir(), c.invite("b"))
	select {
	case err := <-done:
		t.Errorf("it was answered: %v", err)
	default:
	}
	c.shut()
	select {
	case err := <-done: // at once, and not cut
		answers(t, err, connect.CodePermissionDenied, "not known here")
	case <-ctx.Done():
		t.Error("the server's end waits for it")
	}
}

// A call whose end never comes is ended.
func TestACallThatDoesNotEnd(t *testing.T) {
	c := newCluster(t, func(o *HeadOptions) { o.CallTime = 50 * time.Millisecond })
	transport := &http.Transport{TLSClientConfig: stranger(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	body, rest := io.Pipe()
	defer rest.Close()
	ctx := within(t)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.addr+sluicev1alpha1connect.ClusterServiceJoinProcedure, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	answer, err := transport.RoundTrip(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, answer.Body) // an error: the call was cut
		_ = answer.Body.Close()
	}
	if ctx.Err() != nil {
		t.Error("it goes on")
	}
}

// Strangers that open connections and say nothing, or what is no TLS, keep no machine from joining, and end no link.
func TestStrangersInMasses(t *testing.T) {
	c := newCluster(t, func(o *HeadOptions) { o.Connections = 64 }) // 16 strangers, 4 of one address
	m := c.join(t.TempDir(), c.invite("a"))
	link := c.link(m)
	up, err := link.State()
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for i := range 100 {
		conn, err := net.Dial("tcp", c.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		switch i % 3 {
		case 0:
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") // an error: it was closed
		case 1:
			_, _ = conn.Write(bytes.Repeat([]byte{0x16, 3, 1, 0xff}, 100))
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns[:80] { // the oldest have made room
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatal("an old connection is still there")
		}
	}
	for i := range 3 {
		c.join(t.TempDir(), c.invite(job.NodeID(fmt.Sprint("b", i))))
	}
	if now, err := link.State(); err != nil || !now.Since.Equal(up.Since) {
		t.Errorf("the link is another: %v", err)
	}
}

// A caller that doesn't speak HTTP/2 gets no answer.
func TestHTTP1(t *testing.T) {
	c := newCluster(t, nil)
	config := stranger()
	config.NextProtos = nil
	transport := &http.Transport{TLSClientConfig: config, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(within(t), http.MethodPost,
		"https://"+c.addr+sluicev1alpha1connect.ClusterServiceJoinProcedure, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if answer, err := transport.RoundTrip(r); err == nil {
		_ = answer.Body.Close()
		t.Errorf("it was answered: %s", answer.Status)
	}
}

// A machine's connections are bounded, and its oldest makes room: its link too, which it opens again.
func TestAMachineWithManyConnections(t *testing.T) {
	c := newCluster(t, nil)
	m, other := c.join(t.TempDir(), c.invite("a")), c.join(t.TempDir(), c.invite("b"))
	link, quiet := c.link(m), c.link(other)
	first, err := link.State()
	if err != nil {
		t.Fatal(err)
	}
	before, err := quiet.State()
	if err != nil {
		t.Fatal(err)
	}
	config, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	for range ofMachine {
		if _, err := client(t, c.addr, config.Clone()).Settings(within(t), connect.NewRequest(&pb.SettingsRequest{})); err != nil {
			t.Error(err)
		}
	}
	until(t, "its link is another", func() bool {
		now, err := link.State()
		return err == nil && now.Since.After(first.Since)
	})
	if now, err := quiet.State(); err != nil || !now.Since.Equal(before.Since) {
		t.Errorf("the other's link is another: %v", err)
	}
}

// A connection that outlasts its certificate is of no use; its machine calls by another.
func TestAConnectionThatOutlastsItsCertificate(t *testing.T) {
	c := newCluster(t, nil)
	m := c.join(t.TempDir(), c.invite("a"))
	config, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	k := client(t, c.addr, config)
	if _, err = k.Settings(within(t), connect.NewRequest(&pb.SettingsRequest{})); err != nil {
		t.Fatal(err)
	}
	c.clock.advance(authority.CertificateFor + time.Minute)
	_, err = k.Settings(within(t), connect.NewRequest(&pb.SettingsRequest{}))
	answers(t, err, connect.CodePermissionDenied, "has lapsed")
}

// A call that panics is the only one that ends.
func TestACallThatPanics(t *testing.T) {
	c := newCluster(t, func(o *HeadOptions) { o.Settings = func(job.NodeID) Settings { panic("no settings") } })
	m := c.join(t.TempDir(), c.invite("a"))
	link := c.link(m)
	_, err := m.Settings(within(t))
	refuses(t, err, errkind.Unavailable, "its log says why")
	if !strings.Contains(c.log.String(), "no settings") {
		t.Error("the log does not")
	}
	if _, err := link.State(); err != nil {
		t.Error(err)
	}
}

// An answer that is not for this machine is not kept, whoever signed it.
func TestAnAnswerForAnother(t *testing.T) {
	c := newCluster(t, nil)
	idA, _ := c.join(t.TempDir(), c.invite("a")).present()
	idB, _ := c.join(t.TempDir(), c.invite("b")).present()
	good := func() *pb.JoinResponse {
		return &pb.JoinResponse{Certificate: idA.Certificate, Root: idA.Root, Number: uint32(idA.Number)}
	}
	if _, _, err := idA.with(good()); err != nil {
		t.Fatal(err)
	}
	for _, harm := range []func(*pb.JoinResponse){
		func(m *pb.JoinResponse) { m.Certificate = idB.Certificate }, func(m *pb.JoinResponse) { m.Root = nil },
		func(m *pb.JoinResponse) { m.Number = 1 }, func(m *pb.JoinResponse) { m.Certificate = m.Certificate[1:] },
	} {
		m := good()
		harm(m)
		_, _, err := idA.with(m)
		refuses(t, err, errkind.Corrupt, "can't use")
	}
}

// An address that is taken, or is none, is said before anything is served.
func TestListening(t *testing.T) {
	c := newCluster(t, nil)
	o := HeadOptions{Authority: c.Authority, Head: c.links}
	_, err := Listen(c.addr, o)
	refuses(t, err, errkind.Conflict, "is in use")
	_, err = Listen("256.0.0.1:1", o)
	refuses(t, err, errkind.Invalid, "256.0.0.1")
	s, err := Listen("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	if err = s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	s, err = Listen("127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.listener.Close()
	if err := s.Serve(context.Background()); err == nil || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("a listener that fails: %v", err)
	}
}
