package twin_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/edge/archive"
	archivememory "sluice.dev/sluice/internal/edge/archive/memory"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/edge/wire"
	"sluice.dev/sluice/internal/host"
)

const (
	zoneID = job.ZoneID("z")
	nodeID = job.NodeID("n")
)

// build makes the real actors.
func build(t failer) func() actor.Set { return buildWith(t, nil) }

// buildWith has jobs that are over leave to an archive.
func buildWith(t failer, archive *filing.Config) func() actor.Set {
	make, err := arrangement.Alone(
		gate.Config{Zones: gate.Alone(zoneID), Archive: archive},
		zone.Config{ID: zoneID, Policy: fair.Policy{}, Horizon: 10 * time.Minute, Archive: archive},
		node.Config{ID: nodeID, Zone: zoneID},
	).Build()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return make
}

type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// machine is two slices; the second is larger and faster.
func machine(prefix job.SliceID) []protocol.Slice {
	return []protocol.Slice{
		{ID: prefix + "gpu0", Model: "sim", Profile: "small", Capacity: trp.Vector{10 << 30}, Speed: 500, Simulated: true},
		{ID: prefix + "gpu1", Model: "sim", Profile: "large", Capacity: trp.Vector{20 << 30}, Speed: 1000, Simulated: true},
	}
}

type fixed []protocol.Slice

func (f fixed) Slices(context.Context) ([]protocol.Slice, error) { return f, nil }
func (f fixed) GPUs() []string                                   { return nil }
func (f fixed) Describe() string                                 { return "two simulated slices" }
func (f fixed) Close() error                                     { return nil }
func (f fixed) Watch(ctx context.Context, _ func(job.SliceID, int) bool, _ func(inventory.Sighting)) error {
	<-ctx.Done()
	return nil
}

func spec(t failer, name job.ID, k job.Kind, total int64, perUnit time.Duration) *job.Spec {
	t.Helper()
	s := &job.Spec{
		Name: name, Queue: gate.DefaultQueue, Kind: k, Total: total, Unit: "unit", PerUnit: perUnit, Grid: 1, Parallelism: 1, Slices: 1,
		MaxFailures: 3, OverheadMax: 100, Deadline: quantity.Never, Launch: job.Launch{Command: []string{"true"}, Grace: time.Second},
	}
	switch k {
	case job.Items:
		s.Parallelism = 2
	case job.Steps:
		s.Grid, s.Restore, s.Checkpoint = 10, time.Second, 2*time.Second
	case job.Rigid:
		s.Total, s.PerUnit, s.Walltime = 1, 0, time.Duration(total)*perUnit
	}
	s.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: s.Total, Mean: 5 << 30}}}
	table, err := trp.Compile(s.Profile, s.Total, 10_000)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s.Safe = table
	return s
}

// arrival is one submission of a scenario, after a time from the start.
type arrival struct {
	after time.Duration
	spec  *job.Spec
}

func (a arrival) request() string { return "request-of-" + string(a.spec.Name) }

// scenario is chosen so that no two unrelated things happen at one instant: live, the order of such is the operating
// system's.
func scenario(t failer) []arrival {
	return []arrival{
		{3 * time.Second, spec(t, "count", job.Items, 5003, 100*time.Millisecond+17)},
		{11*time.Second + 3, spec(t, "train", job.Steps, 1009, 130*time.Millisecond+1)},
		{17*time.Second + 5, spec(t, "sort", job.Rigid, 1, 71*time.Second+11)},
		{29*time.Second + 7, spec(t, "late", job.Items, 701, 310*time.Millisecond+7)},
	}
}

// planned is a subjob that goes exactly as planned; one that finishes its job leaves no checkpoint.
func planned(m protocol.Message) fake.Behaviour {
	b := fake.Planned(m)
	if m.Body.(*protocol.Work).Range.To == m.Body.(*protocol.Work).Spec.Total {
		b.Checkpoint = 0
	}
	return b
}

// live is a host with the real actors, a fake executor and a real log, restartable.
type live struct {
	kept    *archivememory.Archive // nil: jobs stay
	t       *testing.T
	dir     string
	build   func() actor.Set
	disk    *memoryDisk
	model   fake.Model
	fake    *fake.Executor
	fabric  func() fabric.Fabric
	drained job.ZoneID // once all jobs are submitted; empty: none is
	journal func(journal.Journal) journal.Journal
	options func(*host.Options)

	host *host.Host
	stop func() error

	mu    sync.Mutex
	facts []protocol.Fact // as the journal took them
}

func newLive(t *testing.T) *live {
	return &live{t: t, dir: filepath.Join(t.TempDir(), "data"), build: build(t), disk: newDisk(), model: planned}
}

// archives has jobs leave memory so long after their end. The archive outlives the daemon, as one on disk would.
func (l *live) archives(keep time.Duration) {
	l.kept, l.build = archivememory.New(), buildWith(l.t, &filing.Config{Keep: keep})
}

// tap tells what the journal has taken.
type tap struct {
	journal.Journal
	took func(records [][]byte)
}

func (j *tap) Append(records [][]byte) (journal.Position, error) {
	p, err := j.Journal.Append(records)
	if err == nil {
		j.took(records)
	}
	return p, err
}

func (l *live) open() error {
	o := host.Options{
		DataDir: l.dir, About: status.About{Version: "test"}, Machine: nodeID, Actors: l.build, Inventory: fixed(machine("")),
		Journal: func(string) (journal.Journal, error) {
			j, err := l.openJournal()
			if err != nil {
				return nil, err
			}
			if l.journal != nil {
				j = l.journal(j)
			}
			return &tap{j, l.took}, nil
		},
		Executor: func(e host.Env) (executor.Executor, host.Files, error) {
			if l.fake == nil {
				l.fake = fake.New(e.Deliver, l.model)
			} else {
				l.fake = l.fake.Reopen(e.Deliver)
			}
			return l.fake, nil, nil
		},
	}
	if l.kept != nil {
		o.Archive = func(string, bool) (archive.Archive, error) { return l.kept, nil }
	}
	if l.fabric != nil {
		o.Fabric = l.fabric()
	}
	if l.options != nil {
		l.options(&o)
	}
	h, err := host.Open(context.Background(), o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	var once sync.Once
	var result error
	l.host, l.stop = h, func() error {
		once.Do(func() { cancel(); result = <-ended })
		return result
	}
	return nil
}

func (l *live) took(records [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		err := wire.DecodeFacts(r, func(f protocol.Fact) error { l.facts = append(l.facts, f); return nil })
		if err != nil {
			l.t.Errorf("a record does not decode: %v", err)
		}
	}
}

// everyJob lists all jobs of a zone by name.
func everyJob(z actor.Zone, now quantity.Instant) []status.Job {
	all := z.Page(now, status.JobQuery{}).Jobs
	slices.SortFunc(all, func(a, b status.Job) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// jobs lists all that the daemon keeps.
func (l *live) jobs(ctx context.Context) ([]status.Job, error) {
	page, err := l.host.Jobs(ctx, status.JobQuery{})
	return page.Jobs, err
}

// finished waits until every job is over or the limit of virtual time has passed.
func (l *live) finished(jobs int, limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Second) {
		list, err := l.jobs(context.Background())
		if err != nil {
			return false
		}
		over := 0
		for _, j := range list {
			if j.State.Final() {
				over++
			}
		}
		if over == jobs {
			return true
		}
	}
	return false
}

// award is what a Claimed fact sells, when, and what it costs. The numbers of window and round are for people: they
// count what happened before, and between unrelated things at one instant that is the operating system's choice.
func award(f *protocol.Fact) string {
	s := f.Body.(*protocol.Sale)
	return fmt.Sprintf("%s %v on %s [%d,%d) as %v run %v wall %v resume %v demand %v", f.Job, s.Range, s.Slice, s.Start, s.End, f.Token,
		s.Plan.Run, s.Plan.Wall, s.Plan.Resume, s.Demand)
}

func awards(facts []protocol.Fact) []string {
	var out []string
	for i := range facts {
		if facts[i].Kind == protocol.Claimed {
			out = append(out, award(&facts[i]))
		}
	}
	return out
}

// checkOnce insists that every job has finished and every unit of it was committed exactly once.
func checkOnce(t failer, facts []protocol.Fact, jobs []arrival) {
	t.Helper()
	committed := map[job.ID][]job.Range{}
	verdicts := map[job.ID]job.Verdict{}
	for _, f := range facts {
		switch f.Kind {
		case protocol.Committed:
			committed[f.Job] = append(committed[f.Job], f.Body.(*protocol.ClaimEnd).Range)
		case protocol.Ended:
			if _, again := verdicts[f.Job]; again {
				t.Errorf("job %s ended twice", f.Job)
			}
			verdicts[f.Job] = f.Body.(*protocol.Final).Verdict
		}
	}
	for _, a := range jobs {
		if v := verdicts[a.spec.Name]; v.State != job.Finished {
			t.Errorf("job %s: %v, want it finished", a.spec.Name, v)
			continue
		}
		list := committed[a.spec.Name]
		slices.SortFunc(list, func(a, b job.Range) int { return int(a.From - b.From) })
		at := int64(0)
		for _, r := range list {
			if r.From != at {
				t.Errorf("job %s: committed up to %d, then %v", a.spec.Name, at, r)
			}
			at = r.To
		}
		if at != a.spec.Total {
			t.Errorf("job %s: committed up to %d of %d", a.spec.Name, at, a.spec.Total)
		}
	}
}

// openTape opens the tape of the n-th last boot.
func (l *live) openTape(back int) *tape.Reader {
	l.t.Helper()
	dir := filepath.Join(l.dir, "tape")
	boots, err := tape.Boots(dir)
	if err != nil || len(boots) <= back {
		l.t.Fatalf("boots %q, %v", boots, err)
	}
	r, err := tape.Open(dir, boots[len(boots)-1-back])
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = r.Close() })
	return r
}

// otherZone is a zone that decides otherwise than build's.
func otherZone(t failer) actor.Zone {
	z, err := zone.New(zone.Config{ID: zoneID, Policy: fair.Policy{}, Horizon: time.Minute})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return z
}

// openJournal opens the journal: the local kind on a disk in memory, since the tests here are not about files.
func (l *live) openJournal() (journal.Journal, error) {
	return local.OpenOn(l.disk, local.Options{})
}
