package report

import (
	"math"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/measure"
)

// contest of constant values by name; the i-th seed adds i minutes to all, and its wobble.
func contest(wobble float64, seeds int, minutes ...float64) Contest {
	c := Contest{Where: "small"}
	for i := range minutes {
		c.Names = append(c.Names, string(rune('a'+i)))
	}
	c.Values = func(name, metric string) []float64 {
		out := make([]float64, seeds)
		for i := range out {
			switch metric {
			case measure.CompletionMean:
				out[i] = 60*(minutes[name[0]-'a']+float64(i)) + wobble*float64((i*int(name[0]))%5)
			case measure.Utilization:
				out[i] = minutes[name[0]-'a'] / 100
			case measure.Unfinished:
				out[i] = float64(name[0] - 'a')
			default:
				out[i] = math.NaN()
			}
		}
		return out
	}
	return c
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		of     Contest
		metric string
		want   string
	}{
		{"won", contest(1, 3, 10, 30, 20), measure.CompletionMean,
			"small on 3 seeds: by mean completion a beats c, the best of 2 others: 11 min against 21 min, 10 min less (95% interval " +
				"9.94 min to 10.1 min); but not all did the same work (jobs unfinished: 0 of a, 2 of c)."},
		{"lost", contest(1, 3, 30, 10), measure.CompletionMean,
			"small on 3 seeds: by mean completion a loses to b: 31 min against 11 min, 20 min more (95% interval 19.9 min to 20.1 min); " +
				"but not all did the same work (jobs unfinished: 0 of a, 1 of b)."},
		{"not told apart", contest(600, 3, 10, 10.1), measure.CompletionMean, "no difference is shown between a and b: "},
		{"one seed", contest(1, 1, 10, 20), measure.CompletionMean,
			"small on 1 seed: by mean completion a has 10 min against 20 min of b; one seed can not say whether that is more than " +
				"chance; but"},
		{"more is better", contest(0, 2, 90, 80), measure.Utilization,
			"by utilization a beats b: 90% against 80%, 10 points more (95% interval 10 points to 10 points)"},
		{"alone", contest(0, 2, 10), measure.CompletionMean,
			"small on 2 seeds: a has a mean completion of 10.5 min (95% interval 4.15 min to 16.9 min), and is compared with nothing."},
		{"not measured", contest(0, 2, 10, 20), measure.WaitP99, ""},
		{"none", Contest{}, measure.CompletionMean, ""},
	} {
		got := c.of.Verdict(c.metric)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// Of a sweep it says how often; what has one seed has no interval and shows nothing.
func TestVerdictOverSettings(t *testing.T) {
	s := &Study{}
	for load, minutes := range map[float64][2]float64{.5: {10, 20}, .7: {20, 10}, .9: {10, 20}} {
		for seed := range uint64(3) {
			for i, m := range []string{"sja", "easy"} {
				s.Rows = append(s.Rows, Row{Scenario: "x", Mechanism: m, Seed: seed, Params: []Param{{"load", load}},
					Metrics: measure.Metrics{{Name: measure.CompletionMean, Value: minutes[i] + float64(seed)*.1*float64(i)}}})
			}
		}
	}
	want := "sja against the best of the others by mean completion: it wins in 2 of 3 settings, loses in 1, and in 0 no difference is " +
		"shown (95% intervals)."
	if got := s.verdict(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var page strings.Builder
	s.About, s.Notes = "What it is.", []string{"one caveat", "another"}
	if err := s.HTML(&page); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	at := strings.Index(text, `<p class="verdict">sja against`)
	if fold := strings.Index(text, `<details class="notes">`); at < 0 || fold < at || strings.Index(text, "one caveat") < fold ||
		strings.Contains(text[at:fold], "caveat") || !strings.Contains(text, "rest on (2)") {
		t.Error("the page does not begin with who won, with its caveats folded behind")
	}
}
