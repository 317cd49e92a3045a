package config

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// work reads the one of kinds that says where the job may be cut.
func (c *collector) work(o object, s *job.Spec, kinds []string) {
	s.Total, s.Grid, s.Parallelism, s.Slices = 1, 1, 1, 1
	var given []string
	for _, k := range kinds {
		if o.has(k) {
			given = append(given, k)
		}
	}
	last := len(kinds) - 1
	want := strings.Join(kinds[:last], ", ") + " or " + kinds[last]
	switch {
	case !o.given() || o.node.Kind != yaml.MappingNode:
		return // reported already
	case len(given) == 0:
		o.wrong("does not say what the work is; give one of %s", want)
	case len(given) > 1:
		o.wrong("gives %s; want exactly one of %s", strings.Join(given, " and "), want)
	}
	if v := o.get("external"); v.given() {
		external(v, s)
	}
	if v := o.get("items"); v.given() {
		c.items(v, s)
	}
	if v := o.get("steps"); v.given() {
		c.steps(v, s)
	}
	if v := o.get("rigid"); v.given() {
		rigid(v, s)
	}
}

// items are independent units.
func (c *collector) items(v value, s *job.Spec) {
	s.Kind, s.Unit = job.Items, "item"
	o := v.asObject()
	before := c.count()
	s.Total = o.must("total").asNumber()
	known := c.count() == before
	s.Unit = o.get("unit").unit(s.Unit)
	s.PerUnit = o.must("perItem").asLength()
	s.Grid = o.get("grid").asNumber()
	s.Parallelism = int(o.get("parallelism").asNumber())
	if known {
		sane(o, s, "perItem", "grid")
	}
}

// steps are one chain of checkpoints.
func (c *collector) steps(v value, s *job.Spec) {
	s.Kind, s.Unit = job.Steps, "step"
	o := v.asObject()
	before := c.count()
	s.Total = o.must("total").asNumber()
	known := c.count() == before
	s.Unit = o.get("unit").unit(s.Unit)
	s.PerUnit = o.must("perStep").asLength()
	s.Grid = o.must("every").asNumber()
	s.Restore = o.get("restore").asLength()
	s.Checkpoint = o.get("checkpoint").asLength()
	if known {
		sane(o, s, "perStep", "every")
	}
}

// external work is cut by the user's own agent, as a chain or as independent units. How long a unit takes is the agent's to
// know; perUnit is for estimates that people see.
func external(v value, s *job.Spec) {
	s.External, s.Kind, s.Unit = true, job.Items, "unit"
	o := v.asObject()
	chain := o.get("chain").boolean()
	if chain {
		s.Kind = job.Steps
	}
	before := v.c.count()
	s.Total = o.must("total").asNumber()
	known := v.c.count() == before
	s.Unit = o.get("unit").unit(s.Unit)
	s.PerUnit = o.must("perUnit").asLength()
	s.Grid = o.get("grid").asNumber()
	if w := o.get("parallelism"); w.given() && chain {
		w.wrong("a chain runs one subjob at a time; leave it out")
	} else {
		s.Parallelism = int(w.asNumber())
	}
	cost := func(key string) time.Duration {
		w := o.get(key)
		if w.given() && !chain {
			w.wrong("only a chain goes on from checkpoints; leave it out, or say chain: true")
			return 0
		}
		return w.asLength()
	}
	s.Restore, s.Checkpoint = cost("restore"), cost("checkpoint")
	if known {
		sane(o, s, "perUnit", "grid")
	}
}

// rigid work is not divisible.
func rigid(v value, s *job.Spec) {
	s.Kind, s.Unit = job.Rigid, "job"
	o := v.asObject()
	s.Walltime = o.get("walltime").asLength()
	s.Slices = int(o.get("slices").asNumber())
	s.Topology = job.Level(o.get("topology").asChoice())
	if v := o.get("patience"); v.given() {
		if s.Patience = v.asLength(); s.Slices > 1 {
			v.wrong("a job of %d slices is placed by its home and does not give up; leave it out", s.Slices)
		}
	}
	s.OnOverrun = job.Overrun(o.get("onOverrun").asChoice())
	if s.OnOverrun == job.OverrunExtends && s.Topology != job.SameNode {
		o.get("onOverrun").wrong("the end of a job on several nodes is not moved; leave this or topology out")
	}
	if s.OnOverrun == job.OverrunExtends && !o.has("walltime") {
		o.get("onOverrun").wrong("there is no walltime to overrun; give walltime or leave this out")
	}
}

// sane checks what holds between the fields of divisible work.
func sane(o object, s *job.Spec, per, grid string) {
	if v := o.get(grid); v.given() && s.Grid > s.Total {
		v.wrong("is %d, more than the total of %d; want at most the total", s.Grid, s.Total)
	}
	if v := o.get(per); v.given() && quantity.MulDiv(s.Total, int64(s.PerUnit), 1) > int64(MaxTime) {
		v.wrong("is %s, which makes the whole job longer than 100 years; check the total and the unit", v.what())
	}
}

// unit is what one unit is called.
func (v value) unit(or string) string {
	s := v.text("a word such as frame", or)
	if v.given() && (s == "" || len(s) > 32 || strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsGraphic(r) })) {
		v.wrong("is %s; want one word of at most 32 bytes", v.what())
		return or
	}
	return s
}
