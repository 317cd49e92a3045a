package markettest

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// Draw is a number from low to high, all of them as likely.
type Draw func(low, high int) int

// Relay is what agents are heard by (agents.Relay).
type Relay interface {
	Attend(j *index.Job, session uint64, here bool)
	Session(j *index.Job) uint64
	Answer(now quantity.Instant, j *index.Job, in *protocol.Message, p *protocol.Proposal)
}

// Market is a mechanism with what it rests on, as a Siege drives it.
type Market struct {
	Seller *Seller
	Relay  Relay
	Submit func(Job)
	Offer  func(name string, gib, speed int64, gaps ...protocol.Gap)
	// Jobs and Slices are those that there are, Run is a step, which returns what agents are told.
	Jobs   func() []*index.Job
	Slices func() []*window.Slice
	Run    func(quantity.Instant) []protocol.Message
}

// answer is one that is on its way.
type answer struct {
	of *index.Job
	in protocol.Message
	is protocol.Proposal
}

// Siege has a market asked by agents that do not mean well: they answer late, twice, for windows and rounds that are gone or are those of
// others, in the name of sessions that are over, and with Lies. Meanwhile gaps vanish, jobs are paused and agents come and go. It returns
// the first broken promise, empty if all were kept.
func Siege(tb interface{ Fatal(...any) }, m *Market, draw Draw) string {
	now := quantity.Instant(1e12)
	for i := range draw(1, 4) {
		m.Offer(fmt.Sprint("s", i), int64(draw(5, 9)), int64(500*draw(1, 2)),
			protocol.Gap{Start: now, End: quantity.Never})
	}
	for range draw(2, 6) {
		m.Submit(besieger(tb, now, len(m.Jobs()), draw))
	}
	var mail []answer
	session := uint64(7)
	for range draw(20, 60) {
		j, s := m.Jobs()[draw(0, len(m.Jobs())-1)], m.Slices()[draw(0, len(m.Slices())-1)]
		switch draw(0, 11) {
		case 0:
			m.Submit(besieger(tb, now, len(m.Jobs()), draw))
		case 1, 6, 7, 8:
			if n := len(m.Seller.Runs); n > 0 {
				i := draw(0, n-1)
				m.Seller.Runs[i]()
				m.Seller.Runs = slices.Delete(m.Seller.Runs, i, i+1)
			}
		case 2: // its windows are gone
			from := now.Add(time.Duration(draw(0, 100)) * time.Second)
			s.Supply.(*Slice).Gaps = []protocol.Gap{{Start: from, End: from.Add(time.Duration(draw(1, 400)) * time.Second),
				Until: protocol.ForDrain}}
			m.Seller.Floor.InvalidateSlice(s)
		case 3:
			j.Demand.(*Job).Paused = draw(0, 1) == 1
			m.Seller.Floor.Changed(j)
		case 4:
			session++
			m.Relay.Attend(j, session, true)
		case 5:
			m.Relay.Attend(j, m.Relay.Session(j), false)
		}
		if mail = append(mail, answers(m, now, m.Run(now), draw)...); len(m.Seller.Wrong) > 0 {
			return m.Seller.Wrong[0]
		}
		mail = deliver(m, now, mail, draw)
		if draw(0, 2) == 0 {
			now = now.Add(time.Duration(draw(0, 60)) * time.Second)
		} else {
			now = now.Add(time.Duration(draw(0, 30)) * 10 * time.Millisecond)
		}
	}
	return ""
}

// besieger is a job, of an agent more often than not.
func besieger(tb interface{ Fatal(...any) }, now quantity.Instant, i int, draw Draw) Job {
	s := Spec(tb, draw(0, 99))
	s.Name, s.Total = job.ID(fmt.Sprint("j", i)), int64(draw(10, 300))
	if draw(0, 1) == 1 {
		s.Kind, s.Parallelism, s.Restore, s.Checkpoint = job.Items, draw(1, 3), 0, 0
	}
	if s.External = draw(0, 4) > 0; draw(0, 2) == 0 {
		s.Options = []job.Option{{Name: "other", Speed: 1500, Memory: 700}}
	}
	s.Profile.Phases = []trp.Phase{{UpTo: s.Total / 2, Mean: quantity.Amount(draw(3, 8)) << 30},
		{UpTo: s.Total, Mean: quantity.Amount(draw(3, 8)) << 30}}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		tb.Fatal(err)
	}
	d := Job{Of: s, Came: now}
	d.Learned.Trust = protocol.Trust{Seen: int64(draw(0, 4)), Pace: int64(draw(0, 9000))}
	return d
}

// answers are those to what agents were told, honest ones and others, to be delivered some time.
func answers(m *Market, now quantity.Instant, told []protocol.Message, draw Draw) (mail []answer) {
	for _, in := range told {
		c, called := in.Body.(*protocol.Call)
		if !called || draw(0, 9) == 0 {
			continue
		}
		j := m.Jobs()[slices.IndexFunc(m.Jobs(), func(j *index.Job) bool { return j.Name() == in.Job })]
		var variants []protocol.Variant
		for k := range c.Windows {
			v, on := atomizer.FromCall(j.Spec(), c, &c.Windows[k])
			variants = atomizer.Propose(&v, on, c.Most, max(now, c.Windows[k].Start), variants)
		}
		lies := draw(0, 2) // of three
		for i := range variants {
			if draw(0, 2) >= lies {
				continue
			}
			v := &variants[i]
			if draw(0, 1) == 0 {
				*v = variants[draw(0, len(variants)-1)]
			}
			v.Score = score.One
			for range draw(1, 2) {
				*v = Lie(*v, draw(0, Lies-1), int64(draw(-9, 9)))
			}
		}
		a := answer{of: j, in: in, is: protocol.Proposal{Round: c.Round, Variants: variants}}
		switch draw(0, 9) {
		case 0:
			a.is.Round += uint64(draw(0, 2)) - 1
		case 1:
			a.in.Session += uint64(draw(0, 2)) - 1
		case 2:
			a.of = m.Jobs()[draw(0, len(m.Jobs())-1)]
		}
		mail = append(mail, a)
	}
	return mail
}

// deliver delivers some of what is on its way, and some of that again and again.
func deliver(m *Market, now quantity.Instant, mail []answer, draw Draw) (left []answer) {
	for i := range mail {
		a := &mail[i]
		when := draw(0, 9)
		if when > 0 {
			is := a.is
			is.Variants = slices.Clone(is.Variants)
			m.Relay.Answer(now, a.of, &a.in, &is)
		}
		if when < 3 && len(left) < 50 {
			left = append(left, *a)
		}
	}
	return left
}
