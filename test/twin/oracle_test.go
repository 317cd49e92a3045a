package twin_test

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// oracle judges what the actors do by their facts alone: no two leases share time on a slice, nothing runs where
// something still runs, no unit is committed twice, and none that its subjob did not complete.
type oracle struct {
	t         failer
	leases    map[job.Token]*leased
	committed map[job.ID]job.Ranges
	promised  map[job.ID]quantity.Instant
	started   map[job.ID]quantity.Instant
	places    map[uint64]protocol.Reservation
	verdicts  map[job.ID]job.Verdict
	reserved  int // how often a place was reserved
}

type leased struct {
	job        job.ID
	slices     []job.SliceID
	start, end quantity.Instant
	running    bool
}

func newOracle(t failer) oracle {
	return oracle{
		t: t, leases: map[job.Token]*leased{}, committed: map[job.ID]job.Ranges{}, promised: map[job.ID]quantity.Instant{},
		started: map[job.ID]quantity.Instant{}, places: map[uint64]protocol.Reservation{}, verdicts: map[job.ID]job.Verdict{},
	}
}

func (o *oracle) fact(now quantity.Instant, f *protocol.Fact) {
	switch f.Kind {
	case protocol.LeaseMade:
		t := f.Body.(*protocol.Terms)
		l := &leased{job: f.Job, slices: append([]job.SliceID{t.Slice}, t.Also...), start: t.Start, end: t.End}
		o.apart(f.Token, l)
		o.leases[f.Token] = l
	case protocol.LeaseExtended:
		l := o.leases[f.Token]
		l.end = f.Body.(*protocol.Extent).End
		o.apart(f.Token, l)
	case protocol.Truncated:
		o.leases[f.Token].end = f.Body.(*protocol.Truncation).End
	case protocol.SubjobStarted:
		l := o.leases[f.Token]
		l.running = true
		for t, other := range o.leases {
			if t != f.Token && other.running && share(l, other) {
				o.t.Errorf("%v starts where %v of %s still runs", f.Token, t, other.job)
			}
		}
		if _, had := o.started[l.job]; !had {
			o.started[l.job] = now
		}
	case protocol.SubjobVacated, protocol.SubjobEnded:
		delete(o.leases, f.Token)
	case protocol.Committed:
		end := f.Body.(*protocol.ClaimEnd)
		if o.committed[f.Job].Overlaps(end.Range) {
			o.t.Errorf("job %s: %v is committed twice", f.Job, end.Range)
		}
		if end.Result != nil && !end.Skipped && end.Range.To > end.Result.Progress {
			o.t.Errorf("job %s: %v is committed, its subjob came to %d", f.Job, end.Range, end.Result.Progress)
		}
		o.committed[f.Job] = o.committed[f.Job].Add(end.Range)
	case protocol.ReservationMade:
		r := *f.Body.(*protocol.Reservation)
		o.places[r.ID], o.reserved = r, o.reserved+1
		if _, had := o.promised[r.Job]; r.Kind == protocol.ForRigid && !had {
			o.promised[r.Job] = r.Start
		}
	case protocol.ReservationGone:
		delete(o.places, f.Body.(*protocol.Reservation).ID)
	case protocol.Ended:
		v := f.Body.(*protocol.Final).Verdict
		if was, had := o.verdicts[f.Job]; had {
			o.t.Errorf("job %s ends twice: %v, then %v", f.Job, was, v)
		}
		o.verdicts[f.Job] = v
	}
}

func share(a, b *leased) bool {
	return slices.ContainsFunc(a.slices, func(id job.SliceID) bool { return slices.Contains(b.slices, id) })
}

// apart fails if a lease shares time with another one on one of its slices.
func (o *oracle) apart(t job.Token, l *leased) {
	for u, other := range o.leases {
		if u != t && share(l, other) && l.start < other.end && other.start < l.end {
			o.t.Errorf("lease %v of %s and %v of %s share time on %v", t, l.job, u, other.job, l.slices)
		}
	}
}

// kept fails if a rigid job started later than the place it was first promised.
func (o *oracle) kept(names ...job.ID) {
	o.t.Helper()
	for _, n := range names {
		promised, had := o.promised[n]
		started, ran := o.started[n]
		switch {
		case !had:
			o.t.Errorf("job %s was never promised a place", n)
		case !ran:
			o.t.Errorf("job %s never started", n)
		case started > promised:
			o.t.Errorf("job %s started %v after the place it was first promised", n, started.Sub(promised))
		}
	}
}

// leftover are the rigid places that nobody gave back.
func (o *oracle) leftover() (ids []uint64) {
	for id, r := range o.places {
		if r.Kind == protocol.ForRigid {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
