package jobs

import (
	"fmt"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

const (
	// MeterEvery is how often the line of a terminal is rewritten.
	MeterEvery = 500 * time.Millisecond
	// meterFirst is when the first line is written without a terminal; a wait that ends before needs none.
	meterFirst = 10 * time.Second
	// meterNext is the time to the next line, if there is news.
	meterNext = 30 * time.Second
)

// meter says on stderr how far jobs are while somebody waits for them: in one line that is rewritten at a terminal, else in
// a line now and then.
type meter struct {
	a     *session.Session
	quiet bool
	live  *terminal.Live // nil without a terminal
	due   time.Time
	said  string
}

// Meter shows how jobs stand, on one line of a terminal; quiet: nowhere.
func Meter(a *session.Session, quiet bool) *meter {
	m := &meter{a: a, quiet: quiet, due: time.Now().Add(meterFirst)}
	if !quiet && terminal.Is(a.RawErr) && a.Getenv("TERM") != "dumb" {
		m.live = terminal.NewLive(a.RawErr)
	}
	return m
}

// step is how long to wait until there is something to show.
func (m *meter) step() time.Duration {
	switch {
	case m.quiet:
		return time.Minute
	case m.live != nil:
		return MeterEvery
	}
	return meterFirst
}

func (m *meter) show(jobs []*pb.Job) {
	if !m.quiet {
		m.Tell(standingOf(m.a, jobs))
	}
}

// Tell shows the progress.
func (m *meter) Tell(text string) {
	if m.quiet {
		return
	}
	if m.live != nil {
		m.live.Show(text)
		return
	}
	if now := time.Now(); now.After(m.due) && text != m.said {
		fmt.Fprintln(m.a.Err, "sluice: "+terminal.Line(text))
		m.due, m.said = now.Add(meterNext), text
	}
}

// Note writes a line of its own; outages of the daemon are shown even when quiet.
func (m *meter) Note(text string) {
	m.End()
	fmt.Fprintln(m.a.Err, "sluice: "+terminal.Line(text))
}

// End gives the line back.
func (m *meter) End() {
	if m.live != nil {
		m.live.Clear()
	}
}

// completed is Progress of what a job has completed: units that were given up count in none of it, and stand apart.
func completed(j *pb.Job) string {
	if j.Skipped == 0 {
		return Progress(j)
	}
	kept := &pb.Job{Progress: j.Progress - j.Skipped, Reported: j.Reported, Total: j.Total}
	return fmt.Sprintf("%s, %d skipped", Progress(kept), j.Skipped)
}

// standingOf is how far one job is, or several, in a line.
func standingOf(a *session.Session, jobs []*pb.Job) string {
	if len(jobs) == 1 {
		j := jobs[0]
		text := fmt.Sprintf("%s  %s  %s", j.Name, pb.Word(j.State), completed(j))
		switch {
		case j.Final:
			return text
		case j.Started == nil:
			return text + show.Ahead(a, "  may start", j.StartEarly, j.StartLate) + "  " + j.Reason
		case j.Running == 0:
			return text + show.Ahead(a, "  may be done", j.FinishEarly, j.FinishLate) + "  " + j.Reason
		}
		return fmt.Sprintf("%s  %d running", text, j.Running) + show.Ahead(a, "  may be done", j.FinishEarly, j.FinishLate)
	}
	var over, running int
	var share float64
	last := &pb.Job{}
	known := true
	for _, j := range jobs {
		switch {
		case j.Final:
			over++
			share++
			continue
		case j.Running > 0:
			running++
		}
		if j.Total > 0 {
			share += float64(j.Progress+j.Reported) / float64(j.Total)
		}
		if known = known && j.FinishLate != nil; known && j.FinishLate.AsTime().After(last.FinishLate.AsTime()) {
			last.FinishEarly, last.FinishLate = j.FinishEarly, j.FinishLate
		}
	}
	text := fmt.Sprintf("%d of %d jobs over  %d running  %d%%", over, len(jobs), running, int(100*share/float64(max(1, len(jobs)))))
	if known {
		text += show.Ahead(a, "  may be done", last.FinishEarly, last.FinishLate)
	}
	return text
}
