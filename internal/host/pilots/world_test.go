package pilots

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/fake"
)

var t0 = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

// fataler is what a testing.T and a rapid.T share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// crashed is what a daemon panics with that dies.
type crashed struct{}

// cluster is the machines of a test.
type cluster struct {
	world    *world
	open     map[job.NodeID]time.Time // tokens that nobody has used, and when they lapse
	all      map[job.NodeID]Machine
	told     map[job.NodeID]time.Time // ends by which machines were closed
	closings map[job.NodeID]pilot.Closing
	deaf     map[job.NodeID]bool // machines that never answer
}

func (c *cluster) Token(name job.NodeID, within time.Duration) (string, error) {
	c.world.point()
	c.open[name] = c.world.now.Add(within)
	c.world.point()
	return "token of " + string(name), nil
}

func (c *cluster) Withdraw(name job.NodeID) error {
	c.world.point()
	delete(c.open, name)
	c.world.point()
	return nil
}

func (c *cluster) Machine(name job.NodeID) (Machine, bool) {
	m, ok := c.all[name]
	return m, ok
}

func (c *cluster) Close(ctx context.Context, name job.NodeID, x pilot.Closing) error {
	c.world.point()
	if c.deaf[name] {
		<-ctx.Done()
		return ctx.Err()
	}
	until := moment(x.Until)
	c.told[name], c.closings[name] = until, x
	m := c.all[name]
	m.Until = until
	c.all[name] = m
	return nil
}

// join has the machine of a running pilot join, if its token is good.
func (c *cluster) join(name string) bool {
	if at, ok := c.open[job.NodeID(name)]; !ok || c.world.now.After(at) {
		return false
	}
	delete(c.open, job.NodeID(name))
	c.all[job.NodeID(name)] = Machine{Joined: c.world.now, Up: true, Until: c.world.now.Add(10 * time.Minute)}
	return true
}

// leave takes a machine out of the cluster.
func (c *cluster) leave(name string) {
	if m, ok := c.all[job.NodeID(name)]; ok && m.Left.IsZero() {
		m.Up, m.Left = false, c.world.now
		c.all[job.NodeID(name)] = m
	}
}

// world is a head with one pool, and its host.
type world struct {
	t       fataler
	dir     string
	now     time.Time
	host    *fake.Host
	cluster *cluster
	pool    supply.Pool
	ledger  *Ledger
	driver  *Driver
	sights  []*supply.Sight
	// drawn counts the names, which are the same in each run.
	drawn int
	// until is how many points are passed until the daemon dies; negative: it does not.
	until int
	// late: the host takes what is submitted only after a while, and its answer is lost.
	late   bool
	flying []flight
}

// flight is a submission on its way.
type flight struct {
	pilot provider.Pilot
	lands time.Time
}

func newWorld(t fataler, dir string) *world {
	w := &world{t: t, dir: dir, now: t0, until: -1, pool: supply.Pool{Name: "pool", Most: 4, Lengths: []time.Duration{10 * time.Minute,
		time.Hour}, Step: time.Minute, Idle: time.Minute, Start: 30 * time.Second, HandOver: 10 * time.Second,
		Slices: []supply.Slice{{Capacity: trp.Vector{trp.Memory: 1 << 30}, Speed: 1000}}}}
	w.host = fake.New(func() time.Time { return w.now })
	w.cluster = &cluster{w, map[job.NodeID]time.Time{}, map[job.NodeID]Machine{}, map[job.NodeID]time.Time{},
		map[job.NodeID]pilot.Closing{}, nil}
	w.start()
	return w
}

// start begins the daemon anew.
func (w *world) start() {
	w.t.Helper()
	var err error
	if w.ledger, err = OpenLedger(w.dir); err != nil {
		w.t.Fatalf("%v", err)
	}
	w.until = -1
	w.driver, err = New(Options{Pool: w.pool, Provider: &wire{w.host.Provider("mark0001"), w}, Kind: "fake", Ledger: w.ledger,
		Machines: w.cluster, Head: "head:7118", Now: func() time.Time { return w.now },
		Send: func(s *supply.Sight) { w.sights = append(w.sights, s) }})
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.driver.part = func() string {
		w.drawn++
		return fmt.Sprintf("p%07d", w.drawn)
	}
}

// point is where the daemon may die.
func (w *world) point() {
	if w.until == 0 {
		w.until = -1
		panic(crashed{})
	}
	w.until--
}

// alive runs f, and reports whether the daemon lives on. One that dies begins anew.
func (w *world) alive(f func()) (lives bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crashed); !ok {
				panic(r)
			}
			w.start()
		}
	}()
	f()
	return true
}

// wire is a provider on whose calls the daemon may die.
type wire struct {
	provider.Provider
	world *world
}

func (p *wire) Look(ctx context.Context) (provider.Look, error) {
	p.world.point()
	return p.Provider.Look(ctx)
}

func (p *wire) Submit(ctx context.Context, x provider.Pilot) error {
	p.world.point()
	if p.world.late {
		p.world.flying = append(p.world.flying, flight{x, p.world.now.Add(time.Minute)})
		return errkind.Errorf(errkind.Unavailable, "the answer was lost")
	}
	err := p.Provider.Submit(ctx, x)
	p.world.point()
	return err
}

func (p *wire) Cancel(ctx context.Context, names []string) error {
	p.world.point()
	err := p.Provider.Cancel(ctx, names)
	p.world.point()
	return err
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.host.Step()
	w.flying = slices.DeleteFunc(w.flying, func(f flight) bool {
		if f.lands.After(w.now) {
			return false
		}
		_ = w.host.Provider("mark0001").Submit(context.Background(), f.pilot) // a host that does not answer has lost it
		return true
	})
}

// sight is the newest.
func (w *world) sight() *supply.Sight { return w.sights[len(w.sights)-1] }

// tick looks once.
func (w *world) tick() *supply.Sight {
	w.t.Helper()
	w.driver.Tick(context.Background())
	return w.sight()
}

// order answers the newest sight, and has that obeyed.
func (w *world) order(o supply.Order) bool {
	o.Pool, o.Number = w.pool.Name, w.sight().Number
	w.driver.Ordered(&o)
	return w.driver.Obey(context.Background())
}

// ask has one pilot asked for, and returns its name.
func (w *world) ask() string {
	w.t.Helper()
	before := w.ledger.Names(w.pool.Name)
	w.tick()
	w.order(supply.Order{Ask: []time.Duration{10 * time.Minute}})
	for _, name := range w.ledger.Names(w.pool.Name) {
		if !slices.Contains(before, name) {
			return name
		}
	}
	w.t.Fatalf("nothing was asked for: %v", w.ledger.Names(w.pool.Name))
	return ""
}

// runs brings a pilot to where its machine has joined.
func (w *world) runs() string {
	w.t.Helper()
	name := w.ask()
	w.host.Start(name)
	if w.tick(); !w.cluster.join(name) {
		w.t.Fatalf("%s has no token", name)
	}
	w.tick()
	return name
}

// pilot is how the newest sight has one.
func (w *world) pilot(name string) supply.Pilot {
	for _, p := range w.sight().Pilots {
		if p.Name == name {
			return p
		}
	}
	return supply.Pilot{}
}

// ending is how the newest sight says that one has ended.
func (w *world) ending(name string) supply.Ending {
	for _, e := range w.sight().Endings {
		if e.Name == name {
			return e
		}
	}
	return supply.Ending{}
}

// atHost are the names of what waits or runs at the host, or is on its way there.
func (w *world) atHost() []string {
	is := map[string]bool{}
	for _, p := range w.host.Pilots() {
		is[p.Name] = true
	}
	for _, f := range w.flying {
		is[f.pilot.Name] = true
	}
	return slices.Sorted(maps.Keys(is))
}

// recorded are the names in the ledger's file.
func (w *world) recorded() []string {
	w.t.Helper()
	l, err := OpenLedger(w.dir)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return l.Names(w.pool.Name)
}

func testWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, t.TempDir())
}

// looks ticks so often, with so long between.
func (w *world) looks(n int, every time.Duration) {
	w.t.Helper()
	for range n {
		w.pass(every)
		w.tick()
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
