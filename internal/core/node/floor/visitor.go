package floor

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// visitor is a job that is here, as its home described it last (market.Demand).
type visitor struct {
	protocol.Visit
	name job.ID
	// spec is the job's, of one that is answered for in messages.
	spec    *job.Spec
	home    protocol.Address
	session uint64
	market  market.Job
	// slot is its place among the alarms of those who have left unless their home says it again.
	slot int
}

// Enter brings a job to the floor, or takes in what its home says of it anew. It is false if the job is not let in, since as many are here as may. The latest
// session of a job counts.
func (f *Floor) Enter(now quantity.Instant, home protocol.Address, name job.ID, session uint64, said *protocol.Visit) bool {
	if said.Spec == nil || name == "" || session == 0 {
		return false
	}
	v := f.visitors[name]
	switch {
	case v != nil && session < v.session:
		return true // it was on its way for long
	case v == nil && len(f.visitors) >= f.cfg.Most:
		return false
	case v == nil:
		v = &visitor{name: name}
		v.market.Demand = v
		f.visitors[name] = v
	}
	anew := v.session != session
	if anew {
		spec := *said.Spec
		spec.External = true
		v.spec = &spec
	}
	v.Visit, v.home, v.session = *said, home, session
	f.stays.Set(&v.slot, v, now.Add(f.cfg.Stay))
	if anew {
		f.floor.Retire(&v.market)
		f.floor.Activate(&v.market)
		f.floor.Attend(&v.market, session, true)
	} else {
		f.floor.Changed(&v.market)
	}
	return true
}

// Leave takes a job off the floor, unless a later session of it is here.
func (f *Floor) Leave(name job.ID, session uint64) {
	if v := f.visitors[name]; v != nil && session >= v.session {
		f.drop(v)
	}
}

// Answer takes in what a home answers for a job in a round.
func (f *Floor) Answer(now quantity.Instant, in *protocol.Message) {
	if v := f.visitors[in.Job]; v != nil && in.From == v.home {
		f.floor.Answer(now, &v.market, in, in.Body.(*protocol.Proposal))
	}
}

func (f *Floor) drop(v *visitor) {
	f.floor.Retire(&v.market)
	f.stays.Set(&v.slot, v, quantity.Never)
	delete(f.visitors, v.name)
}

// expire drops those whose homes are silent.
func (f *Floor) expire(now quantity.Instant) {
	for {
		v, ok := f.stays.Due(now)
		if !ok {
			return
		}
		f.drop(v)
	}
}

// won notes that a piece was sold here, so that it is not sold twice before the home says so.
func (v *visitor) won(r job.Range) {
	v.Claimed = append(job.Ranges(nil), v.Claimed...).Add(r)
	v.Running++
}

func (v *visitor) Name() job.ID { return v.name }

func (v *visitor) Spec() *job.Spec { return v.spec }

// Agent is its home, which answers for it.
func (v *visitor) Agent() protocol.Address { return v.home }

func (v *visitor) Queue() (name string, longest time.Duration) { return v.Visit.Queue, v.Longest }

func (v *visitor) View() atomizer.View {
	learned := v.Learned
	if learned == nil {
		learned = &protocol.Learned{}
	}
	return atomizer.View{
		Spec: v.spec, Committed: v.Committed, Claimed: v.Claimed, Running: v.Running, Learned: learned, Resume: v.Resume, Skipped: v.Skipped,
	}
}

func (v *visitor) Busy() int { return v.Running }

func (v *visitor) Submitted() quantity.Instant { return v.Visit.Submitted }

func (v *visitor) Served() quantity.Instant { return v.Visit.Served }

// Ineligible is never: its home lets only those visit that may be sold something.
func (v *visitor) Ineligible(quantity.Instant) market.Reason { return market.Eligible }

func (v *visitor) RestsUntil() quantity.Instant { return 0 }

func (v *visitor) Volatile() bool { return false }

func (v *visitor) Avoids(s *market.Slice) bool { return slices.Contains(v.Visit.Avoids, s.Name()) }

func (v *visitor) Loses() bool { return false }

func (v *visitor) Attained() int64 { return v.Own }

func (v *visitor) Use(quantity.Instant) (own, queue, weight int64) {
	return v.Own, v.Others, max(1, v.Weight)
}

func (v *visitor) Trust() protocol.Trust { return v.View().Learned.Trust }

func (v *visitor) Sentence(market.Reason) string {
	return "its home does not let it be sold anything now"
}
