package placement

import (
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Flow is a flow without messages: what the arithmetic of a task costs from its draw until it has a lease and gives it back, with digests
// and hints as old as a period. Everything is in flat arrays. Time goes on by a millisecond, and what comes within one goes through draw,
// probe, decision and answer together, as messages do that come in batches: so a processor waits for many lines of memory at once. It is
// not safe for concurrent use.
type Flow struct {
	Counts

	cfg      *flow.Config
	now      quantity.Instant
	search   *flow.Search
	splitter *flow.Splitter
	arbiter  *flow.Arbiter
	zones    []*flow.Directory
	nodes    []seat
	source   prng.Stream
	work     Work

	rest     *wheel[flow.Ticket]
	run      *wheel[running]
	tick     int
	next     quantity.Instant // when the next task comes
	digested quantity.Instant
	gap      float64 // between two tasks in the mean, in nanoseconds

	batch   []seeker
	ended   []running
	probe   [1]flow.Probe
	answer  [1]flow.Answer
	fetched uint64
}

// seat is a node with room for one grant beside it: the processor fetches lines in pairs.
type seat struct {
	flow.Node
	grant [1]flow.Grant
	_     [24]byte
}

// seeker is a ticket that searches at this instant.
type seeker struct {
	flow.Ticket
	flow.Move
	flow.Summary
	at     int32
	answer flow.Answer
}

// Counts of what has happened so far.
type Counts struct{ Begun, Placed, Probes, Expired int }

// running is a task on its slice.
type running struct {
	node     int32
	fragment flow.Class
}

// perZone is how many nodes a zone has.
const perZone = 100

// start of the time.
const start = quantity.Instant(1e18)

// NewFlow is a flow of so many nodes, a multiple of a zone's 100, at a load in parts of all slices.
func NewFlow(work Work, nodes int, load float64) (*Flow, error) {
	cfg, err := flow.Config{Seed: 9, Classes: Levels()}.Checked()
	if err != nil {
		return nil, err
	}
	w := &Flow{
		cfg: cfg, now: start, next: start, work: work, search: flow.NewSearch(cfg), splitter: flow.NewSplitter(cfg, nodes/perZone),
		arbiter: flow.NewArbiter(cfg), source: prng.New(8), digested: start,
		rest: newWheel[flow.Ticket](), run: newWheel[running](), gap: 1e9 / (load * Slices * float64(nodes)),
	}
	for z := range nodes / perZone {
		w.zones = append(w.zones, flow.NewDirectory(cfg, flow.ZoneID(z), perZone, 0))
	}
	w.nodes = make([]seat, nodes)
	for i := range w.nodes {
		n := &w.nodes[i]
		n.Node = flow.NewNode(1, work.Layout(i), n.grant[:0:1])
	}
	w.digests()
	return w, nil
}

// Warm lets the flow fill, and counts from then on.
func (w *Flow) Warm() {
	for w.now < start+6e9 {
		w.Tick()
	}
	w.Counts = Counts{}
}

func (w *Flow) digests() {
	for i := range w.nodes {
		s := w.nodes[i].Node.Summary(w.cfg)
		w.zones[i/perZone].Report(flow.NodeID(i%perZone), &s)
	}
	for _, d := range w.zones {
		digest := d.Digest(w.now)
		w.splitter.Hear(w.now, &digest)
	}
	w.splitter.Rebuild(w.now)
}

// Tick lets a millisecond pass, with the tasks that come in it.
func (w *Flow) Tick() {
	w.tick++
	w.now = start + quantity.Instant(w.tick)*1e6
	w.ended = w.ended[:0]
	w.run.due(w.tick, func(r running) { w.ended = append(w.ended, r) })
	for _, r := range w.ended {
		w.fetched ^= uint64(w.nodes[r.node].Epoch)
	}
	for _, r := range w.ended {
		w.nodes[r.node].Release(r.fragment)
	}
	if w.now-w.digested >= quantity.Instant(w.cfg.Period) {
		w.digested = w.now
		w.digests()
	}
	w.batch = w.batch[:0]
	w.rest.due(w.tick, func(t flow.Ticket) { w.batch = append(w.batch, seeker{Ticket: t, Move: flow.Move{Act: flow.Rest}}) })
	for i := range w.batch {
		s := &w.batch[i]
		s.Move = w.search.Next(w.now, &s.Ticket, w.zones[s.Zone])
	}
	for ; w.next <= w.now; w.next += quantity.Instant(w.source.Exp() * w.gap) {
		c := w.work.Ask(&w.source)
		w.Begun++
		s := seeker{Ticket: flow.Ticket{ID: flow.TicketID(w.Begun), Demand: w.cfg.Classes[c], Class: c, Born: w.now}}
		s.Move = w.search.Begin(w.now, &s.Ticket)
		w.batch = append(w.batch, s)
	}
	for len(w.batch) > 0 {
		w.arrive()
		w.decide()
		w.answered()
	}
}

// arrive draws a zone for the tickets that need one, and drops from the batch those that end up asking no node.
func (w *Flow) arrive() {
	for i := range w.batch {
		if s := &w.batch[i]; s.Act == flow.Draw {
			s.Zone, _ = w.splitter.Draw(&s.Ticket)
			w.fetched ^= w.zones[s.Zone].Fetch(s.Class)
		}
	}
	asking := 0
	for i := range w.batch {
		s := &w.batch[i]
		for s.Act == flow.Draw {
			s.Move = w.search.Arrive(w.now, &s.Ticket, w.zones[s.Zone])
			if s.Act == flow.Draw {
				s.Zone, _ = w.splitter.Draw(&s.Ticket)
			}
		}
		switch s.Act {
		case flow.Ask:
			s.at = int32(s.Zone)*perZone + int32(s.Move.Node)
			w.fetched ^= uint64(w.nodes[s.at].Epoch) ^ w.zones[s.Zone].FetchNode(s.Move.Node)
			if asking < i {
				w.batch[asking] = *s
			}
			asking++
		case flow.Rest:
			w.rest.put(w.tick, int((s.Move.At-start)/1e6)+1, s.Ticket)
		default:
			w.Expired++
		}
	}
	w.batch = w.batch[:asking]
}

// decide has each node that is asked decide.
func (w *Flow) decide() {
	for i := range w.batch {
		s := &w.batch[i]
		w.Probes++
		node := &w.nodes[s.at]
		w.probe[0] = s.Ticket.Probe()
		s.answer = w.arbiter.Decide(w.now, &node.Node, w.probe[:], w.answer[:0])[0]
		if s.answer.Granted {
			node.Redeem(w.now, s.answer.Token)
		}
		s.Summary = node.Summary(w.cfg)
	}
}

// answered tells the zones what nodes have said, and leaves those that were refused.
func (w *Flow) answered() {
	left := 0
	for i := range w.batch {
		s := &w.batch[i]
		d := w.zones[s.Zone]
		d.Report(s.Move.Node, &s.Summary)
		if s.answer.Granted {
			w.search.Granted(&s.Ticket, d)
			w.Placed++
			w.run.put(w.tick, w.tick+int(w.source.Exp()*1000), running{s.at, s.answer.Fragment})
			continue
		}
		s.Move = w.search.Refused(w.now, &s.Ticket, d)
		if left < i {
			w.batch[left] = *s
		}
		left++
	}
	w.batch = w.batch[:left]
}
