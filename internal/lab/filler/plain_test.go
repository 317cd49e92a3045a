package filler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/workload"
)

// The times of steps, in seconds, and the walltime of fill.
const (
	unit, starts, restores, saves, least = 10, 1, 5, 3, 20
)

// TestEachIsWhatItSays: in small worlds every discipline does to the second what its definition does that is walked through second by
// second, where what a run can still save is searched for among all the seconds that it has.
func TestEachIsWhatItSays(t *testing.T) {
	names := []string{"nothing", "requeue", "checkpoint", "checkpoint:30s", "time-min", "deadline", "sjf", "pilot:20s", "workers:10s",
		"workers:40s"}
	rapid.Check(t, func(t *rapid.T) {
		notice, host, jobs := drawn(t)
		name := rapid.SampledFrom(names).Draw(t, "discipline")
		const limit = 900
		got := fill(t, named(t, name), quantity.Instant(notice).Sub(0)*1e9, limit*s, host, jobs...)
		want := &plain{name: name, notice: notice, host: host}
		want.play(jobs, limit)
		if !slices.Equal(got.lines, want.lines) {
			t.Fatalf("%s with a notice of %d s beside %v: got\n\t%s\nwant\n\t%s", name, notice, host, strings.Join(got.lines, "\n\t"),
				strings.Join(want.lines, "\n\t"))
		}
	})
}

// plain walks through a discipline second by second.
type plain struct {
	name   string
	notice int
	host   hostwork.Log
	slices []plainSlice
	queue  []*plainJob // in the order in which they came
	lines  []string
	now    int
}

type plainJob struct{ number, left, done int }

type plainSlice struct {
	job    *plainJob
	course course
	begin  int
	end    int // when it stops, and keeps so many units with so many seconds of overhead
	keeps  int
	costs  int
	worker bool
}

// course is a run that nobody stops: by seconds from its start, how many units are done, how many are saved, and what was spent on
// starting and saving up to there.
type course struct{ done, saved, spent []int }

func (p *plain) is(name string) bool { return strings.HasPrefix(p.name, name) }

// every is how many units lie between two checkpoints on the way.
func (p *plain) every() int {
	var seconds int
	if _, length, has := strings.Cut(p.name, ":"); has {
		fmt.Sscanf(length, "%ds", &seconds)
	}
	return seconds / unit
}

func (p *plain) play(jobs []workload.Job, limit int) {
	p.slices = make([]plainSlice, len(p.host))
	for _, j := range jobs {
		p.queue = append(p.queue, &plainJob{number: int(j.Number), left: int(j.Units)})
	}
	for p.now = 0; p.now <= limit; p.now++ {
		for i := range p.slices {
			p.second(i)
		}
		for i := range p.slices {
			if _, held := p.stay(i); p.slices[i].job == nil && !held && !p.is("nothing") {
				p.begin(i)
			}
		}
	}
}

// stay is when the host's present or next stay on a slice begins, and whether it is there; far away if there is none.
func (p *plain) stay(i int) (from int, held bool) {
	for _, y := range p.host[i] {
		if from, to := int(y.From/s), int(y.To/s); p.now < to {
			return from, from <= p.now
		}
	}
	return 1 << 30, false
}

// end is when the gap ends, as the host has said, to those who ask it; far away if it has not.
func (p *plain) end(i int) int {
	for _, y := range p.host[i] {
		if from := int(y.From / s); p.now < from && (int(y.Words[0].At/s) <= p.now || from-p.notice <= p.now) {
			return from
		}
	}
	return 1 << 30
}

// second brings a slice up to the present second.
func (p *plain) second(i int) {
	l := &p.slices[i]
	from, held := p.stay(i)
	if l.job != nil && from-p.notice == p.now {
		p.told(l, from)
	}
	if l.job != nil && l.end == p.now {
		p.over(l)
	}
	if l.job != nil && held {
		p.told(l, p.now)
		p.over(l)
	}
	if held {
		l.worker = false
	}
}

// told makes a run end by a second, with as much saved as can be where the discipline saves on a notice.
func (p *plain) told(l *plainSlice, stop int) {
	at := func(list []int, second int) int { return list[min(max(0, second-l.begin), len(list)-1)] }
	if l.end <= stop {
		return
	}
	kill := func(second int) {
		l.end, l.keeps = second, at(l.course.saved, second)
		l.costs = l.course.spent[slices.Index(l.course.saved, l.keeps)]
		if l.keeps == 0 { // what it started with, as far as it came
			l.costs = min(at(l.course.spent, second), l.course.spent[slices.Index(l.course.done, 1)])
		}
	}
	if p.is("requeue") || p.is("sjf") || p.is("pilot") || p.is("workers") {
		kill(stop)
		return
	}
	most, when := at(l.course.done, p.now), p.now
	for second := p.now; second+saves <= stop; second++ {
		if n := at(l.course.done, second); n > most {
			most, when = n, second
		}
	}
	switch {
	case most == 0 || most <= at(l.course.saved, p.now):
		kill(p.now)
	case when+saves > stop:
		kill(stop)
	default:
		l.end, l.keeps, l.costs = when+saves, most, l.course.spent[slices.Index(l.course.done, most)]+saves
	}
}

// over writes down a run, and puts back what is left of its job.
func (p *plain) over(l *plainSlice) {
	j, held := l.job, p.now-l.begin
	l.job = nil
	costs := min(l.costs, held-unit*l.keeps)
	p.lines = append(p.lines, fmt.Sprintf("%d: %d-%d useful %d overhead %d lost %d", j.number, l.begin, p.now, unit*l.keeps, costs,
		held-unit*l.keeps-costs))
	j.left, j.done = j.left-l.keeps, j.done+l.keeps
	if j.left == 0 {
		p.lines = append(p.lines, fmt.Sprintf("%d: COMPLETED at %d", j.number, p.now))
		return
	}
	p.queue = append(p.queue, j)
	slices.SortFunc(p.queue, func(a, b *plainJob) int { return a.number - b.number })
}

// begin starts the job that the discipline would.
func (p *plain) begin(i int) {
	l := &p.slices[i]
	from, _ := p.stay(i)
	end, pick := p.end(i), -1
	for k, j := range p.queue {
		first, plan, room := starts, 0, end-p.now
		if j.done > 0 {
			first += restores
		}
		plan = first + unit*j.left
		may := true
		switch wanted := from-p.notice <= p.now; {
		case p.is("time-min"):
			may = room > 1<<20 || p.now%30 == 0 && room >= min(least, plan) && (plan <= least || first+unit+saves <= least)
		case p.is("deadline"):
			may = room >= plan || room >= first+least+saves
		case p.is("sjf"):
			may = room >= plan
		case p.is("workers") && wanted:
			may = l.worker
		case p.is("checkpoint") && wanted:
			may = from-p.now >= first+unit+saves
		case wanted:
			may = false
		}
		if may && (pick < 0 || p.is("sjf") && j.left*unit+restores*min(1, j.done) <
			p.queue[pick].left*unit+restores*min(1, p.queue[pick].done)) {
			pick = k
		}
	}
	if pick < 0 {
		return
	}
	j := p.queue[pick]
	p.queue = slices.Delete(p.queue, pick, pick+1)
	first := 0
	if !l.worker {
		first += starts
	}
	if j.done > 0 {
		first += restores
	}
	*l = plainSlice{job: j, begin: p.now, course: walk(first, j.left, p.every()), worker: p.is("workers")}
	l.end, l.keeps = p.now+len(l.course.done)-1, j.left
	l.costs = l.course.spent[len(l.course.spent)-1]
	switch {
	case from-p.notice <= p.now:
		p.told(l, from)
	case p.is("time-min") && end < 1<<30:
		p.told(l, min(end, p.now+least))
	case p.is("deadline") && end < 1<<30:
		p.told(l, end)
	}
}

// walk is the course of a run that starts in so many seconds and does so many units, with a checkpoint after every so many of them but
// not after the last.
func walk(first, units, every int) (c course) {
	done, saved, spent := 0, 0, 0
	second := func() {
		c.done, c.saved, c.spent = append(c.done, done), append(c.saved, saved), append(c.spent, spent)
	}
	second()
	for range first {
		spent++
		second()
	}
	for n := 1; n <= units; n++ {
		for range unit - 1 {
			second()
		}
		done = n
		second()
		if every > 0 && n%every == 0 && n < units {
			for k := range saves {
				spent++
				if k == saves-1 {
					saved = n
				}
				second()
			}
		}
	}
	return c
}
