// Package authority says which machines belong to a cluster. It makes the tokens by which machines join, and signs the certificates by
// which they are known: each names one machine, and is good as a client's alone, so that no machine can pass for the head. It knows
// nothing of messages, nodes or slices.
//
// All of it is in one directory of the head: the root's key and certificate, and who has joined. What is changed is durable before anybody
// is told.
package authority

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/versioned"
)

// Files of the directory.
const (
	rootFile    = "root.pem" // certificate and key
	membersFile = "members.json"
)

const (
	// rootFor is how long a root is good: as long as the cluster.
	rootFor = 50 * 365 * 24 * time.Hour
	// CertificateFor is how long a machine's certificate is good, if it is not renewed. A machine renews it when a third of that is left.
	CertificateFor = 7 * 24 * time.Hour
	// behind is by how much a machine's clock may be behind the head's for a new certificate to be good there.
	behind = time.Hour
	// FirstNumber is the number of the first machine that joins (node.Config.Number); the head's own nodes have those below.
	FirstNumber = 1 << 16
	// mostTokens bounds the tokens that are kept at once, mostMachines the machines, removed ones included.
	mostTokens, mostMachines = 10_000, 100_000
	// mostRemoved bounds the removed machines that are kept: by them people are told whose an old subjob was. The others are refused all
	// the same, as nobody that has joined.
	mostRemoved = 1000
)

// Authority is that of one cluster. Safe for concurrent use.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu      sync.Mutex
	members members
	own     []job.NodeID // names of the head itself (Reserve)
}

// Versions of the members' file. Any change of what it means raises it, so that an earlier build, which would drop what it doesn't know,
// refuses the file untouched: with a machine in it that has an end it is of the last one.
const (
	firstVersion   = 1
	membersVersion = 2
)

// members is the content of its file. Invariant: of machines with one name at most the last is not removed; their numbers ascend.
type members struct {
	Version  int       `json:"version"`
	Tokens   []token   `json:"tokens"`
	Machines []Machine `json:"machines"`
}

// token as it is kept: of its secret only a hash.
type token struct {
	Hash string    `json:"hash"`
	Ends time.Time `json:"ends"`
	// For is the only machine that may use it; empty: any.
	For job.NodeID `json:"for,omitempty"`
	// Used is the machine that has, and Key the hash of its public key: it may ask again, as its answer may have been lost.
	Used job.NodeID `json:"used,omitempty"`
	Key  string     `json:"key,omitempty"`
}

// Machine is one that has joined.
type Machine struct {
	Name job.NodeID `json:"name"`
	// Number tells its tokens of subjobs from those of all others, also of a machine of the same name before it (node.Config.Number).
	Number int `json:"number"`
	// Key is the hash of its public key, in hexadecimal.
	Key string `json:"key"`
	// Start is the last of its daemon that was answered; empty: none was.
	Start  string    `json:"start,omitempty"`
	Joined time.Time `json:"joined"`
	// Ephemeral: it is gone for good once its daemon ends, at Until at the latest; zero: nobody knows.
	Ephemeral bool      `json:"ephemeral,omitempty"`
	Until     time.Time `json:"until,omitzero"`
	// Removed is when it was; zero: it was not.
	Removed time.Time `json:"removed,omitzero"`
}

// Stay is how long it belongs to the cluster.
func (m *Machine) Stay() departure.Stay {
	s := departure.Stay{Ephemeral: m.Ephemeral}
	if !m.Until.IsZero() {
		s.Until = quantity.At(m.Until)
	}
	return s
}

// Open reads the authority of a directory, which is made with a new one if there is none. The caller holds the lock of the data directory.
// Errors: Denied where others may have read the key, or may write, Corrupt where a file is damaged, or one of the two is missing.
func Open(dir string, now time.Time) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := ours(dir); err != nil {
		return nil, err
	}
	a := &Authority{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, rootFile))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = a.begin(now)
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster's root: %w", err)
	}
	if err := a.root(text); err != nil {
		return nil, err
	}
	if err := a.read(); errors.Is(err, fs.ErrNotExist) {
		return nil, errkind.Errorf(errkind.Corrupt, "%s is missing, and %s is there: restore it from a copy of the data directory, or "+
			"remove %s, and all machines must join again", filepath.Join(dir, membersFile), rootFile, dir)
	} else if err != nil {
		return nil, err
	}
	return a, nil
}

// Reserve keeps the names that the head's nodes have and had from machines: names of slices begin with them, and facts by a name of before
// are read as facts by the present one. Errors: Exists where a machine has joined by one that they have, also a machine that was removed,
// since the head's zone goes on refusing its slices.
func (a *Authority) Reserve(have, had []job.NodeID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.members.Machines {
		if slices.Contains(have, m.Name) {
			return errkind.Errorf(errkind.Exists, "a machine called %s has joined this cluster, so its head can't be called so: give it "+
				"another name with --name", m.Name)
		}
	}
	a.own = slices.Concat(have, had)
	return nil
}

// free refuses a name that is the head's. Called with mu held.
func (a *Authority) free(name job.NodeID) error {
	if slices.Contains(a.own, name) {
		return errkind.Errorf(errkind.Exists, "the head itself is, or was, called %s: give the machine another name with --name", name)
	}
	return nil
}

// begin makes the files of a new cluster, and returns the root's. The list of nobody comes first: with the root the directory is whole.
func (a *Authority) begin(now time.Time) ([]byte, error) {
	switch err := a.read(); {
	case errors.Is(err, fs.ErrNotExist):
		if err = a.change(func(*members) error { return nil }); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case len(a.members.Tokens)+len(a.members.Machines) > 0:
		return nil, errkind.Errorf(errkind.Corrupt, "%s is missing, and %s is there: restore it from a copy of the data directory, or "+
			"remove %s too, and all machines must join again", filepath.Join(a.dir, rootFile), membersFile, membersFile)
	}
	text, err := newRoot(now)
	if err != nil {
		return nil, err
	}
	if err := durable.Replace(filepath.Join(a.dir, rootFile), text, 0o600); err != nil {
		return nil, err
	}
	return text, durable.SyncDirectory(filepath.Dir(a.dir)) // the directory itself is new
}

// ours refuses a file or a directory that others may write.
func ours(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return errkind.Errorf(errkind.Denied, "%s has mode %04o and may have been written by others, who could let machines join: look at "+
			"what is in it, and run chmod go-w %s", path, mode, path)
	}
	return nil
}

// newRoot makes a root's certificate and key as PEM.
func newRoot(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Sluice cluster"}, NotBefore: now.Add(-behind), NotAfter: now.Add(rootFor),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}

// root takes the content of the root's file.
func (a *Authority) root(text []byte) error {
	path := filepath.Join(a.dir, rootFile)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return errkind.Errorf(errkind.Denied, "%s has mode %04o and may have been read by others, who could pass for any machine: remove "+
			"%s, and all machines must join again", path, mode, a.dir)
	}
	damaged := errkind.Errorf(errkind.Corrupt, "%s is damaged: restore it from a copy of the data directory", path)
	first, rest := pem.Decode(text)
	second, _ := pem.Decode(rest)
	if first == nil || second == nil {
		return damaged
	}
	cert, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return damaged
	}
	parsed, err := x509.ParsePKCS8PrivateKey(second.Bytes)
	if err != nil {
		return damaged
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(cert.PublicKey) {
		return damaged
	}
	a.cert, a.key = cert, key
	return nil
}

// read reads who has joined. Its error is fs.ErrNotExist if there is no such file.
func (a *Authority) read() error {
	path := filepath.Join(a.dir, membersFile)
	text, err := os.ReadFile(path)
	if err == nil {
		err = ours(path)
	}
	if err != nil {
		return err
	}
	return versioned.Decode(path, text, firstVersion, membersVersion, "restore it from a copy of the data directory", &a.members)
}

// change applies f to a copy of who has joined, and keeps it once that is durable.
func (a *Authority) change(f func(m *members) error) error {
	next := members{Version: firstVersion, Tokens: slices.Clone(a.members.Tokens), Machines: slices.Clone(a.members.Machines)}
	if err := f(&next); err != nil {
		return err
	}
	if slices.ContainsFunc(next.Machines, func(m Machine) bool { return m.Ephemeral && m.Removed.IsZero() }) {
		next.Version = membersVersion
	}
	text, err := json.MarshalIndent(next, "", " ")
	if err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(a.dir, membersFile), text, 0o600); err != nil {
		return fmt.Errorf("keep who has joined: %w", err)
	}
	a.members = next
	return nil
}

// Machines that have joined and were not removed, by name.
func (a *Authority) Machines() (list []Machine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.members.Machines {
		if m.Removed.IsZero() {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(x, y Machine) int { return cmp.Compare(x.Name, y.Name) })
	return list
}

// Has reports whether a machine of that name has joined and was not removed.
func (a *Authority) Has(name job.NodeID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.members.present(name) >= 0
}

// Remove revokes the certificates of a machine. Its name is free, its number is not given again. Errors: NotFound.
func (a *Authority) Remove(name job.NodeID, now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.change(func(m *members) error {
		i := m.present(name)
		if i < 0 {
			return errkind.Errorf(errkind.NotFound, "no machine %q has joined", name)
		}
		m.Machines[i].Removed = now
		m.forget()
		return nil
	})
}

// Removed is how many machines were removed, of those that are kept.
func (a *Authority) Removed() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.members.Machines {
		if !a.members.Machines[i].Removed.IsZero() {
			n++
		}
	}
	return n
}

// forget drops the machines that were removed first, of more than are kept. The last that joined stays: by it numbers are not given again.
func (m *members) forget() {
	var at []time.Time
	for i := range m.Machines {
		if gone := m.Machines[i].Removed; !gone.IsZero() {
			at = append(at, gone)
		}
	}
	if len(at) <= mostRemoved {
		return
	}
	slices.SortFunc(at, time.Time.Compare)
	oldest, last := at[len(at)-mostRemoved], m.Machines[len(m.Machines)-1].Number
	m.Machines = slices.DeleteFunc(m.Machines, func(x Machine) bool {
		return !x.Removed.IsZero() && x.Removed.Before(oldest) && x.Number != last
	})
}

// Named is the machine that a number was given to, also one that was removed and is kept; empty: none. Tokens of subjobs begin with a
// number, so this says whose they are.
func (a *Authority) Named(number int) job.NodeID {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, ok := slices.BinarySearchFunc(a.members.Machines, number, func(m Machine, n int) int { return cmp.Compare(m.Number, n) })
	if !ok {
		return ""
	}
	return a.members.Machines[i].Name
}

// present is the index of the machine that has a name now, -1 if none has.
func (m *members) present(name job.NodeID) int {
	return slices.IndexFunc(m.Machines, func(x Machine) bool { return x.Name == name && x.Removed.IsZero() })
}

// number is the next one.
func (m *members) number() int {
	n := FirstNumber
	for _, x := range m.Machines {
		n = max(n, x.Number+1)
	}
	return n
}

// serial is a number for a certificate, of 128 bits.
func serial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails (package crypto/rand)
	b[0] &= 0x7f        // RFC 5280, section 4.1.2.2: positive
	return new(big.Int).SetBytes(b)
}

// keyOf is the hash of a public key.
func keyOf(public any) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}
