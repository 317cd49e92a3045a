package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// plainTeller is what Sim tells an observer, found by looking at every run each time.
type plainTeller struct {
	taken   []bool
	unheard []*run
	lines   []string
}

func (p *plainTeller) catchUp() {
	for i := 0; i < len(p.unheard); i++ {
		r := p.unheard[i]
		if slices.ContainsFunc(r.places, func(x place) bool { return p.taken[x.number] }) {
			continue
		}
		p.unheard = slices.Delete(p.unheard, i, i+1)
		i--
		p.lines = append(p.lines, fmt.Sprint("began ", r.start.Token.Seq))
		r.news.begun = true
		for _, x := range r.places {
			p.taken[x.number] = true
		}
		if p.tell(r) {
			i = -1
		}
	}
}

func (p *plainTeller) tell(r *run) bool {
	if r.news.slot == none || !r.news.begun || !r.news.known || r.result == nil {
		return false
	}
	p.lines = append(p.lines, fmt.Sprint("ended ", r.start.Token.Seq))
	for _, x := range r.places {
		p.taken[x.number] = false
	}
	r.news.slot = none
	return true
}

// TestTellingIndexedAndPlainAgree: runs of up to three slices come, leave and become known in any order, and the observer hears
// of them as if each were looked at whenever anything changes.
func TestTellingIndexedAndPlainAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const places = 5
		h := &heard{}
		s := &Sim{options: Options{Observer: h}}
		s.o = &s.options
		s.assemble()
		s.teller.unheard = make([]unheard, places)
		plain := &plainTeller{taken: make([]bool, places)}
		type pair struct{ real, plain *run }
		var pairs []pair
		for range rapid.IntRange(1, 60).Draw(rt, "moves") {
			s.now += sec
			if len(pairs) == 0 || rapid.IntRange(0, 2).Draw(rt, "come") == 0 {
				n := len(pairs)
				id := job.ID(fmt.Sprint(n))
				s.arrivals.list = append(s.arrivals.list, slot{job: oneJob(4), spec: &job.Spec{Name: id, Kind: job.Rigid, Total: 1}})
				s.arrivals.slots[id] = int32(n)
				var on []place
				for i := range int32(places) {
					if rapid.IntRange(0, places).Draw(rt, "on") < 2 && len(on) < 3 {
						on = append(on, place{number: i, slice: &protocol.Slice{}})
					}
				}
				if len(on) == 0 {
					on = []place{{slice: &protocol.Slice{}}}
				}
				x := pair{&run{course: course{start: protocol.Message{Body: &protocol.Work{}}, begin: s.now, rng: job.Range{To: 1}},
					places: on},
					&run{course: course{start: protocol.Message{Body: &protocol.Work{}}}, places: on, news: notice{slot: int32(n)}}}
				for _, r := range []*run{x.real, x.plain} {
					r.start.Job, r.start.Token.Seq = id, uint64(n)
				}
				pairs = append(pairs, x)
				s.teller.enrol(x.real)
				plain.unheard = append(plain.unheard, x.plain)
				plain.catchUp()
			} else {
				x := pairs[rapid.IntRange(0, len(pairs)-1).Draw(rt, "which")]
				if rapid.Bool().Draw(rt, "leave") {
					if x.real.result == nil {
						x.real.result, x.plain.result = &job.Result{Outcome: job.Done}, &job.Result{}
						s.teller.leave(x.real)
					}
				} else if !x.real.news.known {
					x.plain.news.known = true
					s.teller.know(x.real)
				}
				if plain.tell(x.plain) {
					plain.catchUp()
				}
			}
			got := make([]string, 0, len(h.lines))
			for _, l := range h.lines { // "7s began 3 on 2 of 0", "9s ended 3: done, ..."
				words := strings.Fields(strings.ReplaceAll(l, ":", ""))
				got = append(got, words[1]+" "+words[2])
			}
			if !slices.Equal(got, plain.lines) {
				rt.Fatalf("the observer heard\n%v\nwant\n%v", got, plain.lines)
			}
		}
	})
}
