package zone

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// A ledger is held against its definition here: what it keeps beside its records is added up from them, and every alarm is set anew.

// rearmLedger sets the alarms of all jobs from what the jobs say. Done before every step it makes a ledger that looks at every job and
// every claim: the oracle of one that looks only at what has changed.
func rearmLedger(h *home.Ledger, now quantity.Instant) {
	b := h.Book()
	for _, j := range sortedJobs(slices.Collect(b.Jobs())) {
		b.Stir(j)
		b.ArmOutput(j)
		b.Agenda.Set(record.Avoiding, j, j.Backoff().Expires())
		if j.Backoff().Rests() > now {
			b.Agenda.Set(record.Resting, j, j.Backoff().Rests())
		}
		if deadline := cmp.Or(j.Spec.Deadline, quantity.Never); j.Active() && (deadline > now || !j.Ending().Stopping()) {
			b.Agenda.Set(record.Deadline, j, deadline)
		}
	}
}

// liveOf are the jobs without a verdict, by id.
func liveOf(h *home.Ledger) []*home.Job { return sortedJobs(slices.Clone(h.Book().Live())) }

// busyOf are the jobs with claims, by id.
func busyOf(h *home.Ledger) []*home.Job { return sortedJobs(slices.Clone(h.Book().Busy())) }

func sortedJobs(list []*home.Job) []*home.Job {
	slices.SortFunc(list, func(a, b *home.Job) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// auditLedger says what a ledger keeps that is not so: what is kept of a job or a queue is not what its claims and asks come to, or a job
// is not in a register that its state says.
func auditLedger(h *home.Ledger) (wrong []string) {
	held, asking, pledged := map[*home.Queue]int{}, map[*home.Queue]int{}, map[*home.Queue]int64{}
	deadlines := h.Book().Agenda.All(record.Deadline)
	live, busy := 0, 0
	for j := range h.Book().Jobs() {
		claimed := job.Ranges(nil)
		for i := range j.Claims() {
			c := &j.Claims()[i]
			claimed = claimed.Add(c.Range)
			held[j.Queue()] += 1 + len(c.Also)
			if st := j.ClaimSet().State(c.Token); st == nil {
				wrong = append(wrong, fmt.Sprintf("job %s: nothing is known of its claim %v", j.ID, c.Token))
			}
		}
		if len(j.Claims()) > 0 {
			busy++
		}
		if j.Active() {
			live++
		}
		if claimed.Len() != j.Progress().Claimed().Len() || len(j.Claims()) != len(j.ClaimSet().States()) {
			wrong = append(wrong, fmt.Sprintf("job %s: %v is claimed, its %d claims come to %v",
				j.ID, j.Progress().Claimed(), len(j.Claims()), claimed))
		}
		if d := j.Spec.Deadline; j.Active() && d != 0 && d != quantity.Never && !j.Ending().Stopping() && !slices.Contains(deadlines, j) {
			wrong = append(wrong, fmt.Sprintf("job %s: nobody looks at its deadline", j.ID))
		}
	}
	for _, a := range h.Claims().Asks() {
		asking[a.Job.Queue()] += 1 + len(a.Also)
		if a.Bid != nil {
			pledged[a.Job.Queue()] += a.Bid.Price
		}
	}
	for _, q := range h.Book().Queues() {
		if q.Held() != held[q] || q.Holding() != held[q]+asking[q] || q.Pledged() != pledged[q] {
			wrong = append(wrong, fmt.Sprintf("queue %s holds %d, with asks %d, and pledges %d; its jobs come to %d, %d and %d",
				q.Name, q.Held(), q.Holding(), q.Pledged(), held[q], held[q]+asking[q], pledged[q]))
		}
	}
	if busy != len(h.Book().Busy()) || live != len(h.Book().Live()) {
		wrong = append(wrong, fmt.Sprintf("%d jobs are busy and %d live, %d have claims and %d no verdict",
			len(h.Book().Busy()), len(h.Book().Live()), busy, live))
	}
	return wrong
}
