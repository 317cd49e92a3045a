package config

import (
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
)

// speeds reads how fast the job runs on slices of each profile, such as {1g.10gb: 0.21}, in order of profile.
func speeds(v value) (out []job.SpeedOn) {
	o := v.asTable()
	switch n := len(o.order); {
	case v.given() && n == 0:
		v.wrong("names no profile; write for example {1g.10gb: 0.21} or leave it out")
	case n > int(v.form.most):
		v.wrong("names %d profiles; want at most %d", n, v.form.most)
		return nil
	}
	for _, profile := range o.order {
		at := o.get(profile)
		if profile == "" || len(profile) > 64 || strings.ContainsFunc(profile, func(r rune) bool { return r <= ' ' || r > '~' }) {
			at.wrong("%q is no name of a profile; want 1 to 64 plain letters, digits and signs, such as 1g.10gb", profile)
			continue
		}
		name, _ := mig.Canonical(profile) // slices have it as drivers print it
		if slices.ContainsFunc(out, func(s job.SpeedOn) bool { return s.Profile == name }) {
			at.wrong("%q is a profile that is named before, in another spelling: %s", profile, name)
			continue
		}
		out = append(out, job.SpeedOn{Profile: name, Permille: at.asShare()})
	}
	slices.SortFunc(out, func(a, b job.SpeedOn) int { return strings.Compare(a.Profile, b.Profile) })
	return out
}
