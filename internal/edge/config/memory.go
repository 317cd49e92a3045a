package config

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/strict"
)

// memory reads the job's memory profile in one of its forms and compiles it.
func memory(o strict.Object, s *job.Spec) {
	before := o.Count()
	v := o.Must("memory")
	switch {
	case !v.Given():
		return
	case v.Plain():
		peak := v.AsPlain().AsAmount(1)
		s.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: s.Total, Mean: peak}}}
	default:
		forms(v, s)
	}
	// What the profile says is judged against a total and a theta; where those are wrong it would be blamed for them.
	if o.Count() > before || !o.Sound("items", "steps", "rigid", "external", "memoryRisk", "theta") {
		return
	}
	table, err := trp.Compile(s.Profile, s.Total, s.Theta)
	if err != nil {
		for _, e := range strict.Reasons(err) {
			v.Wrong("%v", e)
		}
		return
	}
	s.Safe = table
}

// forms reads a profile that is more than one number.
func forms(v strict.Value, s *job.Spec) {
	o := v.AsMapping().AsObject()
	given := 0
	for _, k := range []string{"phases", "ensemble", "envelope"} {
		if o.Has(k) {
			given++
		}
	}
	if o.Mapped() && given != 1 {
		o.Wrong("gives %d of phases, ensemble and envelope; want exactly one, or a plain size such as 600Mi", given)
		return
	}
	if w := o.Get("combine"); w.Given() {
		s.Profile.Combine = trp.Combine(w.AsChoice())
		if !o.Has("phases") {
			w.Wrong("only phases are combined; leave it out")
		}
	}
	switch {
	case o.Get("phases").Given():
		s.Profile.Form = trp.Phases
		for _, e := range stretches(o.Get("phases"), s.Total) {
			s.Profile.Phases = append(s.Profile.Phases, trp.Phase{
				UpTo: e.upTo,
				Mean: e.Must("mean").AsAmount(1),
				SD:   e.Get("sd").AsAmount(0),
			})
		}
	case o.Get("envelope").Given():
		s.Profile.Form = trp.Envelope
		for _, e := range stretches(o.Get("envelope"), s.Total) {
			s.Profile.Curve = append(s.Profile.Curve, trp.Point{UpTo: e.upTo, Amount: e.Must("amount").AsAmount(1)})
		}
	case o.Get("ensemble").Given():
		s.Profile.Form = trp.Ensemble
		ensemble(o.Get("ensemble"), s)
	}
}

// stretch is an element of a list of stretches of progress.
type stretch struct {
	strict.Object
	upTo int64
}

// stretches reads a list whose elements end at upTo, each above the one before; the last may leave it out and ends at
// total.
func stretches(v strict.Value, total int64) []stretch {
	list := v.AsList()
	if v.Listed() && v.Hollow() {
		v.Wrong("is empty; give at least one stretch")
	}
	out := make([]stretch, 0, len(list))
	last := int64(0)
	for i, e := range list {
		o := e.AsObject()
		upTo := total
		if i < len(list)-1 {
			w := o.Must("upTo")
			upTo = w.Integer(last+1, w.Most(), last+1)
		} else if w := o.Get("upTo"); w.Given() {
			upTo = w.Integer(w.Form.Least, w.Most(), total)
		}
		last = upTo
		out = append(out, stretch{o, upTo})
	}
	return out
}

// ensemble reads recorded runs.
func ensemble(v strict.Value, s *job.Spec) {
	o := v.AsObject()
	if o.Has("upTo") {
		for _, e := range o.Get("upTo").AsList() {
			s.Profile.Bounds = append(s.Profile.Bounds, e.AsNumber())
		}
	} else {
		s.Profile.Bounds = []int64{s.Total}
	}
	runs := o.Must("runs").AsList()
	for _, run := range runs {
		var peaks []quantity.Amount
		for _, e := range run.AsList() {
			peaks = append(peaks, e.AsAmount(1))
		}
		s.Profile.Runs = append(s.Profile.Runs, peaks)
	}
}
