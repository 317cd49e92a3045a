// Package inventory is the slices of a node: which there are, what is reserved on each and whether it may be sold. A slice that has changed
// is marked until it is taken from the list of changed ones, so that no change goes unseen.
package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/core/trp"
)

// ShortOfMemory is why a node over the severe line of its host's memory grants nothing, for people.
const ShortOfMemory = "the node is short of memory"

// KeepsRoom is why a node whose host's memory is full grants nothing, for people.
const KeepsRoom = "the node keeps room in its memory for what had to leave"

// Inventory is one node's slices. Those are sorted by id.
type Inventory struct {
	list    []*Slice
	byID    map[job.SliceID]*Slice
	found   *Slice // the one that was looked up last; nil: none
	changed dirty.Set[*Slice]
	taken   []*Slice // room for those that are taken from it
	version uint64
	watcher Watcher
	staying []*Slice // those on which a program stays

	// What bars all of them: until the boot is confirmed nobody knows what runs, its host's memory is short or full, it can start nothing.
	confirmed, short, full bool
	trouble                string

	said  []protocol.Slice // the last list
	lists int              // how many there were
}

// Watcher is called on changes.
type Watcher interface {
	// Place records a slice that is new or changed, Changed that its free time has changed.
	Place(s *protocol.Slice)
	Changed(id job.SliceID)
}

// New returns an empty inventory.
func New() *Inventory { return &Inventory{byID: map[job.SliceID]*Slice{}, version: 1} }

// Watch has a watcher told what changes from now on.
func (i *Inventory) Watch(w Watcher) { i.watcher = w }

// All are the slices in order of id, not to be written to.
func (i *Inventory) All() []*Slice { return i.list }

// Of is a slice, nil if nothing is known of it.
func (i *Inventory) Of(id job.SliceID) *Slice {
	if i.found == nil || i.found.id != id {
		i.found = i.byID[id]
	}
	return i.found
}

// Record is a slice, made if nothing was known of it.
func (i *Inventory) Record(id job.SliceID) *Slice {
	s := i.Of(id)
	if s == nil {
		s = &Slice{of: i, id: id, desc: protocol.Slice{ID: id}}
		at, _ := slices.BinarySearchFunc(i.list, id, func(s *Slice, id job.SliceID) int { return cmp.Compare(s.id, id) })
		i.list, i.byID[id] = slices.Insert(i.list, at, s), s
	}
	return s
}

// Each calls f for every slice of a lease or a hold, the named one first.
func (i *Inventory) Each(first job.SliceID, also []job.SliceID, f func(*Slice)) {
	f(i.Record(first))
	for _, id := range also {
		f(i.Record(id))
	}
}

// Confirmed says whether it is known what runs.
func (i *Inventory) Confirmed() bool { return i.confirmed }

// Confirm notes that it is.
func (i *Inventory) Confirm() { i.confirmed = true }

// Trouble is why the node can start nothing; empty: it can.
func (i *Inventory) Trouble() string { return i.trouble }

// SetTrouble notes that the node can start nothing, or can again. What is running goes on; what was sold and has not begun waits for the
// end of it, as long as its window lasts. It is not durable: a restart finds it again.
func (i *Inventory) SetTrouble(c *protocol.Condition) {
	why := ""
	if c.Unhealthy {
		why = cmp.Or(c.Text, "it can start nothing")
	}
	if i.trouble != why {
		i.trouble = why
		i.markAll()
	}
}

// Short says whether the host's memory is: nothing is granted and nothing begins. Full: nothing is granted.
func (i *Inventory) Short() bool { return i.short }

// Full see Short.
func (i *Inventory) Full() bool { return i.full }

// SetMemory notes both.
func (i *Inventory) SetMemory(short, full bool) {
	if i.short != short || i.full != full {
		i.short, i.full = short, full
		i.markAll()
	}
}

func (i *Inventory) markAll() {
	for _, s := range i.list {
		s.Mark()
	}
}

// Version grows with every change but those of what the host bears.
func (i *Inventory) Version() uint64 { return i.version }

// Changed is how many slices have changed and were not taken.
func (i *Inventory) Changed() int { return i.changed.Len() }

// Take takes those out, in order of id; good until the next time.
func (i *Inventory) Take() []*Slice {
	i.taken = append(i.taken[:0], i.changed.List()...)
	i.changed.Clear()
	slices.SortFunc(i.taken, func(a, b *Slice) int { return cmp.Compare(a.id, b.id) })
	return i.taken
}

// Listed is the last list of slices.
func (i *Inventory) Listed() []protocol.Slice { return i.said }

// List replaces the list of slices, and returns those that are new or changed, and those that are gone. It is no fact: a restart lists them
// again.
func (i *Inventory) List(list []protocol.Slice) (other, missing []*Slice) {
	i.said = list
	i.lists++
	for k := range list {
		s := i.Record(list[k].ID)
		s.list = i.lists
		is := list[k]
		is.Host, is.Bears = s.desc.Host, s.desc.Bears
		if s.present && s.desc == is {
			continue
		}
		s.present, s.desc = true, is
		if i.watcher != nil {
			i.watcher.Place(&s.desc)
		}
		s.Remark()
		other = append(other, s)
	}
	for _, s := range i.list {
		if s.list != i.lists {
			missing = append(missing, s)
		}
	}
	return other, missing
}

// Lose notes that a slice is not there any more, and says whether it was.
func (i *Inventory) Lose(s *Slice) (was bool) {
	if was = s.present; was {
		s.present = false
		s.Mark()
	}
	return was
}

// Forget drops the slices that are gone, have nothing left, and are not needed: machines of a cluster have ever new names. It returns them.
func (i *Inventory) Forget(needed func(*Slice) bool) (gone []*Slice) {
	i.list = slices.DeleteFunc(i.list, func(s *Slice) bool {
		if s.present || s.Durable() || s.stay != nil || bool(s.mark) || needed(s) {
			return false
		}
		delete(i.byID, s.id)
		i.found, gone = nil, append(gone, s)
		return true
	})
	return gone
}

// Slice is what a node knows of one slice. It exists as soon as anything durable names it. Whatever changes it marks it as changed.
type Slice struct {
	of        *Inventory
	id        job.SliceID
	desc      protocol.Slice
	present   bool // it is in the present list
	list      int  // the number of the list that had it last
	condition Condition
	time      timeline.Timeline // durable: leases and reservations; soft: holds, and what others hold
	stay      *Stay             // soft
	mark      dirty.Mark
	changes   uint64
}

// ID of the slice.
func (s *Slice) ID() job.SliceID { return s.id }

// Desc is the inventory's description, with the offered part of its host's memory.
func (s *Slice) Desc() protocol.Slice { return s.desc }

// Capacity is how much memory it has.
func (s *Slice) Capacity() quantity.Amount { return s.desc.Capacity[trp.Memory] }

// Present says whether the last inventory had it.
func (s *Slice) Present() bool { return s.present }

// Hosted reports whether its memory is the host's: a device has its own, and its leases do not count against the host's.
func (s *Slice) Hosted() bool { return s.desc.Device == "" }

// Condition says why it is not sold although it is there.
func (s *Slice) Condition() *Condition { return &s.condition }

// Changes counts what has changed of it.
func (s *Slice) Changes() uint64 { return s.changes }

// Usable says whether it may be sold, and why not.
func (s *Slice) Usable() (why string, ok bool) {
	why, ok = s.redeemable()
	switch {
	case ok && s.of.full:
		return KeepsRoom, false
	case ok && s.stay != nil && s.stay.Leaving != "":
		return "the program that stayed there ends: " + s.stay.Leaving, false
	}
	return why, ok
}

// redeemable says whether what is held of it may become a lease, and why not. Full memory is no obstacle here, since it may be that very
// hold that fills it (pressure.Honours).
func (s *Slice) redeemable() (why string, ok bool) {
	switch i := s.of; {
	case !i.confirmed:
		return "the node is starting: what runs there is not known yet", false
	case !s.present:
		return "the slice is not in the inventory", false
	case s.condition.Quarantined:
		return "quarantined: " + s.condition.Why, false
	case s.condition.Fault != nil:
		return "quarantined: " + s.condition.Fault.Text, false
	case i.short:
		return ShortOfMemory, false
	case i.trouble != "":
		return "the node is in trouble: " + i.trouble, false
	}
	return "", true
}

// Refuses says why it is not sold for such a demand; empty: it may be.
func (s *Slice) Refuses(demand trp.Vector) string {
	why, ok := s.Usable()
	return s.refuses(demand, why, ok)
}

// RefusesHeld says why what is held of it does not become a lease of such a demand; empty: it may.
func (s *Slice) RefusesHeld(demand trp.Vector) string {
	why, ok := s.redeemable()
	return s.refuses(demand, why, ok)
}

func (s *Slice) refuses(demand trp.Vector, why string, ok bool) string {
	if !ok {
		return fmt.Sprintf("%s: %s", s.id, why)
	}
	if !demand.Fits(s.desc.Capacity) {
		return fmt.Sprintf("%s: %v is more than its capacity %v", s.id, demand, s.desc.Capacity)
	}
	return ""
}

// SetCondition replaces its condition.
func (s *Slice) SetCondition(c Condition) {
	s.condition = c
	s.Mark()
}

// Bear notes how much the host has, and what of the slice's memory it bears.
func (s *Slice) Bear(host, bears quantity.Amount) {
	if bears == s.desc.Bears && host == s.desc.Host {
		return
	}
	s.desc.Host, s.desc.Bears = host, bears
	s.Remark()
	if s.of.watcher != nil && s.present {
		s.of.watcher.Place(&s.desc)
	}
}

// Bearing is its description while it is held with this much of the host's memory.
func (s *Slice) Bearing(held quantity.Amount) protocol.Slice {
	d := s.desc
	if d.Host > 0 {
		d.Bears = held
	}
	return d
}

// Mark notes that it has changed, and so what its host bears.
func (s *Slice) Mark() {
	s.of.version++
	s.Remark()
}

// Remark notes that it may have to be offered again.
func (s *Slice) Remark() {
	s.changes++
	s.of.changed.Add(&s.mark, s)
	if s.of.watcher != nil {
		s.of.watcher.Changed(s.id)
	}
}

// Sold is its sold time in order of start, Closed its closed time; good until it changes, and not to be written to.
func (s *Slice) Sold() []protocol.Reservation { return s.time.Sold() }

// Closed see Sold.
func (s *Slice) Closed() []protocol.Reservation { return s.time.Closed() }

// Full says whether there is no room for one more reservation.
func (s *Slice) Full() bool { return s.time.Full() }

// Free says whether all of [from, to) could be sold now, and what is in the way otherwise (timeline.Free).
func (s *Slice) Free(now, from, to quantity.Instant, own job.ID) (inTheWay protocol.Reservation, ok bool) {
	return s.time.Free(now, from, to, own)
}

// Gaps appends what could be sold (timeline.Gaps).
func (s *Slice) Gaps(now quantity.Instant, horizon, least time.Duration, out []protocol.Gap) (gaps []protocol.Gap, more bool) {
	return s.time.Gaps(now, horizon, least, out)
}

// Past appends the ids of closed time that is over (timeline.Past).
func (s *Slice) Past(now quantity.Instant, out []uint64) []uint64 { return s.time.Past(now, out) }

// sale is the id of a lease's or a hold's time: the top bit keeps it apart from reservations, which are counted up from 1.
func sale(t job.Token) uint64 { return 1<<63 | uint64(t.Epoch)<<40 | t.Seq&(1<<40-1) }

// Sell takes free time for a lease or a hold. Time that is not free is a broken invariant.
func (s *Slice) Sell(kind protocol.ReservationKind, of job.ID, t job.Token, start, end quantity.Instant) {
	inTheWay, free := s.time.Insert(protocol.Reservation{ID: sale(t), Kind: kind, Slice: s.id, Start: start, End: end, Job: of, Token: t})
	if !free {
		invariant.Check(false, "node: %v %v overlaps %v %d on %s", kind, t, inTheWay.Kind, inTheWay.ID, s.id)
	}
	s.Mark()
}

// Return frees the time of a lease or a hold.
func (s *Slice) Return(t job.Token) {
	s.time.Remove(sale(t))
	s.Mark()
}

// Extend moves the end of sold time, Truncate moves it closer. If the time up to there is sold, or nothing would be left, that is a broken
// invariant.
func (s *Slice) Extend(t job.Token, end quantity.Instant) {
	if inTheWay, free := s.time.Extend(sale(t), end); !free {
		invariant.Check(false, "node: lease %v can't be extended over %v %d on %s", t, inTheWay.Kind, inTheWay.ID, s.id)
	}
	s.Mark()
}

// Truncate see Extend.
func (s *Slice) Truncate(t job.Token, end quantity.Instant) {
	if !s.time.Truncate(sale(t), end) {
		invariant.Check(false, "node: lease %v can't be cut to %d on %s", t, end, s.id)
	}
	s.Mark()
}

// Close takes a reservation's time off the market, Reopen gives it back.
func (s *Slice) Close(r protocol.Reservation) {
	s.time.Close(r)
	s.Mark()
}

// Reopen see Close.
func (s *Slice) Reopen(id uint64) {
	s.time.Reopen(id)
	s.Mark()
}

// soft is the bit that marks the ids of others' holds on a slice: closed time without a fact. The ids of durable reservations are below it.
const soft = 1 << 62

func isSoft(id uint64) bool { return id>>62 == 1 }

// Reservations yields the durable ones of its closed time.
func (s *Slice) Reservations(yield func(protocol.Reservation) bool) {
	for _, r := range s.time.Closed() {
		if !isSoft(r.ID) && !yield(r) {
			return
		}
	}
}

// CloseFor closes time for the k-th hold of others, ReopenFor gives it back.
func (s *Slice) CloseFor(k int, r protocol.Reservation) {
	r.ID, r.Slice = soft+uint64(k), s.id
	s.Close(r)
}

// ReopenFor see CloseFor.
func (s *Slice) ReopenFor(k int) { s.Reopen(soft + uint64(k)) }

// Others yields what others hold of it, with which of theirs that is. It may change meanwhile.
func (s *Slice) Others(yield func(int, protocol.Reservation) bool) {
	for _, r := range slices.Clone(s.time.Closed()) {
		if isSoft(r.ID) && !yield(int(r.ID-soft), r) {
			return
		}
	}
}

// HeldBy is what others hold of it now, until the instant at which its time is theirs no more.
func (s *Slice) HeldBy(now quantity.Instant) (by protocol.Reservation, held bool) {
	for _, r := range s.time.Closed() {
		if !isSoft(r.ID) {
			continue
		}
		if o, hit := timeline.Overlap(&r, now, now+1); hit && (!held || o.End > by.End) {
			by, held = o, true
		}
	}
	return by, held
}

// Stay is the program that stays on it; nil: none does.
func (s *Slice) Stay() *Stay { return s.stay }

// SetStay notes that a program stays, or is to leave; nil: none does any more.
func (s *Slice) SetStay(x *Stay) {
	i := s.of
	if was := s.stay != nil; was != (x != nil) {
		i.staying = slices.DeleteFunc(i.staying, func(o *Slice) bool { return o == s })
		if x != nil {
			i.staying = append(i.staying, s)
		}
	}
	s.stay = x
	s.Mark()
}

// Taken notes that a subjob goes on in what stays there, if anything does: it is the lease's from now on.
func (s *Slice) Taken() {
	if s.stay != nil {
		s.SetStay(nil)
	}
}

// Staying are the slices on which a program stays, in the order in which it came; not to be written to.
func (i *Inventory) Staying() []*Slice { return i.staying }

// Serves reports whether what stays there, if anything does, is the program of this number (job.Spec.Residence).
func (s *Slice) Serves(residence uint64) bool {
	return s.stay == nil || s.stay.Leaving == "" && s.stay.Number == residence
}

// Durable reports whether a fact depends on it: something that people would look for although the slice is gone.
func (s *Slice) Durable() bool {
	for range s.Reservations {
		return true
	}
	return !s.condition.Healthy() || len(s.time.Sold()) > 0
}

// Over says whether a reservation is past its end and stands no more. A lease or a hold stands until it is confirmed gone.
func Over(now quantity.Instant, r *protocol.Reservation) bool {
	return r.Kind != protocol.ForLease && r.Kind != protocol.ForHold && r.Every == 0 && r.End <= now
}

// Reserved appends what stands on it and is not over, in order of start.
func (s *Slice) Reserved(now quantity.Instant, all []protocol.Reservation) []protocol.Reservation {
	all = append(all, s.time.Sold()...)
	for _, r := range s.time.Closed() {
		if !Over(now, &r) {
			all = append(all, r)
		}
	}
	if len(all) == 0 && s.time.Sold() == nil {
		return nil
	}
	if len(all) > 1 {
		slices.SortFunc(all, func(a, b protocol.Reservation) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
		})
	}
	return all
}
