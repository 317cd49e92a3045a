package config

import (
	"math"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/edge/strict"
)

// MarketOf reads the settings of a market that negotiates: {lambda, weights: {time, memory, residue, headroom, age, share, brevity, index,
// urgency}, variants, weigh: score|time, exclusive, joint, rounds, replan: rolling|withdraw|never, freeze, starve, bidTimeout, maxBidders,
// trusting, eta, kappa, payment: first|free|vcg, refill}. What is left out has its default; a weight that is left out
// where others are given is 0. starve is an older name of `starve: {after}` beside the market.
func MarketOf(v strict.Value) auction.Config {
	o, found := v.Object(
		"lambda", "weights", "variants", "weigh", "exclusive", "joint", "rounds", "replan|repack", "freeze", "starve", "bidTimeout|close",
		"maxBidders|audience",
		"trusting", "eta", "kappa", "payment", "refill",
	), v.Count()
	c := auction.Config{
		Weights:   weights(o),
		Variants:  int(o.Get("variants").Integer(1, 64, 0)),
		PerTime:   o.Get("weigh").Choice("score", "time") == 1,
		Exclusive: o.Get("exclusive").Boolean(false),
		Joint:     o.Get("joint").Boolean(false),
		Rounds:    int(o.Get("rounds").Integer(1, 16, 0)),
		Repack:    auction.Repack(o.Get("replan").Choice(auction.RepackNames...)),
		Freeze:    o.Get("freeze").Duration(time.Millisecond, MaxTime, 0),
		Starve:    after(o.Get("starve")),
		Close:     o.Get("bidTimeout").Duration(time.Millisecond, time.Minute, 0),
		Audience:  int(o.Get("maxBidders").Integer(2, math.MaxInt32, 0)),
		Trusting:  o.Get("trusting").Boolean(false),
		Eta:       o.Get("eta").Fraction(score.One, 1, score.One, 0),
		Kappa:     o.Get("kappa").Fraction(score.One, 1, 100*score.One, 0),
		Payment:   auction.Payment(o.Get("payment").Choice(auction.PaymentNames...)),
		Refill:    o.Get("refill").Integer(1, math.MaxInt32, 0),
	}.WithDefaults()
	if v.Given() && v.Count() == found {
		if err := c.Validate(); err != nil { // what no setting alone is wrong in
			for _, e := range strict.Reasons(err) {
				v.Wrong("%s", strings.TrimPrefix(e.Error(), "market: "))
			}
		}
	}
	return c
}

// weights of the score. The system's are given together, since they add up to 1. What is left out is that of the objective.
func weights(o strict.Object) (w score.Weights) {
	if w.Lambda = o.Get("lambda").Fraction(score.One, 0, score.One, score.Usual); w.Lambda == 0 {
		w.Lambda = score.None
	}
	if !o.Has("weights") {
		if w.Lambda == score.Usual {
			return score.Weights{}
		}
		return w
	}
	of := o.Get("weights").Object("time", "memory", "residue", "headroom", "age", "share", "brevity", "index", "urgency")
	one := func(key string) int64 { return of.Get(key).Fraction(score.One, 0, score.One, 0) }
	w.System = score.System{
		Time: one("time"), Memory: one("memory"), Residue: one("residue"), Headroom: one("headroom"), Age: one("age"), Share: one("share"),
		Brevity: one("brevity"),
		Index:   one("index"), Urgency: one("urgency"),
	}
	return w
}
