package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A zone that is drained for good is home to nothing any more: none is drawn there, and each unfinished job that is at home there gets another home under the
// next epoch (docs/adr/0044-rehomed.md). The old home surrenders the record, which is only passed on here: after a crash it is asked for again. It
// keeps it until the new one has taken the job over.

// drains is what the gate knows of them.
type drains struct {
	// Durable.
	drained    map[job.ZoneID]bool
	departures map[departed]*departure

	// Soft: old homes that are to forget a job, and, of the first of several gates, the others that are to be told of a zone.
	departing outbox.Box[*departure]
	spreading outbox.Box[spread]
	spreads   map[spread]*outbox.Item[spread]
}

// moving is a job between two homes.
type moving struct {
	from job.ZoneID
	// record that the old home has surrendered; nil: it has not. Soft.
	record *protocol.Record
}

// waits says whether the old home is to surrender the job. One that has left the configuration has nothing of it but what is in the archive, where the new home
// finds it.
func (g *Gate) waits(m *moving) bool { return m != nil && m.record == nil && !g.gone(m.from) }

// gone says whether a zone has left the configuration.
func (g *Gate) gone(zone job.ZoneID) bool { return zone != "" && g.zoneAt(zone) < 0 }

// surrendered is the record that the new home is given; nil where it is none of a job that moves.
func (m *moving) surrendered() *protocol.Record {
	if m == nil {
		return nil
	}
	return m.record
}

// departed is a job that has left a zone, departure what is to be forgotten there.
type departed struct {
	job  job.ID
	from job.ZoneID
}

type departure struct {
	of      departed
	last    job.Generation
	epoch   uint32
	telling *outbox.Item[*departure]
}

func (d *departure) hash() uint64 {
	return digest.New().Text("departed").Text(string(d.of.job)).Text(string(d.of.from)).Int(int64(d.last), int64(d.epoch)).Sum()
}

// spread is a drained zone that another gate, by its place, is to know of.
type spread struct {
	zone job.ZoneID
	gate int
}

func newDrains(cfg *Config) drains {
	return drains{
		drained: map[job.ZoneID]bool{}, departures: map[departed]*departure{}, spreads: map[spread]*outbox.Item[spread]{},
		departing: outbox.New[*departure](cfg.Retry, mostDismissed), spreading: outbox.New[spread](cfg.Retry, mostDismissed),
	}
}

// drainZone answers a person.
func (g *Gate) drainZone(now quantity.Instant, in *protocol.Message, d *protocol.Draining, out *protocol.Out) {
	var err error
	switch first := g.cfg.Gates.First(); {
	case first != g.self:
		err = errkind.Errorf(errkind.Invalid, "zone %s: draining zones belongs to gate %s", d.Zone, first.ID)
	case g.zoneAt(d.Zone) < 0 && g.drained[d.Zone]:
		err = errkind.Errorf(errkind.NotFound, "zone %s was drained, and has left", d.Zone)
	case g.zoneAt(d.Zone) < 0:
		err = errkind.Errorf(errkind.NotFound, "there is no zone %q", d.Zone)
	case !g.drained[d.Zone] && len(g.staying()) == 1:
		err = errkind.Errorf(errkind.Conflict, "zone %s is the only one that is not drained: its jobs would have no other home; add a zone first", d.Zone)
	}
	changed := err == nil && !g.drained[d.Zone]
	if changed {
		g.fact(out, protocol.Fact{Kind: protocol.ZoneDrained, Zone: d.Zone})
		g.rehomeAll(now, out)
	}
	g.reply(out, protocol.Message{To: in.From, Body: &protocol.Receipt{Request: d.Request, Changed: changed, Err: err}})
}

// drainTold takes in what the first gate says, and of the first gate that another one knows.
func (g *Gate) drainTold(now quantity.Instant, in *protocol.Message, d *protocol.Draining, out *protocol.Out) {
	first := g.cfg.Gates.First()
	if g.self == first {
		to := spread{d.Zone, slices.Index(g.cfg.Gates, job.GateID(in.From.ID))}
		g.spreading.Confirm(g.spreads[to])
		delete(g.spreads, to)
		return
	}
	if in.From != first {
		return
	}
	if !g.drained[d.Zone] {
		g.fact(out, protocol.Fact{Kind: protocol.ZoneDrained, Zone: d.Zone})
		g.rehomeAll(now, out)
	}
	g.send(out, protocol.Message{Kind: protocol.DrainZone, To: in.From, Body: &protocol.Draining{Zone: d.Zone}})
}

// staying are the zones that are not drained.
func (g *Gate) staying() (ids []job.ZoneID) {
	for i := range g.cfg.Zones {
		if id := g.cfg.Zones[i].ID; !g.drained[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// anywhere is a zone that can end a job which is not to run.
func (g *Gate) anywhere(e *entry) job.ZoneID {
	among := g.staying()
	return among[homeDraw(e.id, e.generation, e.epoch, len(among))]
}

func (g *Gate) applyDrained(zone job.ZoneID) {
	if g.drained[zone] {
		return
	}
	g.drained[zone] = true
	g.sum += digest.New().Text("drained").Text(string(zone)).Sum()
	clear(g.chances)
	if g.self != g.cfg.Gates.First() {
		return
	}
	for i := 1; i < len(g.cfg.Gates); i++ {
		to := spread{zone, i}
		g.spreads[to] = g.spreading.Say(g.spreads[to], to)
	}
}

// rehomeAll gives each job whose home is drained another one.
func (g *Gate) rehomeAll(now quantity.Instant, out *protocol.Out) {
	if len(g.drained) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(g.jobs)) {
		g.rehome(now, g.jobs[id], out)
	}
}

// rehome gives a job whose home is drained another one. One that the old home has not confirmed yet moves when it has.
func (g *Gate) rehome(now quantity.Instant, e *entry, out *protocol.Out) {
	if e.homed && !e.over() && g.drained[e.zone] && e.became().moving == nil {
		zone := g.drawHome(now, e.spec, e.id, e.generation, e.epoch+1)
		g.fact(out, protocol.Fact{Kind: protocol.Rehomed, Job: e.id, Zone: zone, Epoch: e.epoch + 1})
	}
}

// rehomeReopened gives the next life of a job whose home has left the configuration another one at once. What it has completed is in the archive.
func (g *Gate) rehomeReopened(now quantity.Instant, e *entry, out *protocol.Out) {
	if g.gone(e.zone) {
		zone := g.drawHome(now, e.spec, e.id, e.generation, e.epoch+1)
		g.fact(out, protocol.Fact{Kind: protocol.Rehomed, Job: e.id, Zone: zone, Epoch: e.epoch + 1})
	}
}

// Drained says whether a zone was drained for good.
func (g *Gate) Drained(zone job.ZoneID) bool { return g.drained[zone] }

// move names another home.
func (e *entry) move(to job.ZoneID, specs *job.Pool) {
	_, sum := specs.Share(e.spec)
	e.zone = to
	e.submittedSum = e.sumSubmitted(sum)
}

// leaves says whether a message is the old home's about a job that is to leave it.
func (e *entry) leaves(in *protocol.Message) bool {
	m := e.became().moving
	return m != nil && in.From.ID == string(m.from) && in.Epoch == e.epoch-1
}

// askBack asks the old home for the job. Its owner's word reaches it there too, as long as something runs.
func (g *Gate) askBack(e *entry, out *protocol.Out) {
	b := e.became()
	from := b.moving.from
	m := protocol.Message{Kind: protocol.Surrender, To: g.zone(from), Job: e.id, Epoch: e.epoch - 1, Generation: e.generation}
	if m.Body = (&protocol.Moving{Text: fmt.Sprintf("it moves to zone %s: zone %s is drained", e.zone, from)}); e.zone == "" {
		m.Body = &protocol.Moving{Text: fmt.Sprintf("zone %s is drained, and no other zone is known that could run it", from)}
	}
	g.send(out, m)
	if b.dropping != "" {
		m.Kind, m.Body = protocol.Cancel, b.cancellation()
		g.send(out, m)
	}
}

// surrendered passes the record of a job on to its new home, once: what a home has surrendered it does not change.
func (g *Gate) surrendered(in *protocol.Message, r *protocol.Record) {
	if e := g.find(in.Job); e != nil && e.leaves(in) && g.waits(e.became().moving) && e.generation == in.Generation.Number() && r.Job == e.id {
		e.sequel.moving.record = r
		g.tell(e, true)
	}
}

// depart has an old home forget a job.
func (g *Gate) depart(d *departure) {
	if was := g.departures[d.of]; was != nil {
		g.sum -= was.hash()
		g.departing.Confirm(was.telling)
	}
	g.departures[d.of] = d
	g.sum += d.hash()
	d.telling = g.departing.Say(nil, d)
}

// departed notes that it has, and says whether it is that what a message is about.
func (g *Gate) departed(in *protocol.Message, out *protocol.Out) bool {
	d := g.departures[departed{in.Job, job.ZoneID(in.From.ID)}]
	if d == nil || d.epoch != in.Epoch {
		return false
	}
	g.fact(out, protocol.Fact{Kind: protocol.JobDeparted, Job: d.of.job, Generation: d.last, Zone: d.of.from, Epoch: d.epoch})
	return true
}

func (g *Gate) applyDeparted(f *protocol.Fact) {
	of := departed{f.Job, f.Zone}
	if f.Flag {
		g.depart(&departure{of: of, last: f.Generation, epoch: f.Epoch})
	} else if d := g.departures[of]; d != nil {
		g.sum -= d.hash()
		d.telling = g.departing.Confirm(d.telling)
		delete(g.departures, of)
	}
}

// sayDrains repeats what nobody has confirmed.
func (g *Gate) sayDrains(now quantity.Instant, out *protocol.Out) {
	leaving := take(&g.departing, now, nil)
	slices.SortFunc(leaving, func(a, b *departure) int {
		return cmp.Or(cmp.Compare(a.of.job, b.of.job), cmp.Compare(a.of.from, b.of.from))
	})
	for _, d := range leaving {
		if g.gone(d.of.from) { // it has left the configuration, and nothing of the job is there
			g.fact(out, protocol.Fact{Kind: protocol.JobDeparted, Job: d.of.job, Generation: d.last, Zone: d.of.from, Epoch: d.epoch})
			continue
		}
		g.send(out, protocol.Message{Kind: protocol.Forget, To: g.zone(d.of.from), Job: d.of.job, Epoch: d.epoch, Generation: d.last})
	}
	told := take(&g.spreading, now, nil)
	slices.SortFunc(told, func(a, b spread) int { return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.gate, b.gate)) })
	for _, s := range told {
		g.send(out, protocol.Message{Kind: protocol.DrainZone, To: protocol.Address{Role: protocol.Gate, ID: string(g.cfg.Gates[s.gate])}, Body: &protocol.Draining{Zone: s.zone}})
	}
}

// drainFacts say all of it for a snapshot.
func (g *Gate) drainFacts(out []protocol.Fact) []protocol.Fact {
	for _, zone := range slices.Sorted(maps.Keys(g.drained)) {
		out = append(out, protocol.Fact{Kind: protocol.ZoneDrained, Zone: zone})
	}
	for _, of := range slices.SortedFunc(maps.Keys(g.departures), func(a, b departed) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.from, b.from))
	}) {
		d := g.departures[of]
		out = append(out, protocol.Fact{Kind: protocol.JobDeparted, Job: of.job, Generation: d.last, Zone: of.from, Epoch: d.epoch, Flag: true})
	}
	return out
}
