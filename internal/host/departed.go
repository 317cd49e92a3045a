package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// A zone that was drained may be left out of the configuration once it keeps no record of any job (docs/adr/0044-rehomed.md): what its journal has besides, of its
// queues and templates, goes with it.

// absent are the actors whose facts the journal has and who are not there; of zones with the jobs that they still keep a record of.
type absent map[protocol.Address]map[job.ID]bool

// fold follows the records that an absent zone keeps.
func (a absent) fold(f *protocol.Fact) {
	kept := a[f.Actor]
	if kept == nil {
		kept = map[job.ID]bool{}
		a[f.Actor] = kept
	}
	switch f.Kind {
	case protocol.HomeTaken, protocol.HomeKept:
		kept[f.Job] = true
	case protocol.HomeDropped, protocol.HomeArchived:
		delete(kept, f.Job)
	}
}

// missing refuses a configuration without an actor that is still needed: anybody but a drained zone that keeps nothing.
func (h *Host) missing() error {
	gone := slices.SortedFunc(maps.Keys(h.absent), func(a, b protocol.Address) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID)) })
	drainer, _ := h.actors.Gates[0].Gate.(actor.Drainer)
	for _, at := range gone {
		zone, kept := job.ZoneID(at.ID), slices.Sorted(maps.Keys(h.absent[at]))
		switch {
		case at.Role != protocol.Zone:
			return errkind.Errorf(errkind.Invalid, "the journal in %s holds facts of %s, but this daemon is %s: "+
				"start it with the name (--name), the zones and the nodes it had%s",
				h.opts.DataDir, actor.Name(at), actor.Names(h.parties[1:]), nodesHint(at))
		case drainer == nil || !drainer.Drained(zone):
			return errkind.Errorf(errkind.Invalid, "zone %s is missing, and it was never drained: put it back into zones: of --config (zones: [%s]), start, "+
				"and give its jobs to the others with `sluice zones drain %s` before you leave it out; nothing was changed", zone, h.zonesWith(zone), zone)
		case len(kept) > 0:
			return errkind.Errorf(errkind.Invalid, "zone %s is missing, and it still keeps %d jobs (%s): put it back into zones: of --config (zones: [%s]), start, "+
				"and leave it out when `sluice zones drain %s --wait` has ended; nothing was changed", zone, len(kept), some(kept), h.zonesWith(zone), zone)
		}
	}
	if drainer == nil {
		return nil
	}
	var drained []string
	for i := range h.actors.Zones {
		if id := h.actors.Zones[i].ID; drainer.Drained(id) {
			drained = append(drained, string(id))
		}
	}
	if len(drained) == len(h.actors.Zones) {
		return errkind.Errorf(errkind.Invalid, "every zone of this daemon was drained for good (%s), and jobs need a home: add another name to zones: of --config (zones: [%s, NAME]); nothing was changed",
			strings.Join(drained, ", "), strings.Join(drained, ", "))
	}
	for _, at := range gone {
		h.log.Info("a zone that was drained has left", "zone", at.ID)
	}
	for _, id := range drained {
		h.log.Info("a zone is drained for good: no job has its home there any more, and it may be left out of zones once it is empty", "zone", id)
	}
	return nil
}

// zonesWith are the names of the zones to start with: those that there are, this one and any other that is missing. One that is alone and new is none of them: with
// another number of zones they have other names.
func (h *Host) zonesWith(zone job.ZoneID) string {
	names := []string{string(zone)}
	for i := range h.actors.Zones {
		if id := string(h.actors.Zones[i].ID); len(h.actors.Zones) > 1 || h.kept[h.index[protocol.Address{Role: protocol.Zone, ID: id}]] != nothing {
			names = append(names, id)
		}
	}
	for at, kept := range h.absent { // in any order: they are sorted below
		if drainer, ok := h.actors.Gates[0].Gate.(actor.Drainer); at.Role == protocol.Zone && at.ID != string(zone) && !(ok && drainer.Drained(job.ZoneID(at.ID)) && len(kept) == 0) {
			names = append(names, at.ID)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// nodesHint says how many nodes to ask for, of one that is missing.
func nodesHint(at protocol.Address) string {
	if at.Role != protocol.Node {
		return ""
	}
	return " (nodes: of --config stays what it was, also when a zone is left out; where it said nothing there was a node for each zone)"
}

// some names the first of many jobs.
func some(jobs []job.ID) string {
	const most = 3
	names := make([]string, 0, most)
	for _, id := range jobs[:min(most, len(jobs))] {
		names = append(names, string(id))
	}
	if len(jobs) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(jobs)-most)
	}
	return strings.Join(names, ", ")
}
