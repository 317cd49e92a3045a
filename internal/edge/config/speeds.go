package config

import (
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/edge/strict"
)

// speeds reads how fast the job runs on slices of each profile, such as {1g.10gb: 0.21}, in order of profile.
func speeds(v strict.Value) (out []job.SpeedOn) {
	o := v.AsTable()
	switch n := len(o.Keys()); {
	case v.Given() && n == 0:
		v.Wrong("names no profile; write for example {1g.10gb: 0.21} or leave it out")
	case n > int(v.Most()):
		v.Wrong("names %d profiles; want at most %d", n, v.Most())
		return nil
	}
	for _, profile := range o.Keys() {
		at := o.Get(profile)
		if profile == "" || len(profile) > 64 || strings.ContainsFunc(profile, func(r rune) bool { return r <= ' ' || r > '~' }) {
			at.Wrong("%q is no name of a profile; want 1 to 64 plain letters, digits and signs, such as 1g.10gb", profile)
			continue
		}
		name, _ := mig.Canonical(profile) // slices have it as drivers print it
		if slices.ContainsFunc(out, func(s job.SpeedOn) bool { return s.Profile == name }) {
			at.Wrong("%q is a profile that is named before, in another spelling: %s", profile, name)
			continue
		}
		out = append(out, job.SpeedOn{Profile: name, Permille: at.AsShare()})
	}
	slices.SortFunc(out, func(a, b job.SpeedOn) int { return strings.Compare(a.Profile, b.Profile) })
	return out
}
