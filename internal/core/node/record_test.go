package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// inWords are the steps of a node in short.
func inWords(steps []status.AirlockStep) string {
	var out []string
	for _, s := range steps {
		line := fmt.Sprintf("%d %s %v, since %s", s.Decision, s.Step, s.Token, s.Why)
		if s.Spared != "" {
			line += fmt.Sprintf("; %v is spared: %s", s.SparedToken, s.Below)
		}
		if s.Stood > 0 {
			line += fmt.Sprintf("; stood %v", s.Stood)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// TestAStormIsTold: who was hit, before whom and by what, what became of it, and what all of it came to.
func TestAStormIsTold(t *testing.T) {
	w := booted(t)
	if a := w.n.Airlock(w.now); a.Strain.At != 0 || !a.Strain.Old || len(a.Stands) != 0 || len(a.Steps) != 0 || a.Timer != 30*time.Second ||
		a.Order != "class" {
		t.Errorf("a node that has heard nothing of its memory says %+v", a)
	}
	low := w.ranked(1, "a", protocol.Rank{Yields: true}, 0)
	high := w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	began := w.now
	w.pressed(93, 20, 60, low, high)
	a := w.n.Airlock(w.now)
	if len(a.Stands) != 1 {
		t.Fatalf("%+v are suspended", a.Stands)
	}
	s := a.Stands[0]
	same(t, "it", s.Job, "j")
	same(t, "state", s.State, "suspending")
	same(t, "until", s.Until, began.Add(30*time.Second))
	same(t, "has", s.Resident, 20*gib)
	if !strings.HasPrefix(s.Why, "memory is short: severe: 95232 of 102400 MiB used") {
		t.Errorf("it is suspended since %q", s.Why)
	}
	w.pass(time.Second)
	w.still(low, true)
	w.pass(4 * time.Second)
	same(t, "state", w.n.Airlock(w.now).Stands[0].State, "suspended")
	w.pressed(60, 0, 60, low, high)
	w.still(low, false)
	w.pass(time.Second)
	w.pressed(98, 20, 60, low, high)
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Stopped, Progress: 40}}})
	a = w.n.Airlock(w.now)
	want := strings.Join([]string{
		fmt.Sprintf("1 suspended %v, since memory is short; %v is spared: its priority is 0, the other's 1", low, high),
		fmt.Sprintf("2 recovered %v, since there is room again; stood 5s", low),
		fmt.Sprintf("3 reclaimed %v, since memory is about to end; %v is spared: its priority is 0, the other's 1", low, high),
		fmt.Sprintf("0 ended %v, since stopped", low),
	}, "\n")
	if got := inWords(a.Steps); got != want {
		t.Errorf("it tells\n%s\nwant\n%s", got, want)
	}
	if got := inWords(w.n.AirlockSteps("j", 1)); got != want {
		t.Errorf("of the job it tells\n%s", got)
	}
	if other := w.n.AirlockSteps("j", 2); len(other) != 0 {
		t.Errorf("of its next life it tells %v", inWords(other))
	}
	first := a.Steps[0]
	same(t, "share", first.Memory.Share, 930)
	same(t, "level", first.Memory.Level, "severe")
	same(t, "to be made free", first.Deficit, 8*gib)
	same(t, "what came", first.Covered, 20*gib)
	same(t, "its place", first.Place, status.SurvivalPlace{Outgrown: true, Class: "lasting", Footprint: 20 * gib, Planned: 10,
		Ran: first.Place.Ran})
	same(t, "progress at its end", a.Steps[3].Progress, 40)
	w.pass(time.Second)
	a = w.n.Airlock(w.now)
	same(t, "suspended", a.Strain.Suspended, 1)
	same(t, "recovered", a.Strain.Recovered, 1)
	same(t, "reclaimed", a.Strain.Reclaimed, 1)
	same(t, "decisions", a.Strain.Decisions, 3)
	same(t, "standing", a.Strain.Standing, 0)
	same(t, "stood", a.Strain.Stood, 5*time.Second)
	same(t, "over the line", a.Strain.OverLine, 6*time.Second)
	same(t, "severe line", a.Strain.Severe, 92*gib)
	same(t, "short", a.Short, true)
	w.pass(time.Minute)
	same(t, "an old word", w.n.Airlock(w.now).Strain.Old, true)
	same(t, "over the line, as far as is known", w.n.Airlock(w.now).Strain.OverLine, 35*time.Second)
}

// TestWhoNothingHelpsIsNamed: a member of a gang, which is not suspended alone and can't yield, and nor can the one above it.
func TestWhoNothingHelpsIsNamed(t *testing.T) {
	w := booted(t)
	low := w.ranked(1, "a", protocol.Rank{Class: protocol.Collective}, 2)
	high := w.ranked(2, "b", protocol.Rank{Class: protocol.Collective, Priority: 1}, 2)
	w.pressed(93, 20, 60, low, high)
	same(t, "stuck", w.n.Airlock(w.now).Stuck, "j")
	w.pressed(60, 20, 40, low, high)
	same(t, "stuck", w.n.Airlock(w.now).Stuck, "")
}

// TestWhoCannotBeSuspendedIsTold, and that it was killed for its own slice's memory counts apart.
func TestWhoCannotBeSuspendedIsTold(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	w.pressed(93, 20, 60, low, high)
	w.step(protocol.Message{Kind: protocol.Suspended, From: executor, Token: low, Body: &protocol.Stillness{Refused: true}})
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: high,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.MemoryKilled}}})
	a := w.n.Airlock(w.now)
	if got := inWords(a.Steps[1:]); got != fmt.Sprintf("0 refused %v, since it can't be suspended here", low) {
		t.Errorf("it tells\n%s", got)
	}
	same(t, "suspended", a.Strain.Suspended, 0)
	same(t, "killed", a.Strain.Killed, 1)
}

// TestWhatTheWatcherDidIsTold as though the node had decided it.
func TestWhatTheWatcherDidIsTold(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	still, goes := protocol.Stand{State: protocol.IsSuspended, Since: w.now, Times: 1}, protocol.Stand{}
	w.watched(7, 93, low, high, still, goes)
	w.watched(7, 93, low, high, still, goes) // nothing new
	w.pass(3 * time.Second)
	w.watched(7, 60, low, high, protocol.Stand{Resumed: w.now, Times: 1}, goes)
	w.watched(7, 93, low, high, protocol.Stand{State: protocol.IsToYield, Since: w.now, Times: 1}, goes)
	w.watched(7, 98, low, high, protocol.Stand{State: protocol.IsEnded, Since: w.now, Times: 1}, goes)
	w.watched(7, 98, low, high, protocol.Stand{State: protocol.IsEnded, Since: w.now, Times: 1}, goes)
	a := w.n.Airlock(w.now)
	spared := fmt.Sprintf("; %v is spared: its priority is 0, the other's 1", high)
	want := strings.Join([]string{
		fmt.Sprintf("1 suspended %v, since memory is short%s", low, spared),
		fmt.Sprintf("2 recovered %v, since there is room again; stood 3s", low),
		fmt.Sprintf("3 readdressed %v, since memory is short%s", low, spared), fmt.Sprintf("4 reclaimed %v, since memory is about to end%s",
			low, spared),
	}, "\n")
	if got := inWords(a.Steps); got != want {
		t.Errorf("it tells\n%s\nwant\n%s", got, want)
	}
	same(t, "counts", [4]int64{a.Strain.Suspended, a.Strain.Recovered, a.Strain.Readdressed, a.Strain.Reclaimed}, [4]int64{1, 1, 1, 1})
	same(t, "stood", a.Strain.Stood, 3*time.Second)
}

// TestWhatGoesOnThoughItMayNotFitIsToldSo: also by a node that only hears that it does.
func TestWhatGoesOnThoughItMayNotFitIsToldSo(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	still, goes := protocol.Stand{State: protocol.IsSuspended, Since: w.now, Times: 1}, protocol.Stand{}
	w.watched(7, 93, low, high, still, goes)
	w.pass(20 * time.Second)
	w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{Capacity: 100 * gib, Used: 84 * gib, Watch: 7,
		Uses: []protocol.Use{
			{Token: low, Resident: 20 * gib, Parked: 8 * gib, Stand: protocol.Stand{Resumed: w.now, Times: 1}},
			{Token: high, Resident: 60 * gib},
		}}})
	if got, want := inWords(w.n.Airlock(w.now).Steps[1:]), fmt.Sprintf("2 recovered %v, since it was suspended for long; stood 20s",
		low); got != want {
		t.Errorf("it tells\n%s\nwant\n%s", got, want)
	}
}

// TestTheWatchersStepsAreToldInTheirOrder: the lowest first, with what was to be made free and what each brings, however the word lists
// them.
func TestTheWatchersStepsAreToldInTheirOrder(t *testing.T) {
	w := booted(t)
	high, low := w.ranked(1, "a", protocol.Rank{Yields: true, Priority: 1}, 0), w.ranked(2, "b", protocol.Rank{Yields: true}, 0)
	still := protocol.Stand{State: protocol.IsSuspended, Since: w.now, Times: 1}
	w.watched(7, 93, high, low, still, still)
	steps := w.n.Airlock(w.now).Steps
	if got, want := inWords(steps), fmt.Sprintf("1 suspended %v, since memory is short\n1 suspended %v, since memory is short", low,
		high); got != want {
		t.Fatalf("it tells\n%s\nwant\n%s", got, want)
	}
	same(t, "to be made free", steps[0].Deficit, 8*gib)
	same(t, "of the second, which has less room left", steps[1].Relief, 0)
	same(t, "of both", steps[1].Covered, 50*gib)
	same(t, "watched", w.n.Airlock(w.now).Watched, true)
}
