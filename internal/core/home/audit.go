package home

import (
	"fmt"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Audit says what the ledger keeps that is not so: what jobs without any work, fate or trouble share was written to, which is every such
// job's then; or what is kept of a job or a queue is not what its claims and asks come to.
func (h *Ledger) Audit() (wrong []string) {
	if !unsold.untouched() || !unlearned.Zero() || unlearned.safeSum != 0 || unsealed != (fate{}) || !untroubled.untouched() {
		wrong = append(wrong, "what jobs without any of it share was written to")
	}
	held, asking, pledged := map[*Queue]int{}, map[*Queue]int{}, map[*Queue]int64{}
	busy := 0
	for j := range h.Jobs() {
		claimed := job.Ranges(nil)
		for i := range j.Claims() {
			c := &j.Claims()[i]
			claimed = claimed.Add(c.Range)
			held[j.q] += 1 + len(c.Also)
			if l := j.Lease(c.Token); l == nil {
				wrong = append(wrong, fmt.Sprintf("job %s: nothing is known of its claim %v", j.ID, c.Token))
			}
		}
		if len(j.Claims()) > 0 {
			busy++
		}
		if claimed.Len() != j.Claimed().Len() || len(j.Claims()) != len(j.work().leases) {
			wrong = append(wrong, fmt.Sprintf("job %s: %v is claimed, its %d claims come to %v", j.ID, j.Claimed(), len(j.Claims()), claimed))
		}
		if j.Active() && j.deadline() != quantity.Never && j.slots.deadline == 0 && j.Ending().State == job.Waiting {
			wrong = append(wrong, fmt.Sprintf("job %s: nobody looks at its deadline", j.ID))
		}
	}
	for _, a := range h.asks {
		asking[a.Job.q] += 1 + len(a.Also)
		if a.Bid != nil {
			pledged[a.Job.q] += a.Bid.Price
		}
	}
	for _, name := range h.queueNames() {
		if q := h.queues[name]; q.held != held[q] || q.asking != asking[q] || q.pledged != pledged[q] {
			wrong = append(wrong, fmt.Sprintf("queue %s holds %d, asks for %d and pledges %d; its jobs come to %d, %d and %d", name, q.held, q.asking, q.pledged, held[q], asking[q], pledged[q]))
		}
	}
	if busy != len(h.busy) {
		wrong = append(wrong, fmt.Sprintf("%d jobs are busy, %d have claims", len(h.busy), busy))
	}
	return wrong
}

// untouched says whether nothing was sold of any job by this.
func (w *work) untouched() bool {
	none := len(w.committed)+len(w.claimed)+len(w.skipped)+len(w.claims)+len(w.past)+len(w.unpublished)+len(w.asked)+len(w.leases) == 0
	return none && w.attained|int64(w.started)|int64(w.served)|w.forgiven == 0 && w.asking|w.fruitless|w.publishTries|w.publishTurn == 0 &&
		w.resume.Zero() && w.pastSum == 0 && w.publishAsked|w.settled == 0 && w.slots == work{}.slots
}

// untouched says whether nobody had trouble by this.
func (t *trouble) untouched() bool {
	b := &t.backoff
	return b.refusals == 0 && b.last == 0 && b.newest == 0 && b.text == "" && b.until == 0 && len(b.avoided) == 0 &&
		t.ailed == ailed{} && t.outlived == 0 && t.notBefore == 0 && t.slots == trouble{}.slots
}
