package apitest

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Now is the moment at which everything in a fresh Fake stands.
func Now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// At is a moment some time after Now.
func At(d time.Duration) quantity.Instant { return quantity.At(Now().Add(d)) }
