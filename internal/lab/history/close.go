package history

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// Close makes the history. An error has kind Invalid and lists every problem that leaves no history to be made, or is that of Options.Step.
// The book is used up.
func (b *Book) Close() (*History, error) {
	if err := b.options.step("sorting the runs"); err != nil {
		return nil, err
	}
	b.samples.close()
	b.samples.measured()
	m := b.merge()
	h := &History{}
	furnish(m)
	unobserved(b)
	check(m)
	if len(b.clusters) > 1 { // nodes of one would be taken for another's
		b.Problem("the log has jobs of the clusters %s: give the rows of one (sacct -M; in a query cluster=\"...\")",
			strings.Join(slices.Sorted(maps.Keys(b.clusters)), " and "))
	}
	if err := b.refused(); err != nil {
		return nil, err
	}
	const placing = "placing the runs"
	if err := b.options.step(placing); err != nil {
		return nil, err
	}
	all := slices.Clone(m.runs)
	m.order()
	s := m.site(h)
	s.play()
	stretch(m, h, all)
	if err := b.refused(); err != nil {
		return nil, err
	}
	if b.zoned && b.options.Zone == nil {
		b.Assume("instants have no offset and no zone was given: they are taken as UTC, which moves hours of the day, and gaps by an " +
			"hour where clocks are put forward or back")
	}
	if b.single != "" && !m.again {
		b.Assume(b.single)
	}
	if err := b.options.step(placing); err != nil {
		return nil, err
	}
	s.capacity()
	s.attach()
	if err := b.options.step(placing); err != nil {
		return nil, err
	}
	s.all(m.runs)
	if err := b.options.step("finding the idle time"); err != nil {
		return nil, err
	}
	s.record(h)
	silence(m.Book, h)
	m.close(h)
	return h, nil
}

func (o *Options) step(doing string) error {
	if o.Step == nil {
		return nil
	}
	return o.Step(doing)
}

// What one history may have: with its runs it stays within some GiB.
const (
	mostDevices = 1 << 22
	mostHolds   = 1 << 26
)

// refused is what leaves no history to be made, nil if nothing does.
func (b *Book) refused() error {
	if len(b.problems) == 0 {
		return nil
	}
	slices.Sort(b.problems)
	return &errkind.Error{Kind: errkind.Invalid, Err: errors.New(strings.Join(slices.Compact(b.problems), "\n"))}
}

// found are the oddities, a line each: why a log with many rows has no job mostly stands there. Where in the files is left out, as an error
// does not depend on the order of rows either.
func found(b *Book) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(b.oddities)) {
		o := b.oddities[name]
		fmt.Fprintf(&text, "\n  %s (%d times): %s", name, o.count, o.remedy(b.added))
	}
	return text.String()
}

// check finds what no history can be made of.
func check(m *merged) {
	asked, holds, devices := 0, int64(0), int64(0)
	type pool struct {
		node string
		kind int32
	}
	told := map[pool]int64{} // several rows may tell of one node
	for _, n := range m.told {
		for _, p := range n.Devices {
			at, count := pool{n.Name, p.Kind}, int64(p.Count)
			devices += max(0, count-told[at])
			told[at] = max(told[at], count)
		}
	}
	for _, r := range m.runs {
		for _, p := range m.loads.all[r.Load] {
			holds += int64(p.Count)
		}
		if r.Load != 0 && (r.Start != quantity.Never || r.NoStart) {
			asked++
		}
	}
	switch {
	case len(m.runs) == 0 && len(m.problems) > 0: // which says why
	case len(m.runs) == 0:
		m.Problem("no job was read: give the accounting of a cluster%s", found(m.Book))
	case asked == 0:
		m.Problem("none of the %d runs that were read held a GPU: the log has no devices (Slurm: AccountingStorageTRES lacks gres/gpu, "+
			"or the columns AllocTRES and ReqTRES are missing), or count something else as devices%s", len(m.runs), found(m.Book))
	case holds > mostHolds || devices > mostDevices:
		m.Problem("the log has %d devices, which its runs hold %d times in all; more than %d and %d are too many to be kept: give a "+
			"part of it",
			devices, holds, mostDevices, mostHolds)
	}
}

// stretch says of which time all work is known, and ends what is open there. A log of a window has all runs that had not ended when the
// window began: it is whole from its earliest end on. And it has none that came after the window ended: it is whole up to the last start.
// One that has what was submitted since it begins is whole from the first submission on. One of samples says of what time it is.
func stretch(m *merged, h *History, runs []*Row) {
	first, from, to, last := quantity.Never, quantity.Never, quantity.Instant(math.MinInt64), quantity.Instant(math.MinInt64)
	came, whole := quantity.Never, true
	for _, r := range runs {
		came, whole = min(came, r.came()), whole && m.whole[r.At.File]
		if r.Submit != quantity.Never {
			to = max(to, r.Submit)
		}
		if r.Start != quantity.Never {
			first, to = min(first, r.Start), max(to, r.Start)
			if r.End != quantity.Never && !r.lost {
				from, last = min(from, r.End), max(last, r.End)
			}
		}
	}
	if whole {
		from = came
	}
	seen := watches(m.Book)
	switch {
	case len(seen) > 0:
		from, to = seen[0].From, seen[len(seen)-1].To
	case from >= to: // too short to be cut out of a log that was going on
		from, to = first, max(last, to)
	}
	if known := m.samples.covers; known != nil {
		from, to = known.From, known.To
	}
	if from >= to {
		m.Problem("the log covers no time: from %s to %s", stamp(from), stamp(to))
	}
	h.From, h.To = from, to
	for _, r := range runs {
		if r.Open {
			r.End = max(r.Start, to)
		}
	}
}

func stamp(t quantity.Instant) string { return t.Time().Format(time.RFC3339) }

// order puts runs in order of their starts and leaves those out that ask for no device. Of those that start together what they hold and
// how long decides, before what the log calls them: the same jobs under other names hold the same devices.
func (m *merged) order() {
	none := int64(0)
	m.runs = slices.DeleteFunc(m.runs, func(r *Row) bool {
		if r.Load == 0 {
			none++
		}
		return r.Load == 0
	})
	if none > 0 {
		m.OddMany("a run without a device", "left out", none)
	}
	slices.SortFunc(m.runs, func(x, y *Row) int {
		if c := m.before(x, y); c != 0 {
			return c
		}
		return m.compare(x, y)
	})
}

// before compares runs by when they start, or came where that is not known.
func (m *merged) before(x, y *Row) int {
	return cmp.Or(cmp.Compare(x.when(), y.when()), cmp.Compare(x.Submit, y.Submit), cmp.Compare(m.size[x.Load], m.size[y.Load]),
		cmp.Compare(x.long(), y.long()), cmp.Compare(x.Raw, y.Raw), cmp.Compare(x.Index, y.Index))
}

// site lays out the nodes that were told or that runs name.
func (m *merged) site(h *History) *site {
	s := &site{
		log: m, history: h, room: mostDevices, on: map[*Row][]*device{}, rank: make([]int32, len(m.kinds.texts)), at: make([]int32,
			len(m.nodes.texts)),
	}
	for i, k := range sorted(m.kinds.texts) {
		s.rank[k] = int32(i)
		s.kinds = append(s.kinds, kind(m.kinds.texts[k]))
	}
	for i, n := range sorted(m.nodes.texts) {
		s.at[n] = int32(i)
		s.hosts = append(s.hosts, m.nodes.texts[n])
	}
	s.renumber(h)
	m.size = sizes(h.Loads)
	s.named = make([]bool, len(s.kinds))
	for _, load := range h.Loads {
		for _, p := range load {
			s.named[p.Kind] = true
		}
	}
	s.anywhere = !slices.ContainsFunc(m.runs, func(r *Row) bool { return r.Place != 0 })
	s.spots = make([]spot, len(s.hosts))
	told := map[int32]map[int32]int32{}
	for _, n := range m.told {
		at := s.at[m.Node([]byte(n.Name))]
		if n.Devices == nil {
			continue
		}
		if told[at] == nil {
			told[at] = map[int32]int32{}
		}
		for _, p := range n.Devices {
			told[at][s.rank[p.Kind]] = max(told[at][s.rank[p.Kind]], p.Count)
		}
	}
	if s.anywhere {
		s.spots = make([]spot, 1)
	}
	for _, at := range slices.Sorted(maps.Keys(told)) {
		x := at
		if s.anywhere {
			x = 0
		}
		s.spots[x].known = true
		for _, k := range slices.Sorted(maps.Keys(told[at])) {
			s.spots[x].furnish(x, k, told[at][k], at)
		}
	}
	return s
}

// furnish adds devices of a kind, which are of a node.
func (x *spot) furnish(at, kind, count, node int32) {
	i, found := slices.BinarySearchFunc(x.pools, kind, func(p *pool, k int32) int { return cmp.Compare(p.kind, k) })
	if !found {
		x.pools = slices.Insert(x.pools, i, &pool{kind: kind, spot: at})
	}
	p := x.pools[i]
	for range count {
		p.free = append(p.free, int32(len(p.devices))) // ascending: a heap
		p.devices = append(p.devices, &device{pool: p, number: int32(len(p.devices)), node: node})
	}
}

// sorted are the indices of texts in order of the texts.
func sorted(texts []string) []int32 {
	order := make([]int32, len(texts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Compare(texts[x], texts[y]) })
	return order
}

// capacity finds how many devices the nodes have of which nothing is told: as many as were held at once by runs whose ends are sure.
func (s *site) capacity() {
	unknown := 0
	for i := range s.spots {
		if !s.spots[i].known {
			unknown++
		}
	}
	if unknown > 0 {
		s.counting = true
		s.all(s.log.runs)
		s.counting = false
	}
	unknown = 0
	for i := range s.spots {
		if !s.spots[i].known && len(s.spots[i].pools) > 0 {
			unknown++
		}
		for _, p := range s.spots[i].pools {
			p.empty(s.spots[i].known)
		}
	}
	switch {
	case s.anywhere:
		s.log.Assume(lowest + s.log.said)
	case unknown > 0:
		s.log.Assume(fmt.Sprintf("of %s nothing is described: each has as many devices as were held there at once", Many(unknown, "node")))
	}
}

// empty takes all that was placed out of a pool again. It may still grow if nothing was ever in it.
func (p *pool) empty(known bool) {
	p.free, p.ends = p.free[:0], p.ends[:0]
	for i, d := range p.devices {
		d.run, d.until, d.held = nil, 0, nil
		p.free = append(p.free, int32(i))
	}
	p.grows = !known && len(p.devices) == 0
}

// Many is a number of things, in words.
func Many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// record writes kinds, nodes, devices, holds and runs down.
func (s *site) record(h *History) {
	h.Kinds, h.Anywhere = s.kinds, s.anywhere
	h.Runs = make([]Run, len(s.log.runs))
	for i, r := range s.log.runs {
		r.number = int32(i)
		h.Runs[i] = r.Run
	}
	if s.anywhere && !s.spots[0].known {
		h.Nodes = []Node{{Name: "anywhere", Invented: true}}
	} else {
		for _, name := range s.hosts {
			h.Nodes = append(h.Nodes, Node{Name: name})
		}
	}
	var all []*device
	for i := range s.spots {
		for _, p := range s.spots[i].pools {
			for _, d := range p.devices {
				if !s.anywhere {
					d.node = int32(i)
				}
				all = append(all, d)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y *device) int { return cmp.Compare(x.node, y.node) })
	for i, d := range all {
		n := &h.Nodes[d.node]
		if n.Count == 0 {
			n.First = int32(i)
		}
		n.Count++
		h.Devices = append(h.Devices, Device{d.node, d.pool.kind})
		holds := make([]Hold, len(d.held))
		for k, x := range d.held {
			holds[k] = Hold{x.from, x.to, x.run.number}
		}
		d.held = nil
		h.Held = append(h.Held, holds)
		if len(s.log.samples.gauges.all) > 0 {
			h.Used = append(h.Used, d.use)
		}
	}
	s.absences(h)
}

// renumber gives names, loads, places, kinds and nodes the numbers of the history, which do not depend on the order of the rows.
func (s *site) renumber(h *History) {
	texts := s.log.names.texts
	name := make([]Name, len(texts))
	for i, n := range sorted(texts) {
		name[n] = Name(i)
		h.Names = append(h.Names, texts[n])
	}
	load, loads := inOrder(s.log.loads.all, func(p Part) Part { p.Kind = s.rank[p.Kind]; return p }, func(x, y Part) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Milli, y.Milli), cmp.Compare(x.Count, y.Count))
	})
	place, places := inOrder(s.log.places.all, func(n int32) int32 { return s.at[n] }, cmp.Compare[int32])
	h.Loads, h.Places = loads, places
	for _, r := range s.log.runs {
		r.User, r.Account, r.Partition, r.QOS, r.Job = name[r.User], name[r.Account], name[r.Partition], name[r.QOS], name[r.Job]
		r.Load, r.Place = load[r.Load], place[r.Place]
	}
}

// inOrder puts lists, and what is in them, in an order that is that of their values alone.
func inOrder[T any](lists [][]T, value func(T) T, compare func(x, y T) int) (number []int32, all [][]T) {
	order := make([]int32, len(lists))
	for i, l := range lists {
		order[i] = int32(i)
		for k := range l {
			l[k] = value(l[k])
		}
		slices.SortFunc(l, compare)
	}
	slices.SortFunc(order, func(x, y int32) int { return slices.CompareFunc(lists[x], lists[y], compare) })
	number = make([]int32, len(lists))
	for i, x := range order {
		number[x] = int32(i)
		all = append(all, lists[x])
	}
	return number, all
}

// absences writes down when nodes are not to be had, and which partitions they are in.
func (s *site) absences(h *History) {
	if h.Nodes[0].Invented {
		return
	}
	for _, n := range s.log.told {
		x := &h.Nodes[s.at[s.log.Node([]byte(n.Name))]]
		x.Partitions = append(x.Partitions, n.Partitions...)
	}
	unknown := int64(0)
	for _, a := range s.log.away {
		for _, name := range a.Nodes {
			if at, ok := s.log.nodes.known[name]; ok {
				since := a.Away
				if since.From == quantity.Never {
					since.From = h.idleSince(s.at[at])
				}
				h.Nodes[s.at[at]].Away = append(h.Nodes[s.at[at]].Away, since)
			} else {
				unknown++
			}
		}
		if a.All {
			for i := range h.Nodes {
				h.Nodes[i].Away = append(h.Nodes[i].Away, a.Away)
			}
		}
	}
	if unknown > 0 {
		s.log.OddMany("an absence of a node that nothing else names", "left out", unknown)
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		slices.Sort(n.Partitions)
		n.Partitions = slices.Compact(n.Partitions)
		slices.SortFunc(n.Away, func(x, y Away) int {
			return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To), cmp.Compare(x.Why, y.Why))
		})
		n.Away = slices.Compact(n.Away)
	}
}

// idleSince is when the last run on a node ended.
func (h *History) idleSince(node int32) quantity.Instant {
	n, since := &h.Nodes[node], h.From
	for d := n.First; d < n.First+n.Count; d++ {
		if holds := h.Held[d]; len(holds) > 0 {
			since = max(since, holds[len(holds)-1].To)
		}
	}
	return since
}

// silence notes stretches in which nothing ran at all: a part of the log may be missing.
func silence(b *Book, h *History) {
	const long = 24 * time.Hour
	until := h.From
	for i := range h.Runs {
		r := &h.Runs[i]
		if !r.Ran() || r.End <= h.From {
			continue
		}
		from := min(r.Start, h.To)
		if from.Sub(until) > long {
			b.odd("a day or more in which nothing ran", "kept as idle: give the files of this time too if some are missing").
				add(place{text: stamp(until) + " to " + stamp(from)})
		}
		until = max(until, r.End)
		if from == h.To {
			break
		}
	}
}

// close writes oddities and assumptions down.
func (m *merged) close(h *History) {
	for _, name := range slices.Sorted(maps.Keys(m.oddities)) {
		o := m.oddities[name]
		x := Oddity{Name: name, Done: o.remedy(m.added), Count: o.count}
		for _, p := range o.places {
			x.Places = append(x.Places, m.describe(p))
		}
		h.Oddities = append(h.Oddities, x)
	}
	h.Assumptions = slices.Sorted(maps.Keys(m.assumed))
}
