package config

import (
	"reflect"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/score"
)

// TestMarket: every setting is read, and what is left out has its default.
func TestMarket(t *testing.T) {
	for text, want := range map[string]auction.Config{
		"market: {}": auction.Config{}.WithDefaults(),
		`market:
  lambda: 0.7
  weights: {time: 40%, memory: 0.2, age: 0.3, urgency: 0.1}
  variants: 8
  weigh: time
  exclusive: true
  joint: true
  rounds: 1
  repack: withdraw
  freeze: 10s
  starve: never
  close: 50ms
  audience: 12
  trusting: true
  eta: 0.1
  kappa: 3.5
  payment: first
  refill: 1000
`: {
			Weights:  score.Weights{Lambda: 700_000, System: score.System{Time: 400_000, Memory: 200_000, Age: 300_000, Urgency: 100_000}},
			Variants: 8, PerTime: true, Exclusive: true, Joint: true, Rounds: 1, Repack: auction.Withdraw, Freeze: 10 * time.Second,
			Starve: -1, Close: 50 * time.Millisecond, Audience: 12, Trusting: true, Eta: 100_000, Kappa: 3_500_000,
			Payment: auction.FirstPrice, Refill: 1000,
		},
	} {
		d, err := ParseDaemon("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if d.Market == nil || !reflect.DeepEqual(*d.Market, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", text, d.Market, want)
		}
	}
	if d, err := ParseDaemon("f", []byte("queues: []")); err != nil || d.Market != nil {
		t.Errorf("without a market: %+v, %v", d.Market, err)
	}
}
