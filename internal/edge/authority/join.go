package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// NewToken makes a token by which one machine can join within the given time; name is the only machine that may use it, if it is not empty.
// Its text goes to the machine (ReadInvitation) and is kept nowhere. Errors: Invalid, Exists (the head has the name), Exhausted (too many
// tokens are open).
func (a *Authority) NewToken(name job.NodeID, within time.Duration, now time.Time) (string, error) {
	if within <= 0 || within > 365*24*time.Hour {
		return "", errkind.Errorf(errkind.Invalid, "a token is good for %v: want more than nothing, and at most a year", within)
	}
	if name != "" {
		if err := CheckName(name); err != nil {
			return "", err
		}
	}
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails (package crypto/rand)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.free(name); err != nil {
		return "", err
	}
	err := a.change(func(m *members) error {
		m.Tokens = slices.DeleteFunc(m.Tokens, func(t token) bool { return t.Ends.Before(now) })
		if len(m.Tokens) >= mostTokens {
			return errkind.Errorf(errkind.Exhausted, "%d tokens are open: wait until some lapse", len(m.Tokens))
		}
		m.Tokens = append(m.Tokens, token{Hash: hashOf(secret), Ends: now.Add(within), For: name})
		return nil
	})
	if err != nil {
		return "", err
	}
	return Invitation{Root: sha256.Sum256(a.cert.Raw), secret: secret}.text(), nil
}

// Joined is what a machine gets for its token.
type Joined struct {
	// Certificate and the root that signed it, in DER.
	Certificate, Root []byte
	// Number of the machine (node.Config.Number).
	Number int
}

// TLS is for a machine's calls after it has joined.
func (j Joined) TLS(key *ecdsa.PrivateKey) (*tls.Config, error) {
	root, err := x509.ParseCertificate(j.Root)
	if err != nil {
		return nil, errkind.Errorf(errkind.Corrupt, "the cluster's root: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: HeadName, RootCAs: roots,
		Certificates: []tls.Certificate{{Certificate: [][]byte{j.Certificate}, PrivateKey: key}},
	}, nil
}

// Join takes a machine in: the token is used up, and the machine's key, which has signed the request, gets a certificate. The same machine
// with the same key may ask again until the token lapses, since the answer may have been lost. Errors: Denied (the token), Exists (the
// name), Invalid (the request), Exhausted.
func (a *Authority) Join(secret []byte, name job.NodeID, request []byte, now time.Time) (Joined, error) {
	hash := hashOf(secret)
	if err := a.invited(hash, now); err != nil { // first: who has no token may not keep the head busy with requests
		return Joined{}, err
	}
	public, key, err := requested(request)
	if err != nil {
		return Joined{}, err
	}
	if err = CheckName(name); err != nil {
		return Joined{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err = a.free(name); err != nil {
		return Joined{}, err
	}
	var joined Machine
	err = a.change(func(m *members) (err error) {
		joined, err = m.join(hash, name, key, now)
		return err
	})
	if err != nil {
		return Joined{}, err
	}
	return a.sign(joined, public, now)
}

// invited says why a token is none.
func (a *Authority) invited(hash string, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.members.token(hash, now)
	return err
}

// token is the one with a hash, used or not, unless it has lapsed.
func (m *members) token(hash string, now time.Time) (*token, error) {
	// A secret of 256 bits is found by its hash: how long that takes says nothing of the secret.
	i := slices.IndexFunc(m.Tokens, func(t token) bool { return t.Hash == hash })
	if i < 0 || m.Tokens[i].Ends.Before(now) {
		return nil, errkind.Errorf(errkind.Denied, "the token is not known here, or has lapsed: make another one at the head with "+
			"sluice token create")
	}
	return &m.Tokens[i], nil
}

// join uses a token up.
func (m *members) join(hash string, name job.NodeID, key string, now time.Time) (Machine, error) {
	t, err := m.token(hash, now)
	if err != nil {
		return Machine{}, err
	}
	at := m.present(name)
	switch {
	case t.For != "" && t.For != name:
		return Machine{}, errkind.Errorf(errkind.Denied, "the token is for machine %s, not for %s", t.For, name)
	case t.Used == name && t.Key == key && at >= 0 && m.Machines[at].Key == key:
		return m.Machines[at], nil
	case t.Used != "":
		return Machine{}, errkind.Errorf(errkind.Denied, "machine %s has joined by this token, which is good once: make another one at "+
			"the head with sluice token create", t.Used)
	case at >= 0:
		return Machine{}, errkind.Errorf(errkind.Exists, "a machine %s has joined already: choose another name with --name, or remove "+
			"that one at the head with sluice nodes remove %s", name, name)
	case len(m.Machines) >= mostMachines:
		return Machine{}, errkind.Errorf(errkind.Exhausted, "%d machines have joined, which is the limit", len(m.Machines))
	}
	t.Used, t.Key = name, key
	joined := Machine{Name: name, Number: m.number(), Key: key, Joined: now}
	m.Machines = append(m.Machines, joined)
	return joined, nil
}

// Renew signs a new certificate for the key of a machine that the transport has authenticated. Errors: Denied (it was removed, or asks with
// another key), Invalid (the request).
func (a *Authority) Renew(name job.NodeID, request []byte, now time.Time) (Joined, error) {
	public, key, err := requested(request)
	if err != nil {
		return Joined{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.members.present(name)
	if i < 0 {
		return Joined{}, RemovedError(name)
	}
	m := a.members.Machines[i]
	if m.Key != key {
		return Joined{}, errkind.Errorf(errkind.Denied, "machine %s asks with another key than it joined with: let it join again", name)
	}
	return a.sign(m, public, now)
}

// Caller is the machine that a certificate names, which the transport has verified with Root. Errors: Denied (it was removed, or another
// has its name now).
func (a *Authority) Caller(cert *x509.Certificate) (job.NodeID, error) {
	name := job.NodeID(cert.Subject.CommonName)
	key, err := keyOf(cert.PublicKey)
	if err != nil {
		return "", errkind.Errorf(errkind.Denied, "the certificate of machine %s: %w", name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := a.members.present(name); i < 0 || a.members.Machines[i].Key != key {
		return "", RemovedError(name)
	}
	return name, nil
}

// ErrRemoved marks the error of a machine that was removed, or has never joined: it is the same whenever it asks again.
var ErrRemoved = errors.New("it was removed from the cluster")

// RemovedError is what a machine hears that was removed.
func RemovedError(name job.NodeID) error {
	return errkind.Errorf(errkind.Denied, "machine %s: %w: make a token at the head with sluice token create, and join again by it",
		name, ErrRemoved)
}

// RemovedAs is an error of a head's answer, marked with ErrRemoved: its words came over the network, which carries no errors.
func RemovedAs(said error) error { return removed{said} }

type removed struct{ error }

func (r removed) Unwrap() error        { return r.error }
func (r removed) Is(target error) bool { return target == ErrRemoved }

// sign makes the certificate of a machine.
func (a *Authority) sign(m Machine, public any, now time.Time) (Joined, error) {
	form := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: string(m.Name)}, NotBefore: now.Add(-behind),
		NotAfter: now.Add(CertificateFor), KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, public, a.key)
	if err != nil {
		return Joined{}, err
	}
	return Joined{Certificate: der, Root: a.cert.Raw, Number: m.Number}, nil
}

// requested is the public key of a certificate request (PKCS #10, DER), whose owner has signed it, and the key's hash.
func requested(request []byte) (public any, key string, err error) {
	r, err := x509.ParseCertificateRequest(request)
	if err == nil {
		if k, ok := r.PublicKey.(*ecdsa.PublicKey); !ok || k.Curve != elliptic.P256() {
			err = errors.New("want a key of kind ECDSA P-256") // as NewKey makes; others may be weak, or cost much to check
		}
	}
	if err == nil {
		err = r.CheckSignature()
	}
	if err == nil {
		key, err = keyOf(r.PublicKey)
	}
	if err != nil {
		return nil, "", errkind.Errorf(errkind.Invalid, "the request for a certificate: %w", err)
	}
	return r.PublicKey, key, nil
}

// CheckName refuses what can be no machine's name: it is the beginning of slices' names, and stands in a certificate, in paths and in
// commands.
func CheckName(name job.NodeID) error {
	strange := strings.ContainsFunc(string(name), func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	})
	if name == "" || len(name) > 63 || strange || strings.ContainsAny(string(name[:1]), "-_.") {
		return errkind.Errorf(errkind.Invalid, "machine name %.70q: want 1 to 63 letters, digits, \"-\", \"_\" and \".\", first a "+
			"letter or a digit", name)
	}
	return nil
}

func hashOf(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:])
}
