package membership

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/versioned"
)

const (
	// membershipFile is all that a machine needs to speak as itself. It is one file, so that no crash leaves a part of it.
	membershipFile = "membership.json"
	// settingsFile has the last settings that the head has sent.
	settingsFile = "settings.json"
	// fileVersion is that of both. Any change of what they mean raises it, so that an earlier build refuses them untouched.
	fileVersion = 1
)

// again is what to do about a membershipFile that is unusable.
const again = "remove it, run sluice nodes remove at the head, and let the machine join again by a new token"

// kept is the content of membershipFile.
type kept struct {
	Version int `json:"version"`
	// Joined is what this machine is; nil: it has not joined.
	Joined *identity `json:"joined,omitempty"`
	// Asked is what it asks, or has asked, to be: written before the head is asked, so that the same can be asked again when the answer is
	// lost. nil: nothing is open.
	Asked *identity `json:"asked,omitempty"`
}

// identity is that of a machine in a cluster.
type identity struct {
	Name job.NodeID `json:"name"`
	// Head is its address.
	Head string `json:"head"`
	// Cluster is the SHA-256 of the root's certificate, Token that of the token's secret, in hexadecimal.
	Cluster string `json:"cluster"`
	Token   string `json:"token"`
	// Key is the machine's (PKCS #8, DER).
	Key []byte `json:"key"`
	// What the head has answered: certificates are DER. Empty in what is only asked.
	Certificate []byte `json:"certificate,omitempty"`
	Root        []byte `json:"root,omitempty"`
	Number      int    `json:"number,omitempty"`
}

// key parses the machine's.
func (id *identity) key() (*ecdsa.PrivateKey, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(id.Key)
	if err != nil {
		return nil, fmt.Errorf("the machine's key: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the machine's key is of another kind than authority.NewKey makes")
	}
	return key, nil
}

// certificate is the machine's, if it is that of this identity: of its key, in its name, signed by the root of its cluster.
func (id *identity) certificate() (*x509.Certificate, error) {
	key, err := id.key()
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(id.Root)
	if err != nil {
		return nil, fmt.Errorf("the cluster's root: %w", err)
	}
	cert, err := x509.ParseCertificate(id.Certificate)
	if err != nil {
		return nil, fmt.Errorf("the machine's certificate: %w", err)
	}
	switch {
	case hashOf(id.Root) != id.Cluster:
		return nil, errors.New("the root is another cluster's")
	case !key.PublicKey.Equal(cert.PublicKey):
		return nil, errors.New("the certificate is for another key")
	case cert.Subject.CommonName != string(id.Name):
		return nil, fmt.Errorf("the certificate is for machine %q, not for %q", cert.Subject.CommonName, id.Name)
	case id.Number < authority.FirstNumber || id.Number > node.MaxNumber:
		return nil, fmt.Errorf("the machine's number is %d, want %d to %d", id.Number, authority.FirstNumber, node.MaxNumber)
	}
	if err := cert.CheckSignatureFrom(root); err != nil {
		return nil, fmt.Errorf("the machine's certificate is not signed by the cluster's root: %w", err)
	}
	return cert, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// readKept reads a machine's directory. One without the file has nothing in it. Errors: Denied, Corrupt, Unsupported.
func readKept(dir string) (kept, error) {
	path := filepath.Join(dir, membershipFile)
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{Version: fileVersion}, nil
	}
	if err != nil {
		return kept{}, err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return kept{}, errkind.Errorf(errkind.Denied, "%s has mode %04o and may have been written by others, who could have this machine "+
			"obey another head: look at what is in it, and run chmod go-w %s", dir, mode, dir)
	}
	var k kept
	if found, err := readFile(path, again, &k); err != nil || !found {
		return kept{Version: fileVersion}, err
	}
	damaged := func(err error) (kept, error) {
		return kept{}, versioned.Damaged(path, mend(again), err)
	}
	if k.Joined != nil {
		if _, err := k.Joined.certificate(); err != nil {
			return damaged(err)
		}
	}
	if k.Asked != nil {
		if _, err := k.Asked.key(); err != nil {
			return damaged(err)
		}
	}
	return k, nil
}

// mend is what to do about a file that is damaged, or otherwise.
func mend(otherwise string) string { return "restore it from a copy, or " + otherwise }

// readFile reads one of the files into content, and reports whether it is there. otherwise is what to do about one that is unusable.
func readFile(path, otherwise string, content any) (found bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return false, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return false, errkind.Errorf(errkind.Denied, "%s has mode %04o and may have been read or written by others: %s", path, mode,
			otherwise)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	if err = versioned.Decode(path, text, fileVersion, fileVersion, mend(otherwise), content); err != nil {
		return false, err
	}
	return true, nil
}

// writeFile replaces one of the files durably, readable for its owner alone.
func writeFile(path string, content any) error {
	text, err := json.MarshalIndent(content, "", " ")
	if err != nil {
		return err
	}
	return durable.Replace(path, append(text, '\n'), 0o600)
}

// write keeps k in a directory, which is made if need be.
func (k kept) write(dir string) error {
	_, missing := os.Stat(dir)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = writeFile(filepath.Join(dir, membershipFile), k)
	}
	if err == nil && errors.Is(missing, fs.ErrNotExist) {
		err = durable.SyncDirectory(filepath.Dir(filepath.Clean(dir)))
	}
	if err != nil {
		return fmt.Errorf("keep who this machine is: %w", err)
	}
	return nil
}
