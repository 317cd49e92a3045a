package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/core/job"
)

// Folder is a job's id as one word of a name, or the name of one directory: as it is if it is a plain name, else escaped so that no two
// jobs share one and none leads elsewhere.
func Folder(j job.ID) string {
	plain := j != "" && len(j) <= 200
	for i, c := range []byte(j) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		plain = plain && (letter || i > 0 && (c == '-' || c == '.'))
	}
	switch {
	case plain:
		return string(j)
	case len(j) <= 100:
		return "=" + hex.EncodeToString([]byte(j))
	}
	return fmt.Sprintf("=%x", sha256.Sum256([]byte(j)))
}

// JobOf is the job whose folder has a name; false if none can be.
func JobOf(folder string) (job.ID, bool) {
	code, escaped := strings.CutPrefix(folder, "=")
	if !escaped {
		return job.ID(folder), true
	}
	raw, err := hex.DecodeString(code)
	return job.ID(raw), err == nil && len(code) != 2*sha256.Size
}
