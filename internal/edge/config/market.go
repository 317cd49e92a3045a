package config

import (
	"math"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/score"
)

// Market reads the settings of a market that negotiates: {lambda, weights: {time, memory, residue, headroom, age, share, brevity, index,
// urgency}, variants, weigh: score|time, exclusive, joint, rounds, repack: rolling|withdraw|never, freeze, starve, close, audience,
// trusting, eta, kappa, payment: first|free|vcg, refill}. What is left out has its default; a weight that is left out
// where others are given is 0. starve is an older name of `starve: {after}` beside the market.
func (v value) Market() market.Config {
	o, found := v.object(
		"lambda", "weights", "variants", "weigh", "exclusive", "joint", "rounds", "repack", "freeze", "starve", "close", "audience",
		"trusting", "eta", "kappa", "payment", "refill",
	), v.c.count()
	c := market.Config{
		Weights:   weights(o),
		Variants:  int(o.get("variants").integer(1, 64, 0)),
		PerTime:   o.get("weigh").choice("score", "time") == 1,
		Exclusive: o.get("exclusive").boolean(),
		Joint:     o.get("joint").boolean(),
		Rounds:    int(o.get("rounds").integer(1, 16, 0)),
		Repack:    market.Repack(o.get("repack").choice(market.RepackNames...)),
		Freeze:    o.get("freeze").duration(time.Millisecond, MaxTime, 0),
		Starve:    after(o.get("starve")),
		Close:     o.get("close").duration(time.Millisecond, time.Minute, 0),
		Audience:  int(o.get("audience").integer(2, math.MaxInt32, 0)),
		Trusting:  o.get("trusting").boolean(),
		Eta:       o.get("eta").fraction(score.One, 1, score.One, 0),
		Kappa:     o.get("kappa").fraction(score.One, 1, 100*score.One, 0),
		Payment:   market.Payment(o.get("payment").choice(market.PaymentNames...)),
		Refill:    o.get("refill").integer(1, math.MaxInt32, 0),
	}.WithDefaults()
	if v.given() && v.c.count() == found {
		if err := c.Validate(); err != nil { // what no setting alone is wrong in
			for _, e := range reasons(err) {
				v.wrong("%s", strings.TrimPrefix(e.Error(), "market: "))
			}
		}
	}
	return c
}

// weights of the score. The system's are given together, since they add up to 1. What is left out is that of the objective.
func weights(o object) (w score.Weights) {
	if w.Lambda = o.get("lambda").fraction(score.One, 0, score.One, score.Usual); w.Lambda == 0 {
		w.Lambda = score.None
	}
	if !o.has("weights") {
		if w.Lambda == score.Usual {
			return score.Weights{}
		}
		return w
	}
	of := o.get("weights").object("time", "memory", "residue", "headroom", "age", "share", "brevity", "index", "urgency")
	one := func(key string) int64 { return of.get(key).fraction(score.One, 0, score.One, 0) }
	w.System = score.System{
		Time: one("time"), Memory: one("memory"), Residue: one("residue"), Headroom: one("headroom"), Age: one("age"), Share: one("share"), Brevity: one("brevity"),
		Index: one("index"), Urgency: one("urgency"),
	}
	return w
}
