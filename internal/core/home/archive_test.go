package home

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// ended is a ledger with so many jobs that are over, as it comes up.
func ended(t *testing.T, n int, archive *filing.Config, unpublished ...protocol.Publication) *desk {
	t.Helper()
	z := newDesk(Config{Archive: archive})
	spec := &job.Spec{Queue: "q", Kind: job.Items, Total: 1, Grid: 1, Parallelism: 1}
	for i := range n {
		id := job.ID(fmt.Sprintf("j%06d", i))
		z.Apply(protocol.Fact{Kind: protocol.HomeKept, Job: id, Body: &protocol.Keeping{Record: &protocol.Record{
			Job: id, Epoch: 1, Generation: 1, Spec: spec, Queue: "q", Submitted: 1, Attained: 10,
			Verdict: job.Verdict{State: job.Cancelled},
			Ended:   quantity.Instant(1e9 + i), Unpublished: unpublished,
		}}})
	}
	return z
}

func told(out *protocol.Out, k protocol.Kind) (all []protocol.Message) {
	for _, m := range out.Effects {
		if m.Kind == k {
			all = append(all, m)
		}
	}
	return all
}

// TestARestartWithManyFinishedJobsIsQuiet: the gate hears of a bounded number of verdicts at once, of the next as it confirms,
// and of one that it never confirms less and less often.
func TestARestartWithManyFinishedJobsIsQuiet(t *testing.T) {
	const jobs = 20_000
	z := ended(t, jobs, nil)
	var out protocol.Out
	now := quantity.Instant(2e9)
	z.Recover(now, &out)
	first := told(&out, protocol.Closed)
	if len(first) != record.MostClosing {
		t.Fatalf("%d verdicts at once, want %d", len(first), record.MostClosing)
	}
	said := len(first)
	for range 600 { // ten minutes in which nobody answers
		now = now.Add(time.Second)
		out.Reset()
		z.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
		if n := len(told(&out, protocol.Closed)); n > record.MostClosing {
			t.Fatalf("%d verdicts at once", n)
		} else {
			said += n
		}
	}
	if said > jobs*(7+600/64) || said < 2*jobs {
		t.Errorf("%d verdicts were said of %d jobs in ten minutes, without an answer", said, jobs)
	}
	confirmed := map[job.ID]bool{}
	for i := 0; len(confirmed) < jobs && i < 100*jobs; i++ {
		closed := told(&out, protocol.Closed)
		out.Reset()
		if len(closed) == 0 {
			now = now.Add(time.Second)
			z.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
			continue
		}
		for _, m := range closed {
			confirmed[m.Job] = true
			z.Step(now, protocol.Message{Kind: protocol.ClosedAck, Job: m.Job, Epoch: 1, Generation: 1}, &out)
		}
	}
	out.Reset()
	z.Step(now.Add(time.Hour), protocol.Message{Kind: protocol.Tick}, &out)
	if len(confirmed) != jobs || len(told(&out, protocol.Closed)) != 0 {
		t.Errorf("%d of %d are confirmed, %d are said again", len(confirmed), jobs, len(told(&out, protocol.Closed)))
	}
}

// TestACancelledJobStaysUntilItsOutputIsThere: nothing of it is left to the archive before the gate has its verdict and what counts
// is in its place.
func TestACancelledJobStaysUntilItsOutputIsThere(t *testing.T) {
	token := job.Token{Epoch: 1, Seq: 1}
	z := ended(t, 1, &filing.Config{Keep: time.Second}, protocol.Publication{Token: token, Node: "n", Range: job.Range{To: 1}})
	now := quantity.Instant(1e12)
	for _, step := range []struct {
		what  string
		in    protocol.Message
		filed int
		facts int
	}{
		{"the gate has not confirmed it", protocol.Message{Kind: protocol.Tick}, 0, 0},
		{"it was not filed yet", protocol.Message{Kind: protocol.Archived, Job: "j000000", Generation: 1, Body: &protocol.Archival{}}, 0,
			0},
		{"its output is not known to be there", protocol.Message{Kind: protocol.ClosedAck, Job: "j000000", Epoch: 1, Generation: 1}, 0, 0},
		{"it is", protocol.Message{Kind: protocol.Published, Job: "j000000", Token: token}, 1, 1},
		{"of another life", protocol.Message{Kind: protocol.Archived, Job: "j000000", Generation: 2, Body: &protocol.Archival{}}, 1, 0},
		{"the archive has it", protocol.Message{Kind: protocol.Archived, Job: "j000000", Generation: 1, Body: &protocol.Archival{}}, 0, 1},
		{"it is gone", protocol.Message{Kind: protocol.Tick}, 0, 0},
	} {
		now = now.Add(10 * time.Minute)
		var out protocol.Out
		z.Step(now, step.in, &out)
		if filed := told(&out, protocol.File); len(filed) != step.filed || len(out.Facts) != step.facts {
			t.Fatalf("%s: %d are filed, %d facts: %+v", step.what, len(filed), len(out.Facts), out.Facts)
		}
	}
	if z.Book().Job("j000000") != nil {
		t.Error("the ledger still has it")
	}
}

// TestAJobStaysUntilTheGateHasItsVerdict, also when its output is there first: who leaves is told of no more.
func TestAJobStaysUntilTheGateHasItsVerdict(t *testing.T) {
	token := job.Token{Epoch: 1, Seq: 1}
	z := ended(t, 1, &filing.Config{Keep: time.Second}, protocol.Publication{Token: token, Node: "n", Range: job.Range{To: 1}})
	now := quantity.Instant(1e12)
	for _, step := range []struct {
		what          string
		in            protocol.Message
		closed, filed int
	}{
		{"nobody has said anything", protocol.Message{Kind: protocol.Tick}, 1, 0},
		{"its output is there", protocol.Message{Kind: protocol.Published, Job: "j000000", Token: token}, 1, 0},
		{"the gate still does not know it", protocol.Message{Kind: protocol.Tick}, 1, 0},
		{"the gate knows it", protocol.Message{Kind: protocol.ClosedAck, Job: "j000000", Epoch: 1, Generation: 1}, 0, 1},
	} {
		now = now.Add(10 * time.Minute)
		var out protocol.Out
		z.Step(now, step.in, &out)
		if closed, filed := told(&out, protocol.Closed), told(&out, protocol.File); len(closed) != step.closed || len(filed) != step.filed {
			t.Fatalf("%s: the gate is told %d times, %d are filed", step.what, len(closed), len(filed))
		}
	}
}

// TestWhatArchivedJobsAttainedCounts for their queue, however they leave, come back and are forgotten, and after a restart.
func TestWhatArchivedJobsAttainedCounts(t *testing.T) {
	const jobs = 5
	cfg := &filing.Config{Keep: time.Second}
	z := ended(t, jobs, cfg)
	facts := capture.All(z)
	now := quantity.Instant(1e12)
	parts := map[job.ID]protocol.Message{}
	step := func(m protocol.Message) {
		t.Helper()
		if name, ok := z.Recalls(&m); ok {
			m.Filed = parts[name].Filed
		}
		var out protocol.Out
		z.Step(now, m, &out)
		now = now.Add(time.Second)
		facts = append(facts, out.Facts...)
		for _, m := range told(&out, protocol.File) {
			parts[m.Job] = m
		}
	}
	check := func(what string, want int64) {
		t.Helper()
		again := ended(t, 0, cfg)
		for _, f := range facts {
			again.Apply(f)
		}
		kept := ended(t, 0, cfg)
		for _, f := range capture.All(z) {
			kept.Apply(f)
		}
		for i, o := range []*desk{z, again, kept} {
			if got := o.Book().Queue("q").Attained(); got != want || o.Digest() != z.Digest() {
				t.Errorf("%s: ledger %d has attained %d with digest %x, want %d and %x", what, i, got, o.Digest(), want, z.Digest())
			}
		}
	}
	for i := range jobs {
		step(protocol.Message{Kind: protocol.ClosedAck, Job: job.ID(fmt.Sprintf("j%06d", i)), Epoch: 1, Generation: 1})
	}
	step(protocol.Message{Kind: protocol.Tick})
	if len(parts) != jobs {
		t.Fatalf("%d of %d jobs are filed", len(parts), jobs)
	}
	check("filed", 50)
	for _, m := range parts {
		step(protocol.Message{Kind: protocol.Archived, Job: m.Job, Generation: 1, Body: &protocol.Archival{}})
	}
	if check("archived", 50); z.Kept() != 0 {
		t.Fatalf("%d jobs are left", z.Kept())
	}
	again := protocol.Message{Kind: protocol.Adopt, Job: "j000000", Epoch: 1, Generation: 2,
		Body: &protocol.Adoption{Since: 1, Spec: parts["j000000"].Filed[0].Body.(*protocol.Keeping).Record.Spec, At: now}}
	step(again)
	if check("one is run again", 50); z.Book().Job("j000000") == nil || z.Book().Job("j000000").Generation != 2 {
		t.Fatal("the job was not taken back")
	}
	for range 2 { // Forgotten may be lost
		step(protocol.Message{Kind: protocol.Forget, Job: "j000001", Epoch: 1, Generation: 1})
	}
	check("one is forgotten", 40)
	step(protocol.Message{Kind: protocol.Adopt, Job: "j000001", Epoch: 1, Generation: 1,
		Body: &protocol.Adoption{Since: 1, Spec: again.Body.(*protocol.Adoption).Spec, At: 1}})
	if check("and comes late", 40); z.Book().Job("j000001") != nil {
		t.Error("an Adopt that came late brought a forgotten job back")
	}
	step(protocol.Message{Kind: protocol.Adopt, Job: "j000002", Epoch: 1, Generation: 7,
		Body: &protocol.Adoption{Since: 7, Spec: again.Body.(*protocol.Adoption).Spec, At: now}})
	check("another job has its name", 30)
}

// TestASilentNodeIsAskedLessAndLess about output that is not known to be in its place.
func TestASilentNodeIsAskedLessAndLess(t *testing.T) {
	z := ended(t, 1, nil, protocol.Publication{Token: job.Token{Epoch: 1, Seq: 1}, Node: "n", Range: job.Range{To: 1}})
	asked, now := 0, quantity.Instant(2e9)
	for range 600 {
		var out protocol.Out
		z.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
		asked += len(told(&out, protocol.ResultAck))
		now = now.Add(time.Second)
	}
	if asked < 10 || asked > 17 {
		t.Errorf("it was asked %d times in ten minutes, want 6 times in the first and then every 64 s", asked)
	}
}
