package scenario

import (
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/workload/compose"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// arrivalKeys are the keys of a file of arrivals.
func arrivalKeys() []string {
	return []string{"format", "file", "durations", "walltimes", "gpus", "processorsPerGPU", "memory", "resample"}
}

// parts reads what a stream is composed of: a file of arrivals, and whose programs.
func (s *Scenario) parts(o strict.Object, t *Stream) {
	t.Measured = true
	if a := o.Get("arrivals"); a.Given() {
		t.Trace = s.arrivals(a)
		t.Measured = false
	}
	if p := o.Get("programs"); p.Given() {
		t.Measured = p.Choice("modelled", "published") == 1
		if t.Trace == nil && !t.Measured {
			p.Wrong("needs a file of arrivals; write synthetic: for a workload without files")
		}
	}
}

func (s *Scenario) arrivals(v strict.Value) *compose.Trace {
	o := v.Object(arrivalKeys()...)
	t := &compose.Trace{
		File:     o.Need("file", "swf/log.swf.gz").Text("a file below --data DIR such as swf/log.swf.gz", ""),
		GPUs:     int(o.Get("gpus").Integer(1, config.MaxParallelism, 1)),
		PerGPU:   int(o.Get("processorsPerGPU").Integer(1, 1<<20, 1)),
		Resample: o.Get("resample").Boolean(false),
	}
	t.Walltimes = o.Get("walltimes").Choice("requested", "error") == 0
	t.Format = s.format(o.Need("format", "swf"))
	t.RunTime = runTime(o.Get("durations"), t.Format)
	m := o.Get("memory")
	switch text := m.Text("programs, trace, or a size such as 4Gi", "programs"); text {
	case "programs":
	case "trace":
		t.FromFile = true
	default:
		if strings.ContainsAny(text, "0123456789") {
			t.Memory = m.Bytes(1<<20, quantity.Amount(1<<30))
		} else {
			m.Wrong("is %q; want programs (those of the programs), trace (the file's, of the host), or a size such as 4Gi", text)
		}
	}
	return t
}

// format finds a format of arrivals; the zero one where there is none of the name.
func (s *Scenario) format(v strict.Value) trace.Format {
	name := v.Text("a format such as swf", "")
	var known []string
	for _, f := range s.formats {
		if !compose.HoldsArrivals(f) {
			continue
		}
		if f.Name == name {
			return f
		}
		known = append(known, f.Name)
	}
	if name != "" {
		v.Wrong("is %q, no format of arrivals; %s", name, strict.Hint(name, known))
	}
	return trace.Format{}
}

// runTime reads what is run by what has no run time in its file.
func runTime(v strict.Value, f trace.Format) compose.RunTime {
	if !v.Given() {
		switch {
		case slices.Contains(f.Kinds, trace.Request):
			return compose.RunTime{Prompt: promptToken, Output: outputToken}
		case slices.Contains(f.Kinds, trace.State):
			return compose.RunTime{Drawn: synthetic.PhillySingles()}
		}
		return compose.RunTime{}
	}
	if v.Plain() {
		return []compose.RunTime{{}, {Requested: true}, {Drawn: synthetic.PhillySingles()}}[v.Choice("drop", "requested", "philly")]
	}
	if !v.Object().Has("tokens") {
		return compose.RunTime{Drawn: durations(v)}
	}
	o := v.Object("tokens")
	if !slices.Contains(f.Kinds, trace.Request) && f.Name != "" {
		v.Wrong("gives a time for each token, and %s has no requests", f.Name)
	}
	of := o.Get("tokens").Object("prompt", "output")
	r := compose.RunTime{
		Prompt: of.Get("prompt").Duration(0, time.Hour, promptToken),
		Output: of.Get("output").Duration(0, time.Hour, outputToken),
	}
	if r.Prompt+r.Output == 0 {
		o.Get("tokens").Wrong("makes every request take no time; give one of prompt and output more than 0s")
	}
	return r
}
