package status_test

import (
	"testing"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/status"
)

func TestAProfileSaysWhereItIsFrom(t *testing.T) {
	for want, p := range map[string]status.Profile{
		"declared": {Source: forecast.Declared},
		"declared, raised to what 1 run of its template used": {Source: forecast.Declared, Runs: 1},
		"taught by 120 runs of its template":                  {Source: forecast.Taught, Runs: 120},
		"taught by 120 runs of its template; widened 1.5 times, for it was passed too often": {Source: forecast.Taught, Runs: 120,
			Spread: 1500},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
