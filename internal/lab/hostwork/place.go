package hostwork

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/workload"
)

// Site is where a host's planner places its work.
type Site struct {
	// Actor runs Machines under the planner; Slices are the numbers of their devices in the cluster.
	Actor    *cluster.Cluster
	Machines cluster.Machines
	Slices   []int
	// Task fills in what the planner is told of a job: devices, classes and declared run on each class. ID and Run are set already;
	// it writes to *Run, or sets Run to nil where the owner gives no walltime.
	Task func(j *workload.Job, t *cluster.Task) error
	// Notice is how long ahead the host says that it takes a slice. Work that nothing has foretold waits for that long on its
	// slices, whether a filler is there or not.
	Notice time.Duration
	// Until is when the host stops placing work. What began before goes on to its end.
	Until quantity.Instant
}

// Place plays the work of a source and adds what came of it to the log. A job holds its slices for its true run time, or up to its
// walltime where that is shorter. One that fits nowhere is left out. Errors are those of the source and of the context.
func (l Log) Place(ctx context.Context, s Site, from workload.Source) error {
	p := placing{Site: s, log: l, from: from}
	if err := p.pull(); err != nil {
		return err
	}
	for turn := 0; ; turn++ {
		if turn%4096 == 0 && ctx.Err() != nil {
			return errkind.Errorf(errkind.Unavailable, "the host's work was not placed to the end: %w", ctx.Err())
		}
		now := p.ends.Next()
		if p.more {
			now = min(now, p.next.Submit)
		}
		if now >= s.Until {
			return nil
		}
		if err := p.instant(now); err != nil {
			return err
		}
	}
}

// placing is a host at work.
type placing struct {
	Site
	log  Log
	from workload.Source
	next workload.Job
	more bool

	tasks    []*placed // by id of the task
	free     []cluster.ID
	ends     alarm.Heap[*placed]
	over     []*placed
	out      cluster.Out
	reserved []cluster.Reservation
}

// placed is a job of the host from its arrival to its end.
type placed struct {
	cluster.Task
	job   workload.Job
	words []Word
	alarm int
}

func (p *placing) pull() (err error) {
	if p.more, err = p.from.Next(&p.next); err != nil {
		return errkind.Errorf(errkind.Of(err), "the host's work: %w", err)
	}
	return nil
}

// instant handles the ends and arrivals of an instant, lets the planner decide, and notes its plans for later.
func (p *placing) instant(now quantity.Instant) error {
	p.over = p.over[:0]
	for t, due := p.ends.Due(now); due; t, due = p.ends.Due(now) {
		p.over = append(p.over, t)
	}
	slices.SortFunc(p.over, func(a, b *placed) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range p.over {
		p.Actor.Step(now, cluster.End(t.ID, cluster.Finished), &p.out)
		p.free = append(p.free, t.ID)
	}
	for p.more && p.next.Submit <= now {
		if err := p.arrive(now); err != nil {
			return err
		}
	}
	p.Actor.Step(now, cluster.Tick(), &p.out)
	for i := range p.out.Effects {
		e := &p.out.Effects[i]
		t := p.tasks[e.Task]
		if e.Verb == cluster.Start {
			p.start(now, t, e.Class, p.out.Devices[e.From:e.To])
		} else { // it can never run
			p.free = append(p.free, t.ID)
		}
	}
	p.out.Reset()
	p.reserved = p.Actor.Reservations(now, p.reserved[:0])
	for _, r := range p.reserved {
		p.tasks[r.Task].foretell(now, r.Start, r.Class, p.Notice)
	}
	return nil
}

// arrive hands the next job to the planner, with the notice as a part of its run: so work that begins a notice late ends when the
// planner expects.
func (p *placing) arrive(now quantity.Instant) error {
	var t *placed
	if n := len(p.free); n > 0 {
		t, p.free = p.tasks[p.free[n-1]], p.free[:n-1]
	} else {
		t = &placed{Task: cluster.Task{ID: cluster.ID(len(p.tasks))}}
		p.tasks = append(p.tasks, t)
	}
	*t = placed{Task: cluster.Task{ID: t.ID, Run: new([len(cluster.Task{}.Run)]time.Duration)}, job: p.next}
	if err := p.Task(&t.job, &t.Task); err != nil {
		return errkind.Errorf(errkind.Of(err), "the host's work: job %d: %w", t.job.Number, err)
	}
	for c := range p.Machines.Classes {
		if t.Run != nil {
			t.Run[c] += p.Notice
		}
	}
	p.Actor.Step(now, cluster.Arrive(t.Task), &p.out)
	return p.pull()
}

// walltime is how long a task may run on a class; Never's worth where its owner does not say.
func (t *placed) walltime(class uint8, notice time.Duration) time.Duration {
	if t.Run == nil {
		return time.Duration(quantity.Never)
	}
	return t.Run[class] - notice
}

// foretell notes when the planner means to start a task, if that is news and it knows.
func (t *placed) foretell(now, start quantity.Instant, class uint8, notice time.Duration) {
	if start == quantity.Never {
		return
	}
	start = max(start, now.Add(notice))
	if n := len(t.words); n > 0 && t.words[n-1].From == start {
		return
	}
	t.words = append(t.words, Word{now, start, start.Add(t.walltime(class, notice))})
}

// start begins a task on its devices: now if that was announced in time, else as soon as the notice allows.
func (p *placing) start(now quantity.Instant, t *placed, class uint8, on []cluster.Device) {
	begin := now.Add(p.Notice)
	if n := len(t.words); n > 0 {
		begin = min(begin, max(now, t.words[n-1].From))
	}
	longest := t.walltime(class, p.Notice)
	if n := len(t.words); n == 0 || t.words[n-1].From > begin {
		t.words = append(t.words, Word{now, begin, begin.Add(longest)})
	}
	end := begin.Add(max(1, min(p.takes(&t.job, class), longest)))
	for _, d := range on {
		slice := p.Slices[d]
		p.log[slice] = append(p.log[slice], Stay{From: begin, To: end, Words: t.words, Source: source(&t.job)})
	}
	p.ends.Set(&t.alarm, t, end)
}

// source is whose a job is: its queue's, of its template, or else of those that take as many slices.
func source(j *workload.Job) string {
	return cmp.Or(j.Queue, "host") + "/" + cmp.Or(j.Template, fmt.Sprintf("%d-slices", j.Slices))
}

// takes is the true run time of a job on a class.
func (p *placing) takes(j *workload.Job, class uint8) time.Duration {
	speed := job.Spec{Speeds: j.Speeds}
	v := speed.SpeedOn(p.Machines.Classes[class].Name, p.Machines.Classes[class].Weight)
	return time.Duration(quantity.MulDiv(int64(j.Work), 1000, max(1, v)))
}
