package twin_test

import (
	"runtime/debug"
	"testing"
)

// TestMain has garbage collected less often: hundreds of short worlds, each small, spend a quarter of their time on it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	m.Run()
}
