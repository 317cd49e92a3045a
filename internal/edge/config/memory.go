package config

import (
	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// memory reads the job's memory profile in one of its forms and compiles it.
func (c *collector) memory(o object, s *job.Spec) {
	before := c.count()
	v := o.must("memory")
	switch {
	case !v.given():
		return
	case v.node.Kind == yaml.ScalarNode:
		peak := v.asPlain().asAmount(1)
		s.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: s.Total, Mean: peak}}}
	default:
		forms(v, s)
	}
	// What the profile says is judged against a total and a theta; where those are wrong it would be blamed for them.
	if c.count() > before || !c.trusted(o) {
		return
	}
	table, err := trp.Compile(s.Profile, s.Total, s.Theta)
	if err != nil {
		for _, e := range reasons(err) {
			v.wrong("%v", e)
		}
		return
	}
	s.Safe = table
}

// trusted says whether the total and theta were read without a problem.
func (c *collector) trusted(o object) bool {
	for _, p := range c.found.List {
		for _, of := range []string{"items", "steps", "rigid", "external", "theta"} {
			if at := join(o.path, of); p.Path == at || p.Path == at+".total" {
				return false
			}
		}
	}
	return c.found.More == 0
}

// forms reads a profile that is more than one number.
func forms(v value, s *job.Spec) {
	o := v.asMapping().asObject()
	given := 0
	for _, k := range []string{"phases", "ensemble", "envelope"} {
		if o.has(k) {
			given++
		}
	}
	if o.node.Kind == yaml.MappingNode && given != 1 {
		o.wrong("gives %d of phases, ensemble and envelope; want exactly one, or a plain size such as 600Mi", given)
		return
	}
	if w := o.get("combine"); w.given() {
		s.Profile.Combine = trp.Combine(w.asChoice())
		if !o.has("phases") {
			w.wrong("only phases are combined; leave it out")
		}
	}
	switch {
	case o.get("phases").given():
		s.Profile.Form = trp.Phases
		for _, e := range stretches(o.get("phases"), s.Total) {
			s.Profile.Phases = append(s.Profile.Phases, trp.Phase{
				UpTo: e.upTo,
				Mean: e.must("mean").asAmount(1),
				SD:   e.get("sd").asAmount(0),
			})
		}
	case o.get("envelope").given():
		s.Profile.Form = trp.Envelope
		for _, e := range stretches(o.get("envelope"), s.Total) {
			s.Profile.Curve = append(s.Profile.Curve, trp.Point{UpTo: e.upTo, Amount: e.must("amount").asAmount(1)})
		}
	case o.get("ensemble").given():
		s.Profile.Form = trp.Ensemble
		ensemble(o.get("ensemble"), s)
	}
}

// stretch is an element of a list of stretches of progress.
type stretch struct {
	object
	upTo int64
}

// stretches reads a list whose elements end at upTo, each above the one before; the last may leave it out and ends at
// total.
func stretches(v value, total int64) []stretch {
	list := v.asList()
	if v.node.Kind == yaml.SequenceNode && len(v.node.Content) == 0 {
		v.wrong("is empty; give at least one stretch")
	}
	out := make([]stretch, 0, len(list))
	last := int64(0)
	for i, e := range list {
		o := e.asObject()
		upTo := total
		if i < len(list)-1 {
			w := o.must("upTo")
			upTo = w.integer(last+1, w.form.most, last+1)
		} else if w := o.get("upTo"); w.given() {
			upTo = w.integer(w.form.least, w.form.most, total)
		}
		last = upTo
		out = append(out, stretch{o, upTo})
	}
	return out
}

// ensemble reads recorded runs.
func ensemble(v value, s *job.Spec) {
	o := v.asObject()
	if o.has("upTo") {
		for _, e := range o.get("upTo").asList() {
			s.Profile.Bounds = append(s.Profile.Bounds, e.asNumber())
		}
	} else {
		s.Profile.Bounds = []int64{s.Total}
	}
	runs := o.must("runs").asList()
	for _, run := range runs {
		var peaks []quantity.Amount
		for _, e := range run.asList() {
			peaks = append(peaks, e.asAmount(1))
		}
		s.Profile.Runs = append(s.Profile.Runs, peaks)
	}
}
