package config

import (
	"sluice.dev/sluice/internal/core/job"
)

// worth reads what the job values in a variant, such as {progress: 0.6, laxity: 0.2, overhead: 0.2}. What is left out where
// others are given is 0.
func worth(v value) job.Worth {
	if !v.given() {
		return job.DefaultWorth
	}
	o, found := v.asObject(), v.c.count()
	share := func(key string) int64 { return o.get(key).asShare() }
	w := job.Worth{Progress: share("progress"), Laxity: share("laxity"), Overhead: share("overhead")}
	if sum := w.Progress + w.Laxity + w.Overhead; sum != 1000 && v.c.count() == found && len(o.near) == 0 {
		v.wrong("progress, laxity and overhead add up to %s; want 1", formatFraction(sum, 1000))
	}
	return w
}

// options reads the other ways to run the job that its owner agrees to, such as [{name: bf16, speed: 1.4, memory: 0.6}].
func options(v value, kind job.Kind) (out []job.Option) {
	list := v.asList()
	if v.given() && kind == job.Rigid {
		v.wrong("a rigid job runs in one way; leave it out")
	}
	lines := map[string]int{}
	for _, e := range list {
		o := e.asObject()
		name := o.must("name")
		x := job.Option{
			Name: name.label(""), Speed: o.get("speed").asShare(),
			Memory: o.get("memory").asShare(), Env: o.get("env").variables(),
		}
		if line, again := lines[x.Name]; again && x.Name != "" {
			name.wrong("%q is the name of the option in line %d too; names are unique", x.Name, line)
		}
		lines[x.Name] = e.node.Line
		out = append(out, x)
	}
	return out
}
