package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

var t0 = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func open(t testing.TB, dir string) *Authority {
	t.Helper()
	a, err := Open(dir, t0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// machine is one that asks to join.
type machine struct {
	name    job.NodeID
	key     *ecdsa.PrivateKey
	request []byte
}

func newMachine(t testing.TB, name job.NodeID) machine {
	t.Helper()
	key, request, err := NewKey(name)
	if err != nil {
		t.Fatal(err)
	}
	return machine{name, key, request}
}

func invite(t testing.TB, a *Authority, name job.NodeID, now time.Time) Invitation {
	t.Helper()
	text, err := a.NewToken(name, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	i, err := ReadInvitation(text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (m machine) join(t testing.TB, a *Authority, i Invitation) (Joined, *x509.Certificate) {
	t.Helper()
	j, err := a.Join(i.Secret(), m.name, m.request, t0)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(j.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return j, cert
}

func refuses(t *testing.T, err error, kind errkind.Kind, says string) {
	t.Helper()
	if errkind.Of(err) != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v (%v), want %v with %q", err, errkind.Of(err), kind, says)
	}
}

func TestATokenIsGoodOnce(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	i := invite(t, a, "", t0)
	m := newMachine(t, "a")
	first, cert := m.join(t, a, i)
	if name, err := a.Caller(cert); name != "a" || err != nil {
		t.Errorf("caller %q, %v", name, err)
	}
	// Its answer was lost, and the head was started anew meanwhile.
	a = open(t, dir)
	again, _ := m.join(t, a, i)
	if again.Number != first.Number || len(a.Machines()) != 1 {
		t.Errorf("the same machine got number %d and then %d", first.Number, again.Number)
	}
	_, err := a.Join(i.Secret(), "b", newMachine(t, "b").request, t0)
	refuses(t, err, errkind.Denied, "machine a has joined by this token")
	_, err = a.Join(i.Secret(), "a", newMachine(t, "a").request, t0)
	refuses(t, err, errkind.Denied, "machine a has joined by this token")
	_, err = a.Join(invite(t, a, "", t0).Secret(), "a", newMachine(t, "a").request, t0)
	refuses(t, err, errkind.Exists, "sluice nodes remove a")
}

// TestNamesOfTheHead: no machine may have one, and the head none that a machine has or had.
func TestNamesOfTheHead(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	if err := a.Reserve([]job.NodeID{"rig", "rig-1"}, []job.NodeID{"old"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []job.NodeID{"rig", "rig-1", "old"} {
		i := invite(t, a, "", t0)
		_, err := a.Join(i.Secret(), name, newMachine(t, name).request, t0)
		refuses(t, err, errkind.Exists, "give the machine another name with --name")
		_, err = a.NewToken(name, time.Hour, t0)
		refuses(t, err, errkind.Exists, "another name")
		other := "not-" + name
		if newMachine(t, other).join(t, a, i); !a.Has(other) {
			t.Errorf("the token of who was called %s is used up", name)
		}
	}
	if err := a.Remove("not-old", t0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		have, had job.NodeID
		taken     bool
	}{{"not-rig", "x", true}, {"not-old", "x", true}, {"x", "not-rig", false}, {"rig", "x", false}} {
		if err := open(t, dir).Reserve([]job.NodeID{c.have}, []job.NodeID{c.had}); c.taken != (errkind.Of(err) == errkind.Exists) {
			t.Errorf("a head called %s, and %s before: %v", c.have, c.had, err)
		}
	}
}

func TestATokenThatIsNotGood(t *testing.T) {
	a := open(t, t.TempDir())
	m := newMachine(t, "a")
	_, err := a.Join(invite(t, a, "b", t0).Secret(), "a", m.request, t0)
	refuses(t, err, errkind.Denied, "for machine b, not for a")
	late := invite(t, a, "", t0)
	_, err = a.Join(late.Secret(), "a", m.request, t0.Add(time.Hour+1))
	refuses(t, err, errkind.Denied, "has lapsed")
	if _, err = a.Join(late.Secret(), "a", m.request, t0.Add(time.Hour)); err != nil {
		t.Errorf("in its last moment: %v", err)
	}
	_, err = a.Join(invite(t, open(t, t.TempDir()), "", t0).Secret(), "c", m.request, t0)
	refuses(t, err, errkind.Denied, "not known here")
	for _, name := range []job.NodeID{"", "a/b", "ä", job.NodeID(strings.Repeat("x", 64))} {
		_, err = a.Join(invite(t, a, "", t0).Secret(), name, m.request, t0)
		refuses(t, err, errkind.Invalid, "machine name")
	}
	_, err = a.Join(invite(t, a, "", t0).Secret(), "c", m.request[:len(m.request)-1], t0)
	refuses(t, err, errkind.Invalid, "the request for a certificate")
	for _, within := range []time.Duration{0, -1, 9000 * time.Hour} {
		_, err = a.NewToken("", within, t0)
		refuses(t, err, errkind.Invalid, "a token is good for")
	}
	for _, text := range []string{"", "sluice-join-1-", "sluice-join-2-AAAA", prefix + "AAAA", prefix + "!"} {
		_, err = ReadInvitation(text)
		refuses(t, err, errkind.Invalid, "sluice token create")
	}
}

// A removed machine is refused at once, whatever its certificate says, and its number is not given again.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	m := newMachine(t, "a")
	first, cert := m.join(t, a, invite(t, a, "", t0))
	if err := a.Remove("a", t0); err != nil {
		t.Fatal(err)
	}
	refuses(t, a.Remove("a", t0), errkind.NotFound, `"a"`)
	a = open(t, dir)
	_, err := a.Caller(cert)
	refuses(t, err, errkind.Denied, "was removed")
	_, err = a.Renew("a", m.request, t0)
	refuses(t, err, errkind.Denied, "was removed")
	// Another machine of that name is not the one that was removed.
	second := newMachine(t, "a")
	joined, mine := second.join(t, a, invite(t, a, "", t0))
	if joined.Number == first.Number {
		t.Errorf("number %d was given twice", first.Number)
	}
	_, err = a.Caller(cert)
	refuses(t, err, errkind.Denied, "was removed")
	if name, err := a.Caller(mine); name != "a" || err != nil {
		t.Errorf("caller %q, %v", name, err)
	}
	_, err = a.Renew("a", m.request, t0)
	refuses(t, err, errkind.Denied, "another key")
	newMachine(t, "b").join(t, a, invite(t, a, "", t0))
	for number, want := range map[int]job.NodeID{0: "", first.Number - 1: "", first.Number: "a", joined.Number: "a", joined.Number + 1: "b",
		joined.Number + 2: ""} {
		if got := a.Named(number); got != want {
			t.Errorf("number %d is of %q, want %q", number, got, want)
		}
	}
	renewed, err := a.Renew("a", second.request, t0.Add(CertificateFor/2))
	if err != nil || renewed.Number != joined.Number {
		t.Fatal(renewed.Number, err)
	}
}

// What is in the directory is read whole, or refused with what to do; nothing is made in the place of what is missing.
func TestADamagedDirectory(t *testing.T) {
	for _, c := range []struct {
		name, says string
		kind       errkind.Kind
		harm       func(dir string) error
	}{
		{"the root is missing", "is missing", errkind.Corrupt, func(d string) error { return os.Remove(filepath.Join(d, rootFile)) }},
		{"the root is cut", "is damaged", errkind.Corrupt, func(d string) error { return os.Truncate(filepath.Join(d, rootFile), 300) }},
		{"the root may be read", "may have been read by others", errkind.Denied,
			func(d string) error { return os.Chmod(filepath.Join(d, rootFile), 0o640) }},
		{"the members are of a newer build", "version 3", errkind.Unsupported,
			func(d string) error {
				return os.WriteFile(filepath.Join(d, membersFile), []byte(`{"version": 3, "tokens": {}}`), 0o600)
			}},
		{"the members have no version", "its version is 0", errkind.Corrupt,
			func(d string) error {
				return os.WriteFile(filepath.Join(d, membersFile), []byte(`{"machines": []}`), 0o600)
			}},
		{"the members are cut", "is damaged", errkind.Corrupt,
			func(d string) error { return os.Truncate(filepath.Join(d, membersFile), 20) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			a := open(t, dir)
			newMachine(t, "a").join(t, a, invite(t, a, "", t0))
			if err := c.harm(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, t0)
			refuses(t, err, c.kind, c.says)
		})
	}
}

// What can't be written has not happened: the token is still good, and nobody has joined.
func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	i := invite(t, a, "", t0)
	m := newMachine(t, "a")
	if err := os.Mkdir(filepath.Join(dir, membersFile+".tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, membersFile+".tmp", "x"), nil, 0o600); err != nil { // so that it can't be removed
		t.Fatal(err)
	}
	if _, err := a.Join(i.Secret(), "a", m.request, t0); err == nil || !strings.Contains(err.Error(), "keep who has joined") {
		t.Fatalf("got %v", err)
	}
	if len(a.Machines()) != 0 {
		t.Errorf("machines: %+v", a.Machines())
	}
	if err := os.RemoveAll(filepath.Join(dir, membersFile+".tmp")); err != nil {
		t.Fatal(err)
	}
	m.join(t, a, i)
}

// shake performs a TLS handshake of a client and a server, and returns what each made of it.
func shake(t *testing.T, server, client *tls.Config) (name *x509.Certificate, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			serverErr = err
			return
		}
		defer conn.Close()
		s := tls.Server(conn, server)
		if serverErr = s.HandshakeContext(context.Background()); serverErr == nil {
			if peers := s.ConnectionState().PeerCertificates; len(peers) > 0 {
				name = peers[0]
			}
			_, serverErr = s.Write([]byte("x"))
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := tls.Client(conn, client)
	if clientErr = c.HandshakeContext(context.Background()); clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1)) // a server tells by this that it refuses a client's certificate (TLS 1.3)
	}
	_ = c.Close()
	<-done
	return name, serverErr, clientErr
}

// A machine knows its head by the token, and then by the root; the head knows the machine by its certificate; no machine can pass for the
// head, and no other cluster's machine is taken.
func TestHandshakes(t *testing.T) {
	a, other := open(t, t.TempDir()), open(t, t.TempDir())
	now := func() time.Time { return t0 }
	i := invite(t, a, "", t0)
	bootstrap := i.TLS(now)
	if _, s, c := shake(t, a.Server(now), bootstrap); s != nil || c != nil {
		t.Fatalf("to join: %v, %v", s, c)
	}
	if _, _, err := shake(t, other.Server(now), bootstrap); errkind.Of(err) != errkind.Denied {
		t.Errorf("another head: %v", err)
	}
	m := newMachine(t, "a")
	joined, _ := m.join(t, a, i)
	mine, err := joined.TLS(m.key)
	if err != nil {
		t.Fatal(err)
	}
	mine.Time = now
	cert, s, c := shake(t, a.Server(now), mine)
	if s != nil || c != nil {
		t.Fatalf("after it joined: %v, %v", s, c)
	}
	if name, err := a.Caller(cert); name != "a" || err != nil {
		t.Errorf("caller %q, %v", name, err)
	}
	if _, _, err := shake(t, other.Server(now), mine); err == nil {
		t.Error("another head was taken for its own")
	}
	// The machine tries to be the head, towards one that joins and one that has joined.
	fake := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{
		Certificate: [][]byte{joined.Certificate, joined.Root}, PrivateKey: m.key}}}
	for _, client := range []*tls.Config{mine, bootstrap} {
		if _, _, err := shake(t, fake, client); err == nil {
			t.Error("a machine was taken for the head")
		}
	}
	// A certificate that has lapsed, by the head's clock.
	later := func() time.Time { return t0.Add(CertificateFor + time.Second) }
	mine.Time = later
	if _, s, _ := shake(t, a.Server(later), mine); s == nil {
		t.Error("a lapsed certificate was taken")
	}
}

// The head's own certificate is made anew in time.
func TestTheHeadsCertificate(t *testing.T) {
	now := t0
	config := open(t, t.TempDir()).Server(func() time.Time { return now })
	get := func() *tls.Certificate {
		t.Helper()
		c, err := config.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := get()
	if get() != first {
		t.Error("it is made for each call")
	}
	now = Renewal(first.Leaf)
	if second := get(); second == first || !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Error("it was not renewed")
	}
}

// A head whose clock was ahead when it made its certificate, and is set right, makes another: nobody would take the first for years.
func TestAClockThatIsSetBack(t *testing.T) {
	now := t0.Add(10 * 365 * 24 * time.Hour)
	config := open(t, t.TempDir()).Server(func() time.Time { return now })
	if _, err := config.GetCertificate(nil); err != nil {
		t.Fatal(err)
	}
	now = t0
	c, err := config.GetCertificate(nil)
	if err != nil || c.Leaf.NotBefore.After(now) {
		t.Errorf("it is good from %v, %v", c.Leaf.NotBefore, err)
	}
}

// Machines come, come again, and go in any order: the file says after each step what memory says, no number is given twice, and a token
// lets in one machine.
func TestMembers(t *testing.T) {
	names := []job.NodeID{"a", "b", "c"}
	people := map[job.NodeID][]machine{}
	for _, n := range names {
		people[n] = []machine{newMachine(t, n), newMachine(t, n)}
	}
	parent, n := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		dir := filepath.Join(parent, fmt.Sprint(n))
		a, err := Open(dir, t0)
		if err != nil {
			r.Fatal(err)
		}
		var secrets [][]byte
		used := map[int]string{}        // by which key a token was used
		in := map[job.NodeID]int{}      // which key of a name is in, from 1
		numbers := map[int]job.NodeID{} // given
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			name := rapid.SampledFrom(names).Draw(r, "name")
			which := rapid.IntRange(1, 2).Draw(r, "key")
			m := people[name][which-1]
			switch rapid.IntRange(0, 3).Draw(r, "step") {
			case 0:
				text, err := a.NewToken("", time.Hour, t0)
				if err != nil {
					r.Fatal(err)
				}
				i, err := ReadInvitation(text)
				if err != nil {
					r.Fatal(err)
				}
				secrets = append(secrets, i.Secret())
			case 1:
				if len(secrets) == 0 {
					continue
				}
				k := rapid.IntRange(0, len(secrets)-1).Draw(r, "token")
				self := string(name) + string(rune('0'+which))
				j, err := a.Join(secrets[k], name, m.request, t0)
				want := used[k] == "" && in[name] == 0 || used[k] == self && in[name] == which
				if (err == nil) != want {
					r.Fatalf("join of %s by token %d, used by %q, in %v: %v", self, k, used[k], in, err)
				}
				if err != nil {
					continue
				}
				if in[name] == 0 {
					if was, ok := numbers[j.Number]; ok {
						r.Fatalf("number %d of %s was given before, to %s", j.Number, name, was)
					}
					numbers[j.Number] = name
				}
				used[k], in[name] = self, which
			case 2:
				if err := a.Remove(name, t0); (err == nil) != (in[name] != 0) {
					r.Fatalf("remove %s, in %v: %v", name, in, err)
				}
				in[name] = 0
			case 3:
				if a, err = Open(dir, t0); err != nil {
					r.Fatal(err)
				}
			}
			count := 0
			for _, n := range names {
				if in[n] != 0 {
					count++
				}
			}
			if got := len(a.Machines()); got != count {
				r.Fatalf("%d machines, want %d", got, count)
			}
		}
	})
}

// TestRemovedMachinesAreForgotten: of very many the last that were removed are kept. Those that are forgotten are refused as ever, and no
// number is given again, also if it was the last that was given.
func TestRemovedMachinesAreForgotten(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	stays, staysCert := newMachine(t, "stays").join(t, a, invite(t, a, "", t0))
	first, firstCert := newMachine(t, "m").join(t, a, invite(t, a, "", t0))
	if err := a.Remove("m", t0); err != nil {
		t.Fatal(err)
	}
	const more = 50
	err := a.change(func(m *members) error { // as if each had joined and was removed
		for i := range mostRemoved + more {
			m.Machines = append(m.Machines, Machine{Name: "m", Number: m.number(), Key: "k", Joined: t0,
				Removed: t0.Add(time.Duration(mostRemoved+more-i) * time.Second)}) // the last that joined first
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	highest := first.Number + mostRemoved + more
	newMachine(t, "last").join(t, a, invite(t, a, "", t0))
	if err = a.Remove("last", t0); err != nil { // the first of all that were removed, and the last that joined
		t.Fatal(err)
	}
	a = open(t, dir)
	if n := a.Removed(); n != mostRemoved+1 {
		t.Errorf("%d removed machines are kept", n)
	}
	if a.Named(first.Number) != "" || a.Named(highest-more) != "m" || a.Named(highest+1) != "last" || a.Named(stays.Number) != "stays" {
		t.Errorf("named are %q, %q, %q, %q", a.Named(first.Number), a.Named(highest-more), a.Named(highest+1), a.Named(stays.Number))
	}
	if _, err = a.Caller(firstCert); !errors.Is(err, ErrRemoved) {
		t.Errorf("a machine that is forgotten: %v", err)
	}
	if name, err := a.Caller(staysCert); name != "stays" || err != nil {
		t.Errorf("one that was not removed: %q, %v", name, err)
	}
	if j, _ := newMachine(t, "next").join(t, a, invite(t, a, "", t0)); j.Number != highest+2 {
		t.Errorf("the next has number %d, want %d", j.Number, highest+2)
	}
}
