package desk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/gate/names"
	"sluice.dev/sluice/internal/core/gate/queues"
	"sluice.dev/sluice/internal/core/gate/stock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const gib = quantity.Amount(1) << 30

// office is a gate with one zone, which folds what its desk decides.
type office struct {
	Parts
	facts []protocol.Fact
	said  []protocol.Message
}

func (o *office) Fact(_ *protocol.Out, f protocol.Fact) {
	o.facts = append(o.facts, f)
	switch f.Kind {
	case protocol.JobAccepted:
		o.Jobs.Accept(&f)
	case protocol.JobForgotten:
		if j := o.Jobs.Find(f.Job); j != nil {
			o.Jobs.Remove(j)
			o.Names.Raise(j.Generation())
		}
		o.Names.Forget(&f)
	case protocol.QueueSet:
		o.Queues.Set(f.Body.(*protocol.Queue))
	default:
		o.Jobs.Fold(o.Jobs.Find(f.Job), &f)
	}
}

func (o *office) Send(_ *protocol.Out, m protocol.Message)                            { o.said = append(o.said, m) }
func (o *office) Anywhere(*jobs.Job) job.ZoneID                                       { return "z" }
func (o *office) DrawHomes(quantity.Instant, *protocol.Out)                           {}
func (o *office) Reopened(quantity.Instant, *jobs.Job, *protocol.Out)                 {}
func (o *office) Draw(quantity.Instant, *job.Spec, job.ID, job.Generation) job.ZoneID { return "z" }

// homes are those of a daemon alone: whatever its slices could run, a zone could.
type homes struct{ searches bool }

func (h homes) Searches() bool { return h.searches }
func (homes) Nowhere(*job.Spec, *protocol.Queue, time.Duration) (why, nearest string) {
	return "", ""
}
func (homes) Scattered(*job.Spec) (why, nearest string, judges bool) { return "", "", false }
func (homes) Across(*job.Spec) bool                                  { return false }

// counter is a desk with its office.
type counter struct {
	*Desk
	o   *office
	now quantity.Instant
}

func newCounter(c Config, h homes) *counter {
	self := c.Gates.First()
	if c.Place > 0 {
		self = c.Gates.All()[c.Place]
	}
	c.Self, c.Zones, c.Horizon = self, max(1, c.Zones), time.Hour
	p := Parts{Jobs: jobs.New(time.Hour, time.Second, nil), Queues: queues.New(c.Zones, 1, time.Second),
		Names: names.New(self, false, time.Second), Stock: stock.New([]stock.Zone{{}}, time.Second), Homes: h,
		Drained: func(job.ZoneID) bool { return false }}
	o := &office{Parts: p}
	return &counter{Desk: New(c, p, o), o: o, now: 1e9}
}

// asks has a person ask for something, and returns the receipt and the facts that were decided.
func (c *counter) asks(name job.ID, body protocol.Body) (*protocol.Receipt, []protocol.Fact) {
	c.o.facts, c.o.said = nil, nil
	in, out := &protocol.Message{Job: name, From: protocol.Address{Role: protocol.Person}, Body: body}, &protocol.Out{}
	switch b := body.(type) {
	case *protocol.Submission:
		in.Kind = protocol.Submit
		c.Submit(c.now, in, b, out)
	case *protocol.Cancellation:
		in.Kind = protocol.Cancel
		c.Cancel(c.now, in, b, out)
	case *protocol.Pause:
		in.Kind = protocol.PauseJob
		c.Pause(in, b, out)
	case *protocol.Requeueing:
		in.Kind = protocol.Requeue
		c.Requeue(c.now, in, b, out)
	case *protocol.Deletion:
		in.Kind = protocol.Delete
		c.Delete(in, b, out)
	case *protocol.QueueSetting:
		c.SetQueue(c.now, in, b, out)
	}
	if len(c.o.said) != 1 || c.o.said[0].Kind != protocol.Reply || c.o.said[0].To != in.From {
		panic(fmt.Sprintf("%T is answered with %+v", body, c.o.said))
	}
	return c.o.said[0].Body.(*protocol.Receipt), c.o.facts
}

// ends has a job's home give a verdict.
func (c *counter) ends(name job.ID, s job.State) {
	c.o.Fact(nil, protocol.Fact{Kind: protocol.JobClosed, Job: name, At: c.now, Body: &protocol.Final{Verdict: job.Verdict{State: s}}})
}

// work is a job of one unit.
func work(name job.ID) *job.Spec {
	return &job.Spec{Name: name, Queue: queues.Default, Kind: job.Items, Total: 1, PerUnit: time.Second, Grid: 1, Parallelism: 1,
		Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{gib}}}}
}

// TestWhatKeepsAJobOut is told, all of it at once.
func TestWhatKeepsAJobOut(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		h    homes
		do   func(s *job.Spec)
		set  protocol.Queue
		why  []string
		kind errkind.Kind
	}{
		{name: "nothing", do: func(*job.Spec) {}},
		{name: "its deadline", do: func(s *job.Spec) { s.Deadline = 1e9 }, why: []string{"spec.deadline"}},
		{name: "a deadline to come", do: func(s *job.Spec) { s.Deadline = 1e9 + 1 }},
		{name: "its queue, and what it declares", do: func(s *job.Spec) { s.Queue, s.External = "none", true },
			why: []string{`there is no queue "none"; choose one of: default`, "spec.external"}},
		{name: "an agent, where they are asked", cfg: Config{External: true}, do: func(s *job.Spec) { s.External = true }},
		{name: "its queue's cap", do: func(s *job.Spec) { s.Kind, s.Slices = job.Rigid, 3 }, set: protocol.Queue{Cap: 2},
			why: []string{"it needs 3 slices at once, queue default may hold 2;"}},
		{name: "its queue's cap in one of several zones", cfg: Config{Zones: 2}, do: func(s *job.Spec) { s.Kind, s.Slices = job.Rigid, 3 },
			set: protocol.Queue{Cap: 4}, why: []string{"may hold 4, 2 of them in one of the 2 zones"}},
		{name: "negative patience", do: func(s *job.Spec) { s.Patience = -1 }, why: []string{"-1ns is negative"}},
		{name: "patience where nothing searches", do: func(s *job.Spec) { s.Kind, s.Patience = job.Rigid, 1 },
			why: []string{"only where jobs look for places"}},
		{name: "patience of a divisible job", h: homes{true}, do: func(s *job.Spec) { s.Patience = 1 },
			why: []string{"is one piece on one slice"}},
		{name: "patience of a gang", h: homes{true}, do: func(s *job.Spec) { s.Kind, s.Slices, s.Patience = job.Rigid, 2, 1 },
			why: []string{"is one piece on one slice"}},
		{name: "patience", h: homes{true}, do: func(s *job.Spec) { s.Kind, s.Patience = job.Rigid, 1 }},
		{name: "memory that no slice has", do: func(s *job.Spec) { s.Safe.Least = [][]quantity.Amount{{9 * gib}} },
			why: []string{"it could never run here"}},
		{name: "too many of its queue", do: func(*job.Spec) {}, set: protocol.Queue{MaxJobs: 1}, why: []string{"has its 1 unfinished jobs"},
			kind: errkind.Exhausted},
		{name: "too many in all", cfg: Config{MaxJobs: 1}, do: func(*job.Spec) {}, why: []string{"there are 1 unfinished jobs"},
			kind: errkind.Exhausted},
		{name: "this gate's share of a queue's jobs is none", cfg: Config{Gates: protocol.Gates{"g", "h"}, Place: 1},
			do: func(*job.Spec) {}, set: protocol.Queue{MaxJobs: 1}, why: []string{"unfinished jobs already"}, kind: errkind.Exhausted},
	} {
		if c.cfg.MaxJobs == 0 {
			c.cfg.MaxJobs = 100
		}
		k := newCounter(c.cfg, c.h)
		k.o.Stock.Report("n", []protocol.Slice{{ID: "a", Speed: 1000, Capacity: trp.Vector{trp.Memory: 8 * gib}},
			{ID: "b", Speed: 1000, Capacity: trp.Vector{trp.Memory: 8 * gib}},
			{ID: "c", Speed: 1000, Capacity: trp.Vector{trp.Memory: 8 * gib}}})
		k.o.Fact(nil, protocol.Fact{Kind: protocol.JobAccepted, Job: "first", Epoch: 1, Generation: 1,
			Body: &protocol.Acceptance{Spec: work("first"), Zone: "z"}})
		c.set.Name, c.set.Weight = queues.Default, 1
		k.o.Queues.Set(&c.set)
		s := work("j")
		c.do(s)
		err := k.Check(k.now, s)
		if (err == nil) != (c.why == nil) || err != nil && c.kind != 0 && errkind.Of(err) != c.kind {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, why := range c.why {
			if !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v, want %q", c.name, err, why)
			}
		}
	}
}

// plain is what the oracle knows of a job.
type plain struct {
	request, content, cancelled, requeued, owner string
	cancelling, paused, over                     bool
	state                                        job.State
	life                                         job.Generation
}

// may says whether an asker may change it.
func (j *plain) may(a protocol.Asker) bool { return a.Name == j.owner || !a.Own }

// want is what the oracle expects of an answer.
type want struct {
	err     errkind.Kind // 0: none
	changed bool
	facts   int
}

// oracle answers people as the package says, without the parts of a gate.
type oracle struct {
	jobs    map[job.ID]*plain
	deleted map[[3]string]bool
	most    int
}

func (o *oracle) full() bool {
	n := 0
	for _, j := range o.jobs {
		if !j.over {
			n++
		}
	}
	return n >= o.most
}

func (o *oracle) submit(id job.ID, s *protocol.Submission) want {
	j := o.jobs[id]
	w := want{changed: true, facts: 1}
	switch {
	case j == nil:
	case (j.owner == s.By.Name || j.owner == "" && !s.By.Own) &&
		(s.Request != "" && s.Request == j.request || s.Digest == j.content && !(s.Replace && j.over)):
		return want{}
	case !s.Replace, !j.may(s.By):
		return want{err: errkind.Exists}
	case !j.over:
		return want{err: errkind.Conflict}
	default:
		w.facts++
	}
	if o.full() {
		return want{err: errkind.Exhausted}
	}
	o.jobs[id] = &plain{request: s.Request, content: s.Digest, owner: s.By.Name}
	return w
}

func (o *oracle) cancel(id job.ID, c *protocol.Cancellation) want {
	switch j := o.jobs[id]; {
	case j == nil:
		return want{err: errkind.NotFound}
	case !j.may(c.By):
		return want{err: errkind.Denied}
	case j.over && c.Request != "" && c.Request == j.cancelled:
		return want{}
	case j.over:
		return want{err: errkind.Conflict}
	case j.cancelling:
		return want{changed: true}
	default:
		j.cancelling, j.cancelled = true, c.Request
		return want{changed: true, facts: 1}
	}
}

func (o *oracle) pause(id job.ID, p *protocol.Pause) want {
	switch j := o.jobs[id]; {
	case j == nil:
		return want{err: errkind.NotFound}
	case !j.may(p.By):
		return want{err: errkind.Denied}
	case j.over:
		return want{err: errkind.Conflict}
	case j.paused == p.Paused:
		return want{changed: true}
	default:
		j.paused = p.Paused
		return want{changed: true, facts: 1}
	}
}

func (o *oracle) requeue(id job.ID, r *protocol.Requeueing) want {
	switch j := o.jobs[id]; {
	case j == nil:
		return want{err: errkind.NotFound}
	case !j.may(r.By):
		return want{err: errkind.Denied}
	case r.Request != "" && r.Request == j.requeued:
		return want{}
	case !j.over || j.state == job.Finished || j.state == job.Impossible:
		return want{err: errkind.Conflict}
	case o.full():
		return want{err: errkind.Exhausted}
	default:
		*j = plain{request: j.request, content: j.content, requeued: r.Request, life: j.life, owner: j.owner}
		return want{changed: true, facts: 1}
	}
}

func (o *oracle) delete(id job.ID, x *protocol.Deletion) want {
	at := [3]string{x.Request, string(id), x.By.Name}
	switch j := o.jobs[id]; {
	case x.Request != "" && o.deleted[at]:
		return want{}
	case j == nil:
		return want{err: errkind.NotFound}
	case !j.may(x.By):
		return want{err: errkind.Denied}
	case !j.over:
		return want{err: errkind.Conflict}
	default:
		delete(o.jobs, id)
		o.deleted[at] = true
		return want{changed: true, facts: 1}
	}
}

// TestTheDeskAnswersAsThePlainOne: whatever people ask for, in any order and twice, an answer is what the oracle gives and decides as many
// facts; a life is newer than all of
// its name and than all that were forgotten.
func TestTheDeskAnswersAsThePlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 2
		k := newCounter(Config{MaxJobs: most}, homes{})
		o := &oracle{jobs: map[job.ID]*plain{}, deleted: map[[3]string]bool{}, most: most}
		last, forgotten := map[job.ID]job.Generation{}, job.Generation(0)
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			k.now += 1e9
			id := rapid.SampledFrom([]job.ID{"a", "b", "c"}).Draw(t, "job")
			request := rapid.SampledFrom([]string{"", "r1", "r2"}).Draw(t, "request")
			by := rapid.SampledFrom([]protocol.Asker{{}, {Name: "ada", Own: true}, {Name: "bob", Own: true}, {Name: "eve"}}).Draw(t, "by")
			var body protocol.Body
			var w want
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				s := &protocol.Submission{Request: request, Digest: rapid.SampledFrom([]string{"d", "e"}).Draw(t, "content"),
					Spec: work(id), Replace: rapid.Bool().Draw(t, "replace"), By: by}
				s.Spec.Owner = by.Name
				body, w = s, o.submit(id, s)
			case 2:
				c := &protocol.Cancellation{Request: request, By: by}
				body, w = c, o.cancel(id, c)
			case 3:
				p := &protocol.Pause{Request: request, Paused: rapid.Bool().Draw(t, "paused"), By: by}
				body, w = p, o.pause(id, p)
			case 4:
				r := &protocol.Requeueing{Request: request, By: by,
					Deadline: rapid.SampledFrom([]quantity.Instant{0, quantity.Never, k.now.Add(time.Hour)}).Draw(t, "deadline")}
				body, w = r, o.requeue(id, r)
			case 5:
				x := &protocol.Deletion{Request: request, By: by}
				body, w = x, o.delete(id, x)
			case 6:
				if j := o.jobs[id]; j != nil && !j.over {
					s := rapid.SampledFrom([]job.State{job.Finished, job.Failed, job.Cancelled, job.Impossible,
						job.Expired}).Draw(t, "verdict")
					k.ends(id, s)
					j.over, j.state = true, s
				}
				continue
			}
			r, facts := k.asks(id, body)
			kind := errkind.Kind(0)
			if r.Err != nil {
				kind = errkind.Of(r.Err)
			}
			if kind != w.err || r.Changed != w.changed || len(facts) != w.facts || r.Request != request {
				t.Fatalf("%T %+v of %s: %+v with %d facts, want %+v", body, body, id, r, len(facts), w)
			}
			for i := range facts {
				if f := &facts[i]; f.Kind == protocol.JobAccepted || f.Kind == protocol.JobRequeued {
					if f.Generation <= max(last[id], forgotten) {
						t.Fatalf("life %d of %s follows life %d, and %d of what was forgotten", f.Generation, id, last[id], forgotten)
					}
					last[id] = f.Generation
				} else if f.Kind == protocol.JobForgotten {
					forgotten = max(forgotten, f.Generation)
				}
			}
			j, is := k.About(&protocol.Message{Job: id}), o.jobs[id]
			if (j == nil) != (is == nil) {
				t.Fatalf("%s is here: %v, want %v", id, j != nil, is != nil)
			} else if j != nil {
				if c, _ := j.Cancelled(); j.Over() != is.over || j.Paused() != is.paused || (c != nil) != is.cancelling ||
					j.Spec().Owner != is.owner {
					t.Fatalf("%s of %q is over %v, paused %v, cancelled %v, want %+v", id, j.Spec().Owner, j.Over(), j.Paused(), c != nil,
						is)
				}
			}
		}
	})
}

// TestWhoIsToldWhat: who may not change a job is told whose it is; who cancels another's is named in its verdict.
func TestWhoIsToldWhat(t *testing.T) {
	ada, bob := protocol.Asker{Name: "ada", Own: true}, protocol.Asker{Name: "bob", Own: true}
	k := newCounter(Config{MaxJobs: 9}, homes{})
	submit := func(id job.ID, by protocol.Asker, replace bool) error {
		s := &protocol.Submission{Request: "r", Digest: "d", Spec: work(id), By: by, Replace: replace}
		s.Spec.Owner = by.Name
		r, _ := k.asks(id, s)
		return r.Err
	}
	for id, by := range map[job.ID]protocol.Asker{"a": ada, "old": {}} {
		if err := submit(id, by, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		id   job.ID
		body protocol.Body
		says string
	}{
		{"a", &protocol.Cancellation{By: bob}, `job "a" is of user ada, and you are user bob`},
		{"a", &protocol.Pause{By: bob}, "user ada"},
		{"a", &protocol.Requeueing{By: bob}, "user ada"},
		{"a", &protocol.Deletion{By: bob}, "user ada"},
		{"old", &protocol.Cancellation{By: bob}, "of nobody who is known"},
		{"old", &protocol.Cancellation{By: protocol.Asker{Own: true}}, "of nobody who is known"},
	} {
		r, facts := k.asks(c.id, c.body)
		if errkind.Of(r.Err) != errkind.Denied || !strings.Contains(r.Err.Error(), c.says) || len(facts) > 0 {
			t.Errorf("%T of %s: %v", c.body, c.id, r.Err)
		}
	}
	for _, replace := range []bool{false, true} {
		if err := submit("a", bob, replace); errkind.Of(err) != errkind.Exists || !strings.Contains(err.Error(), "user ada has a job") {
			t.Errorf("another's name, to replace %v: %v", replace, err)
		}
	}
	for by, says := range map[protocol.Asker]string{ada: "by its owner", {}: "by its owner", {Name: "eve"}: "by user eve"} {
		k := newCounter(Config{MaxJobs: 9}, homes{})
		s := work("a")
		s.Owner = "ada"
		k.asks("a", &protocol.Submission{Digest: "d", Spec: s, By: ada})
		_, facts := k.asks("a", &protocol.Cancellation{By: by})
		if text := facts[0].Body.(*protocol.JobCancel).Text; text != "cancelled "+says {
			t.Errorf("by %+v: %q", by, text)
		}
	}
}

// TestAJobOfTheArchiveIsAnsweredAsOneThatIsHere: it begins another life with its facts written again, and what was forgotten is nobody's.
func TestAJobOfTheArchiveIsAnsweredAsOneThatIsHere(t *testing.T) {
	k := newCounter(Config{MaxJobs: 9}, homes{})
	filed := []protocol.Fact{
		{Kind: protocol.JobAccepted, Job: "a", Epoch: 1, Generation: 3, At: 5,
			Body: &protocol.Acceptance{Spec: work("a"), Digest: "d", Zone: "z"}},
		{Kind: protocol.JobClosed, Job: "a", At: 6, Body: &protocol.Final{Verdict: job.Verdict{State: job.Failed}}},
	}
	in := &protocol.Message{Job: "a", Filed: filed}
	k.Requeue(k.now, in, &protocol.Requeueing{Request: "r"}, &protocol.Out{})
	if r := k.o.said[0].Body.(*protocol.Receipt); r.Err != nil || !r.Changed {
		t.Fatalf("requeue: %+v", r)
	}
	var kinds []protocol.FactKind
	for i := range k.o.facts {
		kinds = append(kinds, k.o.facts[i].Kind)
	}
	if !slices.Equal(kinds, []protocol.FactKind{protocol.JobAccepted, protocol.JobClosed, protocol.JobRequeued}) ||
		!k.o.facts[0].Body.(*protocol.Acceptance).Recalled {
		t.Errorf("it is written again as %v", kinds)
	}
	if j := k.o.Jobs.Find("a"); j == nil || j.Over() || j.Generation() <= 3 {
		t.Errorf("it is not in another life: %+v", j)
	}

	k = newCounter(Config{MaxJobs: 9}, homes{})
	k.Delete(in, &protocol.Deletion{}, &protocol.Out{})
	if f := k.o.facts[0]; f.Kind != protocol.JobForgotten || !f.Body.(*protocol.Forgetting).Archived {
		t.Errorf("it is deleted with %+v", f)
	}
	if j := k.About(in); j != nil {
		t.Error("what the archive has of it still counts")
	}
}

// TestTheSettingsOfAQueue: set once, by the first gate alone.
func TestTheSettingsOfAQueue(t *testing.T) {
	k := newCounter(Config{}, homes{})
	set := &protocol.QueueSetting{Request: "r", Queue: &protocol.Queue{Name: "q", Weight: 2, Cap: 3}}
	for i, changed := range []bool{true, false} {
		if r, facts := k.asks("", set); r.Err != nil || r.Changed != changed || (len(facts) == 1) != changed {
			t.Errorf("time %d: %+v, %d facts", i+1, r, len(facts))
		}
	}
	if r, facts := k.asks("", &protocol.QueueSetting{Queue: &protocol.Queue{Name: "q", Weight: -1}}); r.Err == nil ||
		errkind.Of(r.Err) != errkind.Invalid || len(facts) > 0 || k.o.Queues.Find("q").Weight != 2 {
		t.Errorf("a negative weight: %v", r.Err)
	}
	k = newCounter(Config{Gates: protocol.Gates{"g", "h"}, Place: 1}, homes{})
	if r, facts := k.asks("", set); r.Err == nil || len(facts) > 0 {
		t.Error("the second gate sets it")
	}
}
