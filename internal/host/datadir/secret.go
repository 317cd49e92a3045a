package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// TokenFile is the file in a data directory with the token that opens its daemon to others than its own user.
const TokenFile = "token"

// Token reads a daemon's token, or makes one that nobody else can read. The caller holds the data directory's lock.
// Errors: Denied where others may have read the file, Corrupt where it holds no token.
func Token(dataDir string) (string, error) {
	secret, err := Secret(filepath.Join(dataDir, TokenFile), "remove it, and those who use it need the new one")
	if err != nil {
		return "", fmt.Errorf("the daemon's token: %w", err)
	}
	return hex.EncodeToString(secret), nil
}

const secretBytes = 32

// Secret reads a secret, or makes one that nobody else can read. otherwise tells people what to do about an unusable one.
func Secret(path, otherwise string) ([]byte, error) {
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
		return nil, errkind.Errorf(errkind.Denied, "%s has mode %04o and may have been read by others: %s", path, info.Mode().Perm(),
			otherwise)
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

// makeSecret creates the file whole or not at all, also when it crashes in the middle.
func makeSecret(path string) ([]byte, error) {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails (package crypto/rand)
	return secret, durable.Replace(path, []byte(hex.EncodeToString(secret)), 0o600)
}
