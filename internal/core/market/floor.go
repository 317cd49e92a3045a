package market

import (
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
	"sluice.dev/sluice/internal/core/status"
)

// FloorConfig is how a floor works.
type FloorConfig struct {
	// Self is in whose name agents are spoken to.
	Self protocol.Address
	// Policy orders jobs: who is asked first, and without Market who wins.
	Policy policy.Policy
	// Market has jobs bid with variants (mechanism jasda); nil: they signal interest (mechanism sja).
	Market *Config
	// Horizon is how far a gap without a known end is offered, MinWindow the shortest gap that is offered at all.
	Horizon, MinWindow time.Duration
	// Starvation is when a job has waited too long, and what it may then be given before others.
	Starvation starvation.Limit
	// Retry is the first pause after which an agent that won nothing is called again, and the first rest of a job that declined.
	Retry time.Duration
	// Close is how long a round waits for agents that have not answered.
	Close time.Duration
}

// Floor is where windows are offered, asked for and cleared. It is a part of an actor: deterministic, without clock or transport,
// and not safe for concurrent use. All that it keeps is soft. It looks only at what it is told has changed: at jobs (Changed,
// InvalidateJob), at slices (InvalidateSlice), and at windows that open and close with time (Turning).
type Floor struct {
	cfg FloorConfig
	// indexer is the policy if it has an index, else nil.
	indexer policy.Indexer
	sale    Sale

	// jobs that may be sold something, in no order.
	jobs []*Job
	// slices by capacity, then id; unsorted if a capacity has changed since.
	slices   []*Slice
	unsorted bool
	// dirty are the slices whose unsold time changed, open those with a window that has begun.
	dirty, open bitset.Set
	// turn are the slices whose windows are offered in this step, eligible room for those of open that are not quiet.
	turn, eligible bitset.Set
	// opens and closes are when the next window of a slice opens, and when one becomes too short.
	opens, closes alarm.Heap[*Slice]
	// turning is room for a list of slices, spare for one of windows.
	turning []*Slice
	spare   []window
	// Scratch buffers of a pass.
	unusable []unusable
	tells    []int

	classes []*Class
	// speeds of the classes, the highest first.
	speeds []int64
	// everybody is the one group of a policy that does not look at queues; groups are those of all queues, by name, and in order.
	everybody *group
	byQueue   map[string]*group
	groups    []*group
	// stale are the jobs whose entries in the index are to be made again, unindexed those that are asked each time.
	stale     dirty.Set[*Job]
	unindexed []*Job
	// entering and joining are room for jobs that are about to enter the rankings and those that wait, examined for an entry.
	entering, joining []*Job
	examined          entry
	alike             alike
	// waits are by class the ranked jobs by how long they have waited, where jobs bid, but for those in ahead, which have been served
	// before their time. invitation counts the audiences that were chosen.
	waits      []ranking.List[*Job]
	ahead      []*Job
	invitation uint64
	// book has the quotes that are kept, tills what is read of queues, by name; sittings are counted.
	book    book
	tills   map[string]*till
	sitting uint64
	// generation counts the changes that can make a job eligible; fresh are the jobs that changed after the generation seen: windows
	// that stand are offered to them alone.
	generation, seen uint64
	fresh            dirty.Set[*Job]
	skipped          skipped
	asked            asked

	nextWindow, nextRound uint64
	// rounds are open: they wait for agents. In order of their ids.
	rounds []*round
	// attending are how many external jobs have an agent; recalls when one that won nothing is called again.
	attending int
	recalls   alarm.Heap[*Job]
	// resting are the jobs that declined, calling who is told of windows in this pass (mechanism sja).
	resting alarm.Heap[*Job]
	calling calling
	stats   status.Negotiation

	lateness
	scratch
	// plain does what is done by definition; nil but in tests.
	plain *plain
}

// NewFloor makes an empty floor.
func NewFloor(cfg FloorConfig, sale Sale) *Floor {
	if cfg.Market != nil {
		m := cfg.Market.Under(cfg.Policy)
		cfg.Market = &m
	}
	indexer, _ := cfg.Policy.(policy.Indexer)
	if cfg.Market != nil && cfg.Market.Starve != 0 {
		cfg.Starvation.After = cfg.Market.Starve
	}
	cfg.Starvation = cfg.Starvation.WithDefaults()
	f := &Floor{cfg: cfg, indexer: indexer, sale: sale, byQueue: map[string]*group{}, tills: map[string]*till{}}
	f.budget.SetShare(cfg.Starvation.Share)
	f.heeded = Nobody()
	return f
}

// Sell offers every window that has begun, to every job that is eligible or to those that have changed since, and asks for what is
// won. Waiting is how many jobs run nowhere. It returns when to look again.
func (f *Floor) Sell(now quantity.Instant, waiting int, out *protocol.Out) quantity.Instant {
	f.budget.Fill(now)
	if f.plain != nil {
		return f.plain.sell(now, waiting, out)
	}
	f.recall(now)
	f.wakeDecliners(now)
	f.refreshIndex(now)
	f.turn, f.dirty = f.dirty, f.turn
	for i := f.turn.Next(0); i >= 0; i = f.turn.Next(i + 1) {
		s := f.slices[i]
		f.announce(s, now)
		if s.stands = s.standing(now); s.stands {
			f.open.Put(i)
		} else {
			f.open.Drop(i)
		}
	}
	if f.cfg.Market == nil {
		f.concludeSignals(now, out)
		f.refreshIndex(now)
		f.beginCalls(now)
	}
	news := f.generation != f.seen
	if news {
		f.stir()
	}
	wake := quantity.Never
	if f.cfg.Market != nil {
		wake = f.negotiate(now, waiting, news, out)
	} else if f.Uncontended(waiting) {
		// With as many windows as jobs to fill them the fast slices go first: nobody is to crawl on a small one while they stand
		// idle. Otherwise the small ones do, so that small pieces go to small slices and the large are left to others.
		for _, speed := range f.speeds {
			f.offerTurn(now, speed, news, out)
		}
	} else {
		f.offerTurn(now, anySpeed, news, out)
	}
	if f.cfg.Market == nil {
		f.endCalls(now, out)
		wake = f.nextClose()
	}
	f.fresh.Clear()
	f.seen = f.generation
	return min(wake, f.opens.Next(), f.recalls.Next(), f.resting.Next())
}

// anySpeed stands for slices of every speed.
const anySpeed = -1

// Uncontended says whether there is a window that has begun for every job that runs nowhere.
func (f *Floor) Uncontended(waiting int) bool { return waiting <= f.open.Len() }

// Open is how many slices have a window that has begun.
func (f *Floor) Open() int { return f.open.Len() }

// Turning are the slices on which a window opens now or becomes too short. They are good until the next call.
func (f *Floor) Turning(now quantity.Instant) []*Slice {
	f.turning = f.turning[:0]
	for _, a := range []*alarm.Heap[*Slice]{&f.opens, &f.closes} {
		for {
			s, ok := a.Due(now)
			if !ok {
				break
			}
			f.turning = append(f.turning, s)
		}
	}
	return f.turning
}

// Stats is what the market has done since it came up. Of one that does not negotiate: with agents, and declines.
func (f *Floor) Stats() status.Negotiation { return f.stats }
