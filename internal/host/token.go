package host

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// TokenFile is the file in a data directory with the token that opens its daemon to others than its own user.
const TokenFile = "token"

// Token reads a daemon's token, or makes one that nobody else can read. Only whoever has the data directory's lock may call it.
// Errors: Denied where others may have read the file, Corrupt where it holds no token.
func Token(dataDir string) (string, error) {
	secret, err := openSecret(filepath.Join(dataDir, TokenFile), "remove it, and those who use it need the new one")
	if err != nil {
		return "", fmt.Errorf("the daemon's token: %w", err)
	}
	return hex.EncodeToString(secret), nil
}
