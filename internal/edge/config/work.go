package config

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
)

// work reads the one of kinds that says where the job may be cut.
func work(o strict.Object, s *job.Spec, kinds []string) {
	s.Total, s.Grid, s.Parallelism, s.Slices = 1, 1, 1, 1
	var given []string
	for _, k := range kinds {
		if o.Has(k) {
			given = append(given, k)
		}
	}
	last := len(kinds) - 1
	want := strings.Join(kinds[:last], ", ") + " or " + kinds[last]
	switch {
	case !o.Mapped():
		return // reported already
	case len(given) == 0:
		o.Wrong("does not say what the work is; give one of %s", want)
	case len(given) > 1:
		o.Wrong("gives %s; want exactly one of %s", strings.Join(given, " and "), want)
	}
	if v := o.Get("external"); v.Given() {
		external(v, s)
	}
	if v := o.Get("items"); v.Given() {
		items(v, s)
	}
	if v := o.Get("steps"); v.Given() {
		steps(v, s)
	}
	if v := o.Get("rigid"); v.Given() {
		rigid(v, s)
	}
}

// items are independent units.
func items(v strict.Value, s *job.Spec) {
	s.Kind, s.Unit = job.Items, "item"
	o := v.AsObject()
	before := o.Count()
	s.Total = o.Must("total").AsNumber()
	known := o.Count() == before
	s.Unit = unitOf(o.Get("unit"), s.Unit)
	s.PerUnit = o.Get("perItem").AsLength()
	s.Grid = o.Get("grid").AsNumber()
	s.Parallelism = int(o.Get("parallelism").AsNumber())
	if known {
		sane(o, s, "perItem", "grid")
	}
}

// steps are one chain of checkpoints.
func steps(v strict.Value, s *job.Spec) {
	s.Kind, s.Unit = job.Steps, "step"
	o := v.AsObject()
	before := o.Count()
	if s.Total = job.OpenTotal; o.Has("total") {
		s.Total = o.Must("total").AsNumber()
	}
	known := o.Count() == before && !s.Open()
	s.Unit = unitOf(o.Get("unit"), s.Unit)
	s.PerUnit = o.Get("perStep").AsLength()
	s.Grid = o.Must("every").AsNumber()
	s.Restore = o.Get("restore").AsLength()
	s.Checkpoint = o.Get("checkpoint").AsLength()
	if known {
		sane(o, s, "perStep", "every")
	}
}

// external work is cut by the user's own agent, as a chain or as independent units. How long a unit takes is the agent's to
// know; perUnit is for estimates that people see.
func external(v strict.Value, s *job.Spec) {
	s.External, s.Kind, s.Unit = true, job.Items, "unit"
	o := v.AsObject()
	chain := o.Get("chain").Boolean(false)
	if chain {
		s.Kind = job.Steps
	}
	before := v.Count()
	s.Total = o.Must("total").AsNumber()
	known := v.Count() == before
	s.Unit = unitOf(o.Get("unit"), s.Unit)
	s.PerUnit = o.Must("perUnit").AsLength()
	s.Grid = o.Get("grid").AsNumber()
	if w := o.Get("parallelism"); w.Given() && chain {
		w.Wrong("a chain runs one subjob at a time; leave it out")
	} else {
		s.Parallelism = int(w.AsNumber())
	}
	cost := func(key string) time.Duration {
		w := o.Get(key)
		if w.Given() && !chain {
			w.Wrong("only a chain goes on from checkpoints; leave it out, or say chain: true")
			return 0
		}
		return w.AsLength()
	}
	s.Restore, s.Checkpoint = cost("restore"), cost("checkpoint")
	if known {
		sane(o, s, "perUnit", "grid")
	}
}

// rigid work is not divisible; what has steps goes on from the checkpoint of its last run.
func rigid(v strict.Value, s *job.Spec) {
	s.Kind, s.Unit = job.Rigid, "job"
	o := v.AsObject()
	s.Walltime = o.Get("walltime").AsLength()
	s.Slices = int(o.Get("slices").AsNumber())
	s.Topology = job.Level(o.Get("topology").AsChoice())
	if v := o.Get("maxWait"); v.Given() {
		if s.Patience = v.AsLength(); s.Slices > 1 {
			v.Wrong("a job of %d slices is placed by its home and does not give up; leave it out", s.Slices)
		}
	}
	s.OnOverrun = job.Overrun(o.Get("onOverrun").AsChoice())
	if s.OnOverrun == job.OverrunExtends && s.Topology != job.SameNode {
		o.Get("onOverrun").Wrong("the end of a job on several nodes is not moved; leave this or topology out")
	}
	if s.OnOverrun == job.OverrunExtends && !o.Has("walltime") {
		o.Get("onOverrun").Wrong("there is no walltime to overrun; give walltime or leave this out")
	}
	if v := o.Get("steps"); v.Given() {
		saves(o, v.AsObject(), s)
	}
}

// saves reads the steps of rigid work.
func saves(o, steps strict.Object, s *job.Spec) {
	s.Saves, s.Unit = true, "step"
	before := steps.Count()
	s.Total, s.Grid = steps.Must("total").AsNumber(), steps.Must("every").AsNumber()
	if every := steps.Get("every"); steps.Count() == before && s.Grid > s.Total {
		every.Wrong("is %d, more than the total of %d; want at most the total", s.Grid, s.Total)
	}
	if s.OnOverrun == job.OverrunExtends {
		o.Get("onOverrun").Wrong("a job with steps goes on from its checkpoint after its walltime; leave this or steps out")
	}
	if !o.Has("walltime") {
		o.Get("steps").Wrong("need a walltime, which is how long one run of them may last; give it, or leave steps out")
	}
}

// sane checks what holds between the fields of divisible work.
func sane(o strict.Object, s *job.Spec, per, grid string) {
	if v := o.Get(grid); v.Given() && s.Grid > s.Total {
		v.Wrong("is %d, more than the total of %d; want at most the total", s.Grid, s.Total)
	}
	if v := o.Get(per); v.Given() && quantity.MulDiv(s.Total, int64(s.PerUnit), 1) > int64(MaxTime) {
		v.Wrong("is %s, which makes the whole job longer than 100 years; check the total and the unit", v.What())
	}
}

// unitOf is what one unit is called.
func unitOf(v strict.Value, or string) string {
	s := v.Text("a word such as frame", or)
	if v.Given() && (s == "" || len(s) > 32 || strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError ||
			unicode.IsSpace(r) || !unicode.IsGraphic(r)
	})) {
		v.Wrong("is %s; want one word of at most 32 bytes", v.What())
		return or
	}
	return s
}
