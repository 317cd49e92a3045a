package host

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/clock"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/fabric/stream"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/membership"
)

// clusterPatience bounds every wait of these tests, on a machine that is busy with others.
const clusterPatience = 2 * time.Minute

// brisk links know of a lost peer soon enough for a test, and late enough for a busy machine.
var brisk = stream.Timing{Beat: 100 * time.Millisecond, Silence: 2 * time.Second, RetryFirst: 10 * time.Millisecond,
	RetryLast: 100 * time.Millisecond}

// cluster is a head without slices of its own, and what machines join it by.
type cluster struct {
	t         *testing.T
	dir       string
	authority *authority.Authority
	addr      string

	*Host
	links *stream.Head
	stop  func()
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir()}
	var err error
	if c.authority, err = authority.Open(filepath.Join(c.dir, "authority"), time.Now()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.stop() })
	c.begin()
	return c
}

// begin starts the head, at the address it had before.
func (c *cluster) begin() {
	c.t.Helper()
	c.links = stream.NewHead(stream.HeadOptions{
		Caller: membership.Caller(c.authority, nil), Owns: membership.Owns(c.authority), Timing: brisk,
	})
	server := c.listen()
	c.addr = server.Addr()
	ended := drive(c.t, server.Serve)
	config, err := arrangement.Choice{Policy: fair.Policy{}, Mechanism: "sja", Horizon: time.Hour, Node: "head"}.Config()
	if err != nil {
		c.t.Fatal(err)
	}
	actors, err := config.Build()
	if err != nil {
		c.t.Fatal(err)
	}
	o := Options{DataDir: filepath.Join(c.dir, "head"), Machine: "head", Actors: actors, Inventory: fixed{}, Journal: journals,
		Fabric: c.links, Elsewhere: membership.Machines{Authority: c.authority, Links: c.links},
		Executor: func(Env) (executor.Executor, Files, error) { return &deaf{}, nil, nil }}
	if c.Host, err = Open(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
	daemon := drive(c.t, c.Run)
	c.stop = func() {
		daemon()
		ended()
	}
}

// listen takes the head's address, again where it had one.
func (c *cluster) listen() (s *membership.Server) {
	c.t.Helper()
	addr := cmp.Or(c.addr, "127.0.0.1:0")
	err := errors.New("it was not tried")
	for end := time.Now().Add(clusterPatience); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s, err = membership.Listen(addr, membership.HeadOptions{Authority: c.authority, Head: c.links})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

func journals(dir string) (journal.Journal, error) { return local.Open(dir, local.Options{}) }

// drive runs a daemon; the function that it returns stops it and waits. It may be called twice.
func drive(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		cancel()
		select {
		case err, first := <-ended:
			if first && err != nil {
				t.Error(err)
			}
			if first {
				close(ended)
			}
		case <-time.After(clusterPatience):
			t.Error("it does not end")
		}
	}
}

// joined is a machine that has joined.
type joined struct {
	*Member
	link *stream.Member
	// executor that its subjobs run under; they outlive the daemon.
	executor *fake.Executor
	o        Options
	config   *tls.Config
	// wall is the machine's wall clock, measured what follows its head's; nil: the system's, and nothing.
	wall     func() time.Time
	measured func(head time.Time, round time.Duration)
	stop     func()
}

// perUnit is what a unit takes and is said to take.
const perUnit = 20 * time.Millisecond

// steady is a model of subjobs that take their time whatever was planned for them.
func steady(protocol.Message) fake.Behaviour { return fake.Behaviour{PerUnit: perUnit} }

// takeIn lets a machine of some slices join.
func (c *cluster) takeIn(name job.NodeID, slices int) *joined {
	c.t.Helper()
	text, err := c.authority.NewToken("", time.Hour, time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	invitation, err := authority.ReadInvitation(text)
	if err != nil {
		c.t.Fatal(err)
	}
	key, request, err := authority.NewKey(name)
	if err != nil {
		c.t.Fatal(err)
	}
	j, err := c.authority.Join(invitation.Secret(), name, request, time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	m := &joined{}
	if m.config, err = j.TLS(key); err != nil {
		c.t.Fatal(err)
	}
	actors, err := arrangement.Joined(node.Config{ID: name, Number: j.Number, Zone: arrangement.ZoneName, Horizon: time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
	var stock fixed
	for i := range slices {
		stock = append(stock, protocol.Slice{ID: job.SliceID("gpu" + string(rune('0'+i))), Capacity: trp.Vector{trp.Memory: 10 << 30},
			Speed: 1000})
	}
	m.o = Options{DataDir: filepath.Join(c.dir, string(name)), Machine: name, Actors: actors, Inventory: stock, Journal: journals,
		Executor: func(e Env) (executor.Executor, Files, error) {
			if m.executor == nil {
				m.executor = fake.New(e.Deliver, steady)
			} else {
				m.executor = m.executor.Reopen(e.Deliver)
			}
			return m.executor, nil, nil
		}}
	m.begin(c)
	c.t.Cleanup(func() { m.stop() })
	return m
}

// begin starts the machine's daemon.
func (m *joined) begin(c *cluster) {
	c.t.Helper()
	m.link = stream.Join(stream.MemberOptions{Machine: m.o.Machine, Head: c.addr, Timing: brisk, Now: m.wall, Measured: m.measured,
		TLS: func() (*tls.Config, error) { return m.config, nil }})
	o := m.o
	o.Fabric = fabric.Fabric(m.link)
	var err error
	if m.Member, err = OpenMember(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
	stop := drive(c.t, m.Run)
	m.stop = stop
}

// work is a job of so many items.
func work(t *testing.T, name job.ID, total int64) *job.Spec {
	t.Helper()
	s := &job.Spec{
		Name: name, Queue: "default", Kind: job.Items, Total: total, Unit: "item", PerUnit: perUnit, Grid: 1, Parallelism: 4,
		Slices: 1, MaxFailures: 3, OverheadMax: 1000, Launch: job.Launch{Command: []string{"true"}},
	}
	s.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: total, Mean: 1 << 30}}}
	table, err := trp.Compile(s.Profile, s.Total, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	s.Safe = table
	return s
}

// becomes waits until a job is in a state.
func (c *cluster) becomes(name job.ID, want func(*status.Job) bool) status.Job {
	c.t.Helper()
	changed, stop := c.Watch(name)
	defer stop()
	limit := time.After(clusterPatience)
	for {
		j, err := c.Job(c.t.Context(), name)
		if err != nil {
			c.t.Fatal(err)
		}
		if want(&j) {
			return j
		}
		select {
		case <-changed:
		case <-limit:
			e, _ := c.Explain(c.t.Context(), name)
			c.t.Fatalf("job %s is %v for too long: %+v; links %+v", name, j.State, e, c.links.Machines())
		}
	}
}

func finished(j *status.Job) bool { return j.State == job.Finished }

// TestAJobRunsOnMachinesThatJoined: the head has no slice of its own, and nothing but links to two machines that have.
func TestAJobRunsOnMachinesThatJoined(t *testing.T) {
	c := newCluster(t)
	machines := []*joined{c.takeIn("m1", 2), c.takeIn("m2", 1)}
	if _, err := c.Submit(t.Context(), "", work(t, "a", 100), nil); err != nil {
		t.Fatal(err)
	}
	j := c.becomes("a", finished)
	if j.Progress != 100 {
		t.Errorf("%d of 100 units are done", j.Progress)
	}
	for _, s := range j.History {
		owner, _, _ := strings.Cut(string(s.Slice), "/")
		if at := c.authority.Named(node.NumberOf(s.Token)); string(at) != owner || !slices.Contains([]string{"m1", "m2"}, owner) {
			t.Errorf("subjob %v ran on %s, its token is of %q", s.Token, s.Slice, at)
		}
	}
	for _, m := range machines {
		list, err := m.Slices(t.Context())
		if err != nil || len(list) == 0 || !strings.HasPrefix(string(list[0].Slice.ID), string(m.o.Machine)+"/") {
			t.Errorf("machine %s shows %+v, %v", m.o.Machine, list, err)
		}
	}
}

// sliceIs waits until the head shows a slice in a state, and returns why it is.
func (c *cluster) sliceIs(id job.SliceID, state string) string {
	c.t.Helper()
	var list []status.Slice
	for end := time.Now().Add(clusterPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var err error
		if list, err = c.Slices(c.t.Context()); err != nil {
			c.t.Fatal(err)
		}
		for i := range list {
			if list[i].Slice.ID == id && list[i].State == state {
				return list[i].Reason
			}
		}
	}
	c.t.Fatalf("slice %s is not %s for too long: %+v", id, state, list)
	return ""
}

// TestTheHeadShowsAndDrainsSlicesOfOtherMachines: what a person asks at the head of a slice elsewhere is done by that slice's node, once.
func TestTheHeadShowsAndDrainsSlicesOfOtherMachines(t *testing.T) {
	c := newCluster(t)
	m := c.takeIn("m1", 2)
	c.takeIn("m2", 1)
	for _, id := range []job.SliceID{"m1/gpu0", "m1/gpu1", "m2/gpu0"} {
		c.sliceIs(id, "idle")
	}
	drain := protocol.Reservation{Kind: protocol.ForDrain, Slice: "m1/gpu0", End: quantity.Never, Source: "a test"}
	made, err := c.Reserve(t.Context(), "drain-1", drain)
	if err != nil || len(made) != 1 || node.NumberOfReservation(made[0].ID) < authority.FirstNumber {
		t.Fatalf("a drain at the head: %+v, %v", made, err)
	}
	if again, err := c.Reserve(t.Context(), "drain-1", drain); err != nil || !reflect.DeepEqual(again, made) {
		t.Errorf("the same request again: %+v, %v; want %+v", again, err, made)
	}
	if why := c.sliceIs("m1/gpu0", "reserved"); !strings.Contains(why, "drain") || !strings.Contains(why, "a test") {
		t.Errorf("it is reserved, since %q", why)
	}
	if list, err := m.Slices(t.Context()); err != nil || list[0].State != "reserved" {
		t.Errorf("its machine shows %+v, %v", list, err)
	}
	// The machine's restart keeps it; while it is away nothing is promised.
	m.stop()
	if why := c.sliceIs("m1/gpu0", "unconfirmed"); !strings.Contains(why, "m1 is away") {
		t.Errorf("of a machine that is away: %q", why)
	}
	if err := c.Unreserve(t.Context(), "undrain-1", made[0].ID); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("what is asked of a machine that is away: %v", err)
	}
	m.begin(c)
	c.sliceIs("m1/gpu0", "reserved")
	if err := c.Unreserve(t.Context(), "undrain-1", made[0].ID); err != nil {
		t.Error(err)
	}
	c.sliceIs("m1/gpu0", "idle")
	for slice, what := range map[job.SliceID]string{"m9/gpu0": "that never joined", "m2/gpu7": "that has no such slice"} {
		_, err := c.Reserve(t.Context(), "", protocol.Reservation{Kind: protocol.ForDrain, Slice: slice, End: quantity.Never})
		if errkind.Of(err) != errkind.NotFound {
			t.Errorf("a drain of a machine %s: %v", what, err)
		}
	}
}

// again restarts the machine's daemon; its subjobs go on meanwhile.
func (m *joined) again(c *cluster) {
	m.stop()
	m.begin(c)
}

// settled are the ranges of a job that counted, as the machines' executors were told, sorted.
func settled(name job.ID, machines []*joined) (list []job.Range) {
	for _, m := range machines {
		for _, s := range m.executor.Settlements() {
			if s.Job == name && s.Committed {
				list = append(list, s.Range)
			}
		}
	}
	slices.SortFunc(list, func(a, b job.Range) int { return cmp.Compare(a.From, b.From) })
	return list
}

// TestSlicesOfAMachineThatWasAwayBeforeTheHead: they are listed, and count where a job is checked, though no zone has heard of them since
// the head came up. Those of a machine that was removed are not.
func TestSlicesOfAMachineThatWasAwayBeforeTheHead(t *testing.T) {
	c := newCluster(t)
	m, gone := c.takeIn("m1", 2), c.takeIn("m2", 1)
	for _, id := range []job.SliceID{"m1/gpu0", "m1/gpu1", "m2/gpu0"} {
		c.sliceIs(id, "idle")
	}
	m.stop()
	gone.stop()
	c.stop()
	if err := c.authority.Remove("m2", time.Now()); err != nil {
		t.Fatal(err)
	}
	c.begin()
	if why := c.sliceIs("m1/gpu1", "unconfirmed"); !strings.Contains(why, "m1 is away") || !strings.Contains(why, "has not called") {
		t.Errorf("of a machine that was away before: %q", why)
	}
	list, err := c.Slices(t.Context())
	if err != nil || len(list) != 2 || list[0].Slice.Capacity[trp.Memory] != 10<<30 {
		t.Errorf("the head shows %+v, %v", list, err)
	}
	if _, err := c.Submit(t.Context(), "", work(t, "a", 20), nil); err != nil {
		t.Errorf("a job for a machine that is away: %v", err)
	}
	m.begin(c)
	c.sliceIs("m1/gpu0", "idle")
	c.becomes("a", finished)
}

// TestAMachineWhoseClockIsAhead gets its share of short pieces, as it goes by its head's clock. The link still shows how wrong its own is.
func TestAMachineWhoseClockIsAhead(t *testing.T) {
	const ahead = 5 * time.Second
	c := newCluster(t)
	c.takeIn("right", 2)
	m := c.takeIn("ahead", 2)
	m.stop()
	m.wall = func() time.Time { return time.Now().Add(ahead) }
	follows := clock.Follow(m.wall())
	m.measured, m.o.Now = follows.Measured, follows.Now
	follows.Measured(time.Now(), 0) // as with the settings of its node
	m.begin(c)
	for _, id := range []job.SliceID{"right/gpu0", "right/gpu1", "ahead/gpu0", "ahead/gpu1"} {
		c.sliceIs(id, "idle")
	}
	for end := time.Now().Add(clusterPatience); ; time.Sleep(10 * time.Millisecond) {
		if l, ok := c.links.Machine("ahead"); ok && l.RoundTrip > 0 && (l.Offset-ahead).Abs() < time.Second {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the link says %+v", l)
		}
	}
	if _, err := c.Submit(t.Context(), "", work(t, "a", 400), nil); err != nil {
		t.Fatal(err)
	}
	units := map[string]int64{}
	var late []string // a busy machine may be late now and then
	j := c.becomes("a", finished)
	for _, s := range j.History {
		owner, _, _ := strings.Cut(string(s.Slice), "/")
		units[owner] += s.Committed.Len()
		if s.Outcome == job.NodeFailed.String() {
			late = append(late, fmt.Sprintf("subjob %v on %s: %s", s.Token, s.Slice, s.Detail))
		}
	}
	if len(late) > 2 {
		t.Error(late)
	}
	if units["ahead"] < 100 || units["ahead"]+units["right"] != 400 {
		t.Errorf("units by machine: %v", units)
	}
}

// TestHeadAndMachinesMayDie: the head, the machines' daemons, the machines and the links between them end and come back while jobs run;
// each unit counts once, as the executors were told, who know nothing of the head.
func TestHeadAndMachinesMayDie(t *testing.T) {
	c := newCluster(t)
	machines := []*joined{c.takeIn("m1", 2), c.takeIn("m2", 1), c.takeIn("m3", 1)}
	const units = 400
	names := []job.ID{"a", "b", "c"}
	for _, name := range names {
		if _, err := c.Submit(t.Context(), "", work(t, name, units), nil); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		// A strike falls while somebody works.
		for end := time.Now().Add(clusterPatience); time.Now().Before(end) && c.runningNow() == 0; time.Sleep(time.Millisecond) {
			continue
		}
		switch m := machines[r.IntN(len(machines))]; r.IntN(5) {
		case 0:
			c.stop()
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
			c.begin()
		case 1:
			m.again(c)
		case 2:
			c.links.Expel(m.o.Machine, errors.New("the test cuts its link"))
		case 3: // the machine loses its power
			m.stop()
			m.executor.PowerCut()
			m.begin(c)
		case 4: // both at once
			m.stop()
			c.stop()
			c.begin()
			m.begin(c)
		}
	}
	for _, name := range names {
		c.becomes(name, finished)
		at := int64(0)
		for _, r := range settled(name, machines) {
			if r.From != at {
				t.Errorf("job %s: units %d to %d counted twice, or never: %v", name, at, r.From, settled(name, machines))
			}
			at = r.To
		}
		if at != units {
			t.Errorf("job %s: %d of %d units counted: %v", name, at, units, settled(name, machines))
		}
	}
}

// runningNow is how many subjobs run, as the head sees it.
func (c *cluster) runningNow() (n int) {
	page, err := c.Jobs(c.t.Context(), status.JobQuery{})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range page.Jobs {
		n += page.Jobs[i].Running
	}
	return n
}

// TestOpenAndOpenMemberTakeWhatTheyAreFor.
func TestOpenAndOpenMemberTakeWhatTheyAreFor(t *testing.T) {
	r := newRig(t)
	whole := r.actors
	r.actors = func() actor.Set { return actor.Set{Nodes: whole().Nodes} }
	if _, err := r.open(); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a host of nodes alone opens as one with a gate: %v", err)
	}
	o := Options{DataDir: r.dir, Machine: "n", Actors: whole, Inventory: fixed{}, Journal: journals,
		Executor: func(Env) (executor.Executor, Files, error) { return r.executor, nil, nil }}
	if _, err := OpenMember(t.Context(), o); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a host with a gate opens as a member: %v", err)
	}
}
