package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
)

// toy is an actor whose durable state is the list of its facts.
type toy struct {
	facts []protocol.Fact
	step  func(a *toy, now quantity.Instant, in protocol.Message, out *protocol.Out)
	sum   uint64
	parts capture.Parts[capture.Part] // none
	// forget makes Capture leave out the last fact: a bug that the host must notice.
	forget bool
}

func (a *toy) fact(out *protocol.Out, f protocol.Fact) {
	out.Facts = append(out.Facts, f)
	a.Apply(f)
}

func (a *toy) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if a.step != nil {
		a.step(a, now, in, out)
	}
}

func (a *toy) Apply(f protocol.Fact) {
	a.facts = append(a.facts, f)
	for _, c := range []byte(string(f.Job) + said(f)) {
		a.sum = (a.sum ^ uint64(c)) * 1099511628211
	}
}

// said is what a fact of a toy says.
func said(f protocol.Fact) string {
	if r, ok := f.Body.(*protocol.Reason); ok {
		return r.Text
	}
	return ""
}

func (a *toy) Recover(quantity.Instant, *protocol.Out) {}
func (a *toy) Digest() uint64                          { return a.sum }

func (a *toy) capture(self protocol.Address) capture.Run {
	all := slices.Clone(a.facts)
	if a.forget && len(all) > 0 {
		all = all[:len(all)-1]
	}
	return a.parts.Begin(self, all)
}

func (a *toy) has(id job.ID) bool {
	return slices.ContainsFunc(a.facts, func(f protocol.Fact) bool { return f.Job == id })
}

type toyGate struct{ toy }

func (g *toyGate) Capture() capture.Run { return g.capture(protocol.Address{Role: protocol.Gate}) }

func (g *toyGate) Check(quantity.Instant, *job.Spec) error { return nil }
func (g *toyGate) Home(job.ID) job.ZoneID                  { return "z" }
func (g *toyGate) Draw(*job.Spec) job.ZoneID               { return "z" }
func (g *toyGate) Life(id job.ID) job.Generation {
	if g.has(id) {
		return 1
	}
	return 0
}

// accept is a gate that accepts every job once, and has its files purged so that an effect leaves.
func accept(a *toy, _ quantity.Instant, in protocol.Message, out *protocol.Out) {
	if in.Kind != protocol.Submit {
		return
	}
	known := a.has(in.Job)
	if !known {
		a.fact(out, protocol.Fact{Kind: protocol.JobAccepted, Job: in.Job,
			Body: &protocol.Acceptance{Spec: in.Body.(*protocol.Submission).Spec}})
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Purge, To: protocol.Address{Role: protocol.Executor},
			Job: in.Job})
	}
	out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Reply, To: in.From,
		Body: &protocol.Receipt{Request: in.Body.(*protocol.Submission).Request, Changed: !known}, Job: in.Job})
}

// acceptAll accepts without looking: every job is new.
func acceptAll(a *toy, _ quantity.Instant, in protocol.Message, out *protocol.Out) {
	if in.Kind == protocol.Submit {
		f := protocol.Fact{Kind: protocol.JobAccepted, Job: in.Job, Body: &protocol.Acceptance{Spec: in.Body.(*protocol.Submission).Spec}}
		out.Facts = append(out.Facts, f)
		a.sum++
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Reply, To: in.From,
			Body: &protocol.Receipt{Request: in.Body.(*protocol.Submission).Request, Changed: true}, Job: in.Job})
	}
}

type toyZone struct{ toy }

func (z *toyZone) Capture() capture.Run {
	return z.capture(protocol.Address{Role: protocol.Zone, ID: "z"})
}

func (z *toyZone) Costs(cuts []status.Cut) []status.Cut                                   { return cuts }
func (z *toyZone) Page(quantity.Instant, status.JobQuery) (p status.JobPage)              { return p }
func (z *toyZone) Windows(quantity.Instant) []status.Window                               { return nil }
func (z *toyZone) Queues(quantity.Instant) []status.Queue                                 { return nil }
func (z *toyZone) DryRun(quantity.Instant, *job.Spec) status.Explanation                  { return status.Explanation{} }
func (z *toyZone) Job(quantity.Instant, job.ID) (status.Job, bool)                        { return status.Job{}, false }
func (z *toyZone) Brief(quantity.Instant, job.ID) (status.Job, bool)                      { return status.Job{}, false }
func (z *toyZone) ExplainFiled(quantity.Instant, *protocol.Record) (e status.Explanation) { return e }
func (z *toyZone) Explain(quantity.Instant, job.ID) (status.Explanation, bool) {
	return status.Explanation{}, false
}

type toyNode struct {
	toy
	shown atomic.Pointer[[]status.Slice]
}

func (n *toyNode) Capture() capture.Run {
	return n.capture(protocol.Address{Role: protocol.Node, ID: "n"})
}

func (n *toyNode) Slices(quantity.Instant) (list []status.Slice) {
	if shown := n.shown.Load(); shown != nil {
		list = *shown
	}
	return list
}
func (n *toyNode) Strain(quantity.Instant) status.Strain                           { return status.Strain{} }
func (n *toyNode) Airlock(quantity.Instant) status.Airlock                         { return status.Airlock{} }
func (n *toyNode) AirlockSteps(job.ID, job.Generation) (none []status.AirlockStep) { return none }
func (n *toyNode) Reclaims(quantity.Instant) (none status.Reclaims)                { return none }
func (n *toyNode) HostWaits(uint64) (none []status.HostWait)                       { return none }
func (n *toyNode) Cuts(quantity.Instant, protocol.Reservation) ([]status.Cut, error) {
	return nil, nil
}

// deaf is an executor that only remembers.
type deaf struct {
	mu    sync.Mutex
	did   []protocol.Message
	found []executor.Found
	do    func(m protocol.Message, w journal.Position)
}

func (e *deaf) Find(context.Context) ([]executor.Found, error) { return e.found, nil }
func (e *deaf) Isolation() string                              { return "none: a test" }
func (e *deaf) Close() error                                   { return nil }

func (e *deaf) Do(m protocol.Message, w journal.Position) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.did = append(e.did, m)
	if e.do != nil {
		e.do(m, w)
	}
}

func (e *deaf) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.did)
}

// fixed is an inventory of given slices.
type fixed []protocol.Slice

func (f fixed) Slices(context.Context) ([]protocol.Slice, error) { return f, nil }
func (f fixed) GPUs() []string                                   { return nil }
func (f fixed) Describe() string                                 { return "fixed" }
func (f fixed) Close() error                                     { return nil }
func (f fixed) Watch(ctx context.Context, _ func(job.SliceID, int) bool, _ func(inventory.Sighting)) error {
	<-ctx.Done()
	return nil
}

// hooked is a journal whose Append and whose snapshots' Write ask first.
type hooked struct {
	journal.Journal
	before func(records [][]byte) error
	state  func() error
}

func (j *hooked) Snapshot() (journal.Snapshot, error) {
	s, err := j.Journal.Snapshot()
	if err != nil || j.state == nil {
		return s, err
	}
	return hookedSnapshot{s, j.state}, nil
}

type hookedSnapshot struct {
	journal.Snapshot
	before func() error
}

func (s hookedSnapshot) Write(b []byte) (int, error) {
	if err := s.before(); err != nil {
		return 0, err
	}
	return s.Snapshot.Write(b)
}

func (j *hooked) Append(records [][]byte) (journal.Position, error) {
	if err := j.before(records); err != nil {
		return journal.Position{}, err
	}
	return j.Journal.Append(records)
}

// rig is a host under test with everything around it.
type rig struct {
	dir      string
	executor *deaf
	actors   func() actor.Set
	before   func(records [][]byte) error
	state    func() error
	options  func(*Options)
}

func newRig(t *testing.T) *rig {
	return &rig{dir: filepath.Join(t.TempDir(), "data"), executor: &deaf{}, actors: func() actor.Set {
		return actor.Alone("z", "n", &toyGate{toy{step: accept}}, &toyZone{}, &toyNode{})
	}}
}

func (r *rig) open() (*Host, error) {
	o := Options{
		DataDir: r.dir, About: status.About{Version: "test"}, Machine: "n", Actors: r.actors, Inventory: fixed{},
		Journal: func(dir string) (journal.Journal, error) {
			j, err := local.Open(dir, local.Options{})
			if err == nil && r.before != nil {
				j = &hooked{j, r.before, r.state}
			}
			return j, err
		},
		Executor: func(Env) (executor.Executor, Files, error) { return r.executor, nil, nil },
	}
	if r.options != nil {
		r.options(&o)
	}
	return Open(context.Background(), o)
}

// start opens a host and runs it until the test calls stop, which returns what Run returned.
func (r *rig) start(t *testing.T) (h *Host, stop func() error) {
	t.Helper()
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	var once sync.Once
	var result error
	stop = func() error {
		once.Do(func() { cancel(); result = <-ended })
		return result
	}
	t.Cleanup(func() { _ = stop() })
	return h, stop
}

func spec(name job.ID) *job.Spec {
	return &job.Spec{Name: name, Queue: "default", Kind: job.Items, Total: 1, Launch: job.Launch{Command: []string{"true"}}}
}

func errFull() error {
	return errkind.Errorf(errkind.Exhausted, "append: %w", errors.New("no space left on device"))
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}
