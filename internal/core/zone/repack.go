package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// repack withdraws what was sold ahead on slices where a subjob has ended before its time, so that the window that opened
// and what was sold behind it are cleared as one; beyond the freeze, and never what has begun: the node gives up a lease only
// if it has not. Lots whose slice is about to grow are not cleared before that. It returns the others.
func (z *Zone) repack(now quantity.Instant, lots []lot, out *protocol.Out) []lot {
	if z.cfg.Market.Repack != market.Withdraw {
		return lots
	}
	return slices.DeleteFunc(lots, func(l lot) bool {
		s := l.slice
		if !l.full || !s.early {
			return false
		}
		s.early = false
		n := 0
		for _, x := range s.sold {
			l := x.job.lease(x.token)
			if x.start <= now.Add(z.cfg.Market.Freeze) || l.running != 0 || l.ask != 0 || x.job.dropping.State != job.Waiting {
				continue
			}
			l.withdrawn = true
			z.sendWithdrawal(x.job, &x.job.Claims[x.job.claim(x.token)], l, now, out)
			z.stir(x.job)
			z.stats.Withdrawn++
			n++
		}
		return n > 0
	})
}

// sendWithdrawal is repeated until the lease is over or has begun, and idempotent.
func (z *Zone) sendWithdrawal(s *state, c *protocol.Claim, l *lease, now quantity.Instant, out *protocol.Out) {
	l.sent = now
	z.send(out, protocol.Message{
		Kind: protocol.Stop, To: nodeOf(c), Token: c.Token, Job: s.Job, Flag: true, Text: "withdrawn before it began: something better is known",
	})
}
