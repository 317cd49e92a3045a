//go:build planted

package reclaim

import (
	"os"

	"sluice.dev/sluice/internal/core/planted"
)

// The bug that SLUICE_PLANTED names is in: a test of this package must fail (make mutants).
func init() { planted.Plant(planted.Bug(os.Getenv("SLUICE_PLANTED"))) } //nolint:gochecknoinits // before any test
