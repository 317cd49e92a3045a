package config

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market/starvation"
)

// TestStarvation: every setting is read, what is left out is the default's, and an older name of one still counts.
func TestStarvation(t *testing.T) {
	for text, want := range map[string]starvation.Limit{
		"starve: never": {After: -1},
		"starve: {}":    {},
		"starve: {after: 2h, slowdown: 4, share: 5%, places: 3}": {After: 2 * time.Hour, Slowdown: 4, Share: 50, Places: 3},
		"starve: {after: never, places: 0}":                      {After: -1, Places: -1},
	} {
		d, err := ParseDaemon("f", []byte(text))
		if err != nil || d.Starvation != want {
			t.Errorf("%s: %+v %v, want %+v", text, d.Starvation, err, want)
		}
	}
	for _, bad := range []string{"starve: always", "starve: {share: 2}", "starve: {slowdown: 0}", "starve: {places: 1000}",
		"starve: {reserve: 1}"} {
		if _, err := ParseDaemon("f", []byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
	if d, err := ParseDaemon("f", []byte("market: {starve: 5h}")); err != nil || d.Market.Starve != 5*time.Hour {
		t.Errorf("%+v %v", d.Market, err)
	}
}
