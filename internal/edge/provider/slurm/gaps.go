package slurm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// ahead is how far gaps are shown: those that begin later are no business of now.
const ahead = 24 * time.Hour

// maxGaps bounds what is shown: the earliest.
const maxGaps = 1024

// host is a node of the cluster that pilots may run on.
type host struct {
	name       string
	partitions []string
	total      room
	free       room
}

// room is what is there, or taken, of a host.
type room struct {
	cpus, memory int64
	gres         []gres
}

// add puts what is given back to what is free.
func (r *room) add(o room) {
	r.cpus, r.memory = r.cpus+o.cpus, r.memory+o.memory
	r.gres = append(r.gres[:len(r.gres):len(r.gres)], o.gres...)
}

// fits is how many pilots there is room for.
func (r *room) fits(want room) int {
	n := r.cpus / max(1, want.cpus)
	if want.memory > 0 {
		n = min(n, r.memory/want.memory)
	}
	for _, w := range want.gres {
		var have int64
		for _, g := range r.gres {
			if g.of(w) {
				have += g.count
			}
		}
		n = min(n, have/max(1, w.count))
	}
	return int(max(0, min(n, 1<<20)))
}

// want is what each pilot takes.
func (o *Options) want() room {
	list, err := parseGres(o.Gres)
	if err != nil {
		list = nil // check has refused it
	}
	return room{max(1, int64(o.CPUs)), (o.Memory + 1<<20 - 1) >> 20 << 20, list}
}

// booking is a reservation of hosts, half-open.
type booking struct {
	name       string
	start, end time.Time
	hosts      map[string]bool
}

// unusableTable are parts of a node's state in which it takes no job.
var unusableTable = []string{"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "UNKNOWN", "INVAL", "FUTURE",
	"INVALID_REG", "NOT_RESPONDING", "NO_RESPOND", "POWERING_DOWN", "POWER_DOWN", "POWER_DRAIN", "REBOOT", "REBOOT_ISSUED",
	"REBOOT_REQUESTED", "PERFCTRS", "BLOCKED", "COMPLETING"}

// unusable reports whether a node takes no job, by the parts of its state.
func unusable(parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return slices.Contains(unusableTable, p) })
}

// hosts are the nodes of the partition that take jobs now. none: no node is of the partition.
func (o *Options) hosts(list []map[string]string) (hosts []host, none bool, err error) {
	none = true
	for _, m := range list {
		partitions := strings.Split(m["Partitions"], ",")
		if !slices.Contains(partitions, o.Partition) {
			continue
		}
		none = false
		state, _, _ := strings.Cut(m["State"], " ")
		parts := strings.Split(strings.TrimRight(state, "*~#!%$@^-"), "+")
		if strings.HasSuffix(state, "*") || unusable(parts) || !o.features(strings.Split(m["ActiveFeatures"], ",")) {
			continue
		}
		h := host{name: m["NodeName"], partitions: partitions}
		if h.total, h.free, err = rooms(m); err != nil {
			return nil, false, fmt.Errorf("node %s: %w", h.name, err)
		}
		hosts = append(hosts, h)
	}
	return hosts, none, nil
}

// features reports whether a node has all that Constraint names.
func (o *Options) features(have []string) bool {
	for want := range strings.SplitSeq(o.Constraint, "&") {
		if want != "" && !slices.Contains(have, want) {
			return false
		}
	}
	return true
}

// rooms are all that a node has and what is free of it.
func rooms(m map[string]string) (total, free room, err error) {
	number := func(keys ...string) (n int64) {
		for _, k := range keys {
			if v, there := m[k]; there && err == nil {
				if n, err = strconv.ParseInt(v, 10, 40); err != nil {
					err = fmt.Errorf("%s=%q is no number", k, brief(v))
				}
				return n
			}
		}
		if err == nil {
			err = fmt.Errorf("it has no %s", keys[0])
		}
		return 0
	}
	total.cpus, total.memory = number("CPUEfctv", "CPUTot"), number("RealMemory")<<20
	free.cpus, free.memory = total.cpus-number("CPUAlloc"), total.memory-number("AllocMem")<<20
	if err != nil {
		return total, free, err
	}
	if m["MemSpecLimit"] != "" {
		kept := number("MemSpecLimit") << 20
		total.memory, free.memory = total.memory-kept, free.memory-kept
	}
	if err != nil {
		return total, free, err
	}
	total.gres, free.gres, err = devices(m["Gres"], m["GresUsed"])
	return total, free, err
}

// devices are those that a node has, and what is free of them.
func devices(has, used string) (total, free []gres, err error) {
	if total, err = parseGres(has); err != nil {
		return nil, nil, err
	}
	taken, err := parseGres(used)
	if err != nil {
		return nil, nil, err
	}
	free = slices.Clone(total)
	for _, u := range taken {
		u.count = -u.count
		free = append(free, u)
	}
	return total, free, nil
}

// bookings are the reservations that scontrol shows but the own one, and the own one if there is to be one.
func (o *Options) bookings(list []map[string]string) (others []booking, own *booking, err error) {
	var all []booking
	for _, m := range list {
		b := booking{name: m["ReservationName"], hosts: map[string]bool{}}
		if b.start, err = parseTime(m["StartTime"]); err != nil {
			return nil, nil, err
		}
		if b.end, err = parseTime(m["EndTime"]); err != nil {
			return nil, nil, err
		}
		names, err := parseHosts(m["Nodes"])
		if err != nil {
			return nil, nil, err
		}
		for _, n := range names {
			b.hosts[n] = true
		}
		all = append(all, b)
	}
	others, own = o.apart(all)
	return others, own, nil
}

// apart takes the own reservation from the others, if there is to be one.
func (o *Options) apart(all []booking) (others []booking, own *booking) {
	for i, b := range all {
		if o.Reservation != "" && b.name == o.Reservation {
			own = &all[i]
		} else {
			others = append(others, b)
		}
	}
	return others, own
}

// shows reports whether gaps can be told by what is known of nodes: not where a node must have one feature or another.
func (o *Options) shows() bool { return !strings.ContainsAny(o.Constraint, "|,()[]*+") }

// gaps asks for nodes and reservations, and tells from them and the queue when there is room. Errors: Invalid: there is no such partition.
func (s *Slurm) gaps(ctx context.Context, rows, strangers []row) (gaps []provider.Gap, blind bool, err error) {
	hosts, none, err := s.cluster.hosts(ctx)
	var others []booking
	var own *booking
	if err == nil {
		others, own, err = s.cluster.bookings(ctx)
	}
	switch {
	case errkind.Of(err) == errkind.Denied: // PrivateData
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case !s.o.shows():
		return nil, true, nil
	case none:
		_, err = s.partition(ctx)
		return nil, true, err
	}
	excluded, err := parseHosts(s.o.Exclude)
	if err != nil {
		return nil, true, nil
	}
	if slices.ContainsFunc(strangers, func(r row) bool { return r.meantUnknown && !r.start.IsZero() }) {
		return nil, true, nil
	}
	hosts = slices.DeleteFunc(hosts, func(h host) bool {
		return slices.Contains(excluded, h.name) || s.o.Reservation != "" && (own == nil || !own.hosts[h.name])
	})
	now := s.now().UTC().Truncate(time.Second)
	others = append(others, s.unplanned(now, strangers, hosts)...)
	return between(now, s.o.want(), hosts, others, own, strangers, rows), false, nil
}

// planning is how long Slurm may take to say when a job that waits for room is to begin: its backfill passes are half a minute apart unless
// a site says otherwise (bf_interval), and take their time.
const planning = time.Minute

// unplanned are the hosts that jobs may be about to begin on which wait for room and have no expected start yet, as bookings: what a pilot
// gives back for such a job would else look free, and be asked for again while the job waits for the other hosts that it needs.
func (s *Slurm) unplanned(now time.Time, strangers []row, hosts []host) (list []booking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range strangers {
		first, is := s.since[wait{r.id, false}]
		if !is || !first.Add(planning).After(now) {
			continue
		}
		b := booking{"job " + r.id, now, first.Add(planning), map[string]bool{}}
		for i := range hosts {
			if slices.ContainsFunc(r.partitions, func(p string) bool { return slices.Contains(hosts[i].partitions, p) }) {
				b.hosts[hosts[i].name] = true
			}
		}
		list = append(list, b)
	}
	return list
}

// strangers are the jobs that wait and are none of this provider's pilots, which make room for others when they are told to.
func (s *Slurm) strangers(rows []row) (list []row) {
	for _, r := range rows {
		if s.pilot(r) == "" && stateTable[r.state].state == provider.Waiting {
			list = append(list, r)
		}
	}
	return list
}

// span is a time that is taken, half-open; a zero end: for good.
type span struct{ start, end time.Time }

// between tells when there is room for pilots on hosts. A host is taken whole while a reservation of others lasts, and from when a job is
// expected to begin there until its end. Of a job that runs the time limit counts as its end, and what it is known to hold as free then.
func between(now time.Time, want room, hosts []host, others []booking, own *booking, waiting, rows []row) []provider.Gap {
	taken := map[string][]span{}
	for _, b := range others {
		for name := range b.hosts {
			taken[name] = append(taken[name], span{b.start, b.end})
		}
	}
	for _, r := range waiting {
		if r.start.IsZero() {
			continue
		}
		for _, name := range r.meant {
			taken[name] = append(taken[name], span{r.start, r.end})
		}
	}
	ends := map[string][]row{}
	for _, r := range rows {
		if stateTable[r.state].state == provider.Running && r.end.After(now) {
			for _, name := range r.hosts {
				ends[name] = append(ends[name], r)
			}
		}
	}
	count := map[span]int{}
	for i := range hosts {
		h := &hosts[i]
		spans := taken[h.name]
		if own != nil {
			spans = append(spans, span{time.Time{}, own.start})
			if !own.end.IsZero() {
				spans = append(spans, span{own.end, time.Time{}})
			}
		}
		h.gaps(now, want, spans, ends[h.name], count)
	}
	var list []provider.Gap
	for _, g := range slices.SortedFunc(maps.Keys(count), func(a, b span) int {
		return cmp.Or(a.start.Compare(b.start), compareEnds(a.end, b.end))
	}) {
		list = append(list, provider.Gap{Start: g.start, End: g.end, Count: count[g]})
	}
	return list[:min(len(list), maxGaps)]
}

// compareEnds puts no end last.
func compareEnds(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

// gaps counts a host's gaps: in each time that is not taken those that begin with it, and more where jobs end in it.
func (h *host) gaps(now time.Time, want room, taken []span, running []row, count map[span]int) {
	running = slices.SortedFunc(slices.Values(running), func(a, b row) int { return a.end.Compare(b.end) })
	moments := []time.Time{now}
	for _, t := range taken {
		if !t.end.IsZero() {
			moments = append(moments, t.end)
		}
	}
	for _, r := range running {
		moments = append(moments, r.end)
	}
	slices.SortFunc(moments, time.Time.Compare)
	moments = slices.Compact(moments)
	fits, until := 0, now // of the time that is not taken and ends at until; zero: it has no end
	for _, at := range moments {
		if at.Before(now) || at.After(now.Add(ahead)) {
			continue
		}
		end, ok := clear(at, taken)
		if !ok {
			continue
		}
		if !until.Equal(end) || at.Equal(now) {
			fits, until = 0, end
		}
		if n := h.at(at, running).fits(want); n > fits {
			count[span{at, end}] += n - fits
			fits = n
		}
	}
}

// clear is until when nothing is taken from a moment on; not ok: it is in a time that is taken.
func clear(at time.Time, taken []span) (end time.Time, ok bool) {
	for _, t := range taken {
		switch {
		case !t.start.After(at):
			if t.end.IsZero() || t.end.After(at) {
				return end, false
			}
		case end.IsZero() || t.start.Before(end):
			end = t.start
		}
	}
	return end, true
}

// at is what is free at a moment: what is now, and what jobs are known to give back by then. Of those that squeue does not show nothing
// comes back.
func (h *host) at(at time.Time, running []row) *room {
	free := h.free
	for _, r := range running {
		if !r.end.After(at) {
			free.add(room{r.cpus / int64(len(r.hosts)), max(0, r.memory), r.gres})
		}
	}
	if free.cpus >= h.total.cpus {
		free = h.total // nobody is left, whatever is known of what they had
	}
	return &free
}
