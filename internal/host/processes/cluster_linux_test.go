package processes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	journals "sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/head"
	stores "sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/host/processes"
)

// TestMain lets the test binary stand in for the supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervisor.Await, supervisor.Supervise, supervisor.Probe, adapter.Verb:
			os.Exit(supervisor.Main(os.Args[1:]))
		}
	}
	done := executortest.LeaveTmp()
	code := m.Run()
	done()
	os.Exit(code)
}

// patience bounds every wait, on a machine that is busy with others.
const patience = 2 * time.Minute

// hub carries messages between daemons of one process, which come and go.
type hub struct {
	mu sync.RWMutex
	to map[protocol.Address]fabric.Deliver
}

// port is one daemon's end of it.
type port struct {
	*hub
	own []protocol.Address
}

func (p *port) Attach(a protocol.Address, d fabric.Deliver) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to[a], p.own = d, append(p.own, a)
	return nil
}

func (p *port) Send(m protocol.Message) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if d := p.to[m.To]; d != nil {
		d(m)
	}
}

func (p *port) Dropped() uint64 { return 0 }

func (p *port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.own {
		delete(p.to, a)
	}
	return nil
}

// machineStore is the head's store as a machine may use it.
type machineStore struct {
	store.Store
	owner  string
	number int
}

func (s *machineStore) may(op head.Operation, name string) error {
	return head.Machines(s.owner, func(t job.Token) bool { return node.NumberOf(t) == s.number }, head.Call{Operation: op, Machine: "m",
		Name: name})
}

func (s *machineStore) SetName(ctx context.Context, name string, refs store.Refs) error {
	if err := s.may(head.SetName, name); err != nil {
		return err
	}
	return s.Store.SetName(ctx, name, refs)
}

func (s *machineStore) Unname(ctx context.Context, name string) error {
	if err := s.may(head.RemoveName, name); err != nil {
		return err
	}
	return s.Store.Unname(ctx, name)
}

func (s *machineStore) Names(_ context.Context, folder string, _ func(store.Named) error) error {
	return s.may(head.ListNames, folder)
}

// stock is an inventory of given slices.
type stock []protocol.Slice

func (s stock) Slices(context.Context) ([]protocol.Slice, error) { return s, nil }
func (s stock) GPUs() []string                                   { return nil }
func (s stock) Describe() string                                 { return "given" }
func (s stock) Close() error                                     { return nil }
func (s stock) Watch(ctx context.Context, _ func(job.SliceID, int) bool, _ func(inventory.Sighting)) error {
	<-ctx.Done()
	return nil
}

// machines that have joined, by their numbers.
type machines map[int]job.NodeID

func (m machines) Named(number int) job.NodeID { return m[number] }
func (m machines) Away(job.NodeID) error       { return nil }

// cluster is a head without slices and two machines, each with processes of its own.
type cluster struct {
	*testing.T
	hub      *hub
	dir      string
	store    store.Store
	owner    string
	machines machines
	ends     map[job.NodeID]func()

	*host.Host
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, hub: &hub{to: map[protocol.Address]fabric.Deliver{}}, dir: t.TempDir(), ends: map[job.NodeID]func(){},
		machines: machines{1 << 16: "m1", 1<<16 + 1: "m2"}}
	var err error
	if c.store, err = stores.Open(filepath.Join(c.dir, "store")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, end := range c.ends {
			end()
		}
	})
	c.head()
	if c.owner, err = process.StoreOwner(filepath.Join(c.dir, "head")); err != nil {
		t.Fatal(err)
	}
	for number, name := range c.machines {
		c.join(number, name)
	}
	return c
}

// options that all daemons of the cluster share.
func (c *cluster) options(name job.NodeID, actors func() actor.Set, slices stock, p process.Options) host.Options {
	self, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	p.DataDir, p.ShimPath, p.Isolation, p.Keep = filepath.Join(c.dir, string(name)), self, &shim.Isolation{}, true
	return host.Options{DataDir: p.DataDir, Machine: name, Actors: actors, Inventory: slices, Executor: processes.New(p),
		Journal: func(dir string) (journal.Journal, error) { return journals.Open(dir, journals.Options{}) }, Fabric: &port{hub: c.hub}}
}

// drive runs a daemon until it is ended.
func (c *cluster) drive(name job.NodeID, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	c.ends[name] = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			c.Errorf("%s: %v", name, err)
		}
	})
}

// head starts the head, anew if it runs.
func (c *cluster) head() {
	c.Helper()
	if end := c.ends["head"]; end != nil {
		end()
	}
	config, err := arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Horizon: time.Hour, Node: "head"}.Config()
	if err != nil {
		c.Fatal(err)
	}
	actors, err := config.Build()
	if err != nil {
		c.Fatal(err)
	}
	o := c.options("head", actors, nil, process.Options{Store: c.store})
	o.Elsewhere = c.machines
	if c.Host, err = host.Open(c.Context(), o); err != nil {
		c.Fatal(err)
	}
	c.drive("head", c.Host.Run)
}

// join starts the daemon of a machine.
func (c *cluster) join(number int, name job.NodeID) {
	c.Helper()
	actors, err := arrangement.Joined(node.Config{ID: name, Number: number, Zone: arrangement.ZoneName, Horizon: time.Hour})
	if err != nil {
		c.Fatal(err)
	}
	m, err := host.OpenMember(c.Context(), c.options(name, actors, stock{{ID: "gpu0", Capacity: trp.Vector{trp.Memory: 10 << 30},
		Speed: 1000}}, process.Options{Store: &machineStore{c.store, c.owner, number},
		Joined: process.Cluster{Owner: c.owner, TakesNothing: true}}))
	if err != nil {
		c.Fatal(err)
	}
	c.drive(name, m.Run)
}

// burn ends the daemon of a machine and removes everything that the machine had.
func (c *cluster) burn(name job.NodeID) {
	c.Helper()
	c.ends[name]()
	dir := filepath.Join(c.dir, string(name))
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error { // checkpoints are read-only
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	}); err != nil {
		c.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		c.Fatal(err)
	}
}

// work is a job of so many units, which are said to take so long that no lease ends early on a busy machine.
func work(t *testing.T, name job.ID, kind job.Kind, total int64, script string) *job.Spec {
	t.Helper()
	s := &job.Spec{
		Name: name, Queue: "default", Kind: kind, Total: total, Unit: "unit", PerUnit: time.Second, Grid: 1, Parallelism: 2,
		Slices: 1, MaxFailures: 3, OverheadMax: 1000, Launch: job.Launch{Command: []string{"sh", "-c", script}, Grace: 10 * time.Second},
	}
	s.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: total, Mean: 1 << 30}}}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, 10_000); err != nil {
		t.Fatal(err)
	}
	return s
}

// until waits until a job is as it should be.
func (c *cluster) until(name job.ID, ok func(*status.Job) bool) status.Job {
	c.Helper()
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		j, err := c.Job(c.Context(), name)
		if err != nil {
			c.Fatal(err)
		}
		if ok(&j) {
			return j
		}
		if time.Now().After(limit) {
			c.Fatalf("job %s is not as it should be: %+v", name, j)
		}
	}
}

// text is what logs of a subjob say.
func (c *cluster) text(name job.ID, t job.Token) (stdout, stderr string, err error) {
	var out [2]strings.Builder
	err = c.Logs(c.Context(), name, t, func(p host.LogPiece) error {
		if p.Stderr {
			out[1].Write(p.Data)
		} else {
			out[0].Write(p.Data)
		}
		return nil
	})
	return out[0].String(), out[1].String(), err
}

// says is a program that writes its range to its output and to both logs.
const says = `echo "$SLUICE_FROM-$SLUICE_TO" > "$SLUICE_OUTPUT_DIR/range"; echo "did $SLUICE_FROM"; echo "oh $SLUICE_FROM" >&2; `

// TestTheHeadShowsWhatMachinesLeft: once a job of machines that have joined is over, its outputs and logs are at the head, however often
// that was started anew while the job ran, and though the machines have burnt down; logs of what failed too.
func TestTheHeadShowsWhatMachinesLeft(t *testing.T) {
	c := newCluster(t)
	if _, err := c.Submit(t.Context(), "", work(t, "a", job.Items, 60, says+"sleep .05"), nil); err != nil {
		t.Fatal(err)
	}
	for seen, over := 0, false; !over; c.head() { // after each subjob that counts
		j := c.until("a", func(j *status.Job) bool { return j.State.Final() || j.Subjobs > seen })
		seen, over = j.Subjobs, j.State.Final()
	}
	bad := work(t, "bad", job.Items, 1, "echo this is why >&2; exit 3")
	bad.MaxFailures = 1
	if _, err := c.Submit(t.Context(), "", bad, nil); err != nil {
		t.Fatal(err)
	}
	failed := c.until("bad", func(j *status.Job) bool { return j.State.Final() })
	for _, name := range []job.NodeID{"m1", "m2"} {
		c.burn(name)
	}
	j := c.until("a", func(j *status.Job) bool { return j.State == job.Finished })
	for range 2 {
		outs, err := c.Outputs(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		for _, o := range outs {
			data, err := os.ReadFile(filepath.Join(o.Path, "range"))
			if err != nil || o.Range.From != at || !slices.Equal(o.Files, []string{"range"}) ||
				!strings.HasPrefix(string(data), fmt.Sprintf("%d-", at)) {
				t.Errorf("output %+v says %q, %v", o, data, err)
			}
			at = o.Range.To
		}
		if at != 60 {
			t.Errorf("outputs of %d of 60 units: %+v", at, outs)
		}
		for _, s := range j.History {
			stdout, stderr, err := c.text("a", s.Token)
			from := strings.TrimPrefix(strings.TrimSpace(stdout), "did ")
			if err != nil || !s.Committed.Empty() && (from == "" || stderr != "oh "+from+"\n") {
				t.Errorf("logs of %v: %q, %q, %v", s.Token, stdout, stderr, err)
			}
		}
		for _, s := range failed.History {
			if _, stderr, err := c.text("bad", s.Token); err != nil || stderr != "this is why\n" {
				t.Errorf("logs of %v, which failed: %q, %v", s.Token, stderr, err)
			}
		}
		c.head()
	}
}

// TestLogsOfWhatRunsElsewhere: they are where it runs until it has ended, and who follows them gets them then.
func TestLogsOfWhatRunsElsewhere(t *testing.T) {
	c := newCluster(t)
	stop := filepath.Join(t.TempDir(), "stop")
	waits := work(t, "a", job.Items, 1, says+"while ! [ -e "+stop+" ]; do sleep .02; done")
	waits.PerUnit = time.Minute
	if _, err := c.Submit(t.Context(), "", waits, nil); err != nil {
		t.Fatal(err)
	}
	j := c.until("a", func(j *status.Job) bool { return len(j.History) > 0 && j.History[0].Outcome == "running" })
	if _, _, err := c.text("a", j.History[0].Token); errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "machine m") {
		t.Errorf("logs of what runs elsewhere: %v", err)
	}
	followed := make(chan string, 1)
	begun := make(chan struct{})
	go func() {
		var all strings.Builder
		if err := c.Follow(t.Context(), "a", host.LogFollow{}, func(p host.LogPiece) error {
			if p.Since != 0 {
				close(begun)
			}
			all.Write(p.Data)
			return nil
		}); err != nil {
			all.WriteString(err.Error())
		}
		followed <- all.String()
	}()
	<-begun
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case all := <-followed:
		if all != "did 0\noh 0\n" {
			t.Errorf("a follower got %q", all)
		}
	case <-time.After(patience):
		t.Error("the follower waits for ever")
	}
}

// TestWhatTheStoreHasLostIsNoEmptyOutput: who asks is told which subjob's output is lost.
func TestWhatTheStoreHasLostIsNoEmptyOutput(t *testing.T) {
	c := newCluster(t)
	if _, err := c.Submit(t.Context(), "", work(t, "a", job.Items, 1, says), nil); err != nil {
		t.Fatal(err)
	}
	j := c.until("a", func(j *status.Job) bool { return j.State.Final() })
	c.burn("m1")
	c.burn("m2")
	c.ends["head"]()
	if err := os.RemoveAll(filepath.Join(c.dir, "head", "output", "a")); err != nil { // it may have been brought already
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(c.dir, "store", "objects")); err != nil {
		t.Fatal(err)
	}
	c.head()
	outs, err := c.Outputs(t.Context(), "a")
	if err != nil || len(outs) != 1 || outs[0].Token != j.History[0].Token || outs[0].Path != "" ||
		!strings.Contains(outs[0].Lost, j.History[0].Token.String()) {
		t.Errorf("%+v, %v", outs, err)
	}
}

// TestOldCheckpointsLeaveTheHeadsStore: of a chain over machines the newest stays; and all names go with the job.
func TestOldCheckpointsLeaveTheHeadsStore(t *testing.T) {
	c := newCluster(t)
	chain := work(t, "a", job.Steps, 40, says+`at=$((SLUICE_FROM + 10))
[ "$SLUICE_FROM" = 0 ] || grep -qx "$SLUICE_FROM" "$SLUICE_RESUME_DIR/at" || exit 3
echo "$at" > "$SLUICE_CHECKPOINT_DIR/at"; echo "{\"progress\": $at, \"checkpoint\": true}" > "$SLUICE_PROGRESS_FILE.new"
mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"; [ $at = 40 ] || exit 85`)
	if _, err := c.Submit(t.Context(), "", chain, nil); err != nil {
		t.Fatal(err)
	}
	j := c.until("a", func(j *status.Job) bool { return j.State.Final() })
	if j.State != job.Finished || j.Subjobs < 2 {
		t.Fatalf("the chain is %v after %d subjobs: %+v", j.State, j.Subjobs, j.History)
	}
	left := func() (checkpoints, all int) {
		if err := c.store.Names(t.Context(), "jobs/"+c.owner+"/a", func(n store.Named) error {
			all++
			if n.Refs["checkpoint"] != "" {
				checkpoints++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return checkpoints, all
	}
	for limit := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if n, _ := left(); n == 1 {
			break
		} else if n == 0 || time.Now().After(limit) {
			t.Fatalf("%d checkpoints are left of %d subjobs", n, j.Subjobs)
		}
	}
	if err := c.Delete(t.Context(), "", "a"); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, all := left(); all == 0 {
			break
		} else if time.Now().After(limit) {
			t.Fatalf("%d names are left of a job that was forgotten", all)
		}
	}
}
