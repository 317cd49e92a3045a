package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/strict"
)

// Bounds of lists.
const (
	maxSlices = 64
	maxLines  = 100
)

// wordOf is a text that a command may be given: no control characters, no blank at its ends, not empty.
func wordOf(v strict.Value, want string) string {
	s := v.Text(want, "")
	if v.Plain() && (s == "" || strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })) {
		v.Wrong("is %s; want %s", v.What(), want)
		return ""
	}
	return s
}

// pathOf is an absolute path.
func pathOf(v strict.Value, want string) string {
	s := wordOf(v, want)
	if s != "" && s[0] != '/' {
		v.Wrong("is %s; want %s: a path from the root", v.What(), want)
		return ""
	}
	return s
}

// linesOf are texts that are not empty.
func linesOf(v strict.Value, want string) (list []string) {
	for _, e := range v.List(want, maxLines) {
		list = append(list, wordOf(e, "text on one line"))
	}
	return list
}

// formed is a text of a form.
func formed(v strict.Value, form *regexp.Regexp, want string) string {
	s := v.Text(want, "")
	if v.Plain() && !form.MatchString(s) {
		v.Wrong("is %s; want %s", v.What(), want)
		return ""
	}
	return s
}

// amountsOf are resources and their amounts. An amount may be a number.
func amountsOf(v strict.Value) map[string]string {
	o := v.Object()
	var all map[string]string
	for _, name := range o.Keys() {
		e := o.Get(name)
		const want = "an amount such as 1, 500m or 4Gi"
		s, ok := e.Scalar(want)
		switch {
		case !ok:
		case !provider.SoundAmount(s):
			e.Wrong("is %s; want %s", e.What(), want)
		default:
			if all == nil {
				all = map[string]string{}
			}
			all[name] = s
		}
	}
	return all
}

// wordsOf is a mapping of keys to texts.
func wordsOf(v strict.Value, want string) map[string]string {
	o := v.Object()
	var all map[string]string
	for _, key := range o.Keys() {
		if all == nil {
			all = map[string]string{}
		}
		all[key] = o.Get(key).Text(want, "")
	}
	return all
}

// slicesOfGres are the slices of a resource that is typed by a MIG profile, such as gpu:1g.10gb:2, or gpu:a100_1g.10gb:2 as Slurm finds
// them itself; none: it does not say.
func slicesOfGres(gres string) (list []supply.Slice) {
	parts := strings.Split(gres, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return nil
	}
	count := 1
	if len(parts) == 3 {
		n, err := strconv.Atoi(parts[2])
		if err != nil || n < 1 || n > maxSlices {
			return nil
		}
		count = n
	}
	model, profile := "", parts[1]
	if i := strings.LastIndexByte(profile, '_'); i >= 0 {
		model, profile = strings.ReplaceAll(profile[:i], "_", " "), profile[i+1:]
	}
	profile, is := mig.Canonical(profile)
	if full, known := mig.ModelOf(model); known {
		model = full
	} else {
		model = ""
	}
	what := mig.Lookup(model, profile)
	if !is || what.Memory == 0 {
		return nil
	}
	return slices.Repeat([]supply.Slice{{Capacity: trp.Vector{trp.Memory: what.Memory}, Speed: what.Speed, Model: model, Profile: profile}},
		count)
}

// ownerlessOf is for how long a filler may hear nothing of its owner, at most as long as it may be there at all; 0: it goes on without.
func ownerlessOf(v strict.Value, longest time.Duration) time.Duration {
	if v.Plain() && (v.Raw() == "never" || v.Raw() == "0" || v.Raw() == "0s") {
		return 0
	}
	return v.Duration(departure.LeastOwnerless, longest, min(departure.Ownerless, longest))
}
