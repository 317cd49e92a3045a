package zone_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// churned has machines join, run jobs, and be removed in any order, until every job is over; "stays" alone is there all the time. Machines
// that are removed are named pilot-N, and half of them are joined by another of the name.
func churned(rt *rapid.T, bids bool) *world {
	draw := drawer(rt)
	w := newWorld(rt)
	if bids {
		w = newMarket(rt, auction.Config{})
	}
	w.config.Policy = rapid.SampledFrom(all.Policies()).Draw(rt, "policy")
	w.config.Rigid = rapid.SampledFrom([]backfill.Discipline{{}, {Overtake: true}, byDefault(rt), {Reserve: 2, Overtake: true}}).Draw(rt,
		"rigid")
	w.config.Starvation = starvation.Limit{After: -1} // what is left of its budget is nobody's machine
	w.config.Horizon = 10 * time.Minute
	w.config.Ends = int64(draw(2)) * 100_000
	w.z, w.draw = w.make(), draw
	w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
	if of := draw(4); of > 1 {
		w.refuse = func(*protocol.Message) bool { return draw(10) < of }
	}
	slice := func(name job.NodeID, i int) *simSlice {
		return &simSlice{node: name, view: protocol.Slice{ID: job.SliceID(fmt.Sprintf("%s/%d", name, i)), Rack: "r",
			Profile: []string{"small", "large"}[draw(2)], Capacity: trp.Vector{quantity.Amount((512 + draw(3)*512) << 20)},
			Speed: int64(500 + draw(2)*500)}}
	}
	for i := range 3 {
		w.slices = append(w.slices, slice("stays", i))
	}
	stays := slices.Clone(w.slices)
	pilots, machines := map[job.NodeID]bool{}, 0
	jobs := rapid.IntRange(1, 20).Draw(rt, "jobs")
	for i := 0; i < 300 && (len(w.adopted) < jobs || len(w.closed) < len(w.adopted)); i++ {
		if n := len(w.adopted); n < jobs && draw(3) > 0 {
			s := w.drawJob(rt, draw, n)
			if s.Kind == job.Rigid && s.Walltime == 0 { // what has no end on a machine that is gone ends when it is cancelled
				s.Walltime = time.Minute
			}
			w.submit(s)
		}
		if draw(4) == 0 && machines < 20 {
			name := job.NodeID(fmt.Sprint("pilot-", machines))
			machines++
			pilots[name] = true
			for k := range 1 + draw(3) {
				s := slice(name, k)
				id := s.view.ID
				s.view = stays[draw(len(stays))].view // the kinds of slices that there were stay known, and jobs are ranked by them
				s.view.ID = id
				w.slices = append(w.slices, s)
			}
		}
		if names := slices.Sorted(maps.Keys(pilots)); len(names) > 0 && draw(4) == 0 {
			name := names[draw(len(names))]
			again := draw(2) == 0
			if w.removes(name, w.now.Add(time.Duration(draw(30))*time.Second)); !again {
				w.forgets(name)
				delete(pilots, name)
			}
		}
		if draw(12) == 0 {
			w.step(protocol.Message{Kind: protocol.Cancel, Job: job.ID(fmt.Sprint("j", draw(len(w.adopted)+1))), Epoch: 1,
				Body: &protocol.Cancellation{Text: "cancelled"}})
		}
		w.tick()
	}
	for _, name := range slices.Sorted(maps.Keys(pilots)) {
		w.removes(name, w.now)
		w.forgets(name)
	}
	for _, name := range slices.Sorted(maps.Keys(w.adopted)) {
		if _, over := w.closed[name]; !over {
			w.step(protocol.Message{Kind: protocol.Cancel, Job: name, Epoch: 1, Body: &protocol.Cancellation{Text: "cancelled"}})
		}
	}
	for end := w.now.Add(2 * time.Hour); w.now < end; { // the last output is given up by then
		w.tick()
	}
	return w
}

// forgets takes a removed node out of the world.
func (w *world) forgets(by job.NodeID) {
	w.slices = slices.DeleteFunc(w.slices, func(s *simSlice) bool { return s.at() == node(string(by)) })
}

// TestNothingIsKeptOfRemovedMachines: once nothing of them is open, no part of the zone has anything of them, and it decides as one that
// has come up again, which has never heard of them.
func TestNothingIsKeptOfRemovedMachines(t *testing.T) {
	for name, bids := range map[string]bool{"sja": false, "jasda": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := churned(rt, bids)
				if got := zone.Slices(w.z); !slices.Equal(got, []job.SliceID{"stays/0", "stays/1", "stays/2"}) {
					rt.Fatalf("it knows slices %v", got)
				}
				names := mentions(reflect.ValueOf(w.z), "pilot-")
				if len(names) > 0 {
					rt.Fatalf("it still mentions\n%s", strings.Join(names, "\n"))
				}
				if w.config.Ends > 0 {
					return // what was learned of ends on their slices stays
				}
				w.asOneThatNeverKnew(rt)
			})
		})
	}
}

// asOneThatNeverKnew gives the same jobs to the zone and to one with the same facts that has heard of today's machines alone.
func (w *world) asOneThatNeverKnew(rt *rapid.T) {
	fresh := w.make()
	for _, f := range w.facts {
		fresh.Apply(f)
	}
	var got, want protocol.Out
	fresh.Recover(w.now, &want)
	both := func(m protocol.Message) {
		got.Reset()
		want.Reset()
		w.z.Step(w.now, m, &got)
		fresh.Step(w.now, m, &want)
	}
	for _, s := range w.slices {
		s.vers++
		both(protocol.Message{Kind: protocol.Offer, From: s.at(), Epoch: w.epoch, Body: &protocol.SliceView{Slice: s.view,
			Node: s.node, Version: s.vers, Usable: true, Gaps: s.gaps(w.now), Reserved: slices.Clone(s.busy)}})
	}
	for i := range 8 {
		s := w.drawJob(rt, w.draw, i)
		s.Name = job.ID(fmt.Sprint("probe", i))
		both(protocol.Message{Kind: protocol.Adopt, Job: s.Name, Epoch: 1, Body: &protocol.Adoption{Spec: s, At: w.now},
			From: protocol.Address{Role: protocol.Gate}})
		if a, b := decided(got.Effects), decided(want.Effects); !slices.Equal(a, b) {
			rt.Fatalf("job %d: it decides\n%s\nand one that never knew them\n%s", i, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		mine, _ := w.z.Explain(w.now, s.Name)
		theirs, _ := fresh.Explain(w.now, s.Name)
		if !reflect.DeepEqual(mine.Slices, theirs.Slices) {
			rt.Fatalf("job %d: its slices are explained by\n%+v\nand of one that never knew them by\n%+v", i, mine.Slices, theirs.Slices)
		}
	}
}

// decided is what nodes are asked, without numbers that count what was before.
func decided(effects []protocol.Message) (all []string) {
	for _, m := range effects {
		switch b := m.Body.(type) {
		case *protocol.Asking:
			all = append(all, fmt.Sprintln(m.To, m.Job, b.Slice, b.Also, b.Start, b.End, b.Demand))
		case *protocol.Booking:
			r := b.Reservation
			all = append(all, fmt.Sprintln(m.To, m.Job, r.Kind, r.Slice, r.Start, r.End))
		}
	}
	return all
}

// TestALateWordOfARemovedNode is to nobody's question: what it was asked came to nothing when it was removed, and the job asks elsewhere at
// once. Nothing is sold, and nothing is known of it by that.
func TestALateWordOfARemovedNode(t *testing.T) {
	markets(t, func(t *testing.T, w *world) {
		w.brings("m/a", "m", 1024)
		var asked *protocol.Asking
		w.lose = func(m *protocol.Message) bool {
			if m.Kind == protocol.Ask && m.To == node("m") {
				is := *m.Body.(*protocol.Asking)
				asked = &is
			}
			return m.To == node("m")
		}
		w.settle()
		w.submit(items(t, "a", 60, 900, 1))
		for asked == nil {
			w.tick()
		}
		w.brings("here/a", "here", 1024)
		for w.deliver() {
		}
		at := w.now
		w.removes("m", quantity.Never)
		if w.now != at || len(w.z.Survey().Offered(w.now)) != 1 {
			t.Errorf("at %v %d slices are listed, want 1", w.now, len(w.z.Survey().Offered(w.now)))
		}
		for w.deliver() {
		}
		if w.count(protocol.Claimed) != 1 {
			t.Errorf("it is sold %d times at once elsewhere, want once", w.count(protocol.Claimed))
		}
		facts := len(w.facts)
		token := job.Token{Epoch: 9, Seq: 1}
		for _, m := range []protocol.Message{
			{Kind: protocol.Granted, Token: token, Body: &protocol.Grant{Ask: asked.Ask, Slice: "m/a", Start: asked.Start, End: asked.End}},
			{Kind: protocol.Refused, Body: &protocol.Refusal{Ask: asked.Ask, Slice: "m/a", Text: "no"}},
			{Kind: protocol.Leased, Token: token, Body: &protocol.Holding{}},
			{Kind: protocol.Running, Token: token, Body: &protocol.Beginning{At: w.now}},
			{Kind: protocol.RedeemRefused, Token: token, Body: &protocol.Refusal{Text: "lapsed"}},
			{Kind: protocol.Published, Token: token},
			{Kind: protocol.Result, Epoch: 1, Token: token, Body: &protocol.Conclusion{Slice: "m/a", Range: job.Range{To: 1},
				Result: &job.Result{Outcome: job.Done, Progress: 1, Start: 1, End: 2}}},
			{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person}, Body: &protocol.Removal{Node: "m"}},
			{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person}, Body: &protocol.Removal{Node: "nobody"}},
		} {
			if m.Job = "a"; m.From.Role == 0 {
				m.From = node("m")
			}
			w.step(m)
		}
		if known := zone.Slices(w.z); len(w.facts) != facts || !slices.Equal(known, []job.SliceID{"here/a"}) {
			t.Errorf("by late words %d facts were made, and %v is known", len(w.facts)-facts, known)
		}
		w.lose = nil
		w.until(time.Hour)
		finished(t, w, "a")
	})
}

// histories are the fields in which a job has what it has had: its runs, and the output that was not confirmed, which are durable and go
// with it; and room in which its last claim lies.
var histories = []string{"past", "output", "one"}

// mentions lists the paths from a value to strings with this beginning, but for what jobs have had.
func mentions(v reflect.Value, begin string) (paths []string) {
	type visit struct {
		at uintptr
		of reflect.Type
	}
	seen := map[visit]bool{}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.String:
			if strings.HasPrefix(v.String(), begin) {
				paths = append(paths, path+" "+v.String())
			}
		case reflect.Pointer:
			if x := (visit{v.Pointer(), v.Type()}); !v.IsNil() && !seen[x] {
				seen[x] = true
				walk(v.Elem(), path)
			}
		case reflect.Interface:
			walk(v.Elem(), path)
		case reflect.Struct:
			for i := range v.NumField() {
				if name := v.Type().Field(i).Name; !slices.Contains(histories, name) {
					walk(v.Field(i), path+"."+name)
				}
			}
		case reflect.Slice:
			all := v
			if v.Cap() > v.Len() && v.CanInterface() {
				all = v.Slice(0, v.Cap())
			}
			for i := range all.Len() {
				walk(all.Index(i), path)
			}
		case reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i), path)
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(k, path+"[key]")
				walk(v.MapIndex(k), path)
			}
		default: // numbers and functions
		}
	}
	walk(v, "")
	slices.Sort(paths)
	return slices.Compact(paths)
}
