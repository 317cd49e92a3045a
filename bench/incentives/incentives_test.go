package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/lab/bidder"
	"sluice.dev/sluice/internal/lab/measure"
)

// TestTheSameTasksWhateverTheMoves: games are compared in pairs, so liars must want the same done as they do when honest, and
// split jobs must add up to what was whole.
func TestTheSameTasksWhateverTheMoves(t *testing.T) {
	honest, _, _ := offer(7, seats(truth(), 0))
	for _, lie := range lies() {
		tasks, jobs, of := offer(7, seats(lie, 5))
		if !reflect.DeepEqual(tasks, honest) {
			t.Errorf("%s wants other tasks", lie.name)
		}
		work, parts, most := make([]time.Duration, len(tasks)), make([]int, len(tasks)), 0
		for i := range jobs {
			if int64(i) != jobs[i].Number || i > 0 && jobs[i].Submit < jobs[i-1].Submit {
				t.Fatalf("%s: job %d is out of order", lie.name, i)
			}
			if x := of[i]; jobs[i].Submit != tasks[x].begin || jobs[i].Kind == job.Steps && parts[x] > 0 {
				t.Errorf("%s: job %d is no part of its task", lie.name, i)
			}
			work[of[i]] += jobs[i].Work
			parts[of[i]]++
			most = max(most, parts[of[i]])
		}
		for i, w := range tasks {
			if d := w.work - work[i]; d < 0 || d > 10 {
				t.Errorf("%s: the parts of a task of %v do %v", lie.name, w.work, work[i])
			}
		}
		if most != max(1, lie.split) {
			t.Errorf("%s: tasks have up to %d jobs, want %d", lie.name, most, lie.split)
		}
	}
}

// TestGamesAreReproducible: the number of workers has no influence, and a game ends with its work done.
func TestGamesAreReproducible(t *testing.T) {
	games := []game{{shipped(), 1, seats(lies()[0], 1)}, {shipped(), 1, seats(truth(), 0)}}
	one, err := plays(t.Context(), 1, games)
	if err != nil {
		t.Fatal(err)
	}
	two, err := plays(t.Context(), 2, games)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(one, two) {
		t.Error("two workers play other games than one")
	}
	if reflect.DeepEqual(one[0], one[1]) {
		t.Error("lying changes nothing")
	}
	for o, cost := range one[1].cost {
		if cost <= 0 || cost >= limit.Seconds() {
			t.Errorf("owner %d waits %v seconds for its tasks", o, cost)
		}
	}
	if one[1].rounds < 500 {
		t.Errorf("%d rounds are no market", one[1].rounds)
	}
}

// TestCompare: the liar is twice as fast and does a half more, the others are a quarter slower.
func TestCompare(t *testing.T) {
	h, l := &outcome{rounds: 10}, &outcome{rounds: 20}
	for o := range owners {
		h.cost[o], l.cost[o], h.offered[o], l.offered[o], h.done[o], l.done[o] = 100, 125, 1, 1, 99, 99
	}
	l.cost[0], l.done[0] = 50, 149
	c := compare("m", "lie", 1, []*outcome{h, h}, []*outcome{l, l})
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"gain", c.gain.Mean, math.Log(2)}, {"work", c.work.Mean, math.Log(1.5)}, {"victims", c.victims.Mean, math.Log(1.25)},
		{"welfare", c.welfare.Mean, math.Log(1.175)}, {"jain, honest", c.jainHonest.Mean, 1},
		{"jain", c.jain.Mean, (2*1. + 9*.8) * (2*1. + 9*.8) / (10 * (4 + 9*.64))},
		{"rounds", float64(c.rounds), 40},
	} {
		if math.Abs(x.got-x.want) > 1e-12 {
			t.Errorf("%s is %v, want %v", x.name, x.got, x.want)
		}
	}
}

func TestResponses(t *testing.T) {
	variants := func() []protocol.Variant {
		return []protocol.Variant{{ID: 1, Window: 1, Wall: 5, Score: 400}, {ID: 2, Window: 1, Wall: 9, Score: 600},
			{ID: 3, Window: 2, Wall: 3, Score: 800}}
	}
	for _, c := range []struct {
		r     response
		ids   []uint32
		first int64
	}{
		{response{shade: 500}, []uint32{1, 2, 3}, 200}, {response{keep: longest, shade: 1000}, []uint32{2, 3}, 600},
		{response{keep: shortest}, []uint32{1, 3}, 1_000_000},
	} {
		turn := bidder.Turn{Call: &protocol.Call{}, Answers: []protocol.Message{{Body: &protocol.Proposal{Variants: variants()}}}}
		c.r.Change(&turn)
		var ids []uint32
		for _, v := range turn.Answers[0].Body.(*protocol.Proposal).Variants {
			ids = append(ids, v.ID)
		}
		if !reflect.DeepEqual(ids, c.ids) || turn.Answers[0].Body.(*protocol.Proposal).Variants[0].Score != c.first {
			t.Errorf("%s: %+v", c.r.String(1), turn.Answers[0].Body.(*protocol.Proposal).Variants)
		}
	}
	seen := map[string]bool{}
	for _, m := range candidates() {
		if seen[m.name] {
			t.Errorf("two responses are called %s", m.name)
		}
		seen[m.name] = true
	}
}

// TestPage: it has a row for everything and is the same twice.
func TestPage(t *testing.T) {
	e := measure.Estimate{Mean: .01, Low: -.1, High: .12, N: 3}
	r := &results{}
	of := func(m, lie string, liars int) cell {
		return cell{mechanism: m, move: lie, liars: liars, gain: e, work: e, victims: e, welfare: e, jain: e, jainHonest: e, rounds: 12_345}
	}
	for _, lie := range lies() {
		var row, many []cell
		for _, m := range mechanisms() {
			row = append(row, of(m.name, lie.name, 1))
		}
		for _, n := range crowd() {
			many = append(many, of(shipped().name, lie.name, n))
		}
		r.table, r.crowds, r.final = append(r.table, row), append(r.crowds, many), append(r.final, of(shipped().name, lie.name, 1))
	}
	for _, m := range mechanisms() {
		r.honest = append(r.honest, of(m.name, "honest", 0))
	}
	r.responses, r.unpaid = r.final[:1], r.final[:1]
	var pages [2][]byte
	for i := range pages {
		s := &settings{out: t.TempDir(), seeds: 3, many: 3}
		if err := r.write(s); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(s.out, "incentives.md"))
		if err != nil {
			t.Fatal(err)
		}
		pages[i] = page
		for _, line := range strings.Split(string(page), "\n") {
			if _, name, figure := strings.Cut(line, "](incentives/"); figure && strings.HasPrefix(line, "![") {
				if _, err := os.Stat(filepath.Join(s.out, "incentives", strings.TrimSuffix(name, ")"))); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if !bytes.Equal(pages[0], pages[1]) {
		t.Error("the page is another one the second time")
	}
	for _, want := range []string{"| snipe | 12345 | +1.0% (-9.5% to +12.7%) | +1.0% |", "not shown", "The default market: " +
		shipped().name, "| hoard | 30% |"} {
		if !strings.Contains(string(pages[0]), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
