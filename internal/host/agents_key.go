package host

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

// secretName is the file in the data directory that all agents' keys are made of.
const secretName = "agent-secret"

const secretBytes = 32

// keyring makes the keys of agents: HMAC-SHA256 under a secret of this data directory, of the job's name and a digest of what
// was submitted under it. A key opens one job, outlives the daemon's process, and dies with the job: another job of the same
// name has another. Nothing of it has to be stored for a job.
type keyring struct {
	dir    string
	mu     sync.Mutex
	secret []byte // nil: not read yet
}

// key of a job, in hex. Errors: Denied where the secret's file can be read by others, Corrupt where it is no secret.
func (k *keyring) key(name job.ID, digest string) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.secret == nil {
		secret, err := openSecret(filepath.Join(k.dir, secretName), "remove it, and every agent needs a new key")
		if err != nil {
			return "", fmt.Errorf("the secret behind agents' keys: %w", err)
		}
		k.secret = secret
	}
	sum := hmac.New(sha256.New, k.secret)
	fmt.Fprintf(sum, "agent\x00%s\x00%s", name, digest) // a hash takes every write
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// opens says whether a key is the job's.
func (k *keyring) opens(given string, name job.ID, digest string) (bool, error) {
	want, err := k.key(name, digest)
	return err == nil && hmac.Equal([]byte(given), []byte(want)), err
}

// openSecret reads a secret, or makes one that nobody else can read. otherwise is what to do about one that is not good.
func openSecret(path, otherwise string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeSecret(path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, errkind.Errorf(errkind.Denied, "%s has mode %04o and may have been read by others: %s", path, info.Mode().Perm(), otherwise)
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*secretBytes+1))
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(string(text))
	if err != nil || len(secret) != secretBytes {
		return nil, errkind.Errorf(errkind.Corrupt, "%s is damaged: restore it, or %s", path, otherwise)
	}
	return secret, nil
}

// makeSecret is whole or not there, also after a crash in the middle.
func makeSecret(path string) ([]byte, error) {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails (package crypto/rand)
	temp := path + ".tmp"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(hex.EncodeToString(secret))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err = os.Rename(temp, path); err != nil {
		return nil, err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return secret, errors.Join(d.Sync(), d.Close())
}
