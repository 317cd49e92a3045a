package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// A machine's certificate is good for one thing: to be this machine as a client, for a while.
func TestWhatACertificateIsGoodFor(t *testing.T) {
	a := open(t, t.TempDir())
	m := newMachine(t, "a")
	joined, first := m.join(t, a, invite(t, a, "", t0))
	again, err := a.Renew("a", m.request, t0)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := x509.ParseCertificate(again.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(joined.Root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*x509.Certificate{first, renewed} {
		if err := c.CheckSignatureFrom(root); err != nil {
			t.Error(err)
		}
		if !slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || len(c.UnknownExtKeyUsage) != 0 ||
			c.KeyUsage != x509.KeyUsageDigitalSignature || c.IsCA || !c.BasicConstraintsValid {
			t.Errorf("usage %v %v, extended %v, authority %v", c.KeyUsage, c.BasicConstraintsValid, c.ExtKeyUsage, c.IsCA)
		}
		if c.Subject.CommonName != "a" || len(c.DNSNames)+len(c.IPAddresses)+len(c.URIs)+len(c.EmailAddresses) != 0 {
			t.Errorf("it is for %v %v", c.Subject, c.DNSNames)
		}
		if !c.NotBefore.Equal(t0.Add(-behind)) || !c.NotAfter.Equal(t0.Add(CertificateFor)) {
			t.Errorf("from %v to %v", c.NotBefore, c.NotAfter)
		}
	}
	if first.SerialNumber.Cmp(renewed.SerialNumber) == 0 || first.SerialNumber.Sign() <= 0 {
		t.Errorf("serial numbers %v and %v", first.SerialNumber, renewed.SerialNumber)
	}
}

// Who shows no token is told so before anything else of the call is looked at: a request is parsed and checked for members to be alone.
func TestTheTokenComesFirst(t *testing.T) {
	a := open(t, t.TempDir())
	_, err := a.Join(make([]byte, secretBytes), "no/name", []byte("no request"), t0)
	refuses(t, err, errkind.Denied, "not known here")
}

// Keys are those that NewKey makes: a weak one would let others pass for its machine, and one of another kind costs what it likes to check.
func TestOtherKeysAreRefused(t *testing.T) {
	a := open(t, t.TempDir())
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []any{weak, other} {
		request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Join(invite(t, a, "", t0).Secret(), "a", request, t0)
		refuses(t, err, errkind.Invalid, "ECDSA P-256")
	}
}

// Names that would be a path of their own, or an option of a command, are none; a token for one would be of no use.
func TestNames(t *testing.T) {
	a := open(t, t.TempDir())
	m := newMachine(t, "a")
	for _, name := range []job.NodeID{".", "..", "-rf", ".hidden", "a b", "a\x00"} {
		_, err := a.Join(invite(t, a, "", t0).Secret(), name, m.request, t0)
		refuses(t, err, errkind.Invalid, "machine name")
		_, err = a.NewToken(name, time.Hour, t0)
		refuses(t, err, errkind.Invalid, "machine name")
	}
	for _, name := range []job.NodeID{"a", "9", "rack-1_b.example", "Z"} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
}

// Of many that use one token at once, one joins; nobody reads what is being written.
func TestManyAtOnce(t *testing.T) {
	a := open(t, t.TempDir())
	here := newMachine(t, "here")
	_, cert := here.join(t, a, invite(t, a, "", t0))
	i := invite(t, a, "", t0)
	var all sync.WaitGroup
	var joined atomic.Int64
	for n := range 8 {
		m := newMachine(t, job.NodeID(fmt.Sprint("m", n)))
		all.Go(func() {
			if _, err := a.Join(i.Secret(), m.name, m.request, t0); err == nil {
				joined.Add(1)
			}
			if _, err := a.Caller(cert); err != nil {
				t.Error(err)
			}
			if _, err := a.Renew("here", here.request, t0); err != nil {
				t.Error(err)
			}
			if _, err := a.NewToken("", time.Hour, t0); err != nil {
				t.Error(err)
			}
			a.Machines()
		})
	}
	all.Wait()
	if joined.Load() != 1 || len(a.Machines()) != 2 {
		t.Errorf("%d joined by one token; machines: %+v", joined.Load(), a.Machines())
	}
}

// Both lists are bounded; a token that has lapsed makes room, one that has not does not.
func TestLists(t *testing.T) {
	a := open(t, t.TempDir())
	m := newMachine(t, "new")
	i := invite(t, a, "", t0)
	for n := range mostMachines {
		a.members.Machines = append(a.members.Machines, Machine{Name: "old", Number: FirstNumber + n, Removed: t0})
	}
	_, err := a.Join(i.Secret(), "new", m.request, t0)
	refuses(t, err, errkind.Exhausted, "the limit")
	a.members.Machines = a.members.Machines[:mostMachines-1]
	if j, _ := m.join(t, a, i); j.Number != FirstNumber+mostMachines-1 {
		t.Errorf("the last machine has number %d", j.Number)
	}
	a.members = members{}
	for n := range mostTokens {
		a.members.Tokens = append(a.members.Tokens, token{Hash: fmt.Sprint(n), Ends: t0.Add(time.Hour)})
	}
	_, err = a.NewToken("", time.Hour, t0.Add(time.Hour))
	refuses(t, err, errkind.Exhausted, "tokens are open")
	if _, err = a.NewToken("", time.Hour, t0.Add(time.Hour+1)); err != nil || len(a.members.Tokens) != 1 {
		t.Errorf("%d tokens, %v", len(a.members.Tokens), err)
	}
}
