package gate

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// plain is a gate's pass that walks everything at every step and remembers only when it said what.
type plain struct {
	g      *Gate
	in     protocol.Message
	jobs   map[job.ID]*word
	byes   map[*farewell]*word
	left   map[*departure]*word
	queues map[told]*word
	filed  map[*entry]*word
	asked  map[string]*word
}

// told is what one zone is told of a queue.
type told struct {
	queue *protocol.Queue
	zone  int
}

// word is something that was said: of what, how often, and when it is said again.
type word struct {
	of    string
	tries int
	at    quantity.Instant
}

func plainly(g *Gate) *plain {
	p := &plain{g: g, jobs: map[job.ID]*word{}, byes: map[*farewell]*word{}, left: map[*departure]*word{}, queues: map[told]*word{}, filed: map[*entry]*word{}, asked: map[string]*word{}}
	g.pass = p.pass
	for _, q := range g.queues {
		if *q.Queue == (protocol.Queue{Name: DefaultQueue, Weight: 1}) {
			for z := range g.cfg.Zones {
				p.queues[told{q.Queue, z}] = nil // as the zone has it without a word
			}
		}
	}
	return p
}

// due says whether w is said now, and counts.
func (p *plain) due(w *word, now quantity.Instant, wake *quantity.Instant) bool {
	said := w.at <= now
	if said {
		w.tries++
		w.at = now.Add(p.g.cfg.Retry << min(w.tries-1, outbox.Doublings))
	}
	*wake = min(*wake, w.at)
	return said
}

func (p *plain) pass(now quantity.Instant, out *protocol.Out) quantity.Instant {
	wake, g := quantity.Never, p.g
	for _, id := range slices.Sorted(maps.Keys(g.jobs)) {
		if e := g.jobs[id]; e.became().verdict.State.Final() {
			if at := e.became().ended.Add(g.cfg.Retain); at <= now {
				g.forget(e, out)
			} else {
				wake = min(wake, at)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.jobs)) {
		e := g.jobs[id]
		_, leaving := g.farewells[id]
		if e.became().verdict.State.Final() || leaving || e.zone == "" && !g.waits(e.became().moving) || e.homed && e.became().dropping == "" && e.heldKnown {
			delete(p.jobs, id)
			continue
		}
		// What it has to be told, but for whether it knows of a pause: news of this is told at once.
		of := fmt.Sprint(e.generation, e.homed, e.held, e.became().dropping, e.epoch, e.zone, g.waits(e.became().moving))
		again := p.in.Kind == protocol.PauseJob && p.in.From.Role == protocol.Zone && p.in.Job == id && p.in.Generation.Number() == e.generation && p.in.Epoch == e.epoch && !e.heldKnown
		if w := p.jobs[id]; w == nil || w.of != of || again {
			p.jobs[id] = &word{of: of}
		}
		if p.due(p.jobs[id], now, &wake) {
			g.say(e, out)
		}
	}
	for id := range p.jobs {
		if g.jobs[id] == nil {
			delete(p.jobs, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.farewells)) {
		f := g.farewells[id]
		if p.byes[f] == nil {
			p.byes[f] = &word{}
		}
		if p.due(p.byes[f], now, &wake) {
			g.dismiss(f, out)
		}
	}
	p.settings(now, out, &wake)
	p.departures(now, out, &wake)
	p.inventory(now, out, &wake)
	if g.cfg.Archive != nil {
		p.file(now, out, &wake)
	}
	return wake
}

// departures has old homes forget jobs, until they have.
func (p *plain) departures(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	for _, of := range slices.SortedFunc(maps.Keys(p.g.departures), func(a, b departed) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.from, b.from))
	}) {
		d := p.g.departures[of]
		if p.left[d] == nil {
			p.left[d] = &word{}
		}
		if p.due(p.left[d], now, wake) {
			p.g.send(out, protocol.Message{Kind: protocol.Forget, To: p.g.zone(of.from), Job: of.job, Epoch: d.epoch, Generation: d.last})
		}
	}
}

// file sends the archive the jobs that ended long enough ago, and those that ended first of too many.
func (p *plain) file(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	var over []*entry
	for _, id := range slices.Sorted(maps.Keys(p.g.jobs)) {
		if e := p.g.jobs[id]; e.over() {
			over = append(over, e)
		} else {
			delete(p.filed, e)
		}
	}
	slices.SortStableFunc(over, func(a, b *entry) int { return cmp.Compare(a.sequel.ended, b.sequel.ended) })
	hot := slices.DeleteFunc(slices.Clone(over), func(e *entry) bool { return p.filed[e] != nil })
	for i, e := range hot {
		if at := e.sequel.ended.Add(p.g.cfg.Archive.Keep); at <= now || len(hot)-i > p.g.cfg.Archive.Most {
			p.filed[e] = &word{}
		} else {
			*wake = min(*wake, at)
		}
	}
	slices.SortFunc(over, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	for _, e := range over {
		if w := p.filed[e]; w != nil && p.due(w, now, wake) {
			filed := e.AppendFacts(nil)
			for i := range filed {
				filed[i].Actor = p.g.self
			}
			p.g.send(out, protocol.Message{Kind: protocol.File, To: archive(), Job: e.id, Generation: e.generation, Filed: filed})
		}
	}
}

// settings tells the zone of queues that it has not said back as they are since they were set, or since the gate came up.
func (p *plain) settings(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	if p.in.Kind == protocol.QueueChanged {
		if i, found := p.g.findQueue(p.in.Body.(*protocol.Queue).Name); found {
			q := p.g.queues[i]
			z := slices.IndexFunc(p.g.cfg.Zones, func(z Zone) bool { return string(z.ID) == p.in.From.ID })
			p.queues[told{q.Queue, z}] = &word{}
			if *p.g.settingsOf(q, z) == *p.in.Body.(*protocol.Queue) {
				p.queues[told{q.Queue, z}] = nil
			}
		}
	}
	for _, q := range p.g.queues {
		for z := range p.g.cfg.Zones {
			w, known := p.queues[told{q.Queue, z}]
			if !known {
				w = &word{}
				p.queues[told{q.Queue, z}] = w
			}
			if w != nil && p.due(w, now, wake) {
				p.g.send(out, protocol.Message{Kind: protocol.QueueChanged, To: p.g.zone(p.g.cfg.Zones[z].ID), Body: p.g.settingsOf(q, z)})
			}
		}
	}
}

// inventory asks the nodes that have not said since the gate came up what they have.
func (p *plain) inventory(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	if len(p.g.cfg.Zones) == 1 {
		return
	}
	var nodes []string
	for _, z := range p.g.cfg.Zones {
		for _, n := range z.Nodes {
			nodes = append(nodes, string(n))
		}
	}
	slices.Sort(nodes)
	for _, n := range nodes {
		if p.asked[n] == nil {
			p.asked[n] = &word{}
		}
		if _, heard := p.g.inventory.nodes[n]; !heard && p.due(p.asked[n], now, wake) {
			p.g.send(out, protocol.Message{Kind: protocol.Inventory, To: protocol.Address{Role: protocol.Node, ID: n}, Body: &protocol.Stock{}})
		}
	}
}

// calls draws what may come to a gate: from people, its zone, the executor, and time.
func calls(t *rapid.T, g *Gate, i int) protocol.Message {
	name := rapid.SampledFrom([]job.ID{"a", "b"}).Draw(t, "job")
	request := fmt.Sprint("r", i)
	m := protocol.Message{Job: name, Epoch: 1, From: protocol.Address{Role: protocol.Person}}
	of, home := job.Generation(1), job.ZoneID("z")
	if e := g.jobs[name]; e != nil {
		of, home, m.Epoch = e.generation, e.zone, e.epoch
		if mv := e.became().moving; mv != nil && rapid.Bool().Draw(t, "from the old home") {
			home, m.Epoch = mv.from, e.epoch-1
		}
	}
	m.Generation = max(1, of-job.Generation(rapid.IntRange(0, 9).Draw(t, "earlier")/9))
	last := m.Generation
	if f := g.farewells[name]; f != nil {
		last, home, m.Epoch = f.last, f.zone, f.epoch
	}
	zone := protocol.Address{Role: protocol.Zone, ID: string(home)}
	switch rapid.SampledFrom([]string{"submit", "submit", "submit", "replace", "cancel", "cancel", "pause", "requeue", "delete", "queue", "adopted", "adopted", "adopted", "closed", "closed", "paused", "purged", "forgotten", "changed", "archived", "outdated", "discarded", "inventory", "drain", "drain", "surrendered"}).Draw(t, "call") {
	case "submit":
		m.Kind, m.Body = protocol.Submit, &protocol.Submission{Request: request, Spec: runnable(name), Digest: "d"}
	case "replace":
		m.Kind, m.Body = protocol.Submit, &protocol.Submission{Request: request, Spec: runnable(name), Digest: request, Replace: true}
	case "cancel":
		m.Kind, m.Body = protocol.Cancel, &protocol.Cancellation{Request: request}
	case "pause":
		m.Kind, m.Body = protocol.PauseJob, &protocol.Pause{Request: request, Held: rapid.Bool().Draw(t, "flag")}
	case "requeue":
		m.Kind, m.Body = protocol.Requeue, &protocol.Requeueing{Request: request}
	case "delete":
		m.Kind, m.Body = protocol.Delete, &protocol.Deletion{Request: request}
	case "queue":
		q := &protocol.Queue{Name: rapid.SampledFrom([]string{DefaultQueue, "q"}).Draw(t, "queue"), Weight: int64(rapid.IntRange(1, 2).Draw(t, "weight")), Cap: rapid.IntRange(0, 4).Draw(t, "cap")}
		m.Kind, m.Body = protocol.SetQueue, &protocol.QueueSetting{Request: request, Queue: q}
	case "adopted":
		m.Kind, m.From = protocol.Adopted, zone
	case "closed":
		verdict := job.Verdict{State: rapid.SampledFrom([]job.State{job.Finished, job.Cancelled}).Draw(t, "state")}
		m.Kind, m.From, m.Body = protocol.Closed, zone, &protocol.Closing{Verdict: verdict}
	case "paused":
		m.Kind, m.From, m.Body = protocol.PauseJob, zone, &protocol.Pause{Request: request, Held: rapid.Bool().Draw(t, "flag")}
	case "surrendered":
		m.Kind, m.From, m.Body = protocol.Surrendered, zone, &protocol.Record{Job: m.Job}
	case "drain":
		drained := g.cfg.Zones[rapid.IntRange(0, len(g.cfg.Zones)-1).Draw(t, "zone")].ID
		if e := g.jobs[name]; e != nil && e.zone != "" && rapid.Bool().Draw(t, "of the job") {
			drained = e.zone
		}
		m.Kind, m.Body = protocol.DrainZone, &protocol.Draining{Request: request, Zone: drained}
	case "purged":
		m.Kind, m.From, m.Generation = protocol.Purged, protocol.Address{Role: protocol.Executor}, last+1
	case "discarded":
		m.Kind, m.From, m.Generation = protocol.Purged, archive(), last+1
	case "archived":
		m.Kind, m.From, m.Body = protocol.Archived, archive(), &protocol.Archival{}
	case "outdated":
		m.Kind, m.From = protocol.Outdated, archive()
	case "forgotten":
		m.Kind, m.From, m.Generation = protocol.Forgotten, zone, last
		for _, from := range g.cfg.Zones {
			if d := g.departures[departed{name, from.ID}]; d != nil && rapid.Bool().Draw(t, "departed") {
				m.From, m.Epoch = g.zone(from.ID), d.epoch
			}
		}
	case "inventory":
		m.Kind, m.From = protocol.Inventory, protocol.Address{Role: protocol.Node, ID: "n"}
		if n := len(g.cfg.Zones); n > 1 {
			m.From.ID = string(g.cfg.Zones[rapid.IntRange(0, n-1).Draw(t, "zone")].Nodes[0])
		}
		m.Body = &protocol.Stock{Slices: []protocol.Slice{{ID: job.SliceID(m.From.ID + "/0"), Capacity: trp.Vector{1 << 30}, Speed: 1000}}}
	case "changed":
		m.Kind, m.From = protocol.QueueChanged, g.zone(g.cfg.Zones[rapid.IntRange(0, len(g.cfg.Zones)-1).Draw(t, "zone")].ID)
		m.Body = &protocol.Queue{
			Name: rapid.SampledFrom([]string{DefaultQueue, "q"}).Draw(t, "queue"), Weight: int64(rapid.IntRange(1, 2).Draw(t, "weight")), Cap: rapid.IntRange(-1, 2).Draw(t, "cap"),
		}
	}
	return m
}

// runnable is a job that any slice could run.
func runnable(name job.ID) *job.Spec {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 1, Mean: 1 << 20}}}, 1, 10_000)
	if err != nil {
		panic(err)
	}
	return &job.Spec{Name: name, Queue: DefaultQueue, Kind: job.Items, Total: 1, PerUnit: time.Second, Grid: 1, Safe: table, MaxFailures: 3}
}

func testGate(t interface{ Fatal(args ...any) }, cfg Config) *Gate {
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTheIndexedGateSaysWhatThePlainOneDoes, step by step and across restarts: the same facts, messages and wake-ups.
func TestTheIndexedGateSaysWhatThePlainOneDoes(t *testing.T) {
	seen, drawn := map[protocol.Kind]int{}, 0
	kinds := []protocol.Kind{protocol.Adopt, protocol.Cancel, protocol.PauseJob, protocol.QueueChanged, protocol.Forget, protocol.Purge, protocol.File, protocol.Inventory, protocol.Surrender}
	world := func(rt *rapid.T) {
		cfg := Config{Zones: Alone("z"), Retain: 20 * time.Second}
		if rapid.IntRange(0, 2).Draw(rt, "several zones") > 0 {
			cfg.Zones = []Zone{{"z", []job.NodeID{"n"}}, {"y", []job.NodeID{"m"}}, {"x", []job.NodeID{"l"}}}
		}
		if rapid.Bool().Draw(rt, "archive") {
			cfg.Archive = &filing.Config{Keep: 5 * time.Second, Most: 1}
		}
		filed := map[job.ID][]protocol.Fact{} // what the archive has, if only it was told
		g, walked := testGate(rt, cfg), testGate(rt, cfg)
		p := plainly(walked)
		var facts []protocol.Fact
		now := quantity.Instant(1e9)
		compare := func(what string, got, want *protocol.Out) {
			if !reflect.DeepEqual(got.Facts, want.Facts) || !reflect.DeepEqual(got.Effects, want.Effects) || g.Digest() != walked.Digest() {
				rt.Fatalf("%s at %d:\n got %+v\n     %+v\nwant %+v\n     %+v", what, now, got.Facts, got.Effects, want.Facts, want.Effects)
			}
			for spec, sums := range g.chances {
				if !slices.Equal(sums, g.sumChances(spec)) {
					rt.Fatalf("%s at %d: the chances of zones are remembered as %v, they are %v", what, now, sums, g.sumChances(spec))
				}
			}
			facts = append(facts, got.Facts...)
			for i := range got.Facts {
				if got.Facts[i].Kind == protocol.JobDrawn {
					drawn++
				}
			}
			for i := range got.Effects {
				m := &got.Effects[i]
				if seen[m.Kind]++; m.Kind == protocol.File {
					filed[m.Job] = m.Filed
				}
			}
		}
		for i := range rapid.IntRange(80, 160).Draw(rt, "steps") {
			now++
			var in protocol.Message
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			default:
				in = calls(rt, g, i)
				if in.Kind == protocol.Closed {
					in.Body.(*protocol.Closing).At = now
				}
			case 0, 1, 2:
				now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 500, 1000, 2000, 7000}).Draw(rt, "passes")) * time.Millisecond)
				in = protocol.Message{Kind: protocol.Tick}
			case 3:
				g, walked = testGate(rt, cfg), testGate(rt, cfg)
				for _, f := range facts {
					g.Apply(f)
					walked.Apply(f)
				}
				p = plainly(walked)
				var got, want protocol.Out
				g.Recover(now, &got)
				walked.Recover(now, &want)
				compare("recovery", &got, &want)
				continue
			}
			name, cold := g.Recalls(&in)
			if again, also := walked.Recalls(&in); also != cold || again != name {
				rt.Fatalf("%+v: recalled %q %v, want %q %v", in, name, cold, again, also)
			}
			if cold {
				in.Filed = filed[name]
			}
			var got, want protocol.Out
			p.in = in
			g.Step(now, in, &got)
			walked.Step(now, in, &want)
			compare(fmt.Sprintf("%+v", in), &got, &want)
		}
	}
	for round := 0; round == 0 || (drawn == 0 || slices.ContainsFunc(kinds, func(k protocol.Kind) bool { return seen[k] == 0 })) && round < 4; round++ { // a hundred worlds may not have all
		rapid.Check(t, world)
	}
	if drawn == 0 {
		t.Error("no home was drawn after its job was accepted: the test shows less than it should")
	}
	for _, k := range kinds {
		if seen[k] == 0 {
			t.Errorf("message %d was never sent: the test shows nothing", k)
		}
	}
}

// TestARestartDoesNotBurst: with many paused jobs the zone hears of a bounded number at once, and of the next as it answers.
func TestARestartDoesNotBurst(t *testing.T) {
	const jobs = 3 * mostTold
	g := testGate(t, Config{Zones: Alone("z")})
	spec := &job.Spec{Queue: DefaultQueue, Total: 1}
	for i := range jobs {
		id := job.ID(fmt.Sprint("j", i))
		g.Apply(protocol.Fact{Kind: protocol.JobAccepted, Job: id, Spec: spec, Zone: "z", Epoch: 1, Generation: 1, At: 1})
		g.Apply(protocol.Fact{Kind: protocol.JobHomed, Job: id, Epoch: 1})
		g.Apply(protocol.Fact{Kind: protocol.JobHeld, Job: id, Flag: true})
	}
	var out protocol.Out
	g.Recover(1e9, &out)
	told := map[job.ID]bool{}
	for len(told) < jobs {
		if n := len(out.Effects); n == 0 || n > mostTold+1 {
			t.Fatalf("%d are told after %d", n, len(told))
		}
		var answer job.ID
		for i := range out.Effects {
			if m := &out.Effects[i]; m.Kind == protocol.PauseJob {
				if told[m.Job] {
					t.Fatalf("%s is told twice", m.Job)
				}
				answer = m.Job
				told[m.Job] = true
			}
		}
		out.Reset()
		if answer == "" {
			t.Fatalf("the gate stops after %d", len(told))
		}
		if len(told) == mostTold { // all of them answer
			for _, id := range slices.Sorted(maps.Keys(told)) {
				g.Step(1e9, protocol.Message{Kind: protocol.PauseJob, From: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: id, Epoch: 1, Generation: 1, Body: &protocol.Pause{Held: true}}, &out)
			}
		} else { // nobody does
			g.Step(quantity.Instant(1e9).Add(time.Second), protocol.Message{Kind: protocol.Tick}, &out)
		}
	}
}
