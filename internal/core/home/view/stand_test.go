package view

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// stand is a view of a ledger and of a floor with slices, with the other answers made up: nobody sells anything.
type stand struct {
	*View
	ledger *home.Ledger
	*market.Floor
	foresight.Learner

	// open windows, as the floor would count them. places are kept by the planner, reserves whether it would keep one more.
	open     int
	places   map[job.ID]Place
	reserves bool
	// reserved is the one that a node has reserved a slice for; found what a search finds, searches how many there were.
	reserved job.ID
	found    Place
	searches int
	// holder of all slices, until when it holds them.
	holder job.ID
	holds  quantity.Instant
	// reservations of all slices, as their node told.
	reservations []protocol.Reservation
	// ends is where the gaps of its slices end; 0: nowhere.
	ends quantity.Instant
	// counts are why nobody was served, told what everybody was told of a wait.
	counts explain.Counts
	told   foresight.Told
}

const now = quantity.Instant(1e12)

// newStand has slices of so many MiB, each free from an instant on; broken ones are free from quantity.Never.
func newStand(c Config, mib []int64, from ...quantity.Instant) *stand {
	s := &stand{places: map[job.ID]Place{}}
	s.Floor = market.NewFloor(market.FloorConfig{Policy: fifo.Policy{}, Horizon: time.Hour, MinWindow: time.Second}, nil)
	s.ledger = home.New(home.Config{Retry: time.Second, AskTTL: time.Second, Backoff: 500 * time.Millisecond, MaxKills: 1000}, quiet{},
		quiet{})
	for i, n := range mib {
		t := &tray{id: job.SliceID(fmt.Sprint("s", i)), from: from[i], ends: &s.ends}
		t.floor.Supply = t
		s.Place(&t.floor, &protocol.Slice{ID: t.id, Speed: 1000, Capacity: trp.Vector{trp.Memory: quantity.Amount(n << 20)}})
		s.InvalidateSlice(&t.floor)
	}
	c.Policy, c.Horizon = "fifo", time.Hour
	s.View = New(c, Parts{Ledger: s.ledger, Floor: s, Planner: s, Slices: s, Waits: s})
	return s
}

// adopt has a job come.
func (s *stand) adopt(t testing.TB, spec *job.Spec) *home.Job {
	t.Helper()
	compiled(t, spec)
	s.ledger.Apply(protocol.Fact{Kind: protocol.HomeTaken, Job: spec.Name, Epoch: 1, Generation: 1, At: now,
		Body: &protocol.Taking{Spec: spec}})
	return s.ledger.Book().Job(spec.Name)
}

// compiled is a job as the ledger is given it.
func compiled(t testing.TB, spec *job.Spec) *job.Spec {
	t.Helper()
	var err error
	if spec.Safe, err = trp.Compile(spec.Profile, spec.Total, 10_000); err != nil {
		t.Fatal(err)
	}
	return spec
}

// needs is a job that needs so many MiB: rigid with a walltime, else of so many items of a second.
func needs(name string, mib int64, walltime time.Duration, total int64) *job.Spec {
	s := &job.Spec{Name: job.ID(name), Queue: "q", Kind: job.Items, Total: total, Grid: 1, Parallelism: 1, PerUnit: time.Second}
	if walltime > 0 {
		s.Kind, s.Walltime, s.Slices = job.Rigid, walltime, 1
	}
	s.Profile.Form, s.Profile.Phases = trp.Phases, []trp.Phase{{UpTo: total, Mean: quantity.Amount(mib << 20)}}
	return s
}

func (s *stand) Open() int { return s.open }
func (s *stand) Fit(j *home.Job, c *window.Class, start, end quantity.Instant) (atomizer.Piece, atomizer.Refusal) {
	v := j.View()
	return atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec), Start: start,
		End: min(end, start.Add(time.Hour))})
}
func (s *stand) Counts(*home.Job) explain.Counts                { return s.counts }
func (s *stand) Losses(*home.Job) []status.Loss                 { return nil }
func (s *stand) Rank(quantity.Instant, *home.Job) status.Rank   { return status.Rank{} }
func (s *stand) Attended(*home.Job) bool                        { return false }
func (s *stand) Declining(*home.Job) (atomizer.Refusal, string) { return atomizer.Refusal{}, "" }
func (s *stand) Reserves(*home.Job) bool                        { return s.reserves }
func (s *stand) Told(*home.Job) foresight.Told                  { return s.told }
func (s *stand) Asks(*window.Slice) []*home.Ask                 { return nil }
func (s *stand) Planned(j *home.Job) (p Place, ok bool)         { p, ok = s.places[j.ID]; return p, ok }
func (s *stand) ReservedFor(id job.ID) (job.SliceID, quantity.Instant, bool) {
	return "s0", now.Add(time.Minute), id == s.reserved
}

func (s *stand) Search(quantity.Instant) func(*home.Job) (Place, bool) {
	return func(*home.Job) (Place, bool) {
		s.searches++
		return s.found, true
	}
}

func (s *stand) Holder(quantity.Instant, *window.Slice) (job.ID, quantity.Instant) {
	return s.holder, s.holds
}

func (s *stand) Seen(sl *window.Slice) *protocol.SliceView {
	told := &protocol.SliceView{Slice: protocol.Slice{ID: sl.Name()}, Node: sl.Node(), Usable: sl.Usable(), Reserved: s.reservations}
	if !told.Usable {
		told.Why = "it is broken"
	}
	return told
}

// tray is a slice that is free from an instant on; never: it is broken.
type tray struct {
	id    job.SliceID
	from  quantity.Instant
	ends  *quantity.Instant
	floor window.Slice
}

func (t *tray) Name() job.SliceID                      { return t.id }
func (t *tray) Node() job.NodeID                       { return "n" }
func (t *tray) Usable() bool                           { return t.from != quantity.Never }
func (t *tray) Safe(quantity.Instant) quantity.Instant { return quantity.Never }
func (t *tray) Resident() *protocol.Resident           { return nil }
func (t *tray) Unsold(_ quantity.Instant, out []protocol.Gap) []protocol.Gap {
	if !t.Usable() {
		return out[:0]
	}
	return append(out[:0], protocol.Gap{Start: t.from, End: cmp.Or(*t.ends, quantity.Never)})
}

// quiet is what a ledger tells nobody.
type quiet struct{ home.Supply }

func (quiet) Node(job.SliceID) job.NodeID                                            { return "n" }
func (quiet) Barred(job.SliceID) bool                                                { return false }
func (quiet) Beyond(*home.Job) string                                                { return "" }
func (quiet) Largest(*job.Spec) quantity.Amount                                      { return 1 << 40 }
func (quiet) Memory(job.SliceID) quantity.Amount                                     { return 1 << 40 }
func (quiet) Slices() int                                                            { return 1 }
func (quiet) Make(*job.Spec) *home.Job                                               { return &home.Job{} }
func (quiet) Opened(*home.Job)                                                       {}
func (quiet) Closed(*home.Job)                                                       {}
func (quiet) Reopened(*home.Job)                                                     {}
func (quiet) Changed(*home.Job)                                                      {}
func (quiet) Touched(*home.Job)                                                      {}
func (quiet) Moved(*home.Job)                                                        {}
func (quiet) QueuesChanged()                                                         {}
func (quiet) Sold(*home.Job, *protocol.Claim)                                        {}
func (quiet) Resold(*home.Job, *protocol.Claim)                                      {}
func (quiet) Freed(*home.Job, *protocol.Claim, quantity.Instant)                     {}
func (quiet) Taken(*home.Job, *protocol.Claim)                                       {}
func (quiet) TurnedDown(quantity.Instant, *home.Job, []job.SliceID)                  {}
func (quiet) Came(quantity.Instant, *home.Job)                                       {}
func (quiet) Paused(*home.Job)                                                       {}
func (quiet) Rests(*home.Job)                                                        {}
func (quiet) Began(*home.Job, quantity.Instant)                                      {}
func (quiet) Ends(*home.Job, *protocol.Claim, *job.Result, job.Range, *protocol.Out) {}
