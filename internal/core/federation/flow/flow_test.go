package flow

import (
	"testing"

	"sluice.dev/sluice/internal/core/quantity"
)

// levels of the tests: five kinds of slices, in GB.
var levels = Classes{10e9, 20e9, 40e9, 60e9, 80e9}

// tested is a valid configuration with those levels.
func tested() *Config { return checked(Config{Seed: 11, Classes: levels}) }

func checked(c Config) *Config {
	out, err := c.Checked()
	if err != nil {
		panic(err)
	}
	return out
}

// start of the tests' time.
const start = quantity.Instant(1e18)

// panics is what a function panics with, nil if it returns.
func panics(t *testing.T, f func()) (what any) {
	t.Helper()
	defer func() { what = recover() }()
	f()
	return nil
}
