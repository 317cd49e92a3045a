package jobs

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestRegisterAgainstFold: each job is the fold of its facts, and sum and counts are those of all jobs.
func TestRegisterAgainstFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, now := New(time.Hour, time.Second, nil), int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "facts") {
			now++
			id := job.ID(fmt.Sprint("j", rapid.IntRange(0, 3).Draw(t, "job")))
			j := r.Find(id)
			if j == nil {
				queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
				zone := rapid.SampledFrom([]job.ZoneID{"", "y"}).Draw(t, "home")
				r.Accept(&protocol.Fact{Kind: protocol.JobAccepted, Job: id, Epoch: 1, Generation: 1, At: 1,
					Body: &protocol.Acceptance{Spec: &job.Spec{Queue: queue, Total: 1}, Zone: zone}})
				continue
			}
			f := protocol.Fact{Job: id}
			kinds := []string{"homed", "drawn", "moves", "paused", "cancelling", "closed", "requeued", "removed"}
			switch kind := rapid.SampledFrom(kinds).Draw(t, "fact"); {
			case kind == "removed":
				r.Remove(j)
				continue
			case kind == "requeued":
				if !j.Over() {
					continue
				}
				f.Kind, f.Generation, f.Body = protocol.JobRequeued, j.Generation()+1, &protocol.Sequel{Request: "again"}
			case j.Over():
				continue
			case kind == "homed":
				f.Kind = protocol.JobHomed
			case kind == "drawn":
				f.Kind, f.Body = protocol.JobDrawn, &protocol.InZone{Zone: "x"}
				if _, _, moves := j.Moves(); j.Zone() != "" || moves {
					continue
				}
			case kind == "moves":
				if _, _, moves := j.Moves(); !j.Homed() || moves {
					continue
				}
				f.Kind, f.Epoch, f.Body = protocol.Rehomed, j.Epoch()+1, &protocol.InZone{Zone: "z"}
			case kind == "paused":
				f.Kind, f.Body = protocol.JobPaused, &protocol.JobPause{Paused: !j.Paused()}
			case kind == "cancelling":
				f.Kind, f.At, f.Body = protocol.JobCancelling, 5, &protocol.JobCancel{Request: "r", Text: "no"}
			case kind == "closed":
				f.Kind, f.At, f.Body = protocol.JobClosed, 9, &protocol.Final{Verdict: job.Verdict{State: job.Cancelled}}
			}
			r.Fold(j, &f)
			again := New(time.Hour, time.Second, nil)
			facts := j.AppendFacts(nil)
			x := again.Accept(&facts[0])
			for i := range facts[1:] {
				again.Fold(x, &facts[1+i])
			}
			if again.Sum() != j.sum {
				t.Fatalf("%+v folds to another job than %+v", facts, j)
			}
			sum, all, of := uint64(0), 0, 0
			for _, j := range r.All() {
				sum += j.hash()
				if !j.Over() {
					all++
					if j.Spec().Queue == "a" {
						of++
					}
				}
			}
			if gotAll, gotOf := r.Unfinished("a"); r.Sum() != sum || gotAll != all || gotOf != of {
				t.Fatalf("sum %x and counts %d and %d, want %x, %d and %d", r.Sum(), gotAll, gotOf, sum, all, of)
			}
		}
	})
}
