package zone_test

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// answer brings what an agent says.
func (w *world) answer(m protocol.Message) {
	m.From, m.To = protocol.Address{Role: protocol.Bidder, ID: string(m.Job)}, protocol.Address{Role: protocol.Zone, ID: "z"}
	w.post(m)
}

// attend submits an external job with an agent.
func (w *world) attend(s *job.Spec, hear func(*protocol.Message) []protocol.Message) {
	s.External = true
	w.submit(s)
	w.bidders[s.Name] = hear
	w.step(protocol.Message{Kind: protocol.Attend, Job: s.Name, Session: 7, Body: &protocol.Attendance{Present: true}})
}

// honest answers as the job's atomizer would.
func honest(s *job.Spec) func(*protocol.Message) []protocol.Message {
	return func(m *protocol.Message) []protocol.Message {
		if m.Kind != protocol.Announce {
			return nil
		}
		var out []protocol.Variant
		for i := range callIn(m).Windows {
			v, w := atomizer.FromCall(s, callIn(m), &callIn(m).Windows[i])
			out = atomizer.Propose(&v, w, callIn(m).Most, callIn(m).Windows[i].Start, out)
		}
		return []protocol.Message{{Kind: protocol.Answer, Job: m.Job, Session: m.Session, Body: &protocol.Proposal{Round: callIn(m).Round,
			Variants: out}}}
	}
}

// hostile answers now honestly, now with what no agent should say.
func hostile(s *job.Spec, draw func(int) int) func(*protocol.Message) []protocol.Message {
	good := honest(s)
	return func(m *protocol.Message) []protocol.Message {
		answers := good(m)
		if len(answers) == 0 || draw(2) == 0 {
			return answers
		}
		a := &answers[0]
		wild := func() int64 {
			return []int64{0, 1, -1, math.MaxInt64, math.MinInt64, int64(draw(1000)), int64(draw(1 << 30)), s.Total, 1 << 62}[draw(9)]
		}
		switch draw(8) {
		case 0:
			return nil
		case 1:
			a.Session = uint64(draw(10))
		case 2:
			a.Body.(*protocol.Proposal).Round = uint64(wild())
		case 3:
			return append(answers, answers...)
		case 4:
			for range 300 {
				a.Body.(*protocol.Proposal).Variants = append(a.Body.(*protocol.Proposal).Variants, protocol.Variant{
					ID: uint32(wild()), Window: uint64(wild()), Range: job.Range{From: wild(), To: wild()}, Start: quantity.Instant(wild()),
					Run: time.Duration(wild()), Wall: time.Duration(wild()), Demand: trp.Vector{quantity.Amount(wild())}, Score: wild(),
					Option: "x",
				})
			}
		default:
			for i := range a.Body.(*protocol.Proposal).Variants {
				v := &a.Body.(*protocol.Proposal).Variants[i]
				switch draw(7) {
				case 0:
					v.Score = wild()
				case 1:
					v.Start = v.Start.Add(time.Duration(draw(100)) * time.Second)
				case 2:
					v.Range.To = wild()
				case 3:
					v.Wall = time.Duration(wild())
				case 4:
					v.Run, v.Wall = v.Run/2, v.Wall/2
				case 5:
					v.Window = uint64(draw(20))
				case 6:
					v.Demand = trp.Vector{quantity.Amount(wild())}
				}
			}
		}
		return answers
	}
}

// noticesIn are what an agent is told, if m tells it of something.
func noticesIn(m *protocol.Message) []protocol.Notice {
	if news, ok := m.Body.(*protocol.News); ok {
		return news.Notices
	}
	return nil
}

// callIn is the round that an agent hears of, nil if m is something else.
func callIn(m *protocol.Message) *protocol.Call {
	call, _ := m.Body.(*protocol.Call)
	return call
}
