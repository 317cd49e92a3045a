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
	w.step(protocol.Message{Kind: protocol.Attend, Job: s.Name, Session: 7, Flag: true})
}

// honest answers as the job's atomizer would.
func honest(s *job.Spec) func(*protocol.Message) []protocol.Message {
	return func(m *protocol.Message) []protocol.Message {
		if m.Kind != protocol.Announce {
			return nil
		}
		var out []protocol.Variant
		for i := range m.Call.Windows {
			v, w := atomizer.FromCall(s, m.Call, &m.Call.Windows[i])
			out = atomizer.Propose(&v, w, m.Call.Most, m.Call.Windows[i].Start, out)
		}
		return []protocol.Message{{Kind: protocol.Answer, Job: m.Job, Session: m.Session, Round: m.Call.Round, Variants: out}}
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
			a.Round = uint64(wild())
		case 3:
			return append(answers, answers...)
		case 4:
			for range 300 {
				a.Variants = append(a.Variants, protocol.Variant{
					ID: uint32(wild()), Window: uint64(wild()), Range: job.Range{From: wild(), To: wild()}, Start: quantity.Instant(wild()),
					Run: time.Duration(wild()), Wall: time.Duration(wild()), Demand: trp.Vector{quantity.Amount(wild())}, Score: wild(), Option: "x",
				})
			}
		default:
			for i := range a.Variants {
				v := &a.Variants[i]
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
