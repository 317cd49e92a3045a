package twin_test

import (
	"fmt"
	"slices"
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
	t.Parallel()
	again, words := map[string]int{}, []string{"submit", "replace", "cancel", "requeue", "delete", "leave", "come back"}
	world := func(rt *rapid.T) {
		var archive *filing.Config
		if rapid.IntRange(0, 2).Draw(rt, "archive") > 0 {
			archive = &filing.Config{Keep: time.Duration(rapid.SampledFrom([]int{1, 2000, 20_000}).Draw(rt, "hot")) * time.Millisecond,
				Most: 1}
		}
		v := newVillage(rt, func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "draw") }, archive)
		v.rough = true
		v.advance(time.Second)
		for i := range rapid.IntRange(1, 25).Draw(rt, "calls") {
			name := rapid.SampledFrom([]job.ID{"a", "b"}).Draw(rt, "job")
			request := fmt.Sprint("r", i)
			m := protocol.Message{Job: name}
			what := rapid.SampledFrom([]string{"submit", "submit", "replace", "cancel", "cancel", "requeue", "requeue", "requeue", "delete",
				"restart", "outdated"}).Draw(rt, "call")
			switch what {
			case "submit", "replace":
				s := spec(rt, name, job.Items, int64(rapid.IntRange(1, 30).Draw(rt, "total")), time.Second)
				s.Unit = request
				m.Kind, m.Body = protocol.Submit, &protocol.Submission{Request: request, Spec: s, Digest: request,
					Replace: what == "replace"}
			case "cancel":
				m.Kind, m.Body = protocol.Cancel, &protocol.Cancellation{Request: request}
			case "requeue":
				m.Kind, m.Body = protocol.Requeue, &protocol.Requeueing{Request: request}
			case "delete":
				m.Kind, m.Body = protocol.Delete, &protocol.Deletion{Request: request}
			case "outdated":
				if v.vault != nil {
					v.outdate(name)
				}
			case "restart":
				v.restart(rapid.IntRange(0, 2).Draw(rt, "who"))
			}
			if m.Kind != 0 {
				first := v.ask(m).Body.(*protocol.Receipt)
				if first.Err == nil {
					again[what]++
				}
				if first.Err == nil && rapid.Bool().Draw(rt, "twice") {
					if second := v.ask(m).Body.(*protocol.Receipt); second.Err != nil || second.Changed && what != "cancel" {
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
	}
	// a hundred worlds may not have all
	for round := 0; round == 0 || slices.ContainsFunc(words, func(what string) bool { return again[what] == 0 }) && round < 4; round++ {
		rapid.Check(t, world)
	}
	for _, what := range words {
		if again[what] == 0 {
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
	v.ask(protocol.Message{Kind: protocol.Submit, Body: &protocol.Submission{Request: "s", Digest: "d", Spec: s}})
	v.advance(100 * time.Second)
	v.ask(protocol.Message{Kind: protocol.Cancel, Job: "a", Body: &protocol.Cancellation{Request: "c"}})
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
	if r := v.ask(protocol.Message{Kind: protocol.Requeue, Job: "a",
		Body: &protocol.Requeueing{Request: "q", Deadline: quantity.Never}}); r.Body.(*protocol.Receipt).Err != nil {
		t.Fatal(r.Body.(*protocol.Receipt).Err)
	}
	ran := int64(0)
	for _, p := range v.runs {
		ran -= p.start.Body.(*protocol.Work).Range.Len()
	}
	v.advance(time.Hour)
	v.settled()
	for _, p := range v.runs {
		ran += p.start.Body.(*protocol.Work).Range.Len()
	}
	if v.committed["u"].Len() != 200 || ran > 200-done+2 {
		t.Errorf("%d units are committed, %d were run in the second life, %d were left", v.committed["u"].Len(), ran, 200-done)
	}
}
