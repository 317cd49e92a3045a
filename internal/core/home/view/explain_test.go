package view

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// TestTheWordsOfEveryReason as people read them: the short one that users of Slurm know, and the sentence with what would be needed.
func TestTheWordsOfEveryReason(t *testing.T) {
	refusal := atomizer.Refusal{Least: 300 << 20, Need: 90 * time.Second}
	for _, c := range []struct {
		reason      explain.Reason
		short, says string
	}{
		{explain.Paused, "JobHeldUser", "it was paused"},
		{explain.Resting, "Backoff", "it paused after a subjob without progress"},
		{explain.Ending, "Resources", "it is ending"},
		{explain.QueueCap, "QueueCap", "queue q may hold 7 slices at once and does"},
		{explain.Unattended, "Agent", "it is external and no agent of it is connected: start one with its key (sluice agent key)"},
		{explain.Unanswered, "Agent", "its agent did not answer before the round closed"},
		{explain.Denied, "Resources", "a variant that it proposed broke a rule; its agent was told which"},
		{explain.TurnedDown, "Backoff", "a place that it had won was refused (its node has taken it since); it asks there again after a " +
			"pause"},
		{explain.Declined, "Backoff", "it was picked for a window and declined (what it may use is not what it was: "},
		{explain.Aside, "Backoff", "it rests after it declined a window that it was picked for"},
		{explain.LostToPolicy, "Priority", "policy fifo asked another job first"},
		{explain.NoFreeWork, "Resources", "all its work is claimed or committed"},
		{explain.AtParallelism, "Resources", "it already runs the 3 subjobs its parallelism allows"},
		{explain.Unsafe, "Resources", "its next piece needs 300 MiB, more than the slices that are free have"},
		{explain.TooShort, "Resources", "the free windows are too short: the least useful piece takes 1m30s"},
		{explain.NotForever, "Resources", "it has no walltime and needs a slice on which nothing is reserved"},
		{explain.Barred, "Resources", "its speeds say that it can not run on the kind of slices that are free"},
		{explain.Reserved, "Resources", "its place is reserved where it ends earlier than in any window that is free"},
		{explain.InLine, "Priority", "rigid jobs start in order: it is served when those before it have started"},
	} {
		s := newStand(Config{}, []int64{1024}, now)
		s.ledger.Apply(protocol.Fact{Kind: protocol.QueueKnown, Body: &protocol.Queue{Name: "q", Weight: 1, Cap: 7}})
		spec := needs("j", 100, 0, 10)
		spec.Parallelism = 3
		j := s.adopt(t, spec)
		cause := explain.Cause{Reason: c.reason, Refusal: refusal}
		if got := s.Sentence(j, &cause); !strings.HasPrefix(got, c.says) || len(got) > len(c.says) && c.reason != explain.Declined {
			t.Errorf("reason %d says %q, want %q", c.reason, got, c.says)
		}
		if got := slurmReason(c.reason); got != c.short {
			t.Errorf("reason %d is %q in short, want %q", c.reason, got, c.short)
		}
	}
}

// TestWordsThatDependOnTheJob, its queue or the mechanism.
func TestWordsThatDependOnTheJob(t *testing.T) {
	s := newStand(Config{Trust: &trust.Settings{}}, []int64{1024}, now)
	gang := needs("gang", 100, time.Minute, 1)
	gang.Slices = 4
	for _, c := range []struct {
		spec   *job.Spec
		reason explain.Reason
		says   string
	}{
		{needs("j", 100, 0, 10), explain.LostToPolicy, "others in its time were worth more, or wait longer"},
		{gang, explain.TooShort, "it needs 4 slices at once: its place is planned when no rigid job waits before it"},
	} {
		if got := s.Sentence(s.adopt(t, c.spec), &explain.Cause{Reason: c.reason}); got != c.says {
			t.Errorf("job %s, reason %d says %q, want %q", c.spec.Name, c.reason, got, c.says)
		}
	}
	s.ledger.Apply(protocol.Fact{Kind: protocol.QueueKnown, Body: &protocol.Queue{Name: "q", Weight: 1, Cap: protocol.NoShare}})
	if got := s.Sentence(s.ledger.Book().Job("j"), &explain.Cause{Reason: explain.QueueCap}); got != "the cap of queue q is smaller "+
		"than the "+
		"number of zones, and none of it is this zone's: raise the cap" {
		t.Errorf("a cap of which the zone has no share: %q", got)
	}
}

// TestWhatASliceSaysToAJob (a run is planned with a quarter more than is declared): whether its next piece fits there, how far it would
// come, what it needs, and why it does not fit.
func TestWhatASliceSaysToAJob(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		spec          func(*job.Spec)
		done          int64
		fits          bool
		reach         job.Range
		least, slice  int64
		says, profile string
	}{
		"it fits": {fits: true, reach: job.Range{To: 100}, least: 100, slice: 512, says: "a piece [0,100) would take 2m5s"},
		"it would pass the horizon": {
			spec: func(s *job.Spec) { s.PerUnit = 20 * time.Minute }, fits: true, reach: job.Range{To: 2}, least: 100, slice: 512,
			says: "a piece [0,2) would take 50m0s",
		},
		"no whole piece within the horizon": {
			spec: func(s *job.Spec) { s.PerUnit = 2 * time.Hour }, least: 100, slice: 512,
			says: "its least useful piece takes 2h30m0s, the horizon is 1h0m0s",
		},
		"rigid, beyond the horizon": {
			spec: func(s *job.Spec) { s.Kind, s.Walltime, s.Slices = job.Rigid, 2*time.Hour, 1 }, fits: true, reach: job.Range{To: 100},
			least: 100, slice: 512, says: "a piece [0,100) would take 2h0m0s",
		},
		"too little memory": {least: 100, slice: 50, says: "its next piece needs 100 MiB, the slice has 50 MiB"},
		"its speeds leave it out": {spec: func(s *job.Spec) { s.Speeds = []job.SpeedOn{{Profile: "slow"}} }, profile: "slow", least: 100,
			slice: 512, says: "its speeds say that it can not run on slow"},
		"the rest needs more": {spec: grows, done: 50, least: 300, slice: 200, says: "its next piece needs 300 MiB, the slice has 200 MiB"},
		"the rest is done":    {done: 100, slice: 512, says: "nothing of it is left to run"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(Config{}, nil)
			tr := &tray{id: "s", from: now}
			tr.floor.Supply = tr
			s.Place(&tr.floor, &protocol.Slice{ID: tr.id, Profile: c.profile, Speed: 1000,
				Capacity: trp.Vector{trp.Memory: quantity.Amount(c.slice * mib)}})
			spec := needs("j", 100, 0, 100)
			if c.spec != nil {
				c.spec(spec)
			}
			s.adopt(t, spec)
			if c.done > 0 {
				s.claimed("j", 1, job.Range{To: c.done}, 0)
				s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: job.Token{Epoch: 1, Seq: 1}, At: now,
					Body: &protocol.ClaimEnd{Range: job.Range{To: c.done}, Result: &job.Result{Progress: c.done}}})
			}
			e, ok := s.Explain(now, "j")
			if !ok || len(e.Slices) != 1 {
				t.Fatalf("%+v", e)
			}
			f := e.Slices[0]
			if f.Why != c.says || f.Fits != c.fits || f.Reach != c.reach || int64(f.Least) != c.least*mib ||
				int64(f.Capacity) != c.slice*mib || f.Slice != "s" {
				t.Errorf("%+v, want %+v", f, c)
			}
			if want := "j is " + e.Job.State.String() + ": " + e.Job.Reason; e.Summary != want || e.Job.Reason == "" {
				t.Errorf("%q, want %q", e.Summary, want)
			}
		})
	}
}

// grows has a job need more memory in its second half.
func grows(s *job.Spec) {
	s.Profile.Phases = []trp.Phase{{UpTo: 50, Mean: 100 << 20}, {UpTo: s.Total, Mean: 300 << 20}}
}

// TestWhyAJobIsWhereItIs: the one sentence of its present state, of what ends it before what it waits for.
func TestWhyAJobIsWhereItIs(t *testing.T) {
	token := job.Token{Epoch: 1, Seq: 1}
	claim := func(s *stand, seq uint64, on job.SliceID, r job.Range) {
		s.ledger.Apply(protocol.Fact{Kind: protocol.Claimed, Job: "j", Token: job.Token{Epoch: 1, Seq: seq},
			Body: &protocol.Sale{Placement: protocol.Placement{Slice: on, Range: r, Start: now, End: now.Add(time.Hour)}, Node: "n",
				Speed: 1000}})
	}
	result := func(s *stand, r job.Result) {
		var out protocol.Out
		claim(s, 1, "s0", job.Range{To: 10})
		s.ledger.Step(now, &protocol.Message{Kind: protocol.Result, Job: "j", Epoch: 1, Generation: 1, Token: token,
			Body: &protocol.Conclusion{Range: job.Range{To: 10}, Result: &r}}, &out)
	}
	cancel := func(s *stand) {
		var out protocol.Out
		s.ledger.Step(now, &protocol.Message{Kind: protocol.Cancel, Job: "j", Epoch: 1, Body: &protocol.Cancellation{Text: "not needed"}},
			&out)
	}
	for want, do := range map[string]func(*stand){
		"(Resources) every slice is taken; it is asked when a window opens": func(*stand) {},
		"paused by its owner": func(s *stand) { s.ledger.Book().Job("j").Paused = true },
		"paused by its owner: 1 subjobs run to their end": func(s *stand) {
			claim(s, 1, "s0", job.Range{To: 10})
			s.ledger.Book().Job(
				"j").Paused = true
		},
		"starting on s0": func(s *stand) { claim(s, 1, "s0", job.Range{To: 10}) },
		"starting on s0, s1": func(s *stand) {
			claim(s, 1, "s0", job.Range{To: 10})
			claim(s, 2, "s1",
				job.Range{From: 10, To: 20})
		},
		"ending (not needed): 1 subjobs are being stopped; it is over in 50s at the latest": func(s *stand) {
			claim(s, 1, "s0", job.Range{To: 10})
			cancel(s)
		},
		"not needed": cancel,
		"all of it is done; its last output is being put in its place on n: 100 units [0,100); " +
			"it is FAILED in 30m0s if that is not confirmed": func(s *stand) {
			claim(s, 1, "s0", job.Range{To: 100})
			s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: token, At: now,
				Body: &protocol.ClaimEnd{Range: job.Range{To: 100}, Result: &job.Result{Progress: 100}}})
		},
		"a window was won, its node is being asked": func(s *stand) {
			var out protocol.Out
			s.ledger.Claims().Ask(now, &home.Ask{Job: s.ledger.Book().Job("j"),
				Sale: protocol.Sale{Placement: protocol.Placement{Slice: "s0", Range: job.Range{To: 10}, Start: now,
					End: now.Add(time.Hour)}}},
				0, &out)
		},
		"(Backoff) 3 places in a row that it had won were refused (it is taken); it asks again in 4s": func(s *stand) {
			for range 3 {
				s.ledger.Claims().BackOff(now, s.ledger.Book().Job("j"), nil, s.ledger.Claims().NewAsk(), "it is taken")
			}
		},
		"(Node) its node could not run it, 1 times in a row (no room); it is tried again in 500ms": func(s *stand) {
			result(s, job.Result{Outcome: job.NodeFailed, Detail: "no room"})
		},
		"pausing for 500ms after a subjob without progress: it crashed": func(s *stand) {
			result(s, job.Result{Outcome: job.Lost, Detail: "it crashed"})
		},
	} {
		s := newStand(Config{}, []int64{1024}, now)
		spec := needs("j", 100, 0, 100)
		spec.MaxFailures = 3
		s.adopt(t, spec)
		do(s)
		if got := s.why(now, s.ledger.Book().Job("j")); got != want {
			t.Errorf("%q, want %q", got, want)
		} else if u := status.Unquoted(got); strings.Contains(u, "it crashed") || strings.Contains(u, "no room") {
			t.Errorf("%q tells others what a subjob has said", u)
		}
	}
}

// TestADryRunSaysWhoElseWaits, in the words of the mechanism.
func TestADryRunSaysWhoElseWaits(t *testing.T) {
	s := newStand(Config{Trust: &trust.Settings{}}, []int64{1024}, now)
	s.open = 2
	s.adopt(t, needs("before", 100, 0, 100))
	if e, want := s.DryRun(now, compiled(t, needs("dry", 100, 0, 100))),
		"it would start at once; 1 waiting jobs may bid more"; e.Summary != want {
		t.Errorf("%q, want %q", e.Summary, want)
	}
}

// TestABusyMachineIsExplained: what a job's subjobs waited for a processor, of all that they ran, is said once.
func TestABusyMachineIsExplained(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	for _, c := range []struct {
		id     string
		waited time.Duration
		says   string
	}{{"quiet", 4 * time.Second, ""}, {"starved", 35 * time.Second, "; the machine was busy 70% of its time"}} {
		spec := needs(c.id, 100, 0, 100)
		s.adopt(t, spec)
		token := job.Token{Epoch: 1, Seq: 1}
		s.ledger.Apply(protocol.Fact{Kind: protocol.Claimed, Job: spec.Name, Token: token,
			Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s0", Range: job.Range{To: 10}, Start: now, End: now.Add(time.Hour)},
				Speed: 1000}})
		s.ledger.Apply(protocol.Fact{Kind: protocol.Released, Job: spec.Name, Token: token, At: now.Add(time.Minute),
			Body: &protocol.ClaimEnd{Result: &job.Result{Outcome: job.DeadlineKilled, Start: now, End: now.Add(50 * time.Second),
				Waited: c.waited}}})
		e, ok := s.Explain(now.Add(time.Minute), spec.Name)
		if !ok || strings.Contains(e.Summary, "busy") != (c.says != "") || !strings.HasSuffix(e.Summary, c.says) {
			t.Errorf("%s: %q", c.id, e.Summary)
		}
		if got := e.Job.History[0].Waited; got != c.waited {
			t.Errorf("%s: its subjob waited %v, want %v", c.id, got, c.waited)
		}
	}
}

// TestASliceThatIsClosedSaysSo: whoever needs longer than that reads why.
func TestASliceThatIsClosedSaysSo(t *testing.T) {
	at := now.Add(10 * time.Minute)
	leaves := protocol.Reservation{Kind: protocol.ForReclaim, Start: at, End: quantity.Never, Source: "the machine, which leaves soon"}
	over, short := leaves, leaves
	over.Start, short.End = now, at.Add(time.Hour)
	for _, c := range []struct {
		r    protocol.Reservation
		says string
	}{{leaves, "; it is taken (reclaim) for the machine, which leaves soon from "}, {over, ""}, {short, ""}} {
		got := closes(now, &protocol.SliceView{Reserved: []protocol.Reservation{c.r}})
		if (got == "") != (c.says == "") || !strings.HasPrefix(got, c.says) {
			t.Errorf("%+v: %q, want %q", c.r, got, c.says)
		}
	}
}
