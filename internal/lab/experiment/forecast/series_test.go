package forecast

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// synthetic is a series of pods that keep a level and sometimes leave it for minutes.
func synthetic(pods, steps int, seed uint64) *Series {
	const gib = 1 << 30
	s := &Series{Steps: steps}
	for k := range pods {
		rng := prng.New(seed, uint64(k))
		p := Pod{Name: fmt.Sprint(k), Use: make([]int64, steps)}
		level, burst := 10+rng.Float64()*10, 0
		for i := range p.Use {
			if burst == 0 && rng.IntN(200) == 0 {
				burst = 1 + rng.IntN(20)
			}
			use := level + rng.Float64()
			if burst > 0 {
				burst--
				use += 3 + 10*rng.Float64()
			}
			p.Use[i] = int64(use * gib)
		}
		s.Pods = append(s.Pods, p)
	}
	s.outcomes()
	return s
}

// TestNoPredictionSeesTheFuture: with another future every bound up to then is the same, whatever the setting.
func TestNoPredictionSeesTheFuture(t *testing.T) {
	const steps, cut = 420, 330
	theta := []int64{100_000, 20_000}
	s, other := synthetic(5, steps, 1), synthetic(5, steps, 1)
	for k := range other.Pods {
		for i := cut + 1; i < steps; i++ {
			other.Pods[k].Use[i] = Capacity - 3*other.Pods[k].Use[i]/2
		}
	}
	other.outcomes()
	for _, set := range settings() {
		a, b := s.start(set, s.expect(set.base), theta), other.start(set, other.expect(set.base), theta)
		differs := false
		for i := range steps {
			for _, w := range []*walk{a, b} {
				w.learn(i - hour)
				w.predict(i)
			}
			for k := range s.Pods {
				for j := range theta {
					x, y := a.held[k][j][i], b.held[k][j][i]
					if i <= cut && x != y {
						t.Fatalf("%s: step %d of pod %d: %d, with another future %d", set.Name(), i, k, x, y)
					}
					differs = differs || x != y
				}
			}
		}
		if !differs {
			t.Errorf("%s: the future changes nothing even when it has come", set.Name())
		}
	}
}

// TestStationaryPodsAreCovered: where what is pooled is exchangeable up to its correlation, the share of misses is near
// what was asked for, and a smaller theta costs more.
func TestStationaryPodsAreCovered(t *testing.T) {
	s := synthetic(20, 1200, 3)
	theta := []int64{100_000, 50_000, 20_000}
	for _, set := range []Setting{{base: most(1)}, {base: mean(3), window: 3}, {base: high(1), gamma: 5000}} {
		scores := s.through(set, s.expect(set.base), theta)
		for j, score := range scores {
			want := float64(theta[j]) / 1e4
			if r := score.UnderRate(); r > 1.4*want || r < .5*want {
				t.Errorf("%s: %.2f%% missed, want about %.2f%%", set.Name(), r, want)
			}
			if j > 0 && score.Over() <= scores[j-1].Over() {
				t.Errorf("%s: fewer misses cost nothing", set.Name())
			}
		}
	}
}

func TestTheNaiveRule(t *testing.T) {
	p := Pod{Use: make([]int64, 2*hour+2)}
	for i := range p.Use {
		p.Use[i] = 100
	}
	p.Use[5], p.Use[2*hour+1] = 150, 200 // within the past hour until step 67; the last hour's peak
	s := &Series{Pods: []Pod{p}, Steps: len(p.Use)}
	s.outcomes()
	// Steps 62, 63, 64 are judged: the past hour's most is 150, and 200 comes at the end of the hour after 64.
	score := s.Naive(1, 120, 1, math.MaxInt64)
	if score.Predictions != 3 || score.Under != 1 || math.Abs(score.Over()-100*(.8+.8-.1)/3) > 1e-9 || math.Abs(score.Held()-35) > 1e-9 {
		t.Errorf("%+v: over %v, held %v", score, score.Over(), score.Held())
	}
	if limited := s.Naive(1, 120, 1, 150); limited.Under != 1 || limited.Over() >= score.Over() {
		t.Errorf("with a limit: %+v", limited)
	}
	if longer := s.Naive(1, 120, 2, math.MaxInt64); longer.Predictions != 0 {
		t.Errorf("with a history of two hours: %+v", longer)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "series.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReading(t *testing.T) {
	s, err := Read(write(t, "timestamp_anon,value,container_ip\n1000,5,b\n1000,7,a\n1057,6,b\n1171,9,b\n"))
	if err != nil || s.Steps != 4 || len(s.Pods) != 2 || s.Pods[0].Name != "a" || !slices.Equal(s.Pods[1].Use, []int64{5, 6, 0, 9}) ||
		s.Pods[1].next[0] != 9 {
		t.Errorf("%+v, %v", s, err)
	}
	for text, says := range map[string]string{
		"timestamp_anon,value,container_ip\n":                              "0 pods",
		"timestamp_anon,value,container_ip\n1,5,\n":                        "line 2: want a pod's use",
		"timestamp_anon,value,container_ip\n1,-5,a\n":                      "want a pod's use",
		"timestamp_anon,value,container_ip\n1,5,a\n900000000,5,a\n":        "samples 57s apart",
		"timestamp_anon,value,container_ip\n0,1,a\n57,1,a\n114,much,a\n\n": "value",
	} {
		if _, err := Read(write(t, text)); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if _, err := Read("nowhere"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a missing file: %v", err)
	}
}

// TestCheapestIsBruteForce: no bounds among the peaks with as few misses allocate less.
func TestCheapestIsBruteForce(t *testing.T) {
	rng := prng.New(4)
	for range 30 {
		groups := map[int][]int64{}
		for g := range 2 {
			for range 60 {
				groups[g] = append(groups[g], 10+int64(rng.IntN(8))*int64(rng.IntN(8)))
			}
		}
		got := cheapest(groups, 120)
		for _, a := range groups[0] {
			for _, b := range groups[1] {
				var score Score
				for i := range 60 {
					score.add(a, groups[0][i])
					score.add(b, groups[1][i])
				}
				if score.Under <= got.Under && score.Over() < got.Over()-1e-9 {
					t.Fatalf("bounds %d and %d: %d missed at %v, found %d at %v", a, b, score.Under, score.Over(), got.Under, got.Over())
				}
			}
		}
		if got.UnderRate() > TargetUnder || got.Predictions != 120 {
			t.Fatalf("%+v", got)
		}
	}
}

func TestOverAt(t *testing.T) {
	score := func(under int, over float64) Score { return Score{Predictions: 100, Under: under, over: over} }
	frontier := []Score{score(10, 20), score(4, 40), score(2, 60)}
	for under, want := range map[float64]float64{1: 100, 2: 100, 3: 50, 4: 40, 7: 30, 12: 20} {
		if got := overAt(frontier, under); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v%%: %v, want %v", under, got, want)
		}
	}
}

// TestPublishedSeries: the published rules on the part of the day that is there, and our frontier below theirs on pods it
// was not chosen on.
func TestPublishedSeries(t *testing.T) {
	s, err := Read(tracetest.Data(t, File))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pods) != 123 {
		t.Skipf("%d pods: the figures are those of the first 60%% of the day, with 123", len(s.Pods))
	}
	for _, c := range []struct {
		hours, margin int
		under, over   float64
	}{{1, 120, 16.5, 21.8}, {3, 120, 6.4, 38.3}, {6, 120, 2.1, 50.5}} {
		if score := s.Naive(c.hours, c.margin, c.hours, math.MaxInt64); math.Abs(score.UnderRate()-c.under) > .1 ||
			math.Abs(score.Over()-c.over) > .1 {
			t.Errorf("%s: %.2f%% under at %.2f%%, known as %.1f and %.1f", ruleName(c.hours, c.margin), score.UnderRate(), score.Over(),
				c.under, c.over)
		}
	}
	g := Frontier(s)
	for _, naive := range g.Naive {
		under := naive.Reported.UnderRate()
		if under < .8 || under > 10 {
			continue
		}
		var ours []Score
		for _, p := range g.Ours {
			ours = append(ours, p.Reported)
		}
		if over := overAt(ours, under); over >= naive.Reported.Over() {
			t.Errorf("%s: %.2f%% under at %.1f%%, ours %.1f%%", naive.Rule, under, naive.Reported.Over(), over)
		}
	}
	for _, p := range g.Ours {
		if p.Theta >= 1 && p.Reported.UnderRate() > p.Theta {
			t.Errorf("asked for %v%%, missed %.2f%%", p.Theta, p.Reported.UnderRate())
		}
	}
	if pod := g.Hindsight[len(g.Hindsight)-1].Reported.Over(); g.Met() || pod < TargetOver {
		t.Errorf("the target is met (%v), or can be by one bound a pod in hindsight (%.1f%%): the documents say otherwise", g.Met(), pod)
	}
}
