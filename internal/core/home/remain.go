package home

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Processes that outlive their lease. Their node says so again and again until they are gone, and the same work is not sold meanwhile.

// mostRemaining is how long a home waits for that beyond a lease's end. What outlives it too (in a driver that hangs) keeps its slice and
// not its job.
const mostRemaining = 10 * time.Minute

// remains: a node says that processes of a subjob are there still. Of a gang any member's word counts for all. The job begins nothing until
// a while after the last such word; one that is to end does not wait for them.
func (h *Ledger) remains(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j, l := h.standing(in)
	if l == nil {
		j, l, _, _ = h.member(in)
	}
	if l == nil || planted.In(planted.SellRemaining) {
		return
	}
	if j.fate().dropping.State != job.Waiting {
		h.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: l.token, At: now, Text: "its processes could not be ended at once"})
		h.settled(now, j, out)
		return
	}
	l.remains = now
	h.stir(j)
	if until := now.Add(h.cfg.Skew); j.alive > 0 && j.met().notBefore < until {
		h.rest(now, j, h.cfg.Skew)
	}
}

// outlived counts the subjobs in a row whose processes outlived their lease. Soft: a crash forgets it and tries once more.
func (j *Job) outlived(did bool) {
	if did {
		j.troubled().outlived++
	} else if j.trouble != nil {
		j.trouble.outlived = 0
	}
}
