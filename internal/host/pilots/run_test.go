package pilots

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/fake"
)

// Run looks often while something is there, and seldom while nothing is; it looks before it asks.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, c := fake.New(time.Now), &calls{}
		l, err := OpenLedger(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		w := &world{until: -1, now: time.Now()}
		w.cluster = &cluster{w, map[job.NodeID]time.Time{}, map[job.NodeID]Machine{}, map[job.NodeID]time.Time{},
			map[job.NodeID]pilot.Closing{}, nil}
		pool := newWorld(t, t.TempDir()).pool
		var d *Driver
		demand, holds := 0, 30*time.Second
		var mu sync.Mutex
		d, err = New(Options{Pool: pool, Provider: counted{host.Provider("mark0001"), c}, Ledger: l, Machines: w.cluster, Head: "h:1",
			Now: time.Now, Send: func(s *supply.Sight) {
				mu.Lock()
				defer mu.Unlock()
				o := &supply.Order{Pool: s.Pool.Name, Number: s.Number, Next: quantity.At(time.Now().Add(holds))}
				for range demand - len(s.Pilots) {
					o.Ask = append(o.Ask, time.Hour)
				}
				if demand == 0 {
					for _, p := range s.Pilots {
						o.Cancel = append(o.Cancel, supply.Cancel{Name: p.Name, Why: "nothing is left"})
					}
				}
				d.Ordered(o)
			}})
		if err != nil {
			t.Fatal(err)
		}
		want := func(n int) { mu.Lock(); demand = n; mu.Unlock() }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { d.Run(ctx); close(done) }()
		time.Sleep(10 * time.Minute)
		if n := c.looks(); n < 15 || n > 25 {
			t.Errorf("%d looks in ten minutes of nothing, want one in half a minute", n)
		}
		mu.Lock()
		holds = time.Second // a job waits for a gap
		mu.Unlock()
		time.Sleep(30 * time.Second)
		c.looks()
		time.Sleep(time.Minute)
		if n := c.looks(); n < 11 || n > 13 {
			t.Errorf("%d looks in a minute while a job waits for a gap, want one in 5 s", n)
		}
		want(3)
		time.Sleep(8 * time.Second)
		if n := len(host.Pilots()); n != 3 {
			t.Errorf("%d pilots 8 s after they are wanted", n)
		}
		c.looks()
		time.Sleep(time.Minute)
		if n := c.looks(); n < 11 || n > 13 {
			t.Errorf("%d looks in a minute with pilots, want one in 5 s", n)
		}
		want(0)
		time.Sleep(20 * time.Second)
		if n := len(host.Pilots()); n != 0 || len(l.Names("pool")) != 0 {
			t.Errorf("%d pilots are left, %v in the ledger", n, l.Names("pool"))
		}
		stop()
		<-done
	})
}

// People look and pause while a driver runs; what they share is guarded (the race detector sees it).
func TestPeopleBesideARunningDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := OpenLedger(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		w := &world{until: -1, now: time.Now()}
		w.cluster = &cluster{w, map[job.NodeID]time.Time{}, map[job.NodeID]Machine{}, map[job.NodeID]time.Time{},
			map[job.NodeID]pilot.Closing{}, nil}
		host := fake.New(time.Now)
		var d *Driver
		var mu sync.Mutex
		named := map[string]bool{}
		d, err = New(Options{Pool: newWorld(t, t.TempDir()).pool, Provider: host.Provider("mark0001"), Ledger: l, Machines: w.cluster,
			Head: "h:1", Now: time.Now, Send: func(s *supply.Sight) {
				o := &supply.Order{Pool: s.Pool.Name, Number: s.Number, Ask: []time.Duration{time.Hour}}
				mu.Lock()
				defer mu.Unlock()
				for _, p := range s.Pilots {
					named[p.Name] = true
					o.Idle = append(o.Idle, p.Name)
				}
				d.Ordered(o)
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { d.Run(ctx) })
		shown := 0
		all.Go(func() {
			for ctx.Err() == nil {
				shown = max(shown, len(d.Show().Pilots))
				_ = d.Why()
				time.Sleep(time.Second)
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := d.Try(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if err := errors.Join(d.Pause("ada", ""), d.Resume()); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Second)
			}
		})
		time.Sleep(5 * time.Minute)
		stop()
		all.Wait()
		if mu.Lock(); len(named) == 0 || shown == 0 {
			t.Errorf("%d pilots were asked for, and people saw %d: the test tests nothing", len(named), shown)
		}
		mu.Unlock()
	})
}

// calls counts looks.
type calls struct {
	mu sync.Mutex
	n  int
}

// looks since the last time.
func (c *calls) looks() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, c.n = c.n, 0
	return n
}

type counted struct {
	provider.Provider
	calls *calls
}

func (p counted) Look(ctx context.Context) (provider.Look, error) {
	p.calls.mu.Lock()
	p.calls.n++
	p.calls.mu.Unlock()
	return p.Provider.Look(ctx)
}
