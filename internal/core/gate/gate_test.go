package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// desk drives one gate and keeps what it said.
type desk struct {
	t     testing.TB
	g     *gate.Gate
	zones []gate.Zone
	// search of tickets; nil: none search.
	search *search.Config
	now    quantity.Instant
	facts  []protocol.Fact
	said   []protocol.Message
}

func newDesk(t testing.TB) *desk {
	return newDeskOf(t, gate.Alone("z"))
}

func newDeskOf(t testing.TB, zones []gate.Zone) *desk {
	d := &desk{t: t, zones: zones, now: 1e9}
	d.g = d.fresh()
	return d
}

func (d *desk) fresh() *gate.Gate {
	g, err := gate.New(gate.Config{Zones: d.zones, Retain: time.Hour, Search: d.search})
	if err != nil {
		d.t.Fatal(err)
	}
	return g
}

func (d *desk) step(m protocol.Message) {
	var out protocol.Out
	d.g.Step(d.now, m, &out)
	d.facts = append(d.facts, out.Facts...)
	d.said = append(d.said[:0], out.Effects...)
	again := d.fresh()
	for _, f := range d.facts {
		again.Apply(f)
	}
	if again.Digest() != d.g.Digest() {
		d.t.Fatalf("after %d: the facts fold to another state", m.Kind)
	}
	kept := d.fresh()
	for _, f := range capture.All(d.g) {
		kept.Apply(f)
	}
	if kept.Digest() != d.g.Digest() {
		d.t.Fatalf("after %d: the snapshot folds to another state", m.Kind)
	}
}

func (d *desk) find(k protocol.Kind) *protocol.Message {
	for i := range d.said {
		if d.said[i].Kind == k {
			return &d.said[i]
		}
	}
	return nil
}

func (d *desk) call(m protocol.Message) protocol.Message {
	d.t.Helper()
	m.From = protocol.Address{Role: protocol.Person}
	d.step(m)
	r := d.find(protocol.Reply)
	if r == nil {
		d.t.Fatalf("no reply to %d", m.Kind)
	}
	return *r
}

func spec(t testing.TB, name string, mib int64) *job.Spec {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 100, Mean: quantity.Amount(mib << 20)}}}, 100,
		10_000)
	if err != nil {
		t.Fatal(err)
	}
	return &job.Spec{Name: job.ID(name), Queue: "default", Kind: job.Items, Total: 100, PerUnit: time.Second, Grid: 10, Parallelism: 1,
		Safe: table, MaxFailures: 3}
}

func submit(t testing.TB, name, request, digest string) protocol.Message {
	return protocol.Message{Kind: protocol.Submit, Body: &protocol.Submission{Request: request, Digest: digest, Spec: spec(t, name, 100)}}
}

// TestExternalJobs are accepted only where somebody asks their agents.
func TestExternalJobs(t *testing.T) {
	d := newDesk(t)
	m := submit(t, "a", "r1", "d1")
	m.Body.(*protocol.Submission).Spec.External = true
	if r := d.call(m); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Invalid ||
		!strings.Contains(r.Body.(*protocol.Receipt).Err.Error(), "nobody asks agents here") || d.g.Life("a") != 0 {
		t.Errorf("where nobody asks agents: %v", r.Body.(*protocol.Receipt).Err)
	}
	g, err := gate.New(gate.Config{Zones: gate.Alone("z"), External: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Check(d.now, m.Body.(*protocol.Submission).Spec); err != nil {
		t.Errorf("with one: %v", err)
	}
}

func TestALifeAtTheGate(t *testing.T) {
	d := newDesk(t)
	if r := d.call(submit(t, "a", "r1", "d1")); r.Body.(*protocol.Receipt).Err != nil || !r.Body.(*protocol.Receipt).Changed ||
		r.Job != "a" {
		t.Fatalf("submit: %+v", r)
	}
	adopt := d.find(protocol.Adopt)
	if adopt == nil || adopt.Job != "a" || adopt.Body.(*protocol.Adoption).Spec.Name != "" {
		t.Fatal("the zone was not asked to adopt the job")
	}
	d.now += 2e9
	d.step(protocol.Message{Kind: protocol.Tick})
	if d.find(protocol.Adopt) == nil {
		t.Error("Adopt must be repeated until it is answered")
	}
	d.step(protocol.Message{Kind: protocol.Adopted, Job: "a", Epoch: 1})
	d.now += 2e9
	d.step(protocol.Message{Kind: protocol.Tick})
	if d.find(protocol.Adopt) != nil {
		t.Error("Adopt was answered and is repeated all the same")
	}
	if r := d.call(protocol.Message{Kind: protocol.Cancel, Job: "a",
		Body: &protocol.Cancellation{}}); r.Body.(*protocol.Receipt).Err != nil || d.find(protocol.Cancel) == nil {
		t.Errorf("cancel: %+v", r)
	}
	closed := protocol.Message{Kind: protocol.Closed, Job: "a", Epoch: 1,
		Body: &protocol.Closing{Verdict: job.Verdict{State: job.Cancelled}, At: d.now},
		From: protocol.Address{Role: protocol.Zone, ID: "z"}}
	for range 2 {
		if d.step(closed); d.find(protocol.ClosedAck) == nil {
			t.Error("Closed must be acknowledged, however often it comes")
		}
	}
	if r := d.call(submit(t, "a", "r9", "other")); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Exists {
		t.Errorf("the name is kept until the retention is over: %v", r.Body.(*protocol.Receipt).Err)
	}
	d.now = d.now.Add(2 * time.Hour)
	if d.step(protocol.Message{Kind: protocol.Tick}); d.find(protocol.Forget) == nil || d.find(protocol.Purge) == nil ||
		d.g.Life("a") != 0 {
		t.Error("after its retention a job is forgotten and its files are purged")
	}
	if r := d.call(submit(t, "a", "r9", "other")); r.Body.(*protocol.Receipt).Err != nil || d.find(protocol.Adopt) != nil {
		t.Errorf("the name is free again, and waits until nothing is left of the former job: %v", r.Body.(*protocol.Receipt).Err)
	}
	if d.gone("a", 1); d.find(protocol.Adopt) == nil {
		t.Error("nothing is left of the former job, and the zone is not asked to adopt the new one")
	}
}

func TestARetriedSubmitIsTheSameJob(t *testing.T) {
	d := newDesk(t)
	d.call(submit(t, "a", "r1", "d1"))
	for _, again := range []protocol.Message{submit(t, "a", "r1", "d1"), submit(t, "a", "r2", "d1")} {
		if r := d.call(again); r.Body.(*protocol.Receipt).Err != nil || r.Body.(*protocol.Receipt).Changed || r.Job != "a" {
			t.Errorf("%s: %+v", again.Body.(*protocol.Submission).Request, r)
		}
	}
	if r := d.call(submit(t, "a", "r2", "d2")); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Exists {
		t.Errorf("other content under the same name: %v", r.Body.(*protocol.Receipt).Err)
	}
}

// TestWhatNodesHaveIsJudgedAsItIs: by one that nobody named and that speaks for the first time an hour later, until it is removed. What a
// node says of slices that can't be, and what it says of jobs, counts for nothing.
func TestWhatNodesHaveIsJudgedAsItIs(t *testing.T) {
	d := newDesk(t)
	has := func(by string, mib ...int64) protocol.Message {
		var all []protocol.Slice
		for i, m := range mib {
			all = append(all, protocol.Slice{ID: job.SliceID(fmt.Sprint(by, "/", i)), Capacity: trp.Vector{quantity.Amount(m << 20)},
				Speed: 1000})
		}
		return protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: by},
			Body: &protocol.Stock{Slices: all}}
	}
	jobs := 0
	runs := func() bool {
		jobs++
		name := fmt.Sprint("b", jobs)
		r := d.call(protocol.Message{Kind: protocol.Submit,
			Body: &protocol.Submission{Request: name, Digest: "d", Spec: spec(t, name, 2000)}})
		return r.Body.(*protocol.Receipt).Err == nil
	}
	d.step(has("early", 512))
	if runs() {
		t.Error("nobody has that much, and it is accepted")
	}
	d.now = d.now.Add(time.Hour)
	forged := has("late", 4000)
	forged.From.Role = protocol.Zone
	for name, m := range map[string]protocol.Message{
		"no node": forged, "less than nothing": has("late", 4000, -1), "a job's end": {Kind: protocol.Closed,
			From: protocol.Address{Role: protocol.Node, ID: "late"}, Job: "b", Body: &protocol.Closing{}},
	} {
		if d.step(m); len(d.said) > 0 || runs() {
			t.Errorf("%s: said is %+v, or it is accepted", name, d.said)
		}
	}
	d.step(has("late", 4000))
	if !runs() {
		t.Error("a node has it since, and it is refused")
	}
	d.step(protocol.Message{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person}, Body: &protocol.Removal{Node: "late"}})
	if runs() {
		t.Error("the node that had it is removed, and it is accepted")
	}
}

func TestWhatCanNeverRunIsToldSo(t *testing.T) {
	d := newDesk(t)
	slice := func(id string, mib int64) protocol.Slice {
		return protocol.Slice{ID: job.SliceID(id), Capacity: trp.Vector{quantity.Amount(mib << 20)}, Speed: 1000}
	}
	d.step(protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Node, ID: "n"},
		Body: &protocol.Stock{Slices: []protocol.Slice{slice("small", 512), slice("large", 1024)}}})
	rigid := spec(t, "r", 600)
	rigid.Kind, rigid.Slices, rigid.Total, rigid.Walltime = job.Rigid, 2, 100, time.Hour
	big := spec(t, "b", 2000)
	big.Queue = "nowhere"
	slow := spec(t, "s", 100)
	slow.PerUnit = 20 * time.Minute
	for _, c := range []struct {
		s    *job.Spec
		want []string
	}{
		{big, []string{`there is no queue "nowhere"`, "need 2000 MiB", "at most 1024 MiB"}},
		{rigid, []string{"2 slices of 600 MiB within one node, and no node has more than 1", "slices: 1"}},
		{slow, []string{"longer than the longest window of 1h0m0s", "a horizon", "of at least ", "a smaller grid"}},
	} {
		r := d.call(protocol.Message{Kind: protocol.Submit, Body: &protocol.Submission{Request: "r", Digest: "d", Spec: c.s}})
		if errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Invalid {
			t.Errorf("%s: %v", c.s.Name, r.Body.(*protocol.Receipt).Err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(r.Body.(*protocol.Receipt).Err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.s.Name, r.Body.(*protocol.Receipt).Err, want)
			}
		}
	}
	if r := d.call(protocol.Message{Kind: protocol.Submit, Body: &protocol.Submission{Request: "r", Digest: "d",
		Spec: spec(t, "ok", 1000)}}); r.Body.(*protocol.Receipt).Err != nil {
		t.Error(r.Body.(*protocol.Receipt).Err)
	}
}

func TestQueues(t *testing.T) {
	d := newDesk(t)
	set := func(q protocol.Queue) error {
		return d.call(protocol.Message{Kind: protocol.SetQueue,
			Body: &protocol.QueueSetting{Request: "r", Queue: &q}}).Body.(*protocol.Receipt).Err
	}
	if err := set(protocol.Queue{Name: "x", Weight: 0, Cap: -1}); err == nil || !strings.Contains(err.Error(), "weight is 0") ||
		!strings.Contains(err.Error(), "cap -1") {
		t.Errorf("every problem at once: %v", err)
	}
	if err := set(protocol.Queue{Name: "x", Weight: 2, MaxJobs: 1}); err != nil {
		t.Fatal(err)
	}
	if d.find(protocol.QueueChanged) == nil {
		t.Error("the zone is not told")
	}
	a := submit(t, "a", "r1", "d1")
	a.Body.(*protocol.Submission).Spec.Queue = "x"
	b := submit(t, "b", "r2", "d2")
	b.Body.(*protocol.Submission).Spec.Queue = "x"
	if r := d.call(a); r.Body.(*protocol.Receipt).Err != nil {
		t.Fatal(r.Body.(*protocol.Receipt).Err)
	}
	if r := d.call(b); errkind.Of(r.Body.(*protocol.Receipt).Err) != errkind.Exhausted {
		t.Errorf("the queue is full: %v", r.Body.(*protocol.Receipt).Err)
	}
}

// TestWhateverIsSaid throws messages at the gate; every step checks that facts and snapshot fold to the same state.
func TestWhateverIsSaid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "job")
			d.now = d.now.Add(time.Duration(rapid.Int64Range(0, 4000).Draw(rt, "wait")) * time.Second)
			of := job.Generation(rapid.Uint32Range(0, 5).Draw(rt, "generation"))
			zone, person := protocol.Address{Role: protocol.Zone, ID: "z"}, protocol.Address{Role: protocol.Person}
			d.step(rapid.SampledFrom([]protocol.Message{
				{Kind: protocol.Submit, From: person, Body: &protocol.Submission{Request: "r", Digest: name, Spec: spec(t, name, 100)}},
				{Kind: protocol.Submit, From: person, Body: &protocol.Submission{Request: "again", Digest: "other",
					Spec: spec(t, name, 200), Replace: true}},
				{Kind: protocol.Requeue, From: person, Job: job.ID(name), Body: &protocol.Requeueing{}},
				{Kind: protocol.Delete, From: person, Job: job.ID(name), Body: &protocol.Deletion{}},
				{Kind: protocol.Purged, Job: job.ID(name), Generation: of},
				{Kind: protocol.Forgotten, From: zone, Job: job.ID(name), Generation: of},
				{Kind: protocol.Adopted, From: zone, Job: job.ID(name), Epoch: 1, Generation: of},
				{Kind: protocol.Cancel, From: person, Job: job.ID(name), Body: &protocol.Cancellation{}},
				{Kind: protocol.PauseJob, From: person, Job: job.ID(name), Body: &protocol.Pause{Paused: true}},
				{Kind: protocol.PauseJob, From: person, Job: job.ID(name), Body: &protocol.Pause{}},
				{Kind: protocol.PauseJob, From: zone, Job: job.ID(name), Body: &protocol.Pause{Paused: true}},
				{Kind: protocol.Closed, From: zone, Job: job.ID(name), Epoch: 1, Generation: of,
					Body: &protocol.Closing{Verdict: job.Verdict{State: job.Failed}, At: d.now}},
				{Kind: protocol.Tick},
				{Kind: protocol.SetQueue, From: person, Body: &protocol.QueueSetting{Queue: &protocol.Queue{Name: "q", Weight: 3}}},
			}).Draw(rt, "message"))
		}
	})
}
