package record

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/quantity"
)

// Agenda is when jobs are to be looked at again. Invariant: a job has at most one alarm of each kind.
type Agenda struct {
	heaps [alarms]alarm.Heap[*Job]
	due   []*Job // room
}

// slot is a job's place among the alarms of a kind; nil if it has no room for one yet.
func (j *Job) slot(of Alarm) *int {
	switch {
	case of == Deadline:
		return &j.deadline
	case of < Resting && j.work != nil:
		return &j.work.slots[of-Leases]
	case of >= Resting && j.trouble != nil:
		return &j.trouble.slots[of-Resting]
	}
	return nil
}

// Set moves a job's alarm; Never drops it.
func (a *Agenda) Set(of Alarm, j *Job, at quantity.Instant) {
	if slot := j.slot(of); slot != nil {
		a.heaps[of].Set(slot, j, at)
	}
}

// Next is the earliest alarm of a kind, Never if there is none.
func (a *Agenda) Next(of Alarm) quantity.Instant { return a.heaps[of].Next() }

// Len is how many jobs have an alarm of a kind.
func (a *Agenda) Len(of Alarm) int { return a.heaps[of].Len() }

// All are the jobs with an alarm of a kind, in no order.
func (a *Agenda) All(of Alarm) []*Job { return a.heaps[of].All() }

// Due takes the jobs out whose alarm of a kind is due, by id, but no more than most: those whose time came first. The others are due in
// the next step. They are good until the next call.
func (a *Agenda) Due(of Alarm, now quantity.Instant, most int) []*Job {
	a.due = a.due[:0]
	for len(a.due) < most {
		j, ok := a.heaps[of].Due(now)
		if !ok {
			break
		}
		a.due = append(a.due, j)
	}
	return ByName(a.due)
}

// ByName sorts jobs by their names.
func ByName(list []*Job) []*Job {
	if len(list) > 1 {
		slices.SortFunc(list, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	}
	return list
}
