package scenario

import (
	"slices"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// generator reads arrivals and durations.
func generator(o strict.Object) *synthetic.Jobs {
	g := &synthetic.Jobs{
		Seed:    uint64(o.Get("seed").Integer(0, 1<<31, 0)),
		Diurnal: o.Get("diurnal").Real(1, 1000, 1),
		Queues:  int(o.Get("queues").Integer(1, 1000, 1)),
	}
	if a := o.Get("arrivals"); a.Plain() {
		a.Choice("philly")
	} else if a.Given() {
		g.Process = synthetic.Poisson{MeanGap: a.Object("poisson").Need("poisson", "20s").Duration(time.Microsecond, MaxSpan, time.Second)}
	}
	if d := o.Get("durations"); d.Plain() {
		d.Choice("philly")
	} else if d.Given() {
		g.Durations = durations(d)
	}
	switch v := o.Get("gpus"); {
	case v.Plain() && v.Choice("one", "philly") == 1:
		g.GPUs = synthetic.PhillyGPUs()
	case v.Given() && !v.Plain():
		g.GPUs = sizes(v)
	}
	return g
}

// sizes reads how many GPUs jobs have, each number with its weight, such as {1: 80, 2: 20}.
func sizes(v strict.Value) (out []synthetic.Weight) {
	o := v.Object()
	for _, k := range o.Keys() {
		n, err := strconv.Atoi(k)
		if err != nil || n < 1 || n > config.MaxParallelism {
			o.Get(k).Wrong("%q is no number of GPUs from 1 to %d", k, config.MaxParallelism)
			continue
		}
		out = append(out, synthetic.Weight{GPUs: n, Weight: o.Get(k).Real(1e-6, 1e6, 1)})
	}
	if len(out) == 0 {
		v.Wrong("names no number of GPUs; want for example {1: 80, 2: 20}")
	}
	slices.SortFunc(out, func(a, b synthetic.Weight) int { return a.GPUs - b.GPUs })
	return out
}

// durations reads {fixed: 5m}, {uniform: [1m, 5m]} or {lognormal: {median: 10m, sigma: 1.5}}.
func durations(v strict.Value) synthetic.Duration {
	o := v.Object("fixed", "uniform", "lognormal")
	given := 0
	for _, k := range []string{"fixed", "uniform", "lognormal"} {
		if o.Has(k) {
			given++
		}
	}
	if given != 1 {
		v.Wrong("gives %d of fixed, uniform and lognormal; want exactly one, or philly", given)
	}
	length := func(w strict.Value) time.Duration { return w.Duration(time.Second, MaxSpan, time.Second) }
	switch {
	case o.Get("uniform").Given():
		ends := o.Get("uniform").List("two lengths of time such as [1m, 5m]", 2)
		if len(ends) != 2 {
			o.Get("uniform").Wrong("has %d lengths; want two such as [1m, 5m]", len(ends))
			return nil
		}
		u := synthetic.Uniform{From: length(ends[0]), To: length(ends[1])}
		if u.To <= u.From {
			ends[1].Wrong("is not longer than the first")
		}
		return u
	case o.Get("lognormal").Given():
		l := o.Get("lognormal").Object("median", "sigma")
		return synthetic.LogNormal{Median: length(l.Need("median", "10m")), Sigma: l.Need("sigma", "1.5").Real(0, 5, 1)}
	}
	return synthetic.Fixed(length(o.Get("fixed")))
}
