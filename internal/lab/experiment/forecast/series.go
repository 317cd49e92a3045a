// Package forecast holds what core/forecast promises against published data: the next hour's peak of the GPU memory of
// Alibaba's Stable Diffusion service (GenTD26), and the peaks of the training runs of MISO and CARMA. Every prediction uses
// the past alone; what can be set is chosen on one half of the pods and reported on the other.
package forecast

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/genai"
)

const (
	// Step is the time between two samples of a pod.
	Step = 57 * time.Second
	// hour is the samples in an hour, rounded.
	hour = 63
	// Capacity of the pods' cards, in bytes. It is not published; no sample is above, and cards come with 48 GiB.
	Capacity int64 = 48 << 30
)

// Series is the memory of pods on one grid of steps.
type Series struct {
	Pods  []Pod
	Steps int
}

// Pod is one pod: its use in bytes at each step, 0 where there is no sample.
type Pod struct {
	Name string
	Use  []int64
	// next is the peak of the hour after each step. It is an outcome: no prediction may look at it.
	next []int64
}

// Read reads the published series. The error is of kind NotFound or Invalid.
func Read(file string) (*Series, error) {
	type sample struct {
		at  time.Duration
		use int64
	}
	pods := map[string][]sample{}
	first, last := time.Duration(-1), time.Duration(0)
	err := trace.Each(genai.Format(), file, func(r *trace.Record) error {
		if r.Kind != trace.Sample || r.Sample.Subject == "" || r.Sample.Value < 0 || r.Sample.Value > 1<<50 {
			return errkind.Errorf(errkind.Invalid, "%s: line %d: want a pod's use in bytes, 0 to 1 PiB", file, r.Line)
		}
		if first < 0 || r.At < first {
			first = r.At
		}
		last = max(last, r.At)
		pods[r.Sample.Subject] = append(pods[r.Sample.Subject], sample{r.At, int64(r.Sample.Value)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	steps := int((last-first)/Step) + 1
	if len(pods) == 0 || steps > 1<<20 || steps*len(pods) > 1<<26 {
		return nil, errkind.Errorf(errkind.Invalid, "%s: %d pods over %v: want at least one, and samples %v apart over days", file,
			len(pods), last-first, Step)
	}
	s := &Series{Steps: steps}
	for name, samples := range pods {
		p := Pod{Name: name, Use: make([]int64, s.Steps)}
		for _, x := range samples {
			p.Use[(x.at-first)/Step] = x.use
		}
		s.Pods = append(s.Pods, p)
	}
	s.outcomes()
	slices.SortFunc(s.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

// outcomes finds the peaks of the hours after each step.
func (s *Series) outcomes() {
	for k := range s.Pods {
		p := &s.Pods[k]
		p.next = make([]int64, s.Steps)
		for i := range p.next {
			p.next[i] = p.most(i, min(i+hour, s.Steps-1))
		}
	}
}

// Halves divides the pods by their names.
func (s *Series) Halves() (chosen, reported *Series) {
	chosen, reported = &Series{Steps: s.Steps}, &Series{Steps: s.Steps}
	for _, p := range s.Pods {
		half := chosen
		if prng.Name(p.Name)&1 == 1 {
			half = reported
		}
		half.Pods = append(half.Pods, p)
	}
	return chosen, reported
}

// most is the highest use in steps (from, to], 0 of none.
func (p *Pod) most(from, to int) int64 {
	peak := int64(0)
	for _, u := range p.Use[max(0, from+1) : to+1] {
		peak = max(peak, u)
	}
	return peak
}

// judged says whether a prediction at step i is one: the pod has been seen for some hours up to i and will be for one more.
func (p *Pod) judged(i, hours int) bool {
	from, to := i-hours*hour+1, i+hour
	return from >= 0 && to < len(p.Use) && p.Use[from] > 0 && p.Use[i] > 0 && p.Use[to] > 0
}

// Score is how good bounds were.
type Score struct {
	// Predictions that were judged, and those of them that the peak passed.
	Predictions, Under int
	over, held, used   float64
}

func (s *Score) add(bound, peak int64) {
	s.Predictions++
	if bound < peak {
		s.Under++
	}
	s.over += float64(bound)/float64(peak) - 1
	s.held += float64(bound)
	s.used += float64(peak)
}

// UnderRate is the share of predictions that were passed, in percent.
func (s *Score) UnderRate() float64 { return 100 * float64(s.Under) / float64(max(1, s.Predictions)) }

// Over is the mean over-allocation in percent: of bound over peak less 1, where a bound was too low too.
func (s *Score) Over() float64 { return 100 * s.over / float64(max(1, s.Predictions)) }

// Held is how much more was allocated in all than peaks took in all, in percent: large jobs count for more.
func (s *Score) Held() float64 { return 100 * (s.held/max(1, s.used) - 1) }

// Naive is the rule to beat: the most of the past hours times a margin in percent, at most a limit; judged on predictions with at least
// history hours before them.
func (s *Series) Naive(hours, margin, history int, limit int64) Score {
	var score Score
	for k := range s.Pods {
		p := &s.Pods[k]
		for i := range s.Steps {
			if p.judged(i, history) {
				score.add(min(limit, p.most(i-hours*hour, i)*int64(margin)/100), p.next[i])
			}
		}
	}
	return score
}
