package settle

import (
	"iter"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/home/learn"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/protocol"
)

// teach adds the use of a job that is fully committed to its template, and tells the jobs of the template that have not begun if that
// changes much.
func (d *Settler) teach(j *record.Job, out *protocol.Out) {
	run, ok := learn.Run(j.Spec, j.History().Past(), j.Progress().Skipped(), j.Learned())
	if !ok || !j.Complete() {
		return
	}
	q, name := j.Queue(), j.Spec.Template
	before := q.Templates().Of(name).Runs()
	lesson := &protocol.Lesson{Queue: q.Name, Template: name, Runs: []forecast.Run{run}}
	d.book.Fact(out, protocol.Fact{Kind: protocol.Taught, Body: lesson})
	t := q.Templates().Of(name)
	if !t.News(before, j.Spec.Theta) {
		return
	}
	d.book.List()
	t.Tell(func(behind *record.Job) iter.Seq[*record.Job] { return q.Waiting(name, behind) }, func(j *record.Job) {
		if t.Behind(int(j.Learned().Runs), j.Spec.Theta) {
			d.Instruct(j, out)
		}
	})
}

// Instruct tells a job that has not begun what its template has taught.
func (d *Settler) Instruct(j *record.Job, out *protocol.Out) {
	t := j.Queue().Templates().Of(j.Spec.Template)
	if t == nil {
		return
	}
	l := t.Instruct(j.Spec, j.Learned())
	d.book.Fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Body: &l})
	d.book.Changed(j)
}
