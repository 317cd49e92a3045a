package bound

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// On one slice the bound is what the shortest remaining time first gives, played out job by job; there are enough jobs that
// the first are given to the machines together and the others one by one.
func TestShortestRemainingFirst(t *testing.T) {
	const n = weighed + 300
	s := prng.New(1)
	jobs := make([]Job, n)
	at := 0
	for i := range jobs {
		at += s.IntN(20)
		jobs[i] = Job{Submit: quantity.Instant(at) * second, Width: 1, Parts: part(time.Duration(1+s.IntN(18))*time.Second, 1000)}
	}
	r, err := For([]Class{{Name: "a", Count: 1}}, jobs, Window{0, quantity.Instant(at+1) * second}, Options{})
	if err != nil {
		t.Fatal(err)
	}

	left := make([]int, n)
	for i, j := range jobs {
		left[i] = int(j.Parts[0].Work / time.Second)
	}
	sum, done := 0, 0
	for now := 0; done < n; now++ { // second by second
		best := -1
		for i, j := range jobs {
			if j.Submit > quantity.Instant(now)*second {
				break
			}
			if left[i] > 0 && (best < 0 || left[i] < left[best]) {
				best = i
			}
		}
		if best < 0 {
			continue
		}
		if left[best]--; left[best] == 0 {
			sum += now + 1 - int(jobs[best].Submit/second)
			done++
		}
	}
	if want := float64(sum) / n; math.Abs(r.Completion-want) > 1e-6*want {
		t.Errorf("the bound is %.4f s, played out it is %.4f s", r.Completion, want)
	}
}
