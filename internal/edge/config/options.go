package config

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/strict"
)

// worth reads what the job values in a variant, such as {progress: 0.6, laxity: 0.2, overhead: 0.2}. What is left out where
// others are given is 0.
func worth(v strict.Value) job.Worth {
	if !v.Given() {
		return job.DefaultWorth
	}
	o, found := v.AsObject(), v.Count()
	share := func(key string) int64 { return o.Get(key).AsShare() }
	w := job.Worth{Progress: share("progress"), Laxity: share("laxity"), Overhead: share("overhead")}
	if sum := w.Progress + w.Laxity + w.Overhead; sum != 1000 && v.Count() == found && !o.Misspelt() {
		v.Wrong("progress, laxity and overhead add up to %s; want 1", strict.FormatFraction(sum, 1000))
	}
	return w
}

// options reads the other ways to run the job that its owner agrees to, such as [{name: bf16, speed: 1.4, memory: 0.6}].
func options(v strict.Value, kind job.Kind) (out []job.Option) {
	list := v.AsList()
	if v.Given() && kind == job.Rigid {
		v.Wrong("a rigid job runs in one way; leave it out")
	}
	lines := map[string]int{}
	for _, e := range list {
		o := e.AsObject()
		name := o.Must("name")
		x := job.Option{
			Name: name.Label(""), Speed: o.Get("speed").AsShare(),
			Memory: o.Get("memory").AsShare(), Env: variablesOf(o.Get("env")),
		}
		if line, again := lines[x.Name]; again && x.Name != "" {
			name.Wrong("%q is the name of the option in line %d too; names are unique", x.Name, line)
		}
		lines[x.Name] = e.Line()
		out = append(out, x)
	}
	return out
}
