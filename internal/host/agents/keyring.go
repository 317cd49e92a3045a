package agents

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/host/datadir"
)

// secretName is the file in the data directory with the secret that all agents' keys are derived from.
const secretName = "agent-secret"

// keyring makes the keys of agents: HMAC-SHA256 under a secret of this data directory, of the job's name and the digest of its submission.
// A key opens one job, outlives the daemon's process, and dies with the job: another job of the same name has another. Keys are never
// stored.
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
		secret, err := datadir.Secret(filepath.Join(k.dir, secretName), "remove it, and every agent needs a new key")
		if err != nil {
			return "", fmt.Errorf("the secret behind agents' keys: %w", err)
		}
		k.secret = secret
	}
	sum := hmac.New(sha256.New, k.secret)
	fmt.Fprintf(sum, "agent\x00%s\x00%s", name, digest) // a hash takes every write
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// opens reports whether a key is the job's.
func (k *keyring) opens(given string, name job.ID, digest string) (bool, error) {
	want, err := k.key(name, digest)
	return err == nil && hmac.Equal([]byte(given), []byte(want)), err
}
