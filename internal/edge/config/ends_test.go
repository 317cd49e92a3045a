package config

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/ends"
)

func TestEnds(t *testing.T) {
	for text, want := range map[string]int64{
		"queues: []": ends.DefaultTheta, "ends: {}": ends.DefaultTheta, "ends: {theta: 0}": 0, "ends: {theta: 0.25}": 250_000,
		"ends: {theta: 5%}": 50_000,
	} {
		if d, err := ParseDaemon("f", []byte(text)); err != nil || d.Ends != want {
			t.Errorf("%s: %d, %v; want %d", text, d.Ends, err, want)
		}
	}
	if _, err := ParseDaemon("f", []byte("ends: {theta: 0.95, alpha: 1}")); err == nil || !strings.Contains(err.Error(), "ends.theta") ||
		!strings.Contains(err.Error(), "alpha") {
		t.Errorf("%v", err)
	}
}
