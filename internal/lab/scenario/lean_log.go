package scenario

import (
	"time"

	"sluice.dev/sluice/internal/edge/strict"
	leanworld "sluice.dev/sluice/internal/lab/swarm/world"
	"sluice.dev/sluice/internal/lab/trace"
)

// leanArrivals reads where the short tasks of lean nodes come from, if not from a draw.
func (s *Scenario) leanArrivals(tasks strict.Object, f *leanworld.Flow) {
	v := tasks.Get("arrivals")
	if !v.Given() {
		return
	}
	for _, key := range []string{"mean", "long", "longMean", "longPatience", "batch"} {
		if x := tasks.Get(key); x.Given() {
			x.Wrong("is of tasks that are drawn; a file of arrivals has its own lengths, one after the other")
		}
	}
	o := v.Object("format", "file", "tokens")
	l := &SwarmLog{File: o.Need("file", "azure/log.csv.gz").Text("a file below --data DIR such as azure/log.csv.gz", "")}
	l.Format = s.format(o.Need("format", "azure"))
	if l.Format.Name != "" && l.Format.Kinds[0] != trace.Request {
		o.Get("format").Wrong("has no requests; take azure or mooncake")
	}
	of := o.Get("tokens").Object("prompt", "output")
	l.Prompt, l.Output = of.Get("prompt").Duration(0, time.Hour, promptToken), of.Get("output").Duration(0, time.Hour, outputToken)
	f.LongShare, f.Begun = 0, false
	s.SwarmLog = l
}
