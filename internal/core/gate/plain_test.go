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

	"sluice.dev/sluice/internal/core/federation/drain"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/gate/names"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// plain is a gate's pass that walks everything at every step and remembers only when it said what, and what it has heard since the gate
// came up.
type plain struct {
	g      *Gate
	in     protocol.Message
	jobs   map[job.ID]*word
	names  map[names.Name]*gone
	left   map[drain.Departure]*word
	queues map[told]*word
	filed  map[*jobs.Job]*word
	asked  map[string]*word
	heard  map[string]bool
}

var theArchive = protocol.Address{Role: protocol.Archive}

// gone is who has confirmed that nothing is left of an earlier life of a name.
type gone struct {
	word
	purged, forgotten, discarded bool
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
	p := &plain{
		g: g, jobs: map[job.ID]*word{}, names: map[names.Name]*gone{}, left: map[drain.Departure]*word{}, queues: map[told]*word{},
		filed: map[*jobs.Job]*word{}, asked: map[string]*word{}, heard: map[string]bool{},
	}
	g.pass = p.pass
	for _, q := range g.Queues() {
		if q == (protocol.Queue{Name: DefaultQueue, Weight: 1}) {
			for z := range g.cfg.Zones {
				p.queues[told{g.queues.Find(q.Name), z}] = nil // as the zone has it without a word
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
	for _, j := range g.jobs.All() {
		if _, ended := j.Verdict(); j.Over() {
			if at := ended.Add(g.cfg.Retain); at <= now {
				g.desk.Forget(j, out)
			} else {
				wake = min(wake, at)
			}
		}
	}
	for _, j := range g.jobs.All() {
		if j.Over() || g.names.Leaves(j.ID()) || j.Zone() == "" && !g.waits(j) || j.Known() {
			delete(p.jobs, j.ID())
			continue
		}
		// What it has to be told, but for whether it knows of a pause: news of this is told at once.
		cancelled, _ := j.Cancelled()
		of := fmt.Sprint(j.Generation(), j.Homed(), j.Paused(), cancelled, j.Epoch(), j.Zone(), g.waits(j))
		again := p.in.Kind == protocol.PauseJob && p.in.From.Role == protocol.Zone && p.in.Job == j.ID() &&
			p.in.Generation.Number() == j.Generation() && p.in.Epoch == j.Epoch() && p.in.Body.(*protocol.Pause).Paused != j.Paused()
		if w := p.jobs[j.ID()]; w == nil || w.of != of || again {
			p.jobs[j.ID()] = &word{of: of}
		}
		if p.due(p.jobs[j.ID()], now, &wake) {
			g.say(j, out)
		}
	}
	for id := range p.jobs {
		if g.Life(id) == 0 {
			delete(p.jobs, id)
		}
	}
	p.leaving(now, out, &wake)
	p.settings(now, out, &wake)
	p.departures(now, out, &wake)
	p.inventory(now, out, &wake)
	if g.cfg.Archive != nil {
		p.file(now, out, &wake)
	}
	return wake
}

// leaving has executor, homes and archive let go of earlier lives, until they have.
func (p *plain) leaving(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	var all []names.Name
	p.g.names.Leaving(func(n names.Name) { all = append(all, n) })
	slices.SortFunc(all, func(a, b names.Name) int { return cmp.Compare(a.ID, b.ID) })
	for _, n := range all {
		w := p.names[n]
		if w == nil {
			w = &gone{}
			p.names[n] = w
		} else if p.in.Job == n.ID {
			w.forgotten = w.forgotten || p.in.Kind == protocol.Forgotten && p.in.Generation >= n.Last && p.in.From == zone(n.Zone) &&
				!p.departed()
			w.purged = w.purged || p.in.Kind == protocol.Purged && p.in.Generation > n.Last && p.in.From != theArchive
			w.discarded = w.discarded || p.in.Kind == protocol.Purged && p.in.Generation > n.Last && p.in.From == theArchive
		}
		if !p.due(&w.word, now, wake) {
			continue
		}
		if !w.forgotten {
			p.g.send(out, protocol.Message{Kind: protocol.Forget, To: zone(n.Zone), Job: n.ID, Epoch: n.Epoch, Generation: n.Last})
		}
		if !w.purged {
			p.g.send(out, protocol.Message{Kind: protocol.Purge, To: protocol.Address{Role: protocol.Executor}, Job: n.ID,
				Generation: n.Last + 1})
		}
		if w.forgotten && !w.discarded && p.g.cfg.Archive != nil {
			p.g.send(out, protocol.Message{Kind: protocol.Purge, To: theArchive, Job: n.ID, Generation: n.Last + 1})
		}
	}
}

// departed says whether what came was an old home's word that it has forgotten a job: the departure that was there is not any more.
func (p *plain) departed() bool {
	found := false
	for d := range p.left {
		found = found || d.Job == p.in.Job && string(d.From) == p.in.From.ID && d.Epoch == p.in.Epoch && !slices.Contains(p.all(), d)
	}
	return found
}

func (p *plain) all() (all []drain.Departure) {
	p.g.drains.Departures(func(d drain.Departure) { all = append(all, d) })
	slices.SortFunc(all, func(a, b drain.Departure) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.From, b.From)) })
	return all
}

// departures has old homes forget jobs, until they have.
func (p *plain) departures(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	all := p.all()
	for _, d := range all {
		if p.left[d] == nil {
			p.left[d] = &word{}
		}
		if p.due(p.left[d], now, wake) {
			p.g.send(out, protocol.Message{Kind: protocol.Forget, To: zone(d.From), Job: d.Job, Epoch: d.Epoch, Generation: d.Last})
		}
	}
	for d := range p.left {
		if !slices.Contains(all, d) {
			delete(p.left, d)
		}
	}
}

// file sends the archive the jobs that ended long enough ago, and those that ended first of too many.
func (p *plain) file(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	var over []*jobs.Job
	for _, e := range p.g.jobs.All() {
		if e.Over() {
			over = append(over, e)
		} else {
			delete(p.filed, e)
		}
	}
	ended := func(e *jobs.Job) quantity.Instant {
		_, at := e.Verdict()
		return at
	}
	slices.SortStableFunc(over, func(a, b *jobs.Job) int { return cmp.Compare(ended(a), ended(b)) })
	hot := slices.DeleteFunc(slices.Clone(over), func(e *jobs.Job) bool { return p.filed[e] != nil })
	for i, e := range hot {
		if at := ended(e).Add(p.g.cfg.Archive.Keep); at <= now || len(hot)-i > p.g.cfg.Archive.Most {
			p.filed[e] = &word{}
		} else {
			*wake = min(*wake, at)
		}
	}
	slices.SortFunc(over, func(a, b *jobs.Job) int { return cmp.Compare(a.ID(), b.ID()) })
	for _, e := range over {
		if w := p.filed[e]; w != nil && p.due(w, now, wake) {
			filed := e.AppendFacts(nil)
			for i := range filed {
				filed[i].Actor = p.g.self
			}
			p.g.send(out, protocol.Message{Kind: protocol.File, To: theArchive, Job: e.ID(), Generation: e.Generation(), Filed: filed})
		}
	}
}

// settings tells the zone of queues that it has not said back as they are since they were set, or since the gate came up.
func (p *plain) settings(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	if p.in.Kind == protocol.QueueChanged {
		if q := p.g.queues.Find(p.in.Body.(*protocol.Queue).Name); q != nil {
			z := slices.IndexFunc(p.g.cfg.Zones, func(z Zone) bool { return string(z.ID) == p.in.From.ID })
			p.queues[told{q, z}] = &word{}
			if *p.g.queues.Of(q, z) == *p.in.Body.(*protocol.Queue) {
				p.queues[told{q, z}] = nil
			}
		}
	}
	for _, is := range p.g.Queues() {
		q := p.g.queues.Find(is.Name)
		for z := range p.g.cfg.Zones {
			w, known := p.queues[told{q, z}]
			if !known {
				w = &word{}
				p.queues[told{q, z}] = w
			}
			if w != nil && p.due(w, now, wake) {
				p.g.send(out, protocol.Message{Kind: protocol.QueueChanged, To: zone(p.g.cfg.Zones[z].ID), Body: p.g.queues.Of(q, z)})
			}
		}
	}
}

// inventory asks the nodes that have not said since the gate came up what they have.
func (p *plain) inventory(now quantity.Instant, out *protocol.Out, wake *quantity.Instant) {
	if len(p.g.cfg.Zones) == 1 {
		return
	}
	if p.in.Kind == protocol.Inventory {
		p.heard[p.in.From.ID] = true
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
		if !p.heard[n] && p.due(p.asked[n], now, wake) {
			p.g.send(out, protocol.Message{Kind: protocol.Inventory, To: protocol.Address{Role: protocol.Node, ID: n},
				Body: &protocol.Stock{}})
		}
	}
}

// calls draws what may come to a gate: from people, its zone, the executor, and time.
func calls(t *rapid.T, g *Gate, i int) protocol.Message {
	name := rapid.SampledFrom([]job.ID{"a", "b"}).Draw(t, "job")
	request := fmt.Sprint("r", i)
	m := protocol.Message{Job: name, Epoch: 1, From: protocol.Address{Role: protocol.Person}}
	of, home := job.Generation(1), job.ZoneID("z")
	if j := g.jobs.Find(name); j != nil {
		of, home, m.Epoch = j.Generation(), j.Zone(), j.Epoch()
		if from, _, moves := j.Moves(); moves && rapid.Bool().Draw(t, "from the old home") {
			home, m.Epoch = from, j.Epoch()-1
		}
	}
	m.Generation = max(1, of-job.Generation(rapid.IntRange(0, 9).Draw(t, "earlier")/9))
	last := m.Generation
	g.names.Leaving(func(n names.Name) {
		if n.ID == name {
			last, home, m.Epoch = n.Last, n.Zone, n.Epoch
		}
	})
	at := zone(home)
	switch rapid.SampledFrom([]string{"submit", "submit", "submit", "replace", "cancel", "cancel", "pause", "requeue", "delete", "queue",
		"adopted", "adopted", "adopted", "closed", "closed", "paused", "purged", "forgotten", "changed", "archived", "outdated",
		"discarded", "inventory", "drain", "drain", "surrendered"}).Draw(t, "call") {
	case "submit":
		m.Kind, m.Body = protocol.Submit, &protocol.Submission{Request: request, Spec: runnable(name), Digest: "d"}
	case "replace":
		m.Kind, m.Body = protocol.Submit, &protocol.Submission{Request: request, Spec: runnable(name), Digest: request, Replace: true}
	case "cancel":
		m.Kind, m.Body = protocol.Cancel, &protocol.Cancellation{Request: request}
	case "pause":
		m.Kind, m.Body = protocol.PauseJob, &protocol.Pause{Request: request, Paused: rapid.Bool().Draw(t, "flag")}
	case "requeue":
		m.Kind, m.Body = protocol.Requeue, &protocol.Requeueing{Request: request}
	case "delete":
		m.Kind, m.Body = protocol.Delete, &protocol.Deletion{Request: request}
	case "queue":
		q := &protocol.Queue{Name: rapid.SampledFrom([]string{DefaultQueue, "q"}).Draw(t, "queue"),
			Weight: int64(rapid.IntRange(1, 2).Draw(t, "weight")), Cap: rapid.IntRange(0, 4).Draw(t, "cap")}
		m.Kind, m.Body = protocol.SetQueue, &protocol.QueueSetting{Request: request, Queue: q}
	case "adopted":
		m.Kind, m.From = protocol.Adopted, at
	case "closed":
		verdict := job.Verdict{State: rapid.SampledFrom([]job.State{job.Finished, job.Cancelled}).Draw(t, "state")}
		m.Kind, m.From, m.Body = protocol.Closed, at, &protocol.Closing{Verdict: verdict}
	case "paused":
		m.Kind, m.From, m.Body = protocol.PauseJob, at, &protocol.Pause{Request: request, Paused: rapid.Bool().Draw(t, "flag")}
	case "surrendered":
		m.Kind, m.From, m.Body = protocol.Surrendered, at, &protocol.Record{Job: m.Job}
	case "drain":
		drained := g.cfg.Zones[rapid.IntRange(0, len(g.cfg.Zones)-1).Draw(t, "zone")].ID
		if j := g.jobs.Find(name); j != nil && j.Zone() != "" && rapid.Bool().Draw(t, "of the job") {
			drained = j.Zone()
		}
		m.Kind, m.Body = protocol.DrainZone, &protocol.Draining{Request: request, Zone: drained}
	case "purged":
		m.Kind, m.From, m.Generation = protocol.Purged, protocol.Address{Role: protocol.Executor}, last+1
	case "discarded":
		m.Kind, m.From, m.Generation = protocol.Purged, theArchive, last+1
	case "archived":
		m.Kind, m.From, m.Body = protocol.Archived, theArchive, &protocol.Archival{}
	case "outdated":
		m.Kind, m.From = protocol.Outdated, theArchive
	case "forgotten":
		m.Kind, m.From, m.Generation = protocol.Forgotten, at, last
		for _, from := range g.cfg.Zones {
			g.drains.Departures(func(d drain.Departure) {
				if d.Job == name && d.From == from.ID && rapid.Bool().Draw(t, "departed") {
					m.From, m.Epoch = zone(from.ID), d.Epoch
				}
			})
		}
	case "inventory":
		m.Kind, m.From = protocol.Inventory, protocol.Address{Role: protocol.Node, ID: "n"}
		if n := len(g.cfg.Zones); n > 1 {
			m.From.ID = string(g.cfg.Zones[rapid.IntRange(0, n-1).Draw(t, "zone")].Nodes[0])
		}
		m.Body = &protocol.Stock{Slices: []protocol.Slice{{ID: job.SliceID(m.From.ID + "/0"), Capacity: trp.Vector{1 << 30}, Speed: 1000}}}
	case "changed":
		m.Kind, m.From = protocol.QueueChanged, zone(g.cfg.Zones[rapid.IntRange(0, len(g.cfg.Zones)-1).Draw(t, "zone")].ID)
		m.Body = &protocol.Queue{
			Name: rapid.SampledFrom([]string{DefaultQueue, "q"}).Draw(t, "queue"), Weight: int64(rapid.IntRange(1, 2).Draw(t, "weight")),
			Cap: rapid.IntRange(-1, 2).Draw(t, "cap"),
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
	kinds := []protocol.Kind{protocol.Adopt, protocol.Cancel, protocol.PauseJob, protocol.QueueChanged, protocol.Forget, protocol.Purge,
		protocol.File, protocol.Inventory, protocol.Surrender}
	world := func(rt *rapid.T) {
		cfg := Config{Zones: Alone("z"), Retain: 20 * time.Second}
		if rapid.IntRange(0, 2).Draw(rt, "several zones") > 0 {
			cfg.Zones = []Zone{{ID: "z", Nodes: []job.NodeID{"n"}}, {ID: "y", Nodes: []job.NodeID{"m"}},
				{ID: "x", Nodes: []job.NodeID{"l"}}}
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
	// a hundred worlds may not have all
	for round := 0; round == 0 || (drawn == 0 || slices.ContainsFunc(kinds, func(k protocol.Kind) bool { return seen[k] == 0 })) &&
		round < 4; round++ {
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
	const many = 3 * jobs.MostTold
	g := testGate(t, Config{Zones: Alone("z")})
	spec := &job.Spec{Queue: DefaultQueue, Total: 1}
	for i := range many {
		id := job.ID(fmt.Sprint("j", i))
		g.Apply(protocol.Fact{Kind: protocol.JobAccepted, Job: id, Epoch: 1, Generation: 1, At: 1,
			Body: &protocol.Acceptance{Spec: spec, Zone: "z"}})
		g.Apply(protocol.Fact{Kind: protocol.JobHomed, Job: id, Epoch: 1})
		g.Apply(protocol.Fact{Kind: protocol.JobPaused, Job: id, Body: &protocol.JobPause{Paused: true}})
	}
	var out protocol.Out
	g.Recover(1e9, &out)
	told := map[job.ID]bool{}
	for len(told) < many {
		if n := len(out.Effects); n == 0 || n > jobs.MostTold+1 {
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
		if len(told) == jobs.MostTold { // all of them answer
			for _, id := range slices.Sorted(maps.Keys(told)) {
				g.Step(1e9, protocol.Message{Kind: protocol.PauseJob, From: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: id,
					Epoch: 1, Generation: 1, Body: &protocol.Pause{Paused: true}}, &out)
			}
		} else { // nobody does
			g.Step(quantity.Instant(1e9).Add(time.Second), protocol.Message{Kind: protocol.Tick}, &out)
		}
	}
}
