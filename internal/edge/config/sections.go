package config

import (
	"math"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/quantity"
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

// FlowOf reads how tickets search for places (mechanism laminar). What is left out has the default of core/federation/flow; the size
// classes are those of the slices that there are.
func FlowOf(v strict.Value) flow.Config {
	o, found := v.Object("digests", "stale", "maxWait|patience", "pace", "burst", "hops", "zoneHops", "resplits", "tickets", "wakes",
		"grant"), v.Count()
	c := flow.Config{
		Period: o.Get("digests").Duration(time.Millisecond, time.Minute, 0), Stale: o.Get("stale").Duration(time.Millisecond, time.Hour, 0),
		Patience: o.Get("maxWait").Duration(time.Millisecond, time.Hour, 0), Pace: o.Get("pace").Duration(time.Millisecond, time.Minute, 0),
		Burst: int(o.Get("burst").Integer(1, 255, 0)), MaxHops: int(o.Get("hops").Integer(1, 255, 0)),
		ZoneHops: int(o.Get("zoneHops").Integer(1, 255, 0)),
		Resplits: int(o.Get("resplits").Integer(1, 16, 0)), ZoneTickets: int(o.Get("tickets").Integer(1, 1<<20, 0)),
		Wakes:    int(o.Get("wakes").Integer(1, 1<<16, 0)),
		GrantTTL: o.Get("grant").Duration(time.Millisecond, time.Minute, 0),
	}
	if v.Given() && v.Count() == found {
		whole := c
		whole.Classes = flow.Classes{quantity.Amount(1)}
		if err := whole.Validate(); err != nil { // what no setting alone is wrong in
			for _, e := range strict.Reasons(err) {
				v.Wrong("%s", strings.TrimPrefix(e.Error(), "flow: "))
			}
		}
	}
	return c
}

// StarvationOf reads the starvation limit: {after, slowdown, share, places}, or never for no limit at all. What is left out has its
// default.
func StarvationOf(v strict.Value) starvation.Limit {
	if v.Plain() && v.Raw() == "never" {
		return starvation.Limit{After: -1}
	}
	o := v.Object("after", "slowdown", "share", "places")
	l := starvation.Limit{
		After:    after(o.Get("after")),
		Slowdown: o.Get("slowdown").Integer(1, starvation.MostSlowdown, 0),
		Share:    o.Get("share").Fraction(1000, 1, 1000, 0),
	}
	if places := o.Get("places"); places.Given() {
		if l.Places = int(places.Integer(0, starvation.MostPlaces, 1)); l.Places == 0 {
			l.Places = -1
		}
	}
	return l
}

// after is how long a job waits at least until it is late; negative: it never is.
func after(v strict.Value) time.Duration {
	if v.Plain() && v.Raw() == "never" {
		return -1
	}
	return v.Duration(time.Second, MaxTime, 0)
}

// Retention says how long jobs that are over are kept, and how many of them; what comes first counts. 0: as the daemon has it.
type Retention struct {
	// Age is the time since a job's end.
	Age time.Duration
	// Jobs is how many are kept, the newest ends.
	Jobs int64
}

// Bounds of what is kept.
const (
	MinRetention = time.Second
	MaxRetained  = 1_000_000_000
)

// retentionOf reads {age: 168h, jobs: 1000000}; either may be left out.
func retentionOf(v strict.Value) Retention {
	o := v.Object("age", "jobs")
	return Retention{Age: o.Get("age").Duration(MinRetention, MaxTime, 0), Jobs: o.Get("jobs").Integer(1, MaxRetained, 0)}
}

// Airlock is what a daemon does where its machine's memory runs out.
type Airlock struct {
	// Kind of survival, auto or empty: the daemon finds out. Off is none.
	Kind string
	// Lines and bounds; what is left out is core's own.
	Lines airlock.Config
	// Memory is what subjobs may have of the machine's together at their peaks; 0: the daemon finds out. Uncounted: what is begun is not
	// held against it.
	Memory    quantity.Amount
	Uncounted bool
	// Excess is the chance, in parts per million, that their peaks may pass it; 0: core's own.
	Excess int64
}

// AirlockOf reads {kind: auto|cgroup|tree|off, order: class|priority, calm, severe, emergency, timer, entries, memory: auto|off|SIZE,
// excess}. By default the daemon finds out what there is, and the lines are core's own.
func AirlockOf(v strict.Value) (a Airlock) {
	if !v.Given() {
		return Airlock{}
	}
	o := v.Object("kind", "order", "calm", "severe", "emergency", "timer", "entries", "memory", "excess")
	a.Kind = []string{"auto", "cgroup", "tree", "off"}[o.Get("kind").Choice("auto", "cgroup", "tree", "off")]
	if o.Get("order").Choice("class", "priority") == 1 {
		a.Lines.Order = airlock.PriorityFirst
	}
	const permille = 1000
	line := func(key string) int64 { return o.Get(key).Fraction(permille, 1, permille, 0) }
	a.Lines.Calm, a.Lines.Severe, a.Lines.Emergency = line("calm"), line("severe"), line("emergency")
	if a.Lines.Timer = o.Get("timer").Duration(time.Second, time.Hour, 0); a.Lines.Timer != 0 {
		a.Lines.Yield = a.Lines.Timer / 3 // as it is by default
	}
	a.Lines.Entries = uint8(o.Get("entries").Integer(1, 100, 0))
	if m := o.Get("memory"); m.Given() && m.Plain() && (m.Raw() == "auto" || m.Raw() == "off") {
		a.Uncounted = m.Raw() == "off"
	} else {
		a.Memory = m.Bytes(1<<20, 0)
	}
	a.Excess = o.Get("excess").Fraction(1_000_000, 1, 500_000, 0)
	if err := a.Lines.WithDefaults().Validate(); err != nil {
		v.Wrong("has lines that do not go together: %v", err)
	}
	return a
}
