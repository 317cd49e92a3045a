// Package recovery folds the journal into the actors, and refuses a start that could lose what one of them has promised. It decides
// nothing.
package recovery

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host/heap"
)

// collectEvery is after how many facts the heap's size is checked.
const collectEvery = 1 << 16

// What the journal has of an actor. A node that has only booted has promised nothing: the first boot of several may be cut off
// between two of them.
const (
	nothing = iota
	bootedOnly
	more
)

// State is what the journal has of each actor. It belongs to the goroutine that opens the daemon.
type State struct {
	set     actor.Set
	parties []actor.Party
	index   map[protocol.Address]int
	dataDir string
	log     *slog.Logger

	absent   absent
	kept     []int // of each party: nothing, bootedOnly or more
	position journal.Position
	facts    uint64 // of the snapshot
}

// New returns the recovery of these actors; nothing was read yet.
func New(set actor.Set, dataDir string, log *slog.Logger) *State {
	s := &State{set: set, parties: set.Parties(), index: map[protocol.Address]int{}, dataDir: dataDir, log: log, absent: absent{}}
	for i, p := range s.parties {
		s.index[p.Address] = i
	}
	s.kept = make([]int, len(s.parties))
	return s
}

// Position is where the journal ends.
func (s *State) Position() journal.Position { return s.position }

// Fresh: the journal was empty.
func (s *State) Fresh() bool { return s.position.Seq == 0 }

// SnapshotFacts is how many facts the journal's snapshot has.
func (s *State) SnapshotFacts() uint64 { return s.facts }

// Replay folds the journal into the actors. told is called with each of their facts and its encoding, on a goroutine of its own.
func (s *State) Replay(j journal.Journal, renames protocol.Renames, growth *heap.Recovery,
	told func(f *protocol.Fact, encoded []byte)) error {
	begin, facts := time.Now(), 0
	growth.Begin()
	r := &reader{
		journal: j, renames: renames,
		told: func(f *protocol.Fact, encoded []byte) {
			if _, there := s.index[f.Actor]; there {
				told(f, encoded)
			}
		},
		full: make(chan []protocol.Fact, batches), free: make(chan []protocol.Fact, batches),
	}
	for range batches {
		r.free <- make([]protocol.Fact, 0, batchFacts)
	}
	go r.run()
	for list := range r.full {
		for i := range list {
			s.fold(&list[i])
			if facts++; facts%collectEvery == 0 {
				growth.Grown()
			}
		}
		clear(list)
		r.free <- list[:0]
	}
	if r.err != nil {
		return fmt.Errorf("recover from the journal: %w", r.err)
	}
	s.position, s.facts = r.end, r.snapshot
	s.log.Info("recovered", "facts", facts, "at", s.position.String(), "took", time.Since(begin))
	return nil
}

// fold applies one fact to its actor; whether an absent actor may be missing is known at the end.
func (s *State) fold(f *protocol.Fact) {
	i, ok := s.index[f.Actor]
	if !ok {
		s.absent.fold(f)
		return
	}
	s.kept[i] = max(s.kept[i], bootedOnly)
	if f.Kind != protocol.Booted {
		s.kept[i] = more
	}
	s.parties[i].Actor.Apply(*f)
}

// Complete refuses a configuration that lacks a zone that is the home of a job, or has other nodes than the journal: nobody would keep the
// promises of a missing one, and GPUs that are dealt to other nodes could be sold while an earlier subjob runs there.
func (s *State) Complete() error {
	if err := s.missing(); err != nil {
		return err
	}
	if g, ok := s.set.Lead().(actor.Strayer); ok {
		if id, home, found := g.Stray(); found {
			return errkind.Errorf(errkind.Invalid, "job %s has its home in zone %s, which is missing: put it back into zones: of "+
				"--config (zones: [%s]); "+
				"it may be left out once it was drained (sluice zones drain %s --wait); nothing was changed", id, home, s.zonesWith(home),
				home)
		}
	}
	var with, without []actor.Party
	for i, p := range s.parties {
		switch {
		case p.Address.Role != protocol.Node:
		case s.kept[i] == more:
			with = append(with, p)
		case s.kept[i] == nothing:
			without = append(without, p)
		}
	}
	if len(with) > 0 && len(without) > 0 {
		return errkind.Errorf(errkind.Invalid, "%s was begun with %s, and GPUs would be dealt to %s too: start it with the nodes it "+
			"had, or in another directory", s.dataDir, actor.Names(with), actor.Names(without))
	}
	return nil
}

// missing refuses a configuration without an actor that is still needed: anybody but a drained zone that keeps nothing.
func (s *State) missing() error {
	gone := slices.SortedFunc(maps.Keys(s.absent),
		func(a, b protocol.Address) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.ID, b.ID)) })
	drainer, _ := s.set.Lead().(actor.Drainer)
	for _, at := range gone {
		zone, kept := job.ZoneID(at.ID), slices.Sorted(maps.Keys(s.absent[at]))
		switch {
		case at.Role != protocol.Zone:
			return errkind.Errorf(errkind.Invalid, "the journal in %s holds facts of %s, but this daemon is %s: "+
				"start it with the name (--name), the zones and the nodes it had%s",
				s.dataDir, actor.Name(at), actor.Names(s.parties[len(s.set.Gates):]), nodesHint(at))
		case drainer == nil || !drainer.Drained(zone):
			return errkind.Errorf(errkind.Invalid, "zone %s is missing, and it was never drained: put it back into zones: of --config "+
				"(zones: [%s]), start, "+
				"and give its jobs to the others with `sluice zones drain %s` before you leave it out; nothing was changed", zone,
				s.zonesWith(zone), zone)
		case len(kept) > 0:
			return errkind.Errorf(errkind.Invalid, "zone %s is missing, and it still keeps %d jobs (%s): put it back into zones: of "+
				"--config (zones: [%s]), start, "+
				"and leave it out when `sluice zones drain %s --wait` has ended; nothing was changed", zone, len(kept), some(kept),
				s.zonesWith(zone), zone)
		}
	}
	if drainer == nil {
		return nil
	}
	var drained []string
	for i := range s.set.Zones {
		if id := s.set.Zones[i].ID; drainer.Drained(id) {
			drained = append(drained, string(id))
		}
	}
	if len(drained) == len(s.set.Zones) {
		return errkind.Errorf(errkind.Invalid, "every zone of this daemon was drained for good (%s), and jobs need a home: add another "+
			"name to zones: of --config (zones: [%s, NAME]); nothing was changed",
			strings.Join(drained, ", "), strings.Join(drained, ", "))
	}
	for _, at := range gone {
		s.log.Info("a zone that was drained has left", "zone", at.ID)
	}
	for _, id := range drained {
		s.log.Info("a zone is drained for good: no job has its home there any more, and it may be left out of zones once it is empty",
			"zone", id)
	}
	return nil
}

// zonesWith are the names of the zones to start with: those that there are, this one and any other that is missing. One that is alone and
// new is none of them: with another number of zones they have other names.
func (s *State) zonesWith(zone job.ZoneID) string {
	names := []string{string(zone)}
	for i := range s.set.Zones {
		if id := string(s.set.Zones[i].ID); len(s.set.Zones) > 1 ||
			s.kept[s.index[protocol.Address{Role: protocol.Zone, ID: id}]] != nothing {
			names = append(names, id)
		}
	}
	for at, kept := range s.absent { // in any order: they are sorted below
		if drainer, ok := s.set.Lead().(actor.Drainer); at.Role == protocol.Zone && at.ID != string(zone) &&
			!(ok && drainer.Drained(job.ZoneID(at.ID)) && len(kept) == 0) {
			names = append(names, at.ID)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// absent are the actors whose facts the journal has and who are not there; of zones with the jobs that they still keep a record of. A zone
// that was drained may be left out of the configuration once it keeps none (docs/adr/0044-rehomed.md): what its journal has besides, of
// its queues and templates, goes with it.
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
