package config

import (
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
)

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
// excess}. Where nothing is said of it the daemon finds out what there is, and the lines are core's own.
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
