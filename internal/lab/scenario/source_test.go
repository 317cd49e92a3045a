package scenario

import (
	"strings"
	"testing"
)

// TestStreamsSayWhatIsWrong with a generated workload.
func TestStreamsSayWhatIsWrong(t *testing.T) {
	const head = "scenario: s\ncluster: {nodes: [{gpus: \"sim:a100-40gb=1,layout=3g.20gb+2g.10gb\"}]}\nwindow: {until: 1h}\nworkload: "
	for text, want := range map[string]string{
		"{}":                                                  "offers no work",
		"{synthetic: {jobs: 0}}":                              "want a whole number from 1",
		"{synthetic: {durations: {}}}":                        "gives 0 of fixed, uniform and lognormal",
		"{synthetic: {durations: phily}}":                     `is "phily"; did you mean "philly"?`,
		"{synthetic: {durations: {uniform: [1m]}}}":           "has 1 lengths; want two",
		"{synthetic: {durations: {uniform: [2m, 1m]}}}":       "is not longer than the first",
		"{synthetic: {durations: {lognormal: {median: 1m}}}}": `"sigma" is missing`,
		"{synthetic: {arrivals: {poison: 1m}}}":               `did you mean "poisson"?`,
		"{synthetic: {gpus: {0: 1}}}":                         `"0" is no number of GPUs`,
		"{synthetic: {gpus: {1: lots}}}":                      "want a number from 1e-06 to 1e+06",
		"{synthetic: {timeError: {bias: 9}}}":                 "want a number from -5 to 5",
		"{synthetic: {deadlines: {share: 50%}}}":              `"slack" is missing`,
		"{synthetic: {deadlines: {slack: [5]}}}":              "has 1 numbers; want the least and the most",
		"{synthetic: {deadlines: {slack: [5, 4]}}}":           "is less than the first",
		"{synthetic: {atomizable: 101%}}":                     "want a share from 0 to 1",
		"{synthetic: [{load: 0.1}, {laod: 1}]}":               `synthetic[1].laod: unknown key; did you mean "load"?`,
		"{compose: {durations: philly}}":                      "unknown key",
		"{synthetic: {gpus: {2: 1}}}":                         "has only jobs with several GPUs, and these are dropped",
		"{synthetic: {multi: gang, gpus: many}}":              `is "many"; want one of one, philly`,
	} {
		if _, err := Parse("s.yml", []byte(head+text+"\n")); err == nil || !contains(err, want) {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
	if _, err := Parse("s.yml",
		[]byte("scenario: s\ncluster: {nodes: [{gpus: \"sim:a30-24gb\"}]}\nworkload: {synthetic: {load: 1}}\n")); err == nil ||
		!contains(err, "has no end") {
		t.Errorf("a stream without an end: %v", err)
	}
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }
