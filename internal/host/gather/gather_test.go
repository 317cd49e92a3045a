package gather

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// there are a head, whose tokens are of epoch 1, and machines m2 and m3, whose are of epochs 2 and 3.
func machine(t job.Token) job.NodeID {
	if t.Epoch == 1 {
		return ""
	}
	return job.NodeID(fmt.Sprintf("m%d", t.Epoch))
}

func token(machine uint32, seq uint64) job.Token { return job.Token{Epoch: machine, Seq: seq} }

// fake are a store and the jobs of a zone. did is what was asked of the store, but for looks.
type fake struct {
	mu          sync.Mutex
	did         []string
	jobs        map[job.ID]status.Job
	checkpoints map[job.Token]bool
	// older are all subjobs of jobs that have more than Job shows.
	older map[job.ID][]status.Subjob
	// fail is called before each call that does something.
	fail func(what string) error
}

func (f *fake) do(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	if f.fail != nil {
		if err := f.fail(what); err != nil {
			return err
		}
	}
	f.did = append(f.did, what)
	return nil
}

func (f *fake) Output(_ context.Context, j *status.Job, o status.Output) error {
	return f.do("output %s %v %d-%d of %d", j.Name, o.Token, o.Range.From, o.Range.To, o.Member)
}

func (f *fake) Logs(_ context.Context, j *status.Job, t job.Token) (bool, error) {
	return true, f.do("logs %s %v", j.Name, t)
}

func (f *fake) Forget(_ context.Context, j *status.Job, t job.Token, counts bool) error {
	return f.do("forget %s %v %v", j.Name, t, counts)
}

func (f *fake) HasCheckpoint(_ context.Context, _ *status.Job, t job.Token) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.checkpoints[t], nil
}

func (f *fake) ForgetCheckpoint(_ context.Context, j *status.Job, t job.Token) error {
	err := f.do("checkpoint %s %v", j.Name, t)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.checkpoints, t)
	}
	return err
}

// left are the checkpoints that there are.
func (f *fake) left() map[job.Token]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.checkpoints)
}

func (f *fake) Job(_ context.Context, name job.ID) (status.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, ok := f.jobs[name]
	if !ok {
		return j, errkind.Errorf(errkind.NotFound, "no job %s", name)
	}
	return j, nil
}

// shownOf is how many subjobs Job shows in these tests; older ones come a page at a time.
const shownOf = 3

// large are the subjobs of a job, of which Job shows the last, and Older the others.
func large(name job.ID, all []status.Subjob) status.Job {
	from := max(0, len(all)-shownOf)
	return status.Job{Name: name, History: all[from:], HistoryDropped: from}
}

func (f *fake) Older(_ context.Context, name job.ID, before int) ([]status.Subjob, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.older[name][max(0, before-shownOf):before], nil
}

// take returns what was done since the last time, sorted.
func (f *fake) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	did := f.did
	f.did = nil
	slices.Sort(did)
	return did
}

// over is a subjob of so many units that are committed from a unit on.
func over(t job.Token, from, to int64) status.Subjob {
	return status.Subjob{Token: t, Committed: job.Range{From: from, To: to}, Outcome: "done"}
}

// fact of a zone about a subjob.
func fact(k protocol.FactKind, name job.ID, t job.Token) *protocol.Fact {
	return &protocol.Fact{Kind: k, Job: name, Token: t}
}

// TestWhatIsBrought: of each kind of subjob that there is news of, what is asked of the store.
func TestWhatIsBrought(t *testing.T) {
	far, farther, here := token(2, 1), token(3, 1), token(1, 1)
	gang := func(published bool) status.Job {
		s := over(here, 0, 5)
		s.Members = []protocol.Member{{Node: "head", Token: here}, {Node: "m2", Token: far}, {Node: "m3", Token: farther}}
		j := status.Job{Name: "j", History: []status.Subjob{s}}
		if published {
			j.Published = job.Ranges{{From: 0, To: 5}}
		}
		return j
	}
	one := func(s status.Subjob, published ...job.Range) status.Job {
		return status.Job{Name: "j", History: []status.Subjob{s}, Published: published}
	}
	publishing, lost, skipped, running := over(far, 0, 0), over(far, 0, 0), over(far, 0, 1), over(far, 0, 0)
	silent, mute := over(far, 0, 5), over(far, 0, 0)
	silent.LeftNothing, mute.LeftNothing, mute.Outcome = true, true, "exit 1"
	publishing.Outcome, lost.Outcome, skipped.Outcome, running.Running = status.Publishing, "exit 1", status.Skipped, true
	for _, c := range []struct {
		what string
		job  status.Job
		news job.Token
		want []string
	}{
		{"published", one(over(far, 0, 5), job.Range{From: 0, To: 9}), far, []string{
			"forget j " + far.String() + " true", "logs j " + far.String(), "output j " + far.String() + " 0-5 of 0"}},
		{"of this machine", one(over(here, 0, 5), job.Range{From: 0, To: 5}), here, nil},
		{"news of another", one(over(far, 0, 5), job.Range{From: 0, To: 5}), farther, nil},
		{"counts, and is not published", one(publishing), far, nil},
		{"committed, and is not published", one(over(far, 0, 5)), far, nil},
		{"nothing counts", one(lost), far, []string{"forget j " + far.String() + " false", "logs j " + far.String()}},
		{"skipped", one(skipped), far, []string{"forget j " + far.String() + " false", "logs j " + far.String()}},
		{"runs", one(running), far, nil},
		{"published, and left nothing", one(silent, job.Range{From: 0, To: 5}), far, nil},
		{"nothing counts, and left nothing", one(mute), far, nil},
		{"a gang, published", gang(true), farther, []string{
			"forget j " + far.String() + " true", "forget j " + farther.String() + " true",
			"logs j " + far.String(), "logs j " + farther.String(),
			"output j " + far.String() + " 0-5 of 1", "output j " + farther.String() + " 0-5 of 2"}},
		{"a gang of which a member is missing", gang(false), far, nil},
		{"forgotten", status.Job{Name: "another"}, far, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{jobs: map[job.ID]status.Job{c.job.Name: c.job}}
			g := New(machine, slog.New(slog.DiscardHandler))
			g.Serve(f, f)
			g.Fact(fact(protocol.OutputPublished, "j", c.news))
			time.Sleep(2 * every)
			synctest.Wait()
			if did := f.take(); !reflect.DeepEqual(did, c.want) {
				t.Errorf("%s:\n\t%s\nwant\n\t%s", c.what, strings.Join(did, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			g.Close()
		})
	}
}

// TestOldCheckpointsAreRemoved: the newest that counts stays, and what a running subjob began from; the others go from the oldest on, and
// what was missed after a failure goes the next time.
func TestOldCheckpointsAreRemoved(t *testing.T) {
	for name, kind := range map[string]status.Job{"steps": {Kind: job.Steps}, "a rigid job that saves": {Kind: job.Rigid, Saves: true}} {
		t.Run(name, func(t *testing.T) { oldCheckpointsAreRemoved(t, kind) })
	}
}

// oldCheckpointsAreRemoved of a job of a kind.
func oldCheckpointsAreRemoved(t *testing.T, j status.Job) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		chain := []job.Token{token(3, 9), token(2, 1), token(1, 4), token(2, 2), token(3, 1)} // by progress; tokens sort otherwise
		j.Name, j.Published, j.Checkpoints = "j", job.Ranges{{From: 0, To: 50}}, []job.Token{chain[4], chain[3]}
		f := &fake{jobs: map[job.ID]status.Job{}, checkpoints: map[job.Token]bool{}}
		for i, c := range chain {
			j.History = append(j.History, over(c, int64(10*i), int64(10*i+10)))
			f.checkpoints[c] = true
		}
		slices.SortFunc(j.History, func(a, b status.Subjob) int { return a.Token.Compare(b.Token) })
		f.jobs["j"] = j
		failures := 1
		f.fail = func(what string) error {
			if what == "checkpoint j "+chain[1].String() && failures > 0 {
				failures--
				return errkind.Errorf(errkind.Exhausted, "the disk is full")
			}
			return nil
		}
		g := New(machine, slog.New(slog.DiscardHandler))
		g.Serve(f, f)
		defer g.Close()
		g.Fact(fact(protocol.OutputPublished, "j", chain[4]))
		time.Sleep(every + every/2)
		synctest.Wait()
		if left := f.left(); left[chain[0]] || !left[chain[1]] || !left[chain[2]] {
			t.Errorf("after a failure there are %v", left)
		}
		time.Sleep(3 * every)
		synctest.Wait()
		want := map[job.Token]bool{chain[3]: true, chain[4]: true}
		if left := f.left(); !reflect.DeepEqual(left, want) {
			t.Errorf("there are %v, want %v", left, want)
		}
	})
}

// TestWhatFailsIsTriedAgain: but for what only a person can mend.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	for kind, again := range map[errkind.Kind]bool{errkind.Unavailable: true, errkind.Exhausted: true, errkind.Corrupt: false} {
		synctest.Test(t, func(t *testing.T) {
			far := token(2, 1)
			f := &fake{jobs: map[job.ID]status.Job{"j": {Name: "j", History: []status.Subjob{over(far, 0, 5)},
				Published: job.Ranges{{From: 0, To: 5}}}}}
			tries := 0
			f.fail = func(what string) error {
				if tries++; tries <= 3 {
					return errkind.Errorf(kind, "not now")
				}
				return nil
			}
			g := New(machine, slog.New(slog.DiscardHandler))
			g.Serve(f, f)
			defer g.Close()
			g.Fact(fact(protocol.OutputPublished, "j", far))
			time.Sleep(2 * mostRest)
			synctest.Wait()
			if did := f.take(); (len(did) == 3) != again || !again && tries != 1 {
				t.Errorf("%v: %d tries, and did %v", kind, tries, did)
			}
		})
	}
}

// TestOneLostOutputHoldsUpNoOther: what can be had of a job is brought, and tried again, though another output of it is lost.
func TestOneLostOutputHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost, late := token(2, 1), token(3, 1)
		f := &fake{jobs: map[job.ID]status.Job{"j": {Name: "j", History: []status.Subjob{over(lost, 0, 5), over(late, 5, 6)},
			Published: job.Ranges{{From: 0, To: 6}}}}}
		tries := 0
		f.fail = func(what string) error {
			switch {
			case strings.Contains(what, lost.String()):
				return errkind.Errorf(errkind.Corrupt, "it is damaged")
			case tries < 2:
				tries++
				return errkind.Errorf(errkind.Unavailable, "not now")
			}
			return nil
		}
		g := New(machine, slog.New(slog.DiscardHandler))
		g.Serve(f, f)
		defer g.Close()
		g.Fact(fact(protocol.OutputPublished, "j", lost))
		g.Fact(fact(protocol.OutputPublished, "j", late))
		time.Sleep(mostRest)
		synctest.Wait()
		if did := f.take(); len(did) != 3 || !strings.Contains(did[2], "output j "+late.String()) {
			t.Errorf("it did %v", did)
		}
	})
}

// TestAStartLooksThroughWhatTheJournalHas: what a snapshot and the facts behind it say of subjobs elsewhere is brought once the daemon is
// up, except of jobs that have left memory; what leaves it later is brought all the same.
func TestAStartLooksThroughWhatTheJournalHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{jobs: map[job.ID]status.Job{}}
		g := New(machine, slog.New(slog.DiscardHandler))
		kept := func(name job.ID, past ...protocol.Past) {
			g.Fact(&protocol.Fact{Kind: protocol.HomeKept, Job: name, Body: &protocol.Keeping{Record: &protocol.Record{Past: past}}})
			f.jobs[name] = status.Job{Name: name, History: []status.Subjob{over(token(2, 1), 0, 5), over(token(2, 2), 5, 6)},
				Published: job.Ranges{{From: 0, To: 6}}}
		}
		elsewhere := protocol.Past{Claim: protocol.Claim{Token: token(2, 1)}}
		gang := protocol.Past{Claim: protocol.Claim{Token: token(1, 1)}}
		gang.Members = []protocol.Member{{Token: token(2, 1)}}
		kept("a", elsewhere)
		kept("b", protocol.Past{Claim: protocol.Claim{Token: token(1, 1)}})
		kept("c", elsewhere)
		kept("d", elsewhere)
		kept("e", gang)
		g.Fact(fact(protocol.HomeArchived, "c", job.Token{}))
		g.Fact(fact(protocol.HomeDropped, "d", job.Token{}))
		g.Serve(f, f)
		defer g.Close()
		time.Sleep(2 * every)
		synctest.Wait()
		outputs := func(did []string) (list []string) {
			for _, what := range did {
				if strings.HasPrefix(what, "output") {
					list = append(list, what)
				}
			}
			return list
		}
		one, two := token(2, 1).String(), token(2, 2).String()
		want := []string{"output a " + one + " 0-5 of 0", "output a " + two + " 5-6 of 0", "output e " + one + " 0-5 of 0",
			"output e " + two + " 5-6 of 0"}
		if did := outputs(f.take()); !slices.Equal(did, want) {
			t.Errorf("at the start %v, want %v", did, want)
		}
		g.Fact(fact(protocol.OutputPublished, "c", token(2, 2)))
		g.Fact(fact(protocol.HomeArchived, "c", job.Token{}))
		g.Fact(fact(protocol.OutputPublished, "d", token(2, 2)))
		g.Fact(fact(protocol.HomeDropped, "d", job.Token{}))
		time.Sleep(2 * every)
		synctest.Wait()
		if did := outputs(f.take()); !slices.Equal(did, []string{"output c " + two + " 5-6 of 0"}) {
			t.Errorf("later %v", did)
		}
		for i := range uint64(2 * mostNews) { // too many to remember one by one
			g.Fact(fact(protocol.Released, "a", token(2, i+100)))
		}
		time.Sleep(2 * every)
		synctest.Wait()
		if did := outputs(f.take()); !slices.Equal(did, want[:2]) {
			t.Errorf("after much news %v, want %v", did, want[:2])
		}
	})
}

// TestOutputsAreBroughtToWhoAsks: all that are published, at once, and an error names the machine.
func TestOutputsAreBroughtToWhoAsks(t *testing.T) {
	f := &fake{}
	g := New(machine, slog.New(slog.DiscardHandler))
	g.store = f
	lost, silent := over(token(2, 3), 0, 0), over(token(2, 4), 0, 5)
	silent.LeftNothing = true
	j := status.Job{Name: "j", Published: job.Ranges{{From: 0, To: 8}}, History: []status.Subjob{over(token(1, 1), 0, 5),
		over(token(2, 1), 5, 8), over(token(3, 1), 8, 9), lost, silent}}
	if gone, err := g.Outputs(t.Context(), &j); err != nil || len(gone) > 0 {
		t.Fatal(gone, err)
	}
	if did := f.take(); !slices.Equal(did, []string{"output j " + token(2, 1).String() + " 5-8 of 0"}) {
		t.Errorf("it brought %v", did)
	}
	j.History = append(j.History, over(token(3, 2), 6, 8))
	f.fail = func(what string) error {
		if strings.Contains(what, token(2, 1).String()) {
			return errkind.Errorf(errkind.Corrupt, "it is damaged")
		}
		return nil
	}
	gone, err := g.Outputs(t.Context(), &j)
	if err != nil || len(gone) != 1 || gone[0].Token != token(2, 1) || gone[0].Range != (job.Range{From: 5, To: 8}) ||
		!strings.Contains(gone[0].Lost, "machine m2") || !strings.Contains(gone[0].Lost, "it is damaged") {
		t.Errorf("lost are %+v, %v", gone, err)
	}
	if did := f.take(); len(did) != 1 || !strings.Contains(did[0], token(3, 2).String()) {
		t.Errorf("of the others it brought %v", did)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Outputs(ctx, &j); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("given up: %v", err)
	}
}

// TestWhoWaitsHasItAtOnce: what was committed is in its place when Bring returns, also what was heard of while a pass was under way, and
// what fails holds nobody up for longer than one try.
func TestWhoWaitsHasItAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := status.Job{Name: "j", Published: job.Ranges{{From: 0, To: 8}}, History: []status.Subjob{over(token(2, 1), 0, 5),
			over(token(2, 2), 5, 8)}}
		f := &fake{jobs: map[job.ID]status.Job{"j": j, "k": {Name: "k"}}}
		g := New(machine, slog.New(slog.DiscardHandler))
		g.Serve(f, f)
		defer g.Close()
		start := time.Now()
		g.Bring(t.Context(), "j", "k")
		g.Fact(fact(protocol.OutputPublished, "j", token(2, 1)))
		f.fail = func(what string) error {
			if strings.HasPrefix(what, "output") && strings.Contains(what, token(2, 1).String()) {
				time.Sleep(time.Minute)
			}
			return nil
		}
		var first sync.WaitGroup
		first.Go(func() { g.Bring(t.Context(), "j") })
		synctest.Wait() // a pass is under way
		g.Fact(fact(protocol.OutputPublished, "j", token(2, 2)))
		g.Bring(t.Context(), "k") // nothing is awaited of it
		if took := time.Since(start); took != 0 {
			t.Errorf("who waits for what is not there waited %v", took)
		}
		g.Bring(t.Context(), "j")
		first.Wait()
		if took := time.Since(start); took != time.Minute {
			t.Errorf("it took %v, want as long as the store", took)
		}
		want := []string{"output j " + token(2, 1).String() + " 0-5 of 0", "output j " + token(2, 2).String() + " 5-8 of 0"}
		did := f.take()
		if did = slices.DeleteFunc(did, func(what string) bool { return !strings.HasPrefix(what, "output") }); !slices.Equal(did, want) {
			t.Errorf("it brought %v, want %v", did, want)
		}
		f.fail = func(string) error { return errkind.Errorf(errkind.Unavailable, "the store is away") }
		g.Fact(fact(protocol.OutputPublished, "j", token(2, 2)))
		start = time.Now()
		g.Bring(t.Context(), "j")
		if took := time.Since(start); took > time.Second {
			t.Errorf("what failed held it up for %v", took)
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		g.Bring(ctx, "j")
	})
}

// TestAJobOfMoreSubjobsThanAreShown is brought whole: at a start, to who asks, and where there is news of one that is not shown any more.
func TestAJobOfMoreSubjobsThanAreShown(t *testing.T) {
	const n = 4*shownOf + 1
	all := make([]status.Subjob, n)
	for i := range all {
		all[i] = over(token(2, uint64(i+1)), int64(i), int64(i+1))
	}
	j := large("j", all)
	j.Kind, j.Published = job.Steps, job.Ranges{{From: 0, To: n}}
	f := &fake{jobs: map[job.ID]status.Job{"j": j}, older: map[job.ID][]status.Subjob{"j": all}, checkpoints: map[job.Token]bool{}}
	for i := range all {
		f.checkpoints[all[i].Token] = true
	}
	g := New(machine, slog.New(slog.DiscardHandler))
	g.store, g.jobs = f, f
	if gone, err := g.Outputs(t.Context(), &j); err != nil || len(gone) > 0 || len(f.take()) != n {
		t.Errorf("to who asks: %v, %v", gone, err)
	}
	if again := g.bring("j", &news{tokens: map[job.Token]bool{all[1].Token: true}}); again || len(f.take()) != 3+shownOf {
		t.Error("of one that is not shown its output and its logs are to be brought, and what is shown lets go of its checkpoints")
	}
	if again := g.bring("j", &news{all: true}); again {
		t.Error("nothing failed")
	}
	if left := f.left(); len(left) != 0 {
		t.Errorf("checkpoints are left: %v", left)
	}
	var outputs, logs int
	for _, did := range f.take() {
		switch strings.Fields(did)[0] {
		case "output":
			outputs++
		case "logs":
			logs++
		}
	}
	if outputs != n || logs != n {
		t.Errorf("%d outputs and %d logs of %d were brought", outputs, logs, n)
	}
}
