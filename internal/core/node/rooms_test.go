package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

// TestRoomsAreWhatTheSlicesSay: whatever happens to slices, and however much time goes by, what is kept for probes is what looking at each
// slice anew gives.
func TestRoomsAreWhatTheSlicesSay(t *testing.T) {
	granted, leased, kept := 0, 0, 0
	for seed := range uint64(60) {
		draw := prng.New(seed)
		p := newProbed(t, 10<<30, 10<<30, 20<<30, 40<<30)
		var held []protocol.Place
		leases := map[job.Token]job.SliceID{}
		var tokens []job.Token
		for op := range 80 {
			slice := job.SliceID(rune('a' + draw.IntN(4)))
			switch draw.IntN(9) {
			case 0, 1, 2:
				p.ask(flow.TicketID(1000*seed+uint64(op)), flow.Class(draw.IntN(3)), 0, time.Duration(1+draw.IntN(20))*time.Second)
			case 3:
				if len(held) > 0 {
					h := held[draw.IntN(len(held))]
					p.step(protocol.Message{Kind: protocol.Redeem, From: zone, Token: h.Token, Job: "j", Epoch: 1, Generation: 1,
						Body: &protocol.Work{
							Slice: h.Slice.ID, Range: job.Range{To: 1}, Start: h.Start, End: min(h.End, p.now.Add(30*time.Second)),
							Spec: &job.Spec{Name: "j", Kind: job.Rigid, Total: 1, Grid: 1},
						}})
				}
			case 4:
				if len(tokens) > 0 {
					token := tokens[draw.IntN(len(tokens))]
					p.step(protocol.Message{Kind: protocol.Started, Token: token, Job: "j", Body: &protocol.Beginning{Slice: leases[token],
						At: p.now}})
					p.step(protocol.Message{Kind: protocol.Exited, Token: token, Job: "j", Body: &protocol.Conclusion{Slice: leases[token],
						Result: &job.Result{Outcome: job.Done, Progress: 1, End: p.now}}})
				}
			case 5:
				p.step(protocol.Message{Kind: protocol.Foreign, Body: &protocol.Intrusion{Slice: slice, Present: draw.IntN(3) == 0}})
			case 6:
				p.step(protocol.Message{Kind: protocol.Ailing, Body: &protocol.Ailment{Text: "no disk", Ails: draw.IntN(4) == 0}})
			case 7:
				start := p.now.Add(time.Duration(draw.IntN(30)) * time.Second)
				p.step(protocol.Message{Kind: protocol.Reserve, From: protocol.Address{Role: protocol.Person, ID: "p"},
					Body: &protocol.Booking{
						Reservation: &protocol.Reservation{Kind: protocol.ForMaintenance, Slice: slice, Start: start,
							End: start.Add(time.Duration(1+draw.IntN(9)) * time.Second)},
					}})
			default:
				p.wait(time.Duration(draw.IntN(5000)) * time.Millisecond)
			}
			for _, m := range p.out.Effects {
				switch b := m.Body.(type) {
				case *protocol.Response:
					if b.Place != nil {
						held, granted = append(held, *b.Place), granted+1
					}
				case *protocol.Holding:
					leases[m.Token], tokens, leased = b.Slice, append(tokens, m.Token), leased+1
				}
			}
			var free flow.Fragments
			for i, s := range p.n.slices {
				stood := len(p.n.probes.rooms) > i && p.n.probes.rooms[i].stands
				until, is := p.n.freeNow(p.now, s)
				r := *p.n.roomAt(p.now, i)
				if r.free != is || is && r.until != until || r.capacity != s.desc.Capacity[trp.Memory] {
					t.Fatalf("seed %d, op %d: slice %s is free: %v until %v, its room says %v until %v", seed, op, s.id, is, until, r.free,
						r.until)
				}
				if class, ok := p.n.probes.cfg.Flow.Classes.Holds(s.desc.Capacity[trp.Memory]); ok && is {
					free[class]++
				}
				if stood {
					kept++
				}
			}
			if got := p.n.fragments(p.now); got != free {
				t.Fatalf("seed %d, op %d: %v are free, the node counts %v", seed, op, free, got)
			}
		}
	}
	if granted < 300 || leased < 60 || kept < 3000 {
		t.Errorf("only %d grants, %d leases, and %d rooms that were known: too little happens", granted, leased, kept)
	}
}
