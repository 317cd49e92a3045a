package twin_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestLivesDoNotMix: whatever is lost, doubled, delayed and reordered, whoever restarts, and however often jobs are cancelled,
// requeued, replaced and deleted: no unit of one submission is committed twice, nothing is published beside what is of another
// one, every job ends, and then what is published is what was committed.
func TestLivesDoNotMix(t *testing.T) {
	again := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		var archive *filing.Config
		if rapid.IntRange(0, 2).Draw(rt, "archive") > 0 {
			archive = &filing.Config{Keep: time.Duration(rapid.SampledFrom([]int{1, 2000, 20_000}).Draw(rt, "hot")) * time.Millisecond, Most: 1}
		}
		v := newVillage(rt, func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "draw") }, archive)
		v.rough = true
		v.advance(time.Second)
		for i := range rapid.IntRange(1, 25).Draw(rt, "calls") {
			name := rapid.SampledFrom([]job.ID{"a", "b"}).Draw(rt, "job")
			m := protocol.Message{Job: name, Request: fmt.Sprint("r", i)}
			what := rapid.SampledFrom([]string{"submit", "submit", "replace", "cancel", "cancel", "requeue", "requeue", "requeue", "delete", "restart", "outdated"}).Draw(rt, "call")
			switch what {
			case "submit", "replace":
				s := spec(rt, name, job.Items, int64(rapid.IntRange(1, 30).Draw(rt, "total")), time.Second)
				s.Unit = m.Request
				m.Kind, m.Spec, m.Digest, m.Flag = protocol.Submit, s, m.Request, what == "replace"
			case "cancel":
				m.Kind = protocol.Cancel
			case "requeue":
				m.Kind = protocol.Requeue
			case "delete":
				m.Kind = protocol.Delete
			case "outdated":
				if v.vault != nil {
					v.outdate(name)
				}
			case "restart":
				v.restart(rapid.IntRange(0, 2).Draw(rt, "who"))
			}
			if m.Kind != 0 {
				first := v.ask(m)
				if first.Err == nil {
					again[what]++
				}
				if first.Err == nil && rapid.Bool().Draw(rt, "twice") {
					if second := v.ask(m); second.Err != nil || second.Flag && what != "cancel" {
						rt.Fatalf("%s of %s again under the same request: %+v", what, name, second)
					}
				}
			}
			v.advance(time.Duration(rapid.IntRange(0, 20_000).Draw(rt, "wait")) * time.Millisecond)
		}
		v.rough = false
		v.advance(30 * time.Minute)
		v.settled()
		for i := range v.parties {
			v.restart(i)
		}
		v.advance(time.Minute)
		v.settled()
		if v.vault != nil {
			v.advance(time.Minute)
			v.emptied(len(everyJob(v.parties[1].Actor.(actor.Zone), v.now)))
			again["leave"], again["come back"] = again["leave"]+v.vault.left, again["come back"]+v.vault.back
		}
	})
	for _, what := range []string{"submit", "replace", "cancel", "requeue", "delete", "leave", "come back"} {
		if again[what] == 0 { // of a hundred worlds some ten have each: none at all is no chance
			t.Errorf("%s was never done: the test shows nothing", what)
		}
	}
}

// TestRequeueKeepsWhatIsCommitted: the next life does the rest, and learns nothing anew, from the archive too.
func TestRequeueKeepsWhatIsCommitted(t *testing.T) {
	t.Run("hot", func(t *testing.T) { requeueKeeps(t, nil) })
	t.Run("archived", func(t *testing.T) { requeueKeeps(t, &filing.Config{Keep: time.Second}) })
}

func requeueKeeps(t *testing.T, archive *filing.Config) {
	v := newVillage(t, func(n int) int { return n / 2 }, archive)
	v.advance(time.Second)
	s := spec(t, "a", job.Items, 200, time.Second)
	s.Unit, s.Parallelism, s.Deadline = "u", 1, v.now.Add(250*time.Second)
	v.ask(protocol.Message{Kind: protocol.Submit, Request: "s", Digest: "d", Spec: s})
	v.advance(100 * time.Second)
	v.ask(protocol.Message{Kind: protocol.Cancel, Job: "a", Request: "c"})
	v.advance(time.Minute)
	v.settled()
	done := v.committed["u"].Len()
	if done == 0 || done == 200 {
		t.Fatalf("%d of 200 units are committed: the test shows nothing", done)
	}
	v.advance(2 * time.Minute)
	if n, _ := v.gate().Archived(); archive != nil && (n != 1 || v.hot("a") != nil) {
		t.Fatal("the job did not leave to the archive")
	}
	if r := v.ask(protocol.Message{Kind: protocol.Requeue, Job: "a", Request: "q", At: quantity.Never}); r.Err != nil {
		t.Fatal(r.Err)
	}
	ran := int64(0)
	for _, p := range v.runs {
		ran -= p.start.Range.Len()
	}
	v.advance(time.Hour)
	v.settled()
	for _, p := range v.runs {
		ran += p.start.Range.Len()
	}
	if v.committed["u"].Len() != 200 || ran > 200-done+2 {
		t.Errorf("%d units are committed, %d were run in the second life, %d were left", v.committed["u"].Len(), ran, 200-done)
	}
}
