// Package homes draws which of several zones is home to a job. None is drawn that is drained, or that could not run the job as far as its
// nodes have reported; the chance of the others is how many slices each has for it, or what they say of themselves where tickets search.
// The same life of a job under the same epoch is drawn the same. With one zone nothing is drawn, and there are no homes.
package homes

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/gate/queues"
	"sluice.dev/sluice/internal/core/gate/stock"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// mostChances bounds how many kinds of jobs are remembered with the chances of the zones.
const mostChances = 256

// Homes are drawn by one gate.
type Homes struct {
	zones   []stock.Zone
	horizon time.Duration
	stock   *stock.Stock
	queues  *queues.Queues
	drained func(job.ZoneID) bool
	places  map[job.ZoneID]int // of the zones in the configuration
	// chances of the zones to be home to jobs of settings that are shared, while neither a queue nor what is in stock changes.
	chances map[*job.Spec][]int
	dealer  *dealer // nil: homes are drawn by the kinds of slices alone
}

// New draws among zones, with tickets that search as cfg says, nil if none do. A job may count on windows as long as the horizon.
func New(zones []stock.Zone, horizon time.Duration, in *stock.Stock, of *queues.Queues, drained func(job.ZoneID) bool,
	cfg *search.Config) *Homes {
	h := &Homes{zones: zones, horizon: horizon, stock: in, queues: of, drained: drained, places: map[job.ZoneID]int{},
		chances: map[*job.Spec][]int{}}
	for i := range zones {
		h.places[zones[i].ID] = i
	}
	if cfg != nil {
		h.dealer = newDealer(cfg, h.places)
	}
	return h
}

// At is the place of a zone in the configuration, -1 if it has none.
func (h *Homes) At(id job.ZoneID) int {
	if i, found := h.places[id]; found {
		return i
	}
	return -1
}

// Forget the chances: a queue, what is in stock or which zones are drained has changed.
func (h *Homes) Forget() {
	if h != nil {
		clear(h.chances)
	}
}

// Draw is the home of a life of a job; empty while no zone is known that could run it.
func (h *Homes) Draw(now quantity.Instant, spec *job.Spec, id job.ID, of job.Generation, epoch uint32) job.ZoneID {
	switch {
	case len(h.zones) == 1:
		return h.zones[0].ID
	case h.dealer == nil:
		return h.drawFrom(h.chancesOf(spec), id, of, epoch)
	}
	z, ok := h.dealer.home(now, spec, id, of, epoch)
	if !ok {
		return ""
	}
	// A zone that could not run all of the job, as far as is known, is not drawn: then the kinds of slices alone decide.
	sums, at := h.chancesOf(spec), h.dealer.places[z]
	if sums[at] > 0 && (at == 0 || sums[at] > sums[at-1]) {
		return h.zones[at].ID
	}
	return h.drawFrom(sums, id, of, epoch)
}

// ByKinds draws by the kinds of slices alone, and remembers nothing.
func (h *Homes) ByKinds(spec *job.Spec, of job.Generation) job.ZoneID {
	if len(h.zones) == 1 {
		return h.zones[0].ID
	}
	return h.drawFrom(h.sumChances(spec), spec.Name, of, 1)
}

// drawFrom draws with these chances, which are summed up.
func (h *Homes) drawFrom(sums []int, id job.ID, of job.Generation, epoch uint32) job.ZoneID {
	total := sums[len(sums)-1]
	if total == 0 {
		return ""
	}
	at, _ := slices.BinarySearch(sums, jobs.Number(id, of, epoch, total)+1)
	return h.zones[at].ID
}

// chancesOf are the chances of zones to be home to a job of these settings, summed up from the first. They are remembered for as long as
// nothing is known of a queue or a slice that was not known before: of a thousand zones each takes most of a microsecond.
func (h *Homes) chancesOf(spec *job.Spec) []int {
	if sums, known := h.chances[spec]; known {
		return sums
	}
	sums := h.sumChances(spec)
	if len(h.chances) >= mostChances {
		clear(h.chances)
	}
	h.chances[spec] = sums
	return sums
}

// sumChances works them out.
func (h *Homes) sumChances(spec *job.Spec) []int {
	queue := h.queues.Find(spec.Queue)
	invariant.Check(queue != nil, "gate: a job is in queue %q, which it does not have", spec.Queue)
	sums, total := make([]int, len(h.zones)), 0
	for i := range sums {
		total += h.couldRun(spec, queue, i)
		sums[i] = total
	}
	if total == 0 && spans(spec) && h.acrossZones(spec, queue) >= spec.Slices {
		for i := range sums {
			total += h.couldLead(spec, queue, i)
			sums[i] = total
		}
	}
	return sums
}

// couldRun is how many slices of zone i could run the job; 0 if the zone can not run all of it, as far as its nodes have reported.
func (h *Homes) couldRun(spec *job.Spec, queue *protocol.Queue, i int) int {
	if h.drained(h.zones[i].ID) {
		return 0
	}
	there, longest := h.stock.KindsIn(i), h.longest(queue)
	if why, _ := atomizer.Impossible(spec, there, longest); why != "" || !h.queues.MayHold(queue, spec.Slices, i) {
		return 0
	}
	if spec.Slices > 1 && h.stock.Together(spec, spec.Topology, i) < spec.Slices {
		return 0
	}
	return atomizer.Fitting(spec, there, longest)
}

// longest is the longest window that jobs of a queue may count on.
func (h *Homes) longest(queue *protocol.Queue) time.Duration {
	return queues.Longest(queue, h.horizon)
}

// Nowhere says why a job that the slices of all zones together could run is possible in none of them, with what would be; empty if it is
// in one, or may be in one whose nodes have not all reported.
func (h *Homes) Nowhere(spec *job.Spec, queue *protocol.Queue, longest time.Duration) (why, nearest string) {
	if h == nil || len(h.zones) == 1 {
		return "", ""
	}
	if spans(spec) {
		return h.unled(spec, queue)
	}
	best, most, capped := -1, -1, false
	for i := range h.zones {
		if h.drained(h.zones[i].ID) {
			continue
		}
		if !h.stock.Heard(i) {
			return "", ""
		}
		there := h.stock.KindsIn(i)
		not, _ := atomizer.Impossible(spec, there, longest)
		n := atomizer.Fitting(spec, there, longest) // of a zone without slices nothing is impossible, and none fits
		switch could := not == "" && n > 0; {
		case could && h.queues.MayHold(queue, spec.Slices, i):
			return "", ""
		case could:
			capped = true
		case not != "" && n > most:
			best, most = i, n
		}
	}
	if capped {
		return fmt.Sprintf("it runs in one zone, and where it could queue %s's share of its cap of %d is smaller than what it needs at "+
				"once", queue.Name, queue.Cap),
			fmt.Sprintf("a cap of at least %d, or none", max(1, spec.Slices)*len(h.zones))
	}
	if best < 0 {
		return "", "" // nobody has a slice
	}
	why, nearest = atomizer.Impossible(spec, h.stock.KindsIn(best), longest)
	return fmt.Sprintf("it runs in one zone, and in none of the %d zones could it; in %s %s", len(h.zones), h.zones[best].ID, why), nearest
}

// spans reports whether a job may span several zones.
func spans(spec *job.Spec) bool { return spec.Topology == job.SameCluster && spec.Slices > 1 }

// couldLend is how many slices of zone i could run the job, whatever else it needs.
func (h *Homes) couldLend(spec *job.Spec, queue *protocol.Queue, i int) int {
	if h.drained(h.zones[i].ID) || len(h.zones) == 1 {
		return 0
	}
	return atomizer.Fitting(spec, h.stock.KindsIn(i), h.longest(queue))
}

// couldLead is with how many slices zone i could be home to a gang that lies in several: all of it counts towards its share of the queue's
// cap.
func (h *Homes) couldLead(spec *job.Spec, queue *protocol.Queue, i int) int {
	if !h.queues.MayHold(queue, spec.Slices, i) {
		return 0
	}
	return h.couldLend(spec, queue, i)
}

// acrossZones is how many slices could run a job in as many zones as a gang may lie in, where these are most.
func (h *Homes) acrossZones(spec *job.Spec, queue *protocol.Queue) (most int) {
	var each []int
	for i := range h.zones {
		each = append(each, h.couldLend(spec, queue, i))
	}
	slices.SortFunc(each, func(a, b int) int { return cmp.Compare(b, a) })
	for _, n := range each[:min(len(each), protocol.MostLenders)] {
		most += n
	}
	return most
}

// unled returns why no zone could be home to a gang that may span several, with what would be; empty if one could, or may.
func (h *Homes) unled(spec *job.Spec, queue *protocol.Queue) (why, nearest string) {
	capped := false
	for i := range h.zones {
		if !h.stock.Heard(i) || h.couldLead(spec, queue, i) > 0 {
			return "", ""
		}
		capped = capped || h.couldLend(spec, queue, i) > 0
	}
	if !capped {
		return "", ""
	}
	return fmt.Sprintf("all of it counts in its home zone, and no zone's share of queue %s's cap of %d is as large as what it needs at "+
			"once", queue.Name, queue.Cap),
		fmt.Sprintf("a cap of at least %d, or none", spec.Slices*len(h.zones))
}

// freeIn is how many fragments large enough for a job a zone said that it has free, and whether it counts as alive: without digests nobody
// knows better.
func (h *Homes) freeIn(now quantity.Instant, i int, spec *job.Spec) (free int, alive bool) {
	if h.dealer == nil {
		return 0, true
	}
	return h.dealer.freeIn(now, h.zones[i].ID, spec)
}

// Searches says whether tickets search.
func (h *Homes) Searches() bool { return h != nil && h.dealer != nil }

// Redraw sends a ticket to the next zone, or home if none is alive; false if it is none to draw for.
func (h *Homes) Redraw(now quantity.Instant, in *protocol.Message) (protocol.Message, bool) {
	d := h.dealer
	e, ok := in.Body.(*protocol.Errand)
	if d == nil || !ok || e.Phase != flow.Drawing || int(e.Home) >= len(d.cfg.Zones) || int(e.Class) >= len(d.cfg.Flow.Classes) {
		return protocol.Message{}, false
	}
	if z, ok := d.draw(now, &e.Ticket); ok {
		return protocol.Message{Kind: protocol.Search, To: d.cfg.At(z), Job: in.Job, Body: e}, true
	}
	back := *e
	d.loop.Stranded(now, &back.Ticket)
	return protocol.Message{Kind: protocol.Back, To: d.cfg.At(e.Home), Job: in.Job, Body: &back}, true
}

// Hear records what a zone reports of itself. It returns whether that matters to jobs that wait for a home: whether any zone could run them
// follows from nodes' reports, so it matters only if it makes drawing possible at all.
func (h *Homes) Hear(now quantity.Instant, in *protocol.Message, waits bool) bool {
	d := h.dealer
	body, ok := in.Body.(*flow.Digest)
	if !ok || d == nil || int(body.Zone) >= len(d.cfg.Zones) || in.From != d.cfg.At(body.Zone) {
		return false
	}
	silent := waits && !d.anyAlive(now)
	return d.splitter.Hear(now, body) && silent
}

// Drawn completes a zone's report of its search with what was heard here, and how often the zone is drawn.
func (h *Homes) Drawn(now quantity.Instant, zone job.ZoneID, s *status.Search) {
	d := h.dealer
	if d == nil || s == nil {
		return
	}
	z, known := d.cfg.Index(zone)
	heard := d.splitter.Heard(z)
	if s.Age = -1; known && heard != 0 {
		s.Age = now.Sub(heard)
	}
	whole := int64(d.splitter.Zones()) << 32
	for c := range s.Rooms {
		s.Rooms[c].Share = quantity.MulDiv(int64(d.splitter.ShareNow(now, flow.Class(c), z)), 1_000_000, whole)
	}
}
