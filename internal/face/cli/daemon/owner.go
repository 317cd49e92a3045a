package daemon

import (
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// ownerFile has the word for a daemon in a store that several share.
const ownerFile = "store-owner"

// storeOwner is the word for this daemon in its store, which its executor has made.
func storeOwner(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, ownerFile))
	return strings.TrimSpace(string(text)), err
}

// followOwner has a machine name what its subjobs leave as its head's.
func followOwner(data, owner string) error {
	return durable.Replace(filepath.Join(data, ownerFile), []byte(owner+"\n"), 0o600)
}
