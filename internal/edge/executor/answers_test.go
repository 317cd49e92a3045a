package executor_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
)

// TestAnswersAreToldOnceAndRepeated: what is told of a subjob, and what a Start that comes again is answered with then.
func TestAnswersAreToldOnceAndRepeated(t *testing.T) {
	res := &job.Result{Outcome: job.Done}
	for name, c := range map[string]struct {
		do   func(*executor.Answers)
		want []protocol.Kind // the last is the repetition, unless there is none
	}{
		"nothing yet": {func(a *executor.Answers) { a.Began(0); a.Stuck("") }, nil},
		"it began":    {func(a *executor.Answers) { a.Began(5); a.Began(6) }, []protocol.Kind{protocol.Started, protocol.Started}},
		"it is stuck": {func(a *executor.Answers) { a.Began(5); a.Stuck("x"); a.Stuck("y") },
			[]protocol.Kind{protocol.Started, protocol.Stuck, protocol.Stuck}},
		"it has ended": {func(a *executor.Answers) { a.Stuck("x"); a.Ended(res) }, []protocol.Kind{protocol.Stuck, protocol.Exited,
			protocol.Exited}},
		"Find tells its end": {func(a *executor.Answers) { a.Restore(executor.State{Began: 5, Result: res}); a.Began(5) },
			[]protocol.Kind{protocol.Exited}},
	} {
		var told []protocol.Message
		a := executor.Answers{Post: func(m protocol.Message) { told = append(told, m) }, Token: job.Token{Seq: 1}, Job: "j", Slice: "s",
			Range:  job.Range{To: 3},
			Origin: executor.Origin{Node: protocol.Address{ID: "n"}, Executor: protocol.Address{ID: "e"}}}
		c.do(&a)
		a.Repeat()
		var kinds []protocol.Kind
		for _, m := range told {
			kinds = append(kinds, m.Kind)
			if m.From.ID != "e" || m.To.ID != "n" || m.Token != a.Token || m.Job != "j" {
				t.Errorf("%s: %+v", name, m)
			}
			switch b := m.Body.(type) {
			case *protocol.Beginning:
				if b.At != 5 || b.Slice != "s" || b.Range != a.Range {
					t.Errorf("%s: %+v", name, b)
				}
			case *protocol.Conclusion:
				if b.Result != res || b.Slice != "s" || b.Range != a.Range {
					t.Errorf("%s: %+v", name, b)
				}
			case *protocol.Reason:
				if b.Text != "x" {
					t.Errorf("%s: %+v", name, b)
				}
			}
		}
		if !slices.Equal(kinds, c.want) {
			t.Errorf("%s: told %v, want %v", name, kinds, c.want)
		}
	}
	var nobody executor.Answers
	nobody.Ended(res)
	if nobody.State().Result != res {
		t.Error("a result that nobody is told is forgotten")
	}
}

// TestEveryStops: nothing is called once the call that stops it has returned.
func TestEveryStops(t *testing.T) {
	calls, first := 0, make(chan struct{})
	stop := executor.Every(time.Millisecond, func() {
		if calls++; calls == 1 {
			close(first)
		}
	})
	<-first
	stop()
	n := calls
	time.Sleep(10 * time.Millisecond)
	if calls != n {
		t.Errorf("%d calls after it was stopped", calls-n)
	}
}

// TestEveryKeepsItsInterval: however long a call takes, calls begin an interval apart.
func TestEveryKeepsItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		stop := executor.Every(10*time.Second, func() {
			at = append(at, time.Since(begun))
			time.Sleep(7 * time.Second)
		})
		time.Sleep(45 * time.Second)
		stop()
		want := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("calls began at %v, want %v", at, want)
		}
	})
}

// TestTheLastSettledAreRemembered, and of one that is settled twice what was said last.
func TestTheLastSettledAreRemembered(t *testing.T) {
	s := executor.Settled[int]{Most: 3}
	for i := range 10 {
		s.Add(job.Token{Seq: uint64(i)}, i)
		s.Add(job.Token{Seq: uint64(i)}, -i)
		for j := range 10 {
			of, known := s.Of(job.Token{Seq: uint64(j)})
			if want := j <= i && j > i-3; known != want || known && of != -j {
				t.Errorf("after %d, of %d: %d, %v", i, j, of, known)
			}
		}
	}
}
