package bolt

import (
	"testing"

	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
)

func TestConformance(t *testing.T) {
	archivetest.Run(t, func(t testing.TB) archivetest.Store {
		dir := t.TempDir()
		return archivetest.Store{Open: func() (archive.Archive, error) { return Open(dir, false) }}
	})
}
