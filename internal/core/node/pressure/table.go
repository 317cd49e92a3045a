package pressure

import (
	"slices"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// table is the snapshot that is decided on: a task for each lease that runs, and behind them those of the machine's other nodes.
type table struct {
	inventory *inventory.Inventory
	leases    *leases.Leases
	tasks     []airlock.Task
	of        []*leases.Lease // of each task that is this node's
	others    []protocol.Neighbour
}

// planned is what a lease was to have of the host's memory at most; 0: not known, as of a slice that has memory of its own, which a GPU's
// is.
func (t *table) planned(of *leases.Terms) quantity.Amount {
	if s := t.inventory.Of(of.Slice); s == nil || !s.Hosted() {
		return 0
	}
	return of.Demand[trp.Memory]
}

// make makes tasks of the leases that run, with what they use. Those with an entry are among them whether or not the executor names them,
// if entries are to be timed here.
func (t *table) make(uses []protocol.Use, timed bool) {
	t.tasks, t.of, t.others = t.tasks[:0], t.of[:0], nil
	if timed {
		for _, l := range t.leases.Ordered() {
			if l.Stand().Since != 0 {
				t.add(l, nil)
			}
		}
	}
	for i := range uses {
		if l := t.leases.Of(uses[i].Token); l != nil {
			t.add(l, &uses[i])
		}
	}
}

// add puts a lease in the table, with what it has of the memory, as far as that is known.
func (t *table) add(l *leases.Lease, u *protocol.Use) {
	if !counts(l) {
		return
	}
	i := slices.Index(t.of, l)
	if i < 0 {
		if len(t.tasks) == airlock.MaxTasks {
			return
		}
		i = len(t.of)
		t.of = append(t.of, l)
		of, stand := l.Terms(), l.Stand()
		t.tasks = append(t.tasks, airlock.Task{
			Token: of.Token, Start: l.Started(), Planned: t.planned(&of), Since: stand.Since, Resumed: stand.Resumed,
			Priority: of.Rank.Priority, Value: of.Rank.Value, Class: classes[of.Rank.Class], State: state(l), Entries: stand.Times,
			Bound: of.Plan.Members > 0 || l.Restless(), Yields: of.Rank.Yields,
		})
	}
	if u != nil {
		t.tasks[i].Resident, t.tasks[i].Parked, t.tasks[i].Growth = u.Resident, u.Parked, u.Growth
	}
}

// addOthers puts the other nodes' subjobs behind them.
func (t *table) addOthers(list []protocol.Neighbour) {
	t.others = list
	for i := range list {
		if len(t.tasks) < airlock.MaxTasks {
			t.tasks = append(t.tasks, taskOf(&list[i]))
		}
	}
}

// jobAt is the job of a task.
func (t *table) jobAt(task int) job.ID {
	if task < len(t.of) {
		return t.of[task].Job()
	}
	return t.others[task-len(t.of)].Job
}

// counts says whether a lease has memory that is decided about: it runs, or is being stopped.
func counts(l *leases.Lease) bool { return l.Runs() || l.Phase() == leases.Stopping }

// taskOf is another node's subjob as it lies in a table.
func taskOf(o *protocol.Neighbour) airlock.Task {
	return airlock.Task{
		Token: o.Token, Start: o.Start, Planned: o.Planned, Since: o.Stand.Since, Resumed: o.Stand.Resumed, Resident: o.Resident,
		Parked: o.Parked,
		Growth: o.Growth, Priority: o.Rank.Priority, Value: o.Rank.Value, Class: classes[o.Rank.Class], State: airlock.State(o.State),
		Entries: o.Stand.Times, Bound: o.Bound, Yields: o.Rank.Yields,
	}
}

var classes = [protocol.Classes]airlock.Class{ //nolint:gochecknoglobals // a table, written to by nobody
	protocol.Fleeting: airlock.Fleeting, protocol.Lasting: airlock.Lasting, protocol.Collective: airlock.Collective,
}

// state is what Airlock is doing with a lease that runs or is being stopped.
func state(l *leases.Lease) airlock.State {
	switch stand := l.Stand(); {
	case stand.Reclaimed:
		return airlock.Reclaiming
	case l.Phase() == leases.Stopping && stand.Asked:
		return airlock.Readdressing
	case l.Phase() == leases.Stopping:
		return airlock.Ending
	case l.Phase() == leases.Suspending:
		return airlock.Suspending
	case l.Phase() == leases.Suspended:
		return airlock.Suspended
	case l.Phase() == leases.Resuming:
		return airlock.Resuming
	default:
		return airlock.Running
	}
}

// doneTo is what its watcher did to a lease for which planned memory was expected, and why as far as is known. Its Step is 0 if the watcher
// did nothing new.
func doneTo(l *leases.Lease, u *protocol.Use, r *airlock.Reading, planned quantity.Amount) airlock.Action {
	a := airlock.Action{Token: u.Token}
	still, stopping, stand := l.Phase().Still(), l.Phase() == leases.Stopping, l.Stand()
	switch s := u.Stand.State; {
	case s == protocol.IsSuspended && !still && !stopping:
		a.Step, a.Cause = airlock.Suspend, airlock.Deficit
	case s == protocol.GoesOn && still:
		a.Step, a.Cause = airlock.Resume, airlock.Eased
		switch {
		case r.Level >= airlock.Severe:
			a.Cause = airlock.Overtime
		case !r.Fits(u.Parked):
			a.Cause = airlock.Waited
		}
	case s == protocol.IsToYield && !stopping:
		a.Step, a.Cause = airlock.Readdress, airlock.Deficit
		grown := airlock.Task{Resident: u.Resident, Parked: u.Parked, Planned: planned}
		switch {
		case stand.Since != 0 && r.Level == airlock.Calm && !r.Fits(u.Parked) && grown.Outgrown():
			a.Cause = airlock.Cramped
		case stand.Since != 0:
			a.Cause = airlock.Waited
		}
	case s == protocol.IsEnded && !stand.Reclaimed:
		a.Step, a.Cause = airlock.Reclaim, airlock.Overtime
		if r.Level == airlock.Emergency {
			a.Cause = airlock.Brink
		}
	}
	return a
}
