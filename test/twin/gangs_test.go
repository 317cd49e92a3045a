package twin_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// troupes offers gangs of up to ten slices on nodes of four, beside items jobs.
type troupes struct {
	n, of int64
	at    quantity.Instant
	seed  uint64
	gap   time.Duration
	// across: half of the gangs may lie in several zones, and most of these must.
	across bool
}

func (o *troupes) Next(j *workload.Job) (bool, error) {
	if o.n == o.of {
		return false, nil
	}
	draw := prng.New(o.seed, 78, uint64(o.n))
	o.at = o.at.Add(time.Duration(draw.Exp() * float64(o.gap)))
	*j = workload.Job{
		Number: o.n, Queue: gate.DefaultQueue, Submit: o.at, Kind: job.Rigid, Slices: 2 + draw.IntN(9), Topology: job.Level(draw.IntN(4)),
		Units: 1, Grid: 1, Parallelism: 1, Theta: 10_000, Work: time.Minute + time.Duration(draw.IntN(600))*time.Second,
	}
	if most := [...]int{4, 8, 8, 10}[j.Topology]; j.Slices > most {
		j.Slices = most
	}
	if o.across && draw.IntN(2) == 0 {
		j.Slices, j.Topology = 7+draw.IntN(12), job.SameCluster
	} else if o.across {
		j.Slices = min(j.Slices, 8)
	}
	j.Declared = j.Work + time.Minute
	if draw.IntN(3) == 0 {
		j.Kind, j.Slices, j.Topology, j.Units, j.Parallelism, j.Declared = job.Items, 1, 0, 100, 4, j.Work
	}
	j.Speeds = []job.SpeedOn{{Profile: "small", Permille: 400}, {Profile: "middle", Permille: 800}, {Profile: "large", Permille: 1000}}
	j.Profile = trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: j.Units, Mean: 2 << 30}}}
	j.Memory = workload.Memory{Seed: draw.Uint64(), Phases: j.Profile.Phases}
	o.n++
	return true, nil
}

// cast judges gangs by their facts: the members of a claim are on the slices that it says, one claim of a job stands at a time, no claim
// is settled while a member of it can still run, and one is committed only if all of them were done.
type cast struct {
	t      failer
	claims map[job.Token]*protocol.Sale
	of     map[job.Token]job.Token // the claim of each member
	ended  map[job.Token]*job.Result
	ends   map[job.Token]quantity.Instant // leases that stand
	racks  map[job.NodeID]string
	// alone is the longest that a member of a claim ran while another had not begun, or had ended otherwise than done.
	short  map[job.Token]quantity.Instant // since when that is so of a claim
	began  map[job.Token]map[job.Token]bool
	alone  time.Duration
	wide   map[job.Level]int
	undone int
	// zones of the nodes, where there are several.
	zones map[job.NodeID]job.ZoneID
}

func (c *cast) fact(now quantity.Instant, f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		sale := f.Body.(*protocol.Sale)
		if len(sale.Members) == 0 {
			return
		}
		n, last := 0, job.NodeID("")
		for _, m := range sale.Members {
			if n += m.Slices; m.Node <= last {
				c.t.Errorf("claim %v of %s: node %s comes after %s", f.Token, f.Job, m.Node, last)
			}
			last = m.Node
			c.of[m.Token] = f.Token
		}
		if n != 1+len(sale.Also) || sale.Members[0].Token != f.Token {
			c.t.Errorf("claim %v of %s has %d slices, its members %d: %v", f.Token, f.Job, 1+len(sale.Also), n, sale.Members)
		}
		level := job.SameRack
		for _, m := range sale.Members {
			if c.racks[m.Node] != c.racks[sale.Members[0].Node] {
				level = max(level, job.SameZone)
			}
			if c.zones[m.Node] != c.zones[sale.Members[0].Node] {
				level = job.SameCluster
			}
		}
		c.wide[level]++
		c.began[f.Token] = map[job.Token]bool{}
		c.claims[f.Token] = sale
	case protocol.LeaseMade:
		claim := c.claims[c.of[f.Token]]
		if claim == nil {
			return
		}
		i := protocol.MemberOf(claim.Members, f.Token)
		first, also := protocol.Part(claim.Slice, claim.Also, claim.Members, i)
		t := f.Body.(*protocol.Terms)
		if first != t.Slice || !slices.Equal(also, t.Also) || t.Plan.Member != i || t.Plan.Members != len(claim.Members) ||
			f.Actor.ID != string(claim.Members[i].Node) {
			c.t.Errorf("member %d of %v has %s and %v of %s as %d of %d, and was sold %s and %v", i, c.of[f.Token], t.Slice, t.Also,
				f.Actor.ID, t.Plan.Member, t.Plan.Members, first, also)
		}
		c.ends[f.Token] = t.End
	case protocol.SubjobStarted:
		if of, is := c.of[f.Token]; is {
			c.measure(now, of)
			c.began[of][f.Token] = true
			c.measure(now, of)
		}
	case protocol.Truncated:
		c.ends[f.Token] = f.Body.(*protocol.Truncation).End
	case protocol.SubjobEnded:
		delete(c.ends, f.Token)
		of, is := c.of[f.Token]
		if !is {
			return
		}
		c.ended[f.Token] = f.Body.(*protocol.SubjobEnd).Result
		c.measure(now, of)
		if c.ended[f.Token].Outcome != job.Done {
			c.began[of][f.Token] = false
		}
		c.measure(now, of)
	case protocol.Committed, protocol.Released:
		claim := c.claims[f.Token]
		if claim == nil {
			return
		}
		delete(c.claims, f.Token)
		for _, m := range claim.Members {
			if end, stands := c.ends[m.Token]; stands && end > now {
				c.t.Errorf("claim %v of %s is settled (%d, %q) at %d while a member may run to %d", f.Token, f.Job, f.Kind,
					f.Body.(*protocol.ClaimEnd).Text, now,
					end)
			}
			if r := c.ended[m.Token]; f.Kind == protocol.Committed && (r == nil || r.Outcome != job.Done) {
				c.t.Errorf("claim %v of %s is committed, and member %v ended %+v", f.Token, f.Job, m, r)
			}
		}
		if f.Kind == protocol.Released {
			c.undone++
		}
	}
}

// measure takes in for how long some members of a claim have run without the others.
func (c *cast) measure(now quantity.Instant, of job.Token) {
	if since, was := c.short[of]; was {
		c.alone = max(c.alone, now.Sub(since))
		delete(c.short, of)
	}
	claim := c.claims[of]
	if claim == nil {
		return
	}
	runs, all := false, true
	for _, m := range claim.Members {
		_, stands := c.ends[m.Token]
		runs = runs || c.began[of][m.Token] && stands
		all = all && c.began[of][m.Token]
	}
	if runs && !all {
		c.short[of] = now
	}
}

// playGangs plays a world of gangs on six nodes in three racks until all is over.
func playGangs(t failer, seed uint64, network sim.Network, faults sim.Faults, jobs int, rigid string, also func(*park)) (*cast, *witness) {
	t.Helper()
	way, err := backfill.Named(rigid)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p := park{nodes: 6, jobs: jobs, seed: seed, network: network, faults: faults, gap: 2 * time.Minute, rigid: way}
	c := &cast{
		t: t, claims: map[job.Token]*protocol.Sale{}, of: map[job.Token]job.Token{}, ended: map[job.Token]*job.Result{},
		ends:  map[job.Token]quantity.Instant{},
		racks: map[job.NodeID]string{}, zones: map[job.NodeID]job.ZoneID{}, short: map[job.Token]quantity.Instant{},
		began: map[job.Token]map[job.Token]bool{}, wide: map[job.Level]int{},
	}
	p.also = func(o *sim.Options) {
		o.Source = &troupes{of: int64(jobs), at: parkStart.Add(time.Minute), seed: seed, gap: p.gap, across: p.zones > 1}
		for i := range o.Nodes {
			n := &o.Nodes[i]
			rack := i / 2
			if p.zones > 1 {
				rack = i % p.zones // a rack is of one zone
			}
			c.racks[n.ID], c.zones[n.ID] = fmt.Sprint("r", rack), zoneOf(i%max(1, p.zones), p.zones)
			for k := range n.Slices {
				n.Slices[k].Rack, n.Slices[k].Block = c.racks[n.ID], fmt.Sprint("b", rack/2)
			}
		}
	}
	if also != nil {
		also(&p)
	}
	w, judge := p.playWith(t, 14*24*time.Hour, c.fact)
	if len(judge.leases) > 0 || len(c.claims) > 0 {
		t.Errorf("seed %d: %d leases and %d claims of gangs stand at the end", seed, len(judge.leases), len(c.claims))
	}
	return c, w
}

// TestGangsOverNodes: where nothing goes wrong every gang runs once, whole, on as little as it allows.
func TestGangsOverNodes(t *testing.T) {
	for _, rigid := range []string{"gangs", "easy", "fcfs", "conservative", "skip"} {
		c, w := playGangs(t, 1, sim.Network{ZoneNode: sim.Link{Delay: 3 * time.Millisecond}}, sim.Faults{}, 40, rigid, nil)
		if w.done[job.Finished] != 40 || c.undone > 0 || c.alone > 20*time.Millisecond || c.wide[job.SameRack] == 0 ||
			c.wide[job.SameZone] == 0 {
			t.Errorf("%s: jobs ended %v, %d gangs came to nothing, spread %v", rigid, w.done, c.undone, c.wide)
		}
	}
}

// TestGangsUnderFaults: whatever goes wrong no member runs when its gang is over, nothing is committed that a member did not do, and all
// drains.
func TestGangsUnderFaults(t *testing.T) {
	every := func(k sim.FaultKind, every, length time.Duration) sim.Rate {
		return sim.Rate{Fault: sim.Fault{Kind: k, For: length, Offset: 2 * time.Second}, Every: every}
	}
	kept := every(sim.NodeCrash, 20*time.Minute, 30*time.Second)
	kept.Keep = true
	zoneDies := every(sim.ZoneCrash, 2*time.Minute, time.Second)
	for name, c := range map[string]struct {
		network sim.Network
		faults  sim.Faults
		alone   time.Duration // the longest that members may run without the others; 0: as long as their node is away
	}{
		"rough network":          {network: roughNetwork(), alone: 10 * time.Second},
		"nodes crash":            {faults: sim.Faults{Random: []sim.Rate{every(sim.NodeCrash, time.Hour, time.Minute)}}},
		"nodes crash, work kept": {faults: sim.Faults{Random: []sim.Rate{kept}}},
		"the home crashes":       {network: roughNetwork(), faults: sim.Faults{Random: []sim.Rate{zoneDies}}, alone: 30 * time.Second},
		"the daemon crashes":     {faults: sim.Faults{Random: []sim.Rate{every(sim.DaemonCrash, 10*time.Minute, 5*time.Second)}}},
		"partitions, clocks, all": {network: roughNetwork(), faults: sim.Faults{Offset: time.Second, Drift: 100,
			Random: []sim.Rate{kept, zoneDies, every(sim.Partition, time.Hour, time.Minute),
				every(sim.NodeCrash, 2*time.Hour, time.Minute)}}},
	} {
		t.Run(name, func(t *testing.T) {
			undone := 0
			for seed := range uint64(3) {
				got, w := playGangs(t, seed, c.network, c.faults, 30, []string{"gangs", "easy", "conservative"}[seed], func(p *park) {
					if seed == 1 {
						p.archive, p.retain = &filing.Config{Keep: time.Minute, Most: 4}, 1000*time.Hour
					}
				})
				if undone += got.undone; c.alone > 0 && got.alone > c.alone {
					t.Errorf("seed %d: members ran %v without the others", seed, got.alone)
				}
				if w.done[job.Finished] != 30 {
					t.Errorf("seed %d: jobs ended %v, runs %v", seed, w.done, w.outcomes)
				}
			}
			t.Logf("%d gangs came to nothing and were placed again", undone)
		})
	}
}
