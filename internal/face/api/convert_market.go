package api

import (
	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// trustMessage leaves out the trust of a market that does not negotiate: there it is zero, while one that has seen nothing yet
// believes.
func trustMessage(t *status.Trust) *pb.Trust {
	if *t == (status.Trust{}) {
		return nil
	}
	return &pb.Trust{
		Believed: share(t.Believed), Error: share(t.Error), History: share(t.History), Seen: t.Seen, Pace: perThousand(t.Pace),
		Runs: t.Runs, Excess: t.Excess, Evidence: share(t.Evidence),
	}
}

func profileMessage(p *status.Profile) *pb.Profile {
	source := "declared"
	if p.Source == forecast.Taught {
		source = "template"
	}
	return &pb.Profile{Source: source, Runs: p.Runs, Spread: perThousand(p.Spread), Text: p.String()}
}

// bidMessage leaves out what nobody bid for.
func bidMessage(b *protocol.Bid) *pb.Bid {
	if b == nil {
		return nil
	}
	return &pb.Bid{Score: share(b.Score), Calibrated: share(b.Calibrated), Weight: share(b.Weight), Price: b.Price, Option: b.Option}
}

// perThousand is a factor as people write it.
func perThousand(n int64) float64 { return float64(n) / 1000 }

func lossMessage(l *status.Loss) *pb.Loss {
	return &pb.Loss{
		Profile: l.Profile, Slice: string(l.Slice), Count: l.Count, Last: stamp(l.Last), Score: share(l.Score), Weight: share(l.Weight),
		Winner: string(l.Winner), WinnerQueue: l.WinnerQueue, WinnerScore: share(l.WinnerScore), WinnerWeight: share(l.WinnerWeight),
		Winners: count(l.Winners), WinnersWeight: share(l.WinnersWeight), By: share(l.By()), Starved: l.Starved,
	}
}

func rankMessage(r *status.Rank) *pb.Rank {
	if r.Place == 0 {
		return nil
	}
	out := &pb.Rank{Place: count(r.Place), Of: count(r.Of), About: r.About, Policy: r.Policy, Profile: r.Profile, Slice: string(r.Slice)}
	if g := &r.Latest; g.Winner != "" {
		out.Latest = &pb.Given{Slice: string(g.Slice), Length: length(g.Length), At: stamp(g.At), Winner: string(g.Winner),
			WinnerQueue: g.WinnerQueue}
	}
	return out
}
