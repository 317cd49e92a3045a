package memory

import (
	"testing"

	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
)

func TestConformance(t *testing.T) {
	archivetest.Run(t, func(testing.TB) archivetest.Store {
		a := New()
		return archivetest.Store{Open: func() (archive.Archive, error) { return a, nil }}
	})
}
