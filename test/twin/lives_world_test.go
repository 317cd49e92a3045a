package twin_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// village is the three real actors with a post between them that loses, doubles, delays and reorders, and an executor whose
// files are remembered. Every submission has a unit name of its own, so that what is run, committed and published can be told
// apart whatever job it is for.
type village struct {
	t        failer
	draw     func(n int) int
	make     func() actor.Set
	parties  []actor.Party
	wakes    []quantity.Instant
	facts    [][]protocol.Fact
	now      quantity.Instant
	mail     []mailed
	captures [3]*captured
	// rough: messages between actors are lost and doubled.
	rough bool
	// vault is the archive; nil: jobs that are over stay.
	vault *vault

	runs map[job.Token]*piece
	// first is which life's files lie in a job's folders (as package process keeps it), files what is published there.
	first map[job.ID]job.Generation
	files map[job.ID][]file

	// present is the unit of the job that the gate has under a name; committed what counts of every unit; home whose record
	// the zone has.
	present, home map[job.ID]string
	committed     map[string]job.Ranges
	replies       []protocol.Message
}

type mailed struct {
	at quantity.Instant
	m  protocol.Message
}

type file struct {
	unit string
	rng  job.Range
}

type piece struct {
	start   protocol.Message
	began   quantity.Instant
	ends    quantity.Instant
	result  *job.Result
	settled bool
}

func newVillage(t failer, draw func(int) int, archive *filing.Config) *village {
	v := &village{
		t: t, draw: draw, now: quantity.Instant(1e12), runs: map[job.Token]*piece{}, first: map[job.ID]job.Generation{},
		files:   map[job.ID][]file{},
		present: map[job.ID]string{}, home: map[job.ID]string{}, committed: map[string]job.Ranges{},
	}
	make, err := arrangement.Alone(
		gate.Config{Zones: gate.Alone(zoneID), Archive: archive},
		zone.Config{ID: zoneID, Policy: fair.Policy{}, Horizon: 10 * time.Minute, Archive: archive},
		node.Config{ID: nodeID, Zone: zoneID, Refresh: 5 * time.Second}, // an actor may restart alone
	).Build()
	if err != nil {
		t.Fatalf("%v", err)
	}
	v.make = make
	if archive != nil {
		v.vault = newVault()
	}
	v.parties = v.make().Parties()
	v.wakes = []quantity.Instant{quantity.Never, quantity.Never, quantity.Never}
	v.facts = [][]protocol.Fact{nil, nil, nil}
	for i := range v.parties {
		v.recover(i)
	}
	return v
}

// restart forgets what an actor has not written down. Its facts and its snapshot fold to what it knew.
func (v *village) restart(i int) {
	from := v.parties[i]
	kept := v.make().Parties()[i]
	v.captures[i] = nil
	for _, f := range capture.All(from.Actor.(capture.Source)) {
		kept.Actor.Apply(f)
	}
	fresh := v.make().Parties()[i]
	for _, f := range v.facts[i] {
		fresh.Actor.Apply(f)
	}
	if want := from.Actor.Digest(); kept.Actor.Digest() != want || fresh.Actor.Digest() != want {
		v.t.Fatalf("%s: digest %x, of its facts %x, of its snapshot %x", actor.Name(from.Address), want, fresh.Actor.Digest(),
			kept.Actor.Digest())
	}
	if v.draw(2) == 0 {
		v.facts[i] = capture.All(from.Actor.(capture.Source))
		fresh = kept
	}
	v.parties[i], v.wakes[i] = fresh, quantity.Never
	v.recover(i)
}

func (v *village) recover(i int) {
	var out protocol.Out
	v.parties[i].Actor.Recover(v.now, &out)
	v.took(i, &out)
	if v.parties[i].Address.Role == protocol.Node {
		v.inventory()
	}
}

func (v *village) inventory() {
	stock := &protocol.Stock{Slices: machine("")}
	m := protocol.Message{Kind: protocol.Inventory, Body: stock}
	for _, t := range sortedTokens(v.runs) {
		if p := v.runs[t]; !p.settled {
			stock.Found = append(stock.Found, protocol.Found{Token: t, Job: p.start.Job, Slice: p.start.Body.(*protocol.Work).Slice,
				Alive: p.result == nil, Started: p.began, Result: p.result})
		}
	}
	v.answer(m)
}

func sortedTokens(runs map[job.Token]*piece) []job.Token {
	list := make([]job.Token, 0, len(runs))
	for t := range runs {
		list = append(list, t)
	}
	slices.SortFunc(list, job.Token.Compare)
	return list
}

func (v *village) step(i int, m protocol.Message) {
	var out protocol.Out
	v.recall(i, &m)
	v.parties[i].Actor.Step(v.now, m, &out)
	v.took(i, &out)
	v.capture(i)
}

// captured is a capture of an actor that runs while it steps: the digest that it had, and those of what was taken so far.
type captured struct {
	run       capture.Run
	want, sum uint64
}

// capture begins a capture of an actor or goes on with one. Its pieces, each folded alone, add up to what the actor was.
func (v *village) capture(i int) {
	fresh := v.make().Parties()[i].Actor
	none := fresh.Digest()
	c := v.captures[i]
	if c == nil {
		a := v.parties[i].Actor
		v.captures[i] = &captured{a.(capture.Source).Capture(), a.Digest(), none}
		return
	}
	facts, done := c.run.Take(v.draw(2), nil)
	for _, f := range facts {
		fresh.Apply(f)
	}
	c.sum += fresh.Digest() - none
	if !done {
		return
	}
	if c.sum != c.want {
		v.t.Fatalf("%s: what was captured folds to digest %x, it was %x", actor.Name(v.parties[i].Address), c.sum, c.want)
	}
	v.captures[i] = nil
}

func (v *village) took(i int, out *protocol.Out) {
	for _, f := range out.Facts {
		f.Actor = v.parties[i].Address
		v.facts[i] = append(v.facts[i], f)
		v.judge(&f)
	}
	for _, m := range out.Effects {
		m.From = v.parties[i].Address
		v.post(i, m)
	}
}

// judge watches what is decided.
func (v *village) judge(f *protocol.Fact) {
	v.counted(f)
	switch f.Kind {
	case protocol.JobAccepted:
		v.present[f.Job] = f.Body.(*protocol.Acceptance).Spec.Unit
	case protocol.JobForgotten:
		delete(v.present, f.Job)
	case protocol.HomeTaken:
		v.home[f.Job] = f.Body.(*protocol.Taking).Spec.Unit
	case protocol.HomeReopened:
		if unit := f.Body.(*protocol.Sequel).Spec.Unit; v.home[f.Job] != unit {
			v.t.Fatalf("job %s: a life of %s goes on as one of %s", f.Job, v.home[f.Job], unit)
		}
	case protocol.Committed:
		unit, done := v.home[f.Job], f.Body.(*protocol.ClaimEnd).Range
		if v.committed[unit].Overlaps(done) {
			v.t.Fatalf("job %s: %v of %s is committed twice", f.Job, done, unit)
		}
		v.committed[unit] = v.committed[unit].Add(done)
	}
}

// post sends a message. Between actors, and between gate and executor, it may take half a second, come twice or not at all.
func (v *village) post(from int, m protocol.Message) {
	if m.To.Role == protocol.Timer {
		v.wakes[from] = min(v.wakes[from], m.Body.(*protocol.Moment).At)
		return
	}
	copies, delay := 1, 0
	if m.To.Role != protocol.Person && m.Kind != protocol.Start && v.rough {
		switch v.draw(10) {
		case 0:
			copies = 0
		case 1:
			copies = 2
		}
		delay = 500
	}
	if m.To.Role == protocol.Executor && m.Kind != protocol.Purge {
		copies, delay = 1, 0
	}
	for range copies {
		at := v.now
		if delay > 0 && v.draw(3) == 0 {
			at = at.Add(time.Duration(1+v.draw(delay)) * time.Millisecond)
		}
		v.mail = append(v.mail, mailed{at, m})
	}
}

func (v *village) answer(m protocol.Message) {
	m.From = protocol.Address{Role: protocol.Executor, ID: string(nodeID)}
	m.To = v.parties[2].Address
	if m.Kind == protocol.Purged {
		m.To = v.parties[0].Address
	}
	v.mail = append(v.mail, mailed{v.now, m})
}

func (v *village) ask(m protocol.Message) protocol.Message {
	m.From = protocol.Address{Role: protocol.Person}
	v.replies = v.replies[:0]
	v.step(0, m)
	v.deliver()
	return v.replies[0]
}

// advance goes on for a time.
func (v *village) advance(d time.Duration) {
	for until := v.now.Add(d); v.now < until; {
		v.deliver()
		next := until
		for _, w := range v.wakes {
			next = min(next, w)
		}
		for _, l := range v.mail {
			next = min(next, l.at)
		}
		for _, p := range v.runs {
			if p.result == nil {
				next = min(next, p.ends)
			}
		}
		v.now = max(v.now, min(next, until))
		for _, t := range sortedTokens(v.runs) {
			if p := v.runs[t]; p.result == nil && p.ends <= v.now {
				v.over(p)
			}
		}
		for i, w := range v.wakes {
			if w <= v.now {
				v.wakes[i] = quantity.Never
				v.step(i, actor.Tick(v.parties[i].Address))
			}
		}
	}
	v.deliver()
}

// deliver hands over what is due, in the order of arrival.
func (v *village) deliver() {
	for {
		at := -1
		for i, l := range v.mail {
			if l.at <= v.now && (at < 0 || l.at < v.mail[at].at) {
				at = i
			}
		}
		if at < 0 {
			return
		}
		m := v.mail[at].m
		v.mail = slices.Delete(v.mail, at, at+1)
		switch m.To.Role {
		case protocol.Person:
			v.replies = append(v.replies, m)
		case protocol.Executor:
			v.execute(m)
		case protocol.Archive:
			v.keep(m)
		default:
			for i, p := range v.parties {
				if p.Address == m.To {
					v.step(i, m)
				}
			}
		}
	}
}

// execute plays the executor, by the rules of package process.
func (v *village) execute(m protocol.Message) {
	p := v.runs[m.Token]
	switch m.Kind {
	case protocol.Start:
		v.begin(m)
	case protocol.Deadline:
		if p != nil && p.result == nil {
			p.ends = min(p.ends, m.Body.(*protocol.Shift).End)
		}
	case protocol.Stop:
		if p != nil && p.result == nil {
			p.ends = v.now
		}
	case protocol.Settle:
		if p != nil && !p.settled && p.result != nil {
			p.settled = true
			if m.Body.(*protocol.Settlement).Committed {
				v.publish(p, m.Body.(*protocol.Settlement).Range)
			}
		}
		v.answer(protocol.Message{Kind: protocol.Settled, Token: m.Token, Job: m.Job})
	case protocol.Purge:
		if v.first[m.Job] < m.Generation {
			delete(v.files, m.Job)
			v.first[m.Job] = m.Generation
		}
		v.answer(protocol.Message{Kind: protocol.Purged, Job: m.Job, Generation: m.Generation})
	}
}

func (v *village) begin(m protocol.Message) {
	p := v.runs[m.Token]
	if p == nil {
		p = &piece{start: m, began: v.now, ends: min(v.now.Add(m.Body.(*protocol.Work).Plan.Wall), m.Body.(*protocol.Work).End)}
		v.runs[m.Token] = p
		if v.first[m.Job] > m.Generation {
			p.result = &job.Result{Outcome: job.StartFailed, Progress: m.Body.(*protocol.Work).Range.From, End: v.now,
				Detail: "of an earlier life"}
		}
		v.first[m.Job] = max(v.first[m.Job], 1)
		for _, f := range v.files[m.Job] {
			if f.unit != m.Body.(*protocol.Work).Spec.Unit {
				v.t.Fatalf("job %s: %s starts where output of %s lies", m.Job, m.Body.(*protocol.Work).Spec.Unit, f.unit)
			}
		}
	}
	if p.result != nil {
		v.answer(protocol.Message{Kind: protocol.Exited, Token: m.Token, Job: m.Job, Body: &protocol.Conclusion{Result: p.result}})
		return
	}
	v.answer(protocol.Message{Kind: protocol.Started, Token: m.Token, Job: m.Job, Body: &protocol.Beginning{At: p.began}})
}

// over ends a piece as planned, or not: what was cut off has done a part, and some fail.
func (v *village) over(p *piece) {
	r := &job.Result{Outcome: job.Done, Progress: p.start.Body.(*protocol.Work).Range.To, Checkpoint: true, Start: p.began, End: v.now,
		Peak: trp.Vector{1 << 30}}
	if v.now < p.began.Add(p.start.Body.(*protocol.Work).Plan.Wall) {
		r.Outcome, r.Progress = job.Stopped, p.start.Body.(*protocol.Work).Range.From+
			int64(v.draw(int(p.start.Body.(*protocol.Work).Range.Len())+1))
	} else if v.draw(6) == 0 {
		r.Outcome, r.ExitCode, r.Progress, r.Detail = job.ExitFailed, 1, p.start.Body.(*protocol.Work).Range.From+
			int64(v.draw(int(p.start.Body.(*protocol.Work).Range.Len()))), "failed"
	}
	p.result = r
	v.answer(protocol.Message{Kind: protocol.Exited, Token: p.start.Token, Job: p.start.Job, Body: &protocol.Conclusion{Result: r}})
}

// publish puts what counts into the job's folder, beside nothing of other work and where nothing is. What comes just after the
// job was deleted is there until the purge.
func (v *village) publish(p *piece, r job.Range) {
	id, unit := p.start.Job, p.start.Body.(*protocol.Work).Spec.Unit
	if v.first[id] > p.start.Generation {
		return // kept apart
	}
	for _, f := range v.files[id] {
		if f.unit != unit || f.rng.Overlaps(r) {
			v.t.Fatalf("job %s: %v of %s is published beside %v of %s", id, r, unit, f.rng, f.unit)
		}
	}
	v.files[id] = append(v.files[id], file{unit, r})
}

// settled insists that every job has an end, and that what is published is what is committed.
func (v *village) settled() {
	known := len(everyJob(v.parties[1].Actor.(actor.Zone), v.now))
	for _, id := range sortedKeys(v.present) {
		unit := v.present[id]
		if r, ok := v.archived(id); ok && v.hot(id) == nil {
			known++
			if !r.Verdict.State.Final() || fmt.Sprint(r.Committed) != fmt.Sprint(v.committed[unit]) {
				v.t.Fatalf("job %s (%s): %v is archived with %v, committed is %v", id, unit, r.Verdict, r.Committed, v.committed[unit])
			}
		} else if j := v.hot(id); j == nil || !j.State.Final() {
			v.t.Fatalf("job %s (%s): %+v", id, unit, j)
		}
		var published job.Ranges
		for _, f := range v.files[id] {
			published = published.Add(f.rng)
		}
		if fmt.Sprint(published) != fmt.Sprint(v.committed[unit]) {
			v.t.Fatalf("job %s (%s): committed %v, published %v", id, unit, v.committed[unit], published)
		}
	}
	if known != len(v.present) {
		v.t.Fatalf("the zone has %d jobs, the gate %d", known, len(v.present))
	}
	for id, files := range v.files {
		if v.present[id] == "" && len(files) > 0 {
			v.t.Fatalf("job %s is gone, and %d files of it are left", id, len(files))
		}
	}
}

// hot is a job as the zone has it; nil if it does not.
func (v *village) hot(id job.ID) *status.Job {
	if j, ok := v.parties[1].Actor.(actor.Zone).Job(v.now, id); ok {
		return &j
	}
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	list := make([]K, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
