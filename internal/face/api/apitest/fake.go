// Package apitest has a Service that only answers: for tests of the API and of its clients.
package apitest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/host"
)

// Fake is a Service with jobs in memory. Its exported fields may be set before it is used; its methods are safe for
// concurrent use.
type Fake struct {
	// Err, if set, is what every call but Watch answers.
	Err error
	// SliceList, WindowList, QueueList, ZoneList, OutputList and Past are what the lists answer.
	SliceList  []status.Slice
	WindowList []status.Window
	QueueList  []status.Queue
	ZoneList   []status.Zone
	// AirlockList is what is done where memory runs out; a job's own part of it is what AirlockSteps shows.
	AirlockList []status.Airlock
	// ReclaimList is who waits, and what was decided for them; a job's own part of it is what Explain shows.
	ReclaimList status.Reclaims
	OutputList  []status.Output
	// CutList is what a reservation that truncates would cut.
	CutList []status.Cut
	Past    status.History
	// Warnings are those of every list of jobs.
	Warnings []string
	// Told is how jobs rank against others, for Explain.
	Told map[job.ID]Standing
	// LogText is what Logs tells, and Follow before it waits for the caller to leave.
	LogText string
	// FollowLog answers Follow instead, unless nil.
	FollowLog func(ctx context.Context, from host.LogFollow, tell func(host.LogPiece) error) error
	// Agent answers Negotiate; nil: there is nothing to negotiate.
	Agent func(context.Context, host.Negotiation) (host.Heard, error)

	mu       sync.Mutex
	jobs     []status.Job
	requests map[string]job.ID
	watching []chan struct{}
	calls    []string
	workdir  []byte
	asked    map[job.ID]chan struct{}
	reserved protocol.Reservation
}

// Standing is how a job stands against others.
type Standing struct {
	Prospect string
	Losses   []status.Loss
	Rank     status.Rank
}

// New returns a fake with one job of each kind of state and one slice.
func New() *Fake {
	slice := protocol.Slice{ID: "node-1/0/3g.40gb", Model: "H100", Profile: "3g.40gb", Capacity: trp.Vector{40 << 30}, Speed: 428,
		Simulated: true}
	run := status.Subjob{
		Token: job.Token{Epoch: 1, Seq: 42}, Slice: slice.ID, Window: 7, Range: job.Range{From: 0, To: 4000},
		Committed:    job.Range{From: 0, To: 4000},
		PlannedStart: At(-10 * time.Minute), PlannedEnd: At(-8 * time.Minute), Start: At(-10 * time.Minute),
		End:       At(-8*time.Minute - 5*time.Second),
		Predicted: 600 << 20, Peak: 512 << 20, Outcome: "done",
	}
	now := run
	now.Token.Seq, now.Range, now.Committed, now.Running, now.Outcome = 43, job.Range{From: 4000, To: 6000}, job.Range{}, true, ""
	now.Progress = 4900
	run.Prepare = 58 * time.Millisecond
	now.PlannedStart, now.PlannedEnd, now.Start, now.End = At(-time.Minute), At(time.Minute), At(-time.Minute), 0
	f := &Fake{
		LogText: "counting\n",
		SliceList: []status.Slice{{Slice: slice, Node: "node-1", State: "running", Job: "count-words", Until: At(time.Minute),
			Reservations: []protocol.Reservation{{ID: 17, Kind: protocol.ForOwner, Slice: slice.ID, Start: At(time.Hour),
				End: At(2 * time.Hour), Source: "ada"}}}},
		WindowList: []status.Window{{ID: 8, Slice: slice.ID, Start: At(time.Minute), End: At(time.Hour), Until: protocol.ForOwner,
			State: "open", Answers: 2, Asked: 3}},
		ZoneList: []status.Zone{
			{ID: "local-1", Nodes: []job.NodeID{"vm-1", "vm-3"}, Slices: 8, Homed: 3, Waiting: 2, Running: 1},
			{ID: "local-2", Nodes: []job.NodeID{"vm-2"}, Slices: 4},
		},
		AirlockList: storm(slice.ID),
		QueueList:   []status.Queue{{Queue: protocol.Queue{Name: "default", Weight: 1}, Pending: 1, Running: 1, Held: 1, Attained: 1234.5}},
		OutputList:  []status.Output{},
		Told: map[job.ID]Standing{"train": {
			Prospect: "3 of the 7 that wait for a slice such as node-1/0/3g.40gb, by policy fair: 2 jobs are ahead of it; " +
				"the last window it could have used, on node-1/0/3g.40gb, went to count-words of queue default 10s ago; likely to start " +
				"within 10m to 30m",
			Rank: status.Rank{Place: 3, Of: 7, Policy: "fair", Profile: "3g.40gb", Slice: slice.ID, Latest: status.Given{
				Slice: slice.ID, Length: time.Hour, At: At(-10 * time.Second), Winner: "count-words", WinnerQueue: "default",
			}},
		}},
		Past: status.History{From: At(-time.Hour), To: At(0), Slices: []status.SliceHistory{{Slice: slice, Spans: []status.Span{
			{Start: At(-time.Hour), End: At(-10 * time.Minute), Until: protocol.ForLease},
			{Kind: protocol.ForLease, Start: At(-10 * time.Minute), End: At(-8 * time.Minute), Job: "count-words", Token: run.Token,
				Range: run.Range, Committed: run.Committed, Outcome: "done", UsedStart: run.Start, UsedEnd: run.End},
		}}}},
		requests: map[string]job.ID{},
	}
	f.jobs = []status.Job{
		{Name: "count-words", Queue: "default", Kind: job.Items, State: job.Running, Progress: 4000, Reported: 900, Total: 10000,
			Unit: "item", Subjobs: 1, Running: 1,
			Submitted: At(-11 * time.Minute), Started: At(-10 * time.Minute), Wait: time.Minute, FinishEarly: At(5 * time.Minute),
			FinishLate: At(8 * time.Minute),
			RateP50:    20 * time.Millisecond, RateP95: 25 * time.Millisecond, MemoryScale: 1000, Prepare: 62 * time.Millisecond,
			PrepareSeen: true, History: []status.Subjob{run, now}},
		{Name: "train", Queue: "research", Kind: job.Steps, Priority: 5, State: job.Waiting,
			Reason: "no window is long enough: needs 5m15s", Total: 90000, Unit: "step",
			Submitted: At(-10 * time.Minute), Wait: 10 * time.Minute, StartEarly: At(10 * time.Minute), StartLate: At(30 * time.Minute)},
		{Name: "gang", Queue: "default", Kind: job.Rigid, State: job.Failed, Reason: "exit 3: no such file", Total: 1, Unit: "job", Lost: 3,
			Submitted: At(-9 * time.Minute), Started: At(-8 * time.Minute), Ended: At(-7 * time.Minute), Wait: time.Minute},
	}
	return f
}

// call notes a call.
func (f *Fake) call(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.Err
}

// Calls are the changing calls so far, one line each.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Workdir is the work directory that came with the latest submission.
func (f *Fake) Workdir() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.workdir
}

// Set changes or adds a job and wakes waiters.
func (f *Fake) Set(j status.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := find(f.jobs, j.Name); i >= 0 {
		f.jobs[i] = j
	} else {
		f.jobs = append(f.jobs, j)
	}
	for _, c := range f.watching {
		select {
		case c <- struct{}{}:
		default: // it has an unread signal
		}
	}
}

// Asked is closed when somebody next asks for a job.
func (f *Fake) Asked(name job.ID) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{})
	f.asked = map[job.ID]chan struct{}{name: c}
	return c
}

func find(list []status.Job, name job.ID) int {
	return slices.IndexFunc(list, func(j status.Job) bool { return j.Name == name })
}

// SubmitAll keeps the jobs as waiting.
func (f *Fake) SubmitAll(ctx context.Context, jobs []host.Submission, workdir []byte) []host.Outcome {
	out := make([]host.Outcome, len(jobs))
	for i, j := range jobs {
		out[i].Receipt, out[i].Err = f.submit(ctx, j.Request, j.Spec, j.Replace, workdir)
	}
	return out
}

// Check answers Err.
func (f *Fake) Check(_ context.Context, specs []*job.Spec) ([]error, error) {
	return make([]error, len(specs)), f.Err
}

// submit keeps a job. replace: one of its name makes way for it, if that is over.
func (f *Fake) submit(ctx context.Context, request string, spec *job.Spec, replace bool, workdir []byte) (host.Receipt, error) {
	f.mu.Lock()
	if i := find(f.jobs, spec.Name); replace && i >= 0 {
		if !f.jobs[i].State.Final() {
			f.mu.Unlock()
			return host.Receipt{}, errkind.Errorf(errkind.Conflict, "job %s is not over: cancel it first", spec.Name)
		}
		f.jobs = slices.Delete(f.jobs, i, i+1)
	}
	f.mu.Unlock()
	if err := f.call("submit %s in %s for %d units", spec.Name, spec.Queue, spec.Total); err != nil {
		return host.Receipt{}, err
	}
	f.mu.Lock()
	_, again := f.requests[request]
	exists := find(f.jobs, spec.Name) >= 0
	f.requests[request] = spec.Name
	f.workdir = workdir
	f.mu.Unlock()
	if exists && !again {
		return host.Receipt{}, errkind.Errorf(errkind.Exists, "job %s exists already with other content: choose another name", spec.Name)
	}
	if !exists {
		kept := *spec
		kept.Name = "" // as the gate keeps it
		if c := users.Of(ctx); c != nil {
			kept.Owner = c.Name
		}
		f.Set(status.Job{Name: spec.Name, Queue: spec.Queue, Kind: spec.Kind, Total: spec.Total, Unit: spec.Unit, Submitted: At(0),
			Spec: &kept})
	}
	return host.Receipt{Name: spec.Name, Created: !exists, Position: journal.Position{Seq: 9, Digest: [32]byte{1, 2, 3}}}, nil
}

// DryRun says that the job would wait.
func (f *Fake) DryRun(_ context.Context, spec *job.Spec) (status.Explanation, error) {
	return status.Explanation{
		Job: status.Job{Name: spec.Name, Queue: spec.Queue, Kind: spec.Kind, Total: spec.Total, Unit: spec.Unit,
			StartEarly: At(time.Minute), StartLate: At(2 * time.Minute)},
		Summary: "would start in the next window",
		Slices: []status.SliceFit{{Slice: "node-1/0/3g.40gb", Fits: true, Least: 600 << 20, Capacity: 40 << 30,
			Reach: job.Range{From: 0, To: spec.Total}}},
	}, f.Err
}

// Requeue marks the job, if it is over.
func (f *Fake) Requeue(ctx context.Context, _ string, name job.ID, deadline quantity.Instant) (job.Generation, error) {
	what := "requeue"
	switch {
	case deadline == quantity.Never:
		what += " without deadline"
	case deadline != 0:
		what += " until " + deadline.Time().UTC().Format(time.RFC3339)
	}
	return 2, f.over(ctx, what, name)
}

// Delete marks the job, if it is over.
func (f *Fake) Delete(ctx context.Context, _ string, name job.ID) error {
	return f.over(ctx, "delete", name)
}

func (f *Fake) over(ctx context.Context, what string, name job.ID) error {
	if err := f.on(ctx, what, name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.jobs[find(f.jobs, name)].State.Final() {
		return errkind.Errorf(errkind.Conflict, "job %q is not over", name)
	}
	return nil
}

// Cancel marks the job.
func (f *Fake) Cancel(ctx context.Context, _ string, name job.ID) error {
	return f.on(ctx, "cancel", name)
}

// PauseJob marks the job.
func (f *Fake) PauseJob(ctx context.Context, _ string, name job.ID, pause bool) error {
	return f.on(ctx, fmt.Sprintf("pause=%v", pause), name)
}

// on notes a call about a job, if a gate would take it from the caller.
func (f *Fake) on(ctx context.Context, what string, name job.ID) error {
	f.mu.Lock()
	i := find(f.jobs, name)
	var by protocol.Asker
	if c := users.Of(ctx); c != nil {
		by = c.Asker()
	}
	denied := i >= 0 && !by.May(f.jobs[i].Owner())
	f.mu.Unlock()
	if denied {
		return errkind.Errorf(errkind.Denied, "job %s is not yours", name)
	}
	if err := f.call("%s %s", what, name); err != nil {
		return err
	}
	if i < 0 {
		return missing(name)
	}
	return nil
}

func missing(name job.ID) error {
	return errkind.Errorf(errkind.NotFound, "there is no job %s; `sluice jobs` lists them", name)
}

// Jobs lists the newest jobs before a key.
func (f *Fake) Jobs(_ context.Context, q status.JobQuery) (page status.JobPage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, j := range f.jobs {
		if (q.Queue == "" || q.Queue == j.Queue) && (q.Owner == "" || q.Owner == j.Owner()) && q.States.Has(j.State) &&
			(q.Before == status.JobKey{} || j.Key().Compare(q.Before) < 0) {
			page.Jobs = append(page.Jobs, j)
		}
	}
	page.Warnings = f.Warnings
	slices.SortFunc(page.Jobs, func(a, b status.Job) int { return a.Key().Compare(b.Key()) })
	if page.Older = len(page.Jobs) - q.Limit; q.Limit == 0 || page.Older <= 0 {
		page.Older = 0
		return page, f.Err
	}
	page.Jobs = page.Jobs[page.Older:]
	page.Next = page.Jobs[0].Key()
	return page, f.Err
}

// Job is one job.
func (f *Fake) Job(_ context.Context, name job.ID) (status.Job, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.asked[name]; c != nil {
		close(c)
		delete(f.asked, name)
	}
	i := find(f.jobs, name)
	if f.Err != nil || i < 0 {
		return status.Job{}, firstError(f.Err, missing(name))
	}
	return f.jobs[i], nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Explain counts reasons.
func (f *Fake) Explain(ctx context.Context, name job.ID) (status.Explanation, error) {
	j, err := f.Job(ctx, name)
	told := f.Told[name]
	return status.Explanation{
		Home: "local-1", Prospect: told.Prospect, Losses: told.Losses, Rank: told.Rank, AirlockSteps: airlockSteps(f.AirlockList, name),
		Reclaims: reclaimSteps(f.ReclaimList.Steps, name),
		Job:      j, Summary: "waits for a longer window",
		Reasons: []status.Reason{{Text: "the window is too short", Count: 12, Last: At(-time.Second)}},
		Slices:  []status.SliceFit{{Slice: "node-1/0/3g.40gb", Least: 44 << 30, Capacity: 40 << 30, Why: "needs 4Gi more memory"}},
		Nearest: "memory 39Gi",
	}, err
}

// Slices answers SliceList.
func (f *Fake) Slices(context.Context) ([]status.Slice, error) { return f.SliceList, f.Err }

// Wishes answers those of ReclaimList.
func (f *Fake) Wishes(context.Context) ([]status.Wish, error) { return f.ReclaimList.Wishes, f.Err }

// Windows answers WindowList.
func (f *Fake) Windows(context.Context) ([]status.Window, error) { return f.WindowList, f.Err }

// Zones answers ZoneList.
func (f *Fake) Zones(context.Context) ([]status.Zone, error) { return f.ZoneList, f.Err }

// Airlocks answers AirlockList.
func (f *Fake) Airlocks(context.Context) ([]status.Airlock, error) { return f.AirlockList, f.Err }

// DrainZone drains one of ZoneList, unless it is the last.
func (f *Fake) DrainZone(_ context.Context, _ string, zone job.ZoneID) error {
	i := slices.IndexFunc(f.ZoneList, func(z status.Zone) bool { return z.ID == zone })
	if i < 0 {
		return errkind.Errorf(errkind.NotFound, "there is no zone %q", zone)
	}
	if err := f.call("drain %s", zone); err != nil {
		return err
	}
	f.ZoneList = slices.Clone(f.ZoneList)
	z := &f.ZoneList[i]
	z.Drained, z.Homed, z.Waiting, z.Running, z.Over = true, 0, 0, 0, z.Over+1
	return nil
}

// Queues answers QueueList.
func (f *Fake) Queues(context.Context) ([]status.Queue, error) { return f.QueueList, f.Err }

// SetQueue notes the call.
func (f *Fake) SetQueue(_ context.Context, _ string, q protocol.Queue) error {
	return f.call("queue %+v", q)
}

// Cuts answers CutList.
func (f *Fake) Cuts(context.Context, protocol.Reservation) ([]status.Cut, error) {
	return f.CutList, f.Err
}

// Reserve notes the call and answers one id. What is asked for by "twice" stood already, beside another.
func (f *Fake) Reserve(_ context.Context, _ string, r protocol.Reservation) ([]protocol.Made, error) {
	length := time.Duration(0)
	if r.End != quantity.Never {
		length = r.End.Sub(r.Start)
	}
	made := protocol.Made{ID: 21, Slice: r.Slice}
	f.mu.Lock()
	f.reserved = r
	f.mu.Unlock()
	if r.Source == "twice" {
		made.Stood, made.Overlaps = true, f.SliceList[0].Reservations
	}
	return []protocol.Made{made}, f.call("reserve %s %q for %s every %s truncate %v", r.Kind, r.Slice, length, r.Every, r.Truncate)
}

// Reserved is what was reserved last.
func (f *Fake) Reserved() protocol.Reservation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reserved
}

// Unreserve notes the call.
func (f *Fake) Unreserve(_ context.Context, _ string, id uint64) error {
	return f.call("unreserve %d", id)
}

// Release notes the call. Of its slices one is quarantined.
func (f *Fake) Release(_ context.Context, _ string, slice job.SliceID) (string, error) {
	said := string(slice) + " is not quarantined, nothing changed"
	for i := range f.SliceList {
		if s := &f.SliceList[i]; s.Slice.ID == slice && s.State == "quarantined" {
			said = string(slice) + " is unquarantined"
		}
	}
	return said, f.call("release %s", slice)
}

// Logs tells LogText.
func (f *Fake) Logs(ctx context.Context, name job.ID, t job.Token, tell func(host.LogPiece) error) error {
	if _, err := f.Job(ctx, name); err != nil {
		return err
	}
	if t.Zero() {
		t = job.Token{Epoch: 1, Seq: 42}
	}
	return tell(host.LogPiece{Token: t, Data: []byte(f.LogText)})
}

// Follow is FollowLog, or tells LogText and waits until the caller leaves.
func (f *Fake) Follow(ctx context.Context, name job.ID, from host.LogFollow, tell func(host.LogPiece) error) error {
	if f.FollowLog != nil {
		return f.FollowLog(ctx, from, tell)
	}
	if _, err := f.Job(ctx, name); err != nil {
		return err
	}
	if err := tell(host.LogPiece{Token: job.Token{Epoch: 1, Seq: 42}, Data: []byte(f.LogText)}); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// AgentKey is a key of a job that is there.
func (f *Fake) AgentKey(ctx context.Context, name job.ID) (string, error) {
	_, err := f.Job(ctx, name)
	return "5eed" + string(name), err
}

// Negotiate asks Agent.
func (f *Fake) Negotiate(ctx context.Context, n host.Negotiation) (host.Heard, error) {
	if f.Agent == nil || f.Err != nil {
		return host.Heard{Over: true}, f.Err
	}
	return f.Agent(ctx, n)
}

// Outputs answers OutputList.
func (f *Fake) Outputs(context.Context, job.ID) ([]status.Output, error) { return f.OutputList, f.Err }

// Standing is the named jobs.
func (f *Fake) Standing(ctx context.Context, names []job.ID) (out []status.Job, err error) {
	for _, name := range names {
		j, err := f.Job(ctx, name)
		if err != nil {
			return nil, err
		}
		j.History = nil
		out = append(out, j)
	}
	return out, nil
}

// Watch signals every Set, whichever job it is of.
func (f *Fake) Watch(...job.ID) (changed <-chan struct{}, stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{}, 1)
	f.watching = append(f.watching, c)
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.watching = slices.DeleteFunc(f.watching, func(w chan struct{}) bool { return w == c })
	}
}

// History answers Past.
func (f *Fake) History(context.Context, quantity.Instant) (status.History, error) {
	return f.Past, f.Err
}

// About is the daemon's description of itself.
func (f *Fake) About(context.Context) (status.About, error) {
	return status.About{Version: "v1", Commit: "abc", Go: "go1.26", Node: "node-1", Zones: []job.ZoneID{"local-1", "local-2"},
		Nodes: []job.NodeID{"vm-1", "vm-2", "vm-3"}, DataDir: "/data", Listen: "127.0.0.1:7117", Mechanism: "sja", Policy: "fair",
		Isolation: "cgroup", Inventory: "sim", SingleUser: true, Started: At(-time.Hour), Uptime: time.Hour, JournalBytes: 4096,
		JournalSeq: 9, Trouble: ""}, f.Err
}
