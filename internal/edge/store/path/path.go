// Package path is the store on a file system that several machines have mounted (NFS, Lustre, CephFS, BeeGFS). What it needs of that is
// that a rename within it is one step, and that what was synced is seen by every later open; locks it only uses where they are.
package path

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"

	"sluice.dev/sluice/internal/edge/store/files"
)

// Name is the kind's word.
const Name = "path"

// Open opens the store in dir. It must be there (see Init): a file system that is not mounted leaves an empty folder, which is no store.
// Errors as files.Open has them.
func Open(dir string, before ...files.Before) (*files.Dir, error) {
	return files.Open(files.Options{Kind: Name, Dir: dir, Writer: Machine(), Before: files.First(before)})
}

// Init makes dir a store, if it is empty.
func Init(dir string) (*files.Dir, error) {
	return files.Open(files.Options{Kind: Name, Dir: dir, Make: true, Writer: Machine()})
}

// Machine tells this machine from others that write to the same file system: its uploads are files of their own.
func Machine() string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil || strings.TrimSpace(string(id)) == "" {
		id = nil // the name is what there is then
	}
	host, _ := os.Hostname()
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(id)) + "\x00" + host))
	return hex.EncodeToString(sum[:8])
}
