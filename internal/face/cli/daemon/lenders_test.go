package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/fake"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/host/pilots"
)

func lentBy(name string) config.Provider {
	return config.Provider{Kind: "fake", Pool: supply.Pool{Name: name, Most: 2, Lengths: []time.Duration{time.Hour}, Step: time.Minute,
		Slices: []supply.Slice{{Capacity: trp.Vector{trp.Memory: 8 << 30}, Speed: 1000}}}}
}

// borrower are the options of a head with providers of kind fake, which tell their marks.
func borrower(t *testing.T, marks *[]string, pools ...string) (*Options, string) {
	t.Helper()
	o := &Options{Cluster: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)}
	o.Providers = func(mark string, p *config.Provider) (provider.Provider, error) {
		if p.Kind != "fake" {
			return nil, errkind.Errorf(errkind.Invalid, "partition %q is not there", p.Partition)
		}
		if marks != nil {
			*marks = append(*marks, mark)
		}
		return fake.New(time.Now).Provider(mark), nil
	}
	for _, name := range pools {
		o.File.Providers = append(o.File.Providers, lentBy(name))
	}
	return o, t.TempDir()
}

func opened(t *testing.T, o *Options, data string) *head {
	t.Helper()
	c, err := openHead(o, data, []job.NodeID{"head"}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.close() })
	return c
}

// A head opens each provider with the mark of its cluster, and answers for all of them.
func TestLenders(t *testing.T) {
	var marks []string
	o, data := borrower(t, &marks, "days", "nights")
	c := opened(t, o, data)
	l := c.lenders
	if len(marks) != 2 || marks[0] != c.authority.ID() || marks[1] != marks[0] {
		t.Errorf("marks %q, the cluster is %s", marks, c.authority.ID())
	}
	list := l.Providers()
	if len(list) != 2 || list[0].Name != "days" || list[1].Name != "nights" || list[0].Kind != "fake" || len(l.Pools()) != 2 {
		t.Errorf("%+v", list)
	}
	if says := strings.Join(c.says(), "\n"); !strings.Contains(says, "provider nights: fake: pilots marked "+marks[0]+"; at most 2") {
		t.Error(says)
	}
	ctx := users.With(t.Context(), &users.Caller{Name: "eve", Role: users.Operator})
	if err := l.PauseProvider(ctx, "nights", "maintenance"); err != nil {
		t.Fatal(err)
	}
	if list = l.Providers(); list[1].Paused != "eve: maintenance" || list[0].Paused != "" {
		t.Errorf("%+v", list)
	}
	if err := l.ResumeProvider(ctx, "nights"); err != nil || l.Providers()[1].Paused != "" {
		t.Errorf("%v", err)
	}
	if try, err := l.TryProvider(ctx, "days"); err != nil || !try.Taken || try.Length != time.Hour {
		t.Errorf("%+v, %v", try, err)
	}
	if _, err := l.TryProvider(ctx, "x"); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "days, nights") {
		t.Errorf("%v", err)
	}
	l.Ordered(&supply.Order{Pool: "x"}) // of a pool that is not there any more
}

// What can't be is refused at the start, with all of it, and the provider's name.
func TestLendersThatCanNotBe(t *testing.T) {
	o, data := borrower(t, nil, "days", "nights")
	o.File.Providers[0].Kind, o.File.Providers[1].Kind = "slurm", "slurm"
	_, err := openHead(o, data, []job.NodeID{"head"}, nil, true)
	if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "provider days: partition") ||
		!strings.Contains(err.Error(), "provider nights: partition") {
		t.Errorf("%v", err)
	}
	o, data = borrower(t, nil, "days")
	if err = os.WriteFile(filepath.Join(data, pilots.FileName), []byte(`{"version": 99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = openHead(o, data, []job.NodeID{"head"}, nil, true); errkind.Of(err) != errkind.Unsupported ||
		!strings.Contains(err.Error(), pilots.FileName) {
		t.Errorf("%v", err)
	}
	o, data = borrower(t, nil)
	joins(t, opened(t, o, data), "days")
	o.File.Providers = append(o.File.Providers, lentBy("days"))
	if _, err = openHead(o, data, []job.NodeID{"head"}, nil, true); errkind.Of(err) != errkind.Exists {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		o    Options
		says string
	}{{Options{}, "--cluster HOST:PORT"}, {Options{Join: true}, "its head's file"}} {
		c.o.Config, c.o.File.Providers = "f.yml", o.File.Providers
		if err = c.o.checkPlace(); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "f.yml: providers") {
			t.Errorf("%v", err)
		}
	}
}

// joins has a machine join.
func joins(t *testing.T, c *head, name job.NodeID) {
	t.Helper()
	text, err := pilotMachines{c.circle}.Token(name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	i, err := authority.ReadInvitation(text)
	if err != nil {
		t.Fatal(err)
	}
	_, request, err := authority.NewKey(name)
	if err == nil {
		_, err = c.authority.Join(i.Secret(), name, request, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The cluster's machines as drivers see them, to their end.
func TestPilotMachines(t *testing.T) {
	o, data := borrower(t, nil)
	c := opened(t, o, data)
	m := pilotMachines{c.circle}
	if _, ok := m.Machine("p"); ok {
		t.Error("nobody has joined")
	}
	joins(t, c, "p")
	is, ok := m.Machine("p")
	if !ok || is.Joined.IsZero() || is.Up || !is.Until.IsZero() || !is.Left.IsZero() {
		t.Errorf("%+v, %v", is, ok)
	}
	if err := c.authority.Remove("p", time.Now()); err != nil {
		t.Fatal(err)
	}
	if is, ok = m.Machine("p"); !ok || is.Left.IsZero() {
		t.Errorf("%+v, %v", is, ok)
	}
	if _, err := m.Token("q", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := m.Withdraw("q"); err != nil {
		t.Fatal(err)
	}
}

// reserver has slices, and notes what is reserved on them.
type reserver struct {
	slices []status.Slice
	made   map[string]protocol.Reservation
	fails  error
}

func (r *reserver) Slices(context.Context) ([]status.Slice, error) { return r.slices, nil }

func (r *reserver) Reserve(_ context.Context, request string, x protocol.Reservation) ([]protocol.Made, error) {
	if r.fails == nil {
		r.made[request] = x
	}
	return nil, r.fails
}

// Of a machine that its host ends early all slices are closed, and what is sold beyond is truncated; of others none is.
func TestWhatAHostEndsIsTakenBack(t *testing.T) {
	on := func(node job.NodeID, id job.SliceID) status.Slice {
		return status.Slice{Slice: protocol.Slice{ID: id}, Node: node}
	}
	now := quantity.At(time.Now())
	r := &reserver{slices: []status.Slice{on("q", "q/0")}}
	if err := takeBack(t.Context(), r, "p", pilot.Closing{}); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("before it has told of its slices: %v", err)
	}
	for _, from := range []quantity.Instant{now.Add(time.Minute), 0} {
		closing := pilot.Closing{From: from, Until: now.Add(2 * time.Minute), Why: "its host ends it then"}
		r := &reserver{slices: []status.Slice{on("p", "p/0"), on("q", "q/0"), on("p", "p/1")}, made: map[string]protocol.Reservation{}}
		for range 2 { // a repeated request is the same one
			if err := takeBack(t.Context(), r, "p", closing); err != nil {
				t.Fatal(err)
			}
		}
		want := map[job.SliceID]bool{"p/0": true, "p/1": true}
		for _, x := range r.made {
			if !want[x.Slice] || x.Kind != protocol.ForReclaim || x.Start != closing.From || x.End != quantity.Never || !x.Truncate ||
				x.Source != "its host ends it then" {
				t.Errorf("from %v: %+v", from, x)
			}
			delete(want, x.Slice)
		}
		if len(r.made) != 2 || len(want) > 0 {
			t.Errorf("from %v: %+v", from, r.made)
		}
		r.fails = errkind.Errorf(errkind.Unavailable, "machine p is away")
		if err := takeBack(t.Context(), r, "p", closing); errkind.Of(err) != errkind.Unavailable {
			t.Errorf("while it is away: %v", err)
		}
	}
}

// Pilots of a pool that is not in the file any more can't join, and stay in the ledger.
func TestOrphans(t *testing.T) {
	o, data := borrower(t, nil, "days")
	c := opened(t, o, data)
	d := c.lenders.drivers[0]
	d.Tick(t.Context())
	d.Ordered(&supply.Order{Pool: "days", Number: 1, Ask: []time.Duration{time.Hour}, Next: quantity.Never})
	d.Obey(t.Context())
	names := c.lenders.ledger.Names("days")
	if len(names) != 1 {
		t.Fatalf("%v", names)
	}
	tokens := func(c *head) bool {
		text, err := os.ReadFile(filepath.Join(data, authorityDir, "members.json"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), names[0])
	}
	if !tokens(c) {
		t.Fatal("the pilot has no token")
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	o.File.Providers = nil
	c = opened(t, o, data)
	c.lenders.run(t.Context())
	if tokens(c) || len(c.lenders.ledger.Names("days")) != 1 {
		t.Errorf("its token is good; in the ledger: %v", c.lenders.ledger.Names("days"))
	}
}
