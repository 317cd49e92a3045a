package twin_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/sim"
)

// kept notes for how long time is reserved for jobs that run, or are over.
type kept struct {
	made    map[keptAt]job.ID
	since   map[job.ID]quantity.Instant
	longest time.Duration
	// across counts what was reserved in another zone than the job's home.
	across int
	homes  map[job.ID]string
	zones  map[string]job.ZoneID
	// up is when nodes and zones last came up: nobody withdraws anything before.
	up     map[string]quantity.Instant
	actors map[protocol.Address]protocol.Actor
}

// stepped notes who has come up.
func (k *kept) stepped(now quantity.Instant, p actor.Party) {
	if k.actors[p.Address] != p.Actor {
		k.actors[p.Address], k.up[p.Address.ID] = p.Actor, now
	}
}

// unused is for how long a reservation at a node has been of no use to its job.
func (k *kept) unused(now quantity.Instant, at keptAt) time.Duration {
	since := k.since[k.made[at]]
	if since == 0 {
		return 0
	}
	return max(0, now.Sub(max(since, k.up[at.node], k.up[string(k.zones[at.node])])))
}

type keptAt struct {
	node string
	id   uint64
}

func (k *kept) fact(now quantity.Instant, f *protocol.Fact) {
	switch f.Kind {
	case protocol.HomeTaken:
		k.homes[f.Job] = f.Actor.ID
	case protocol.Claimed:
		k.since[f.Job] = now
	case protocol.Released:
		delete(k.since, f.Job)
	case protocol.Ended:
		if k.since[f.Job] == 0 {
			k.since[f.Job] = now
		}
	case protocol.ReservationMade:
		r := f.Body.(*protocol.Reservation)
		k.made[keptAt{f.Actor.ID, r.ID}] = r.Job
		if home := k.homes[r.Job]; home != string(k.zones[f.Actor.ID]) {
			k.across++
		}
	case protocol.ReservationGone:
		at := keptAt{f.Actor.ID, f.Body.(*protocol.Reservation).ID}
		k.longest = max(k.longest, k.unused(now, at))
		delete(k.made, at)
	}
}

// left is for how long the reservations that stand at an instant were of no use any more.
func (k *kept) left(now quantity.Instant) (longest time.Duration) {
	for at := range k.made {
		longest = max(longest, k.unused(now, at))
	}
	return longest
}

// playAcross plays gangs of up to 18 slices in three zones of eight until all is over, and notes what is kept for them.
func playAcross(t failer, seed uint64, network sim.Network, faults sim.Faults, jobs int, rigid string, also func(*park)) (*cast, *witness,
	*kept) {
	t.Helper()
	k := &kept{made: map[keptAt]job.ID{}, since: map[job.ID]quantity.Instant{}, homes: map[job.ID]string{}, zones: map[string]job.ZoneID{},
		up: map[string]quantity.Instant{}, actors: map[protocol.Address]protocol.Actor{}}
	last := quantity.Instant(0)
	c, w := playGangs(t, seed, network, faults, jobs, rigid, func(p *park) {
		gangs := p.also
		p.also = func(o *sim.Options) { gangs(o); o.Stepped = k.stepped }
		p.zones, p.across, p.homes = 3, true, &homes{}
		p.heard = func(now quantity.Instant, f *protocol.Fact) { last = now; k.fact(now, f) }
		for i := range p.nodes {
			k.zones[nodeName(i)] = zoneOf(i%p.zones, p.zones)
		}
		if also != nil {
			also(p)
		}
	})
	if n := k.left(last); n > time.Minute {
		t.Errorf("seed %d: time was reserved for %v for a job that ran, or was over", seed, n)
	}
	return c, w, k
}

// TestGangsAcrossZones: where nothing goes wrong gangs that no zone could hold run whole, in as many as they need, whatever the
// discipline, and with tickets.
func TestGangsAcrossZones(t *testing.T) {
	for _, rigid := range []string{"gangs", "easy", "fcfs", "conservative", "skip"} {
		c, w, k := playAcross(t, 1, sim.Network{ZoneNode: sim.Link{Delay: 3 * time.Millisecond}}, sim.Faults{}, 40, rigid, nil)
		if w.done[job.Finished] != 40 || c.undone > 0 || c.alone > 20*time.Millisecond || c.wide[job.SameCluster] < 5 || k.across == 0 ||
			k.longest > 10*time.Second {
			t.Errorf("%s: jobs ended %v, %d gangs came to nothing, spread %v, members alone for %v, kept unused for %v", rigid, w.done,
				c.undone, c.wide, c.alone, k.longest)
		}
	}
	c, w, _ := playAcross(t, 2, sim.Network{ZoneNode: sim.Link{Delay: 3 * time.Millisecond}}, sim.Faults{}, 40, "gangs",
		func(p *park) { p.tickets = true })
	if w.done[job.Finished] != 40 || c.wide[job.SameCluster] < 5 {
		t.Errorf("with tickets: jobs ended %v, spread %v", w.done, c.wide)
	}
}

// TestGangsAcrossZonesUnderFaults: as TestGangsUnderFaults, with zones that die between any two of their words; and what is kept for a
// gang in another zone is not kept for ever.
func TestGangsAcrossZonesUnderFaults(t *testing.T) {
	t.Parallel()
	every := func(k sim.FaultKind, every, length time.Duration) sim.Rate {
		return sim.Rate{Fault: sim.Fault{Kind: k, For: length, Offset: 2 * time.Second}, Every: every}
	}
	zonesDie := every(sim.ZoneCrash, 2*time.Minute, time.Second)
	for name, c := range map[string]struct {
		network sim.Network
		faults  sim.Faults
		tickets bool
		alone   time.Duration
	}{
		"rough network": {network: roughNetwork(), alone: 10 * time.Second},
		"zones crash":   {network: roughNetwork(), faults: sim.Faults{Random: []sim.Rate{zonesDie}}, alone: 30 * time.Second},
		"zones are long away": {faults: sim.Faults{Random: []sim.Rate{every(sim.ZoneCrash, 20*time.Minute, 2*time.Minute)}},
			alone: 3 * time.Minute},
		"nodes crash": {faults: sim.Faults{Random: []sim.Rate{every(sim.NodeCrash, time.Hour, time.Minute)}}},
		"tickets, the same": {network: roughNetwork(), tickets: true,
			faults: sim.Faults{Random: []sim.Rate{zonesDie, every(sim.NodeCrash, time.Hour, time.Minute)}}},
		"partitions, clocks, all": {network: roughNetwork(), faults: sim.Faults{Offset: time.Second, Drift: 100,
			Random: []sim.Rate{zonesDie, every(sim.Partition, time.Hour, time.Minute), every(sim.NodeCrash, 2*time.Hour, time.Minute)}}},
	} {
		t.Run(name, func(t *testing.T) {
			across, undone := 0, 0
			for seed := range uint64(3) {
				got, w, k := playAcross(t, seed, c.network, c.faults, 30, []string{"gangs", "easy", "conservative"}[seed], func(p *park) {
					if p.tickets = c.tickets; c.tickets {
						p.rigid.Gangs = true
					}
					if seed == 1 {
						p.archive, p.retain = &filing.Config{Keep: time.Minute, Most: 4}, 1000*time.Hour
					}
				})
				across, undone = across+got.wide[job.SameCluster], undone+got.undone
				if c.alone > 0 && got.alone > c.alone {
					t.Errorf("seed %d: members ran %v without the others", seed, got.alone)
				}
				if w.done[job.Finished] != 30 {
					t.Errorf("seed %d: jobs ended %v, runs %v", seed, w.done, w.outcomes)
				}
				if k.longest > 90*time.Second {
					t.Errorf("seed %d: a place was kept unused for %v", seed, k.longest)
				}
			}
			if across < 9 {
				t.Errorf("%d gangs lay in several zones: the test shows less than it should", across)
			}
			t.Logf("%d gangs lay in several zones, %d came to nothing and were placed again", across, undone)
		})
	}
}
