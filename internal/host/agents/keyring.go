package agents

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/host/datadir"
)

// secretName is the file in the data directory with the secret that all agents' keys are derived from.
const secretName = "agent-secret"

// keyring makes the keys of agents: HMAC-SHA256 under a secret of this data directory, of the job's name and identity. A key
// opens one job, outlives the daemon's process, and dies with the job: another job of the same name has another. Keys are never stored.
type keyring struct {
	dir    string
	mu     sync.Mutex
	secret []byte // nil: not read yet
}

// identityOf tells an external job from others of its name: by what was submitted, and by whom. The owner is no part of the content's
// digest, and whoever has submitted the same before, and deleted it, must not have the key. Jobs from before there were owners keep theirs.
func identityOf(a *protocol.Acceptance) string {
	if owner := a.Spec.Owner; owner != "" {
		return a.Digest + "\x00" + owner
	}
	return a.Digest
}

// key of a job, in hex. Errors: Denied where the secret's file can be read by others, Corrupt where it is no secret.
func (k *keyring) key(name job.ID, identity string) (string, error) {
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
	fmt.Fprintf(sum, "agent\x00%s\x00%s", name, identity) // a hash takes every write
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// opens reports whether a key is the job's.
func (k *keyring) opens(given string, name job.ID, identity string) (bool, error) {
	want, err := k.key(name, identity)
	return err == nil && hmac.Equal([]byte(given), []byte(want)), err
}
