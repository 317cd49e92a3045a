package protocol

import (
	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
)

// Mix mixes a plan into a digest.
func (p *Plan) Mix(h digest.Hash) digest.Hash {
	h = p.Resume.Mix(h.Int(int64(p.Run), int64(p.Wall)))
	h = h.Int(int64(p.Window), int64(p.Round), int64(p.Extended)).Text(p.Option)
	if p.Member|p.Members != 0 { // as it was before there were members
		h = h.Int(int64(p.Member), int64(p.Members))
	}
	if p.Port != 0 { // as it was before members were told where they are
		h = h.Int(int64(p.Port))
		for _, a := range p.Addresses {
			h = h.Text(a)
		}
	}
	if p.Residence != 0 { // as it was before programs stayed
		h = h.Int(int64(p.Residence)).Bool(p.Resident)
	}
	if len(p.Bars) > 0 { // as it was before trials were stopped
		h = h.Int(int64(len(p.Bars)))
		for _, b := range p.Bars {
			h = h.Int(int64(b.Rung), b.Known, b.Ahead, b.Worth)
		}
	}
	return h
}

// Mix mixes a queue's settings into a digest.
func (q *Queue) Mix(h digest.Hash) digest.Hash {
	return h.Text(q.Name).Int(q.Weight, int64(q.Cap), int64(q.MaxJobs), int64(q.MaxWindow)).Text(q.User)
}

// Mix mixes a reservation into a digest.
func (r *Reservation) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(r.ID), int64(r.Kind), int64(r.Start), int64(r.End), int64(r.Every)).Text(string(r.Slice)).Text(string(r.Job))
	h = r.Token.Mix(h).Text(r.Source).Bool(r.Truncate)
	if c := &r.Calendar; *c != (civil.Calendar{}) { // as it was before there were any
		h = h.Text(c.Zone).Text(string(c.Clock)).Int(c.Date, c.Step, int64(c.Days), int64(c.At), int64(c.Length)).Bool(c.ByClock)
	}
	return h
}

// Mix mixes what was declared for a subjob into a digest.
func (b *Bid) Mix(h digest.Hash) digest.Hash {
	return h.Int(b.Score, b.Calibrated, b.Weight, int64(b.Since), b.Left, b.Urgency, b.Price).Text(b.Option)
}

// Mix mixes trust into a digest.
func (t *Trust) Mix(h digest.Hash) digest.Hash {
	return h.Int(t.Error, t.History, t.Seen, t.Risk, t.Pace, t.Runs, t.Excess, t.Evidence)
}

// Mix mixes what is kept of a queue into a digest.
func (s *Calibration) Mix(h digest.Hash) digest.Hash {
	return s.Trust.Mix(h.Text(s.Queue)).Int(s.Credits, int64(s.Refilled), s.Archived)
}

// Mix mixes a claim into a digest.
func (c *Claim) Mix(h digest.Hash) digest.Hash {
	h = c.Range.Mix(c.Token.Mix(h)).Text(string(c.Node)).Text(string(c.Slice))
	h = h.Int(int64(c.Generation), c.Speed, int64(c.Start), int64(c.End), int64(c.Asked))
	h = c.Plan.Mix(c.Peak.Mix(c.Demand.Mix(job.MixIDs(h, c.Also))))
	for i := range c.Members { // as it was before there were any
		m := &c.Members[i]
		h = m.Token.Mix(h.Text(string(m.Node))).Int(int64(m.Slices))
	}
	return digest.Optional(h, c.Bid)
}

// Mix mixes a publication into a digest.
func (p *Publication) Mix(h digest.Hash) digest.Hash {
	return p.Range.Mix(p.Token.Mix(h)).Text(string(p.Node))
}

// Mix mixes a settled subjob into a digest.
func (p *Past) Mix(h digest.Hash) digest.Hash {
	h = p.Committed.Mix(p.Claim.Mix(h)).Bool(p.Skipped).Int(int64(p.Outcome), int64(p.RealStart), int64(p.RealEnd))
	h = p.Peak.Mix(h).Text(p.Detail).Int(int64(p.Spent.Prepare))
	if p.Spent.Waited != 0 { // the digest of before this field existed
		h = h.Int(int64(p.Spent.Waited))
	}
	if p.Spent.Startup != 0 || p.Spent.Stayed { // the same
		h = h.Text("startup").Int(int64(p.Spent.Startup)).Bool(p.Spent.Stayed)
	}
	if p.LeftNothing { // the same
		h = h.Text("nothing")
	}
	return h
}
