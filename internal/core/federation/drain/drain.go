// Package drain makes jobs leave a zone that is drained for good: no home is drawn there any more, and each unfinished job at home there
// gets another home under the next epoch (docs/adr/0044-rehomed.md). The old home surrenders the record, which is only passed on here:
// after a crash it is asked for again. The old home keeps the record until the new one has taken the job over, and is then told to forget
// it until it confirms.
package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// mostTold bounds the unconfirmed messages of one retry interval.
const mostTold = 256

// Office is what drains call on their gate.
type Office interface {
	// Fact decides one, Send says something.
	Fact(out *protocol.Out, f protocol.Fact)
	Send(out *protocol.Out, m protocol.Message)
	// Redraw is the home of a job under its next epoch, empty if no zone is known that could run it.
	Redraw(now quantity.Instant, j *jobs.Job, epoch uint32) job.ZoneID
	// Tell sends a job's home what is new.
	Tell(j *jobs.Job)
}

// Drains holds the drains of one gate's zones.
type Drains struct {
	self   protocol.Address
	gates  protocol.Gates
	zones  []job.ZoneID
	jobs   *jobs.Register
	gone   func(job.ZoneID) bool // it has left the configuration
	office Office

	// Durable.
	drained    map[job.ZoneID]bool
	departures map[departed]*departure
	sum        uint64

	// Soft: old homes that are to forget a job, and, at the first of several gates, the other gates that are to be told of a zone.
	departing outbox.Box[*departure]
	spreading outbox.Box[spread]
	spreads   map[spread]*outbox.Item[spread]
}

// departed is a job that has left a zone.
type departed struct {
	job  job.ID
	from job.ZoneID
}

// Departure is what is to be forgotten there: lives up to the last.
type Departure struct {
	Job   job.ID
	From  job.ZoneID
	Last  job.Generation
	Epoch uint32
}

type departure struct {
	Departure
	telling *outbox.Item[*departure]
}

func (d *departure) hash() uint64 {
	return digest.New().Text("departed").Text(string(d.Job)).Text(string(d.From)).Int(int64(d.Last), int64(d.Epoch)).Sum()
}

// spread is a drained zone that another gate, by its place, is to know of.
type spread struct {
	zone job.ZoneID
	gate int
}

// New knows of no drained zone. gone says whether a zone has left the configuration.
func New(self protocol.Address, gates protocol.Gates, zones []job.ZoneID, retry time.Duration, of *jobs.Register,
	gone func(job.ZoneID) bool, office Office) *Drains {
	return &Drains{
		self: self, gates: gates, zones: zones, jobs: of, gone: gone, office: office,
		drained: map[job.ZoneID]bool{}, departures: map[departed]*departure{}, spreads: map[spread]*outbox.Item[spread]{},
		departing: outbox.New[*departure](retry, mostTold), spreading: outbox.New[spread](retry, mostTold),
	}
}

// Drained reports whether a zone was drained for good.
func (d *Drains) Drained(zone job.ZoneID) bool { return d != nil && d.drained[zone] }

// Drain answers a person.
func (d *Drains) Drain(now quantity.Instant, in *protocol.Message, which *protocol.Draining, out *protocol.Out) {
	zone := which.Zone
	var err error
	switch first := d.gates.First(); {
	case first != d.self:
		err = errkind.Errorf(errkind.Invalid, "zone %s: draining zones belongs to gate %s", zone, first.ID)
	case d.unknown(zone) && d.drained[zone]:
		err = errkind.Errorf(errkind.NotFound, "zone %s was drained, and has left", zone)
	case d.unknown(zone):
		err = errkind.Errorf(errkind.NotFound, "there is no zone %q", zone)
	case !d.drained[zone] && len(d.staying()) == 1:
		err = errkind.Errorf(errkind.Conflict, "zone %s is the only one that is not drained: its jobs would have no other home; add a "+
			"zone first", zone)
	}
	changed := err == nil && !d.drained[zone]
	if changed {
		d.decide(now, zone, out)
	}
	d.office.Send(out, protocol.Message{Kind: protocol.Reply, To: in.From, Body: &protocol.Receipt{Request: which.Request, Changed: changed,
		Err: err}})
}

func (d *Drains) unknown(zone job.ZoneID) bool { return zone == "" || d.gone(zone) }

func (d *Drains) decide(now quantity.Instant, zone job.ZoneID, out *protocol.Out) {
	d.office.Fact(out, protocol.Fact{Kind: protocol.ZoneDrained, Body: &protocol.InZone{Zone: zone}})
	d.RehomeAll(now, out)
}

// Told handles what the first gate says, and what another gate says of the drains that the first gate told it.
func (d *Drains) Told(now quantity.Instant, in *protocol.Message, which *protocol.Draining, out *protocol.Out) {
	first := d.gates.First()
	if d.self == first {
		to := spread{which.Zone, slices.Index(d.gates, job.GateID(in.From.ID))}
		d.spreading.Confirm(d.spreads[to])
		delete(d.spreads, to)
		return
	}
	if in.From != first {
		return
	}
	if !d.drained[which.Zone] {
		d.decide(now, which.Zone, out)
	}
	d.office.Send(out, protocol.Message{Kind: protocol.DrainZone, To: in.From, Body: &protocol.Draining{Zone: which.Zone}})
}

// staying are the zones that are not drained.
func (d *Drains) staying() (ids []job.ZoneID) {
	for _, id := range d.zones {
		if !d.drained[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// Anywhere is a zone that can end a job which is not to run.
func (d *Drains) Anywhere(j *jobs.Job) job.ZoneID {
	among := d.staying()
	return among[jobs.Number(j.ID(), j.Generation(), j.Epoch(), len(among))]
}

// Apply folds a fact about zones that are drained or left.
func (d *Drains) Apply(f *protocol.Fact) {
	switch b := f.Body.(type) {
	case *protocol.InZone:
		d.drain(b.Zone)
	case *protocol.Departure:
		if b.Pending {
			d.depart(&departure{Departure: Departure{f.Job, b.Zone, f.Generation, f.Epoch}})
			return
		}
		of := departed{f.Job, b.Zone}
		if x := d.departures[of]; x != nil {
			d.sum -= x.hash()
			x.telling = d.departing.Confirm(x.telling)
			delete(d.departures, of)
		}
	}
}

func (d *Drains) drain(zone job.ZoneID) {
	if d.drained[zone] {
		return
	}
	d.drained[zone] = true
	d.sum += digest.New().Text("drained").Text(string(zone)).Sum()
	if d.self != d.gates.First() {
		return
	}
	for i := 1; i < len(d.gates); i++ {
		to := spread{zone, i}
		d.spreads[to] = d.spreading.Say(d.spreads[to], to)
	}
}

// Depart makes the old home of a moved job forget it.
func (d *Drains) Depart(j *jobs.Job, from job.ZoneID) {
	d.depart(&departure{Departure: Departure{j.ID(), from, j.Generation(), j.Epoch() - 1}})
}

func (d *Drains) depart(x *departure) {
	of := departed{x.Job, x.From}
	if was := d.departures[of]; was != nil {
		d.sum -= was.hash()
		d.departing.Confirm(was.telling)
	}
	d.departures[of] = x
	d.sum += x.hash()
	x.telling = d.departing.Say(nil, x)
}

// RehomeAll gives each job whose home is drained another one.
func (d *Drains) RehomeAll(now quantity.Instant, out *protocol.Out) {
	if d == nil || len(d.drained) == 0 {
		return
	}
	for _, j := range d.jobs.All() {
		d.Rehome(now, j, out)
	}
}

// Rehome gives a job whose home is drained another one. One that the old home has not confirmed yet moves when it has.
func (d *Drains) Rehome(now quantity.Instant, j *jobs.Job, out *protocol.Out) {
	if d == nil || !j.Homed() || j.Over() || !d.drained[j.Zone()] {
		return
	}
	if _, _, moves := j.Moves(); !moves {
		d.move(now, j, out)
	}
}

// Reopened gives the next life of a job whose home has left the configuration another one at once. What it has completed is in the archive.
func (d *Drains) Reopened(now quantity.Instant, j *jobs.Job, out *protocol.Out) {
	if d != nil && d.gone(j.Zone()) {
		d.move(now, j, out)
	}
}

func (d *Drains) move(now quantity.Instant, j *jobs.Job, out *protocol.Out) {
	epoch := j.Epoch() + 1
	d.office.Fact(out, protocol.Fact{Kind: protocol.Rehomed, Job: j.ID(), Epoch: epoch,
		Body: &protocol.InZone{Zone: d.office.Redraw(now, j, epoch)}})
}

// Waits says whether the old home is to surrender a job. One that has left the configuration has nothing of it but what is in the archive,
// where the new home finds it.
func (d *Drains) Waits(j *jobs.Job) bool {
	from, record, moves := j.Moves()
	return moves && record == nil && !d.gone(from)
}

// AskBack asks the old home for a job. Its owner's word reaches it there too, as long as something runs.
func (d *Drains) AskBack(j *jobs.Job, out *protocol.Out) {
	from, _, _ := j.Moves()
	m := protocol.Message{Kind: protocol.Surrender, To: protocol.Address{Role: protocol.Zone, ID: string(from)}, Job: j.ID(),
		Epoch: j.Epoch() - 1, Generation: j.Generation()}
	if m.Body = (&protocol.Moving{Text: fmt.Sprintf("it moves to zone %s: zone %s is drained", j.Zone(), from)}); j.Zone() == "" {
		m.Body = &protocol.Moving{Text: fmt.Sprintf("zone %s is drained, and no other zone is known that could run it", from)}
	}
	d.office.Send(out, m)
	if c, _ := j.Cancelled(); c != nil {
		m.Kind, m.Body = protocol.Cancel, c
		d.office.Send(out, m)
	}
}

// Surrendered passes the record of a job on to its new home, once: what a home has surrendered it does not change.
func (d *Drains) Surrendered(in *protocol.Message, r *protocol.Record) {
	if j := d.jobs.Find(in.Job); j != nil && j.Leaves(in) && d.Waits(j) && j.Generation() == in.Generation.Number() && r.Job == j.ID() {
		j.Surrender(r)
		d.office.Tell(j)
	}
}

// Departed notes that an old home has forgotten a job, and says whether it is that what a message is about.
func (d *Drains) Departed(in *protocol.Message, out *protocol.Out) bool {
	if d == nil {
		return false
	}
	x := d.departures[departed{in.Job, job.ZoneID(in.From.ID)}]
	if x == nil || x.Epoch != in.Epoch {
		return false
	}
	d.depose(x, out)
	return true
}

func (d *Drains) depose(x *departure, out *protocol.Out) {
	d.office.Fact(out, protocol.Fact{Kind: protocol.JobDeparted, Job: x.Job, Generation: x.Last, Epoch: x.Epoch,
		Body: &protocol.Departure{Zone: x.From}})
}

// Repeat says what nobody has confirmed.
func (d *Drains) Repeat(now quantity.Instant, out *protocol.Out) {
	if d == nil {
		return
	}
	leaving := d.departing.Take(now, nil)
	slices.SortFunc(leaving, func(a, b *departure) int { return departed{a.Job, a.From}.compare(departed{b.Job, b.From}) })
	for _, x := range leaving {
		if d.gone(x.From) { // it has left the configuration, and nothing of the job is there
			d.depose(x, out)
			continue
		}
		to := protocol.Address{Role: protocol.Zone, ID: string(x.From)}
		d.office.Send(out, protocol.Message{Kind: protocol.Forget, To: to, Job: x.Job, Epoch: x.Epoch, Generation: x.Last})
	}
	told := d.spreading.Take(now, nil)
	slices.SortFunc(told, func(a, b spread) int { return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.gate, b.gate)) })
	for _, s := range told {
		to := protocol.Address{Role: protocol.Gate, ID: string(d.gates[s.gate])}
		d.office.Send(out, protocol.Message{Kind: protocol.DrainZone, To: to, Body: &protocol.Draining{Zone: s.zone}})
	}
}

func (a departed) compare(b departed) int {
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.from, b.from))
}

// Wake is when Repeat has something to send.
func (d *Drains) Wake() quantity.Instant {
	if d == nil {
		return quantity.Never
	}
	return min(d.departing.Wake(), d.spreading.Wake())
}

// Departures yields what old homes are to forget, in no order.
func (d *Drains) Departures(yield func(Departure)) {
	if d == nil {
		return
	}
	//sluice:sorted who asks takes the first name in any order
	for _, x := range d.departures {
		yield(x.Departure)
	}
}

// AppendFacts appends the facts that restore the durable state from a snapshot.
func (d *Drains) AppendFacts(out []protocol.Fact) []protocol.Fact {
	if d == nil {
		return out
	}
	for _, zone := range slices.Sorted(maps.Keys(d.drained)) {
		out = append(out, protocol.Fact{Kind: protocol.ZoneDrained, Body: &protocol.InZone{Zone: zone}})
	}
	for _, of := range slices.SortedFunc(maps.Keys(d.departures), departed.compare) {
		x := d.departures[of]
		out = append(out, protocol.Fact{Kind: protocol.JobDeparted, Job: x.Job, Generation: x.Last, Epoch: x.Epoch,
			Body: &protocol.Departure{Zone: x.From, Pending: true}})
	}
	return out
}

// Sum is the digest of the durable state; 0 for nil.
func (d *Drains) Sum() uint64 {
	if d == nil {
		return 0
	}
	return d.sum
}
