package aftermath

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// EndRest kills the processes left of a subjob whose supervisor is dead. The error is Remain if some processes do not end.
func (a *Aftermath) EndRest(note shim.Note) error {
	if a.hit == 0 { // now, as the groups are removed with the last process
		a.hit, a.hitWords = limitHit(a.groups(note, nil))
	}
	if left := a.killRest(note); len(left) > 0 {
		return Remain(fmt.Sprintf("%d processes remain after SIGKILL, the first is %d", len(left), left[0].PID))
	}
	a.gone = a.Node.Now()
	return nil
}

// limitHit returns which limit a subjob has hit, by the kernel's counts in its control groups; 0: none. That limit is its outcome even if
// something else killed it and its supervisor afterwards.
func limitHit(groups []tree.Group) (job.Outcome, string) {
	switch {
	case slices.ContainsFunc(groups, tree.Group.OutOfMemory):
		return job.MemoryKilled, "the kernel ended some of it: it wanted more than the memory of its slice"
	case slices.ContainsFunc(groups, tree.Group.OutOfProcesses):
		return job.LimitKilled, "it wanted more processes than it may have"
	}
	return 0, ""
}

// killRest kills the processes that a dead supervisor left, and describes those that do not end.
func (a *Aftermath) killRest(note shim.Note) []tree.Process {
	if note.BootID != shim.BootID() {
		return nil // the machine was restarted: nothing of it can be left
	}
	_, groups := a.alive(note)
	for _, g := range groups {
		if err := g.Kill(); err != nil {
			a.Node.Log.Warn("killing a control group", "subjob", a.Token.String(), "err", err)
		}
	}
	left := tree.End(func() []tree.Process {
		all, _ := a.alive(note)
		return all
	}, Patience)
	if len(left) == 0 {
		for _, g := range groups {
			_ = g.Remove()
		}
	}
	return left
}

// groups returns the control groups of the subjob: the one in its supervisor's note, and those of known, which are processes of it.
func (a *Aftermath) groups(note shim.Note, known []tree.Process) (all []tree.Group) {
	if group := tree.Group(note.Cgroup); group != "" {
		all = append(all, group)
	} else if note.PID != 0 { // the supervisor may have died before it noted the group
		all = append(all, a.Lease.Group(note.PID))
	}
	for _, p := range known {
		if group := tree.GroupOf(p.PID, a.Token.String()); group != "" && !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all
}

// alive finds the living processes of the subjob, and their control groups, without its supervisor's help. Without a note the supervisor
// may still live: then it is among them, with all its descendants.
func (a *Aftermath) alive(note shim.Note) (all []tree.Process, groups []tree.Group) {
	all = tree.Marked(a.Dir.Mark())
	if note.PID == 0 {
		for _, holder := range tree.Holding(a.Dir.Note(), a.locked) {
			for _, below := range tree.Below(holder.PID) {
				all = append(all, below.Process)
			}
			all = append(all, holder)
		}
	}
	groups = a.groups(note, all)
	for _, g := range groups {
		all = append(all, g.Members()...)
	}
	init := tree.Process{PID: note.Init, Started: note.InitStarted}
	if init.PID != 0 && init.Alive() {
		all = append(all, init)
	}
	return all, groups
}
