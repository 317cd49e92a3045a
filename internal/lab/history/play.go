package history

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// What is assumed of a log that does not say where or when its jobs ran.
const (
	lowest = "the log names no devices: each job is taken to hold the lowest numbered ones that are free, of "
	played = "the log does not say when jobs began: they were played first come, first served"
	atOnce = "the log does not say when some of its jobs began, nor how many devices there are: these are taken as started when they " +
		"were submitted"
)

// furnish says what devices there are where the log does not say on which nodes jobs ran: as many as was asked for, or else those of the
// nodes that are described, or else as many as the log's head has.
func furnish(m *merged) {
	given := m.options.GPUs
	placed := slices.ContainsFunc(m.runs, func(r *Row) bool { return r.Load != 0 && r.Place != 0 })
	described := slices.ContainsFunc(m.told, func(n NodeRow) bool { return len(n.Devices) > 0 })
	switch {
	case given > 0 && placed:
		m.Problem("%s were given with --gpus, and the log says on which nodes its jobs ran: leave it out, and give a description of the "+
			"nodes (Slurm: scontrol show node)", Many(given, "GPU"))
		return
	case given > 0 && described:
		m.Problem("%s were given with --gpus, and there are files that describe the nodes: leave out either", Many(given, "GPU"))
		return
	case placed:
		return
	case described:
		m.said = "those of the nodes that are described"
		return
	}
	n, says := given, "as --gpus says"
	if given == 0 {
		n, says = m.machine, "as the log's head says"
	}
	if n == 0 {
		m.said = "as many as were held at once"
		return
	}
	most := int32(0)
	for _, r := range m.runs {
		if r.Start != quantity.Never || r.NoStart {
			most = max(most, m.size[r.Load])
		}
	}
	if int(most) > n {
		m.Problem("a job of the log holds %s, and there are %d, %s: give --gpus N with all there are", Many(int(most), "GPU"), n, says)
		return
	}
	m.said = Many(n, "device") + ", " + says
	m.Tell(NodeRow{Name: "machine", Devices: []Part{{only(m.Book), int32(min(n, mostDevices+1)), 1000}}})
}

// only is the kind of all devices that runs name, or one without a type if there are several.
func only(b *Book) int32 {
	kind := int32(-1)
	for _, load := range b.loads.all {
		for _, p := range load {
			if kind >= 0 && kind != p.Kind {
				return b.Kind([]byte(untyped))
			}
			kind = p.Kind
		}
	}
	return kind
}

// sizes are how many devices each of some loads has.
func sizes(loads [][]Part) []int32 {
	out := make([]int32, len(loads))
	for i, load := range loads {
		for _, p := range load {
			out[i] += p.Count
		}
	}
	return out
}

// when is the start of a run, or when it came into the queue if a start is to be found for it. Never if it never ran.
func (r *Row) when() quantity.Instant {
	if r.NoStart && r.Start == quantity.Never {
		return r.Submit
	}
	return r.Start
}

// long is how long a run holds its devices.
func (r *Row) long() time.Duration {
	if r.NoStart || r.Start == quantity.Never {
		return r.Elapsed
	}
	return r.End.Sub(r.Start)
}

// begin gives a run without a start one.
func (r *Row) begin(now quantity.Instant) { r.Start, r.End = now, now.Add(r.Elapsed) }

// play finds starts for the runs of which only their length is known: in the order in which they came, each as soon as there is room beside
// those that hold devices by then, and none before it waits.
func (s *site) play() {
	runs, starts := s.log.runs, false
	missing := slices.IndexFunc(runs, func(r *Row) bool { return r.NoStart })
	if missing < 0 {
		return
	}
	for _, r := range runs {
		starts = starts || r.Start != quantity.Never
	}
	unknown := slices.ContainsFunc(s.spots, func(x spot) bool { return !x.known }) // it has as many as are held
	switch {
	case unknown && !starts:
		s.log.Problem("the log does not say when jobs began, nor how many GPUs there are: say how many with --gpus N; the jobs are then " +
			"played on them, first come, first served")
		return
	case unknown:
		s.log.Assume(atOnce)
		for _, r := range runs {
			if r.NoStart {
				r.begin(r.Submit)
			}
		}
	default:
		s.log.Assume(played)
		s.queue(runs)
	}
	slices.SortStableFunc(runs, s.log.before)
}

// queue plays runs, which are in the order in which they start or come.
func (s *site) queue(runs []*Row) {
	s.counting = true
	defer func() {
		s.counting = false
		for i := range s.spots {
			for _, p := range s.spots[i].pools {
				p.empty(true)
			}
		}
	}()
	var waiting []*Row
	var busy ends // of what holds devices, to know when to look again
	put := func(r *Row) {
		if r.End > r.Start && !s.log.doubt[r] {
			s.put(r)
			busy.add(end{at: r.End})
		}
	}
	for i := 0; i < len(runs) || len(waiting) > 0; {
		now := quantity.Never
		if i < len(runs) {
			now = runs[i].when()
		}
		if len(waiting) > 0 {
			now = min(now, busy.first())
		}
		if now == quantity.Never {
			break
		}
		for busy.first() <= now {
			busy.next()
		}
		for ; i < len(runs) && runs[i].when() == now; i++ {
			if runs[i].NoStart {
				waiting = append(waiting, runs[i])
			} else {
				put(runs[i])
			}
		}
		for len(waiting) > 0 && s.fits(waiting[0], now) {
			waiting[0].begin(now)
			put(waiting[0])
			waiting = waiting[1:]
		}
	}
	if len(waiting) > 0 {
		s.log.Problem("job %s holds %s, and the nodes that are described have no room for it: describe all of them, or give --gpus N "+
			"instead", waiting[0].ID, Many(int(s.log.size[waiting[0].Load]), "GPU"))
	}
}

// fits says whether all devices that a run holds are free at an instant.
func (s *site) fits(r *Row, now quantity.Instant) bool {
	used := map[*pool]int32{}
	for _, part := range s.history.Loads[r.Load] {
		left := part.Count
		for at := int32(0); at < int32(len(s.spots)) && left > 0; at++ {
			s.pools(at, part.Kind, func(p *pool) bool {
				n := min(left, p.available(now)-used[p])
				used[p] += n
				left -= n
				return left > 0
			})
		}
		if left > 0 {
			return false
		}
	}
	return true
}
