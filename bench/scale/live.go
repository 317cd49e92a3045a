package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/bench/daemon"
	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/internal/edge/journal/local"
)

const (
	// clients submit at once, perCall jobs in a call.
	clients, perCall = 16, 10
	// burstTime bounds one round of submissions: where they are slow, what was answered by then counts.
	burstTime = 10 * time.Second
)

// standing is a daemon on prepared data, or the reason why it could not be started.
type standing struct {
	of     string
	plant  *plant
	d      *daemon.Daemon
	reason string
	// fresh: a new daemon on a copy of the plant for every round, so that what a round submits is not there in the next.
	fresh bool
}

// live measures the rows that need daemons. They share these, since a million jobs take long to submit.
func (s *settings) live(ctx context.Context, rows []string) (lines []line, err error) {
	var all []*standing
	defer func() {
		for _, t := range all {
			t.kill()
		}
	}()
	top := s.sizes[len(s.sizes)-1]
	andOver := func(waiting int) string { return fmt.Sprintf("%s and %s over", size(waiting), size(s.finished)) }
	wants := func(row string) bool { return slices.Contains(rows, row) }
	begin := func(of string, plant func(name string) (*plant, error), fresh bool) (*standing, error) {
		p, failed := plant(strings.ReplaceAll(of, " ", "-"))
		t := &standing{of: of, plant: p, fresh: fresh}
		all = append(all, t)
		return t, failed
	}
	only := func(waiting int) func(string) (*plant, error) {
		return func(name string) (*plant, error) { return s.plant(ctx, name, waiting, 0) }
	}
	// What is over is filed once, and copied.
	past, err := s.plant(ctx, "past", 0, s.finished)
	if err != nil {
		return nil, err
	}
	besides := func(waiting int) func(string) (*plant, error) {
		return func(name string) (*plant, error) { return past.with(ctx, name, waiting) }
	}
	small, err := begin(size(s.sizes[0]), only(s.sizes[0]), true)
	if err != nil {
		return nil, err
	}
	cases := []*standing{small}
	var over, alike *standing // alike is over without what is over
	if wants("submit") {
		for _, n := range s.sizes[1 : len(s.sizes)-1] {
			t, failed := begin(size(n), only(n), n <= 20*s.sizes[0])
			if failed != nil {
				return nil, failed
			}
			cases = append(cases, t)
			if !t.fresh && t.boot(s) {
				t.settle(s)
				t.freeze()
			}
		}
		if over, err = begin(andOver(s.sizes[0]), besides(s.sizes[0]), false); err != nil {
			return nil, err
		}
		if alike, err = begin(size(s.sizes[0])+" kept", only(s.sizes[0]), false); err != nil {
			return nil, err
		}
		for _, t := range []*standing{over, alike} {
			t.boot(s)
			t.settle(s)
			t.freeze()
		}
	}
	big, err := begin(andOver(top), besides(top), false)
	if err != nil {
		return nil, err
	}
	if big.boot(s) {
		s.say("%s: served after %s from the journal alone", big.of, round(big.d.Served))
	}
	big.settle(s)
	if wants("restart") || wants("memory") {
		more, err := s.restart(ctx, small, big)
		if err != nil {
			return nil, err
		}
		for _, l := range more {
			if wants(l.Row) {
				lines = append(lines, l)
			}
		}
	}
	if wants("query") {
		if small.d == nil {
			small.boot(s)
		}
		lines = append(lines, s.queries(ctx, small, big)...)
	}
	small.kill()
	big.freeze()
	if wants("submit") {
		more, err := s.submissions(ctx, append(cases, big), alike, over)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	if wants("snapshot") {
		big.thaw()
		lines = append(lines, s.snapshot(ctx, big)...)
	}
	return lines, nil
}

// boot starts the standing's daemon. It says false and keeps the reason if it does not come up.
func (t *standing) boot(s *settings, flags ...string) bool {
	if t.reason != "" {
		return false
	}
	d, err := t.plant.start(flags...)
	switch {
	case errors.Is(err, daemon.ErrPatience):
		t.reason = fmt.Sprintf("gave up: it serves nobody after %s", s.limit)
	case err != nil:
		t.reason = "gave up: " + firstLine(err)
	default:
		t.d = d
	}
	if t.reason != "" {
		s.say("%s: %s", t.of, t.reason)
	}
	return t.reason == ""
}

// settle waits until the daemon has been nearly idle for a second: the work that follows a start (a snapshot, archiving jobs) is then done.
func (t *standing) settle(s *settings) {
	if t.d == nil {
		return
	}
	begin := time.Now()
	last, quiet := busy(t.d), 0
	for quiet < 4 && time.Since(begin) < s.limit {
		time.Sleep(250 * time.Millisecond)
		now := busy(t.d)
		if now-last < 25*time.Millisecond {
			quiet++
		} else {
			quiet = 0
		}
		last = now
	}
	if quiet < 4 {
		s.say("%s: still busy %s after its start", t.of, round(time.Since(begin)))
	}
}

// busy is the processor time that a daemon has used so far.
func busy(d *daemon.Daemon) time.Duration {
	own, _, err := d.Processor()
	if err != nil {
		return 0 // it is gone, and whoever calls it next finds out
	}
	return own
}

func (t *standing) freeze() {
	if t.d != nil {
		t.d.Freeze()
	}
}

func (t *standing) thaw() {
	if t.d != nil {
		t.d.Thaw()
		time.Sleep(200 * time.Millisecond) // timers that are overdue
	}
}

func (t *standing) kill() {
	if t.d != nil {
		t.d.Thaw()
		t.d.Kill()
		t.d = nil
	}
}

// lost notes that a daemon was killed for its memory, or answers no more.
func (t *standing) lost(err error) string {
	if t.d != nil && t.d.Greedy() {
		t.reason = "gave up: it takes too much memory"
		t.kill()
		return t.reason
	}
	return "gave up: " + firstLine(err)
}

// submissions measures how many jobs a second are accepted durably, in rounds: every standing once in each, the others frozen. What jobs
// that are over cost is found by a pair that is alike but for them, in more rounds, and first the one of it, then the other.
func (s *settings) submissions(ctx context.Context, cases []*standing, alike, over *standing) ([]line, error) {
	rates, costs := map[*standing][]float64{}, map[*standing][]float64{}
	measure := func(t *standing) error {
		if t.reason != "" {
			return nil
		}
		rate, cost, err := s.submission(ctx, t)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.reason = t.lost(err)
			s.say("%s: %s", t.of, t.reason)
		default:
			rates[t], costs[t] = append(rates[t], rate), append(costs[t], cost)
		}
		return nil
	}
	for r := range s.rounds {
		for _, t := range cases {
			if err := measure(t); err != nil {
				return nil, err
			}
		}
		s.say("submission, round %d of %d", r+1, s.rounds)
	}
	pair := []*standing{alike, over}
	for range s.pairs {
		for _, t := range pair {
			if err := measure(t); err != nil {
				return nil, err
			}
		}
		slices.Reverse(pair)
	}
	s.say("submission beside jobs that are over, %d rounds", s.pairs)
	at := func(t *standing, values map[*standing][]float64) cell {
		if t.reason != "" {
			return gaveUp(t.of, "%s", t.reason)
		}
		return measured(t.of, values[t]...)
	}
	waiting := line{Row: "submit", Name: "submission, durable, 16 clients, 10 jobs a call", Unit: "jobs/s", More: true, Ratio: 1.2,
		AtLast: true, Target: "at most 1.2 times slower at 1M"}
	used := line{Row: "submit", Name: "the daemon's processor time for a submitted job", Unit: "us"}
	for _, t := range cases {
		waiting.Cells, used.Cells = append(waiting.Cells, at(t, rates)), append(used.Cells, at(t, costs))
	}
	used.Cells = append(used.Cells, at(alike, costs), at(over, costs))
	finished := line{
		Row: "submit", Name: "the same with jobs that are over", Unit: "jobs/s", More: true, Ratio: 1.05,
		Target: "1M finished jobs cost nothing (within 5%)",
		Cells:  []cell{at(alike, rates), at(over, rates)},
	}
	return []line{waiting, finished, used}, nil
}

// submission is one round at one standing: jobs a second, and the daemon's processor time for one in microseconds.
func (s *settings) submission(ctx context.Context, t *standing) (rate, cost float64, err error) {
	d := t.d
	if t.fresh {
		copied, failed := t.copy(ctx)
		if failed != nil {
			return 0, 0, failed
		}
		defer copied.kill()
		if !copied.boot(s) {
			return 0, 0, errors.New(copied.reason)
		}
		d = copied.d
	} else {
		t.thaw()
		defer t.freeze()
	}
	warm, stop := context.WithTimeout(ctx, burstTime)
	_, _, err = burst(warm, d, clients, 0, t.plant.files(s.burst/5/perCall, perCall))
	stop()
	if err != nil {
		return 0, 0, err
	}
	files := t.plant.files(s.burst/perCall, perCall)
	timed, stop := context.WithTimeout(ctx, burstTime)
	defer stop()
	before := busy(d)
	took, all, err := burst(timed, d, clients, 0, files)
	used := busy(d) - before
	if err == nil && len(took) == 0 {
		err = fmt.Errorf("no call was answered in %s", burstTime)
	}
	jobs := float64(len(took) * perCall)
	return jobs / all.Seconds(), used.Seconds() * 1e6 / jobs, err
}

// copy is the same standing on a copy of its data.
func (t *standing) copy(ctx context.Context) (*standing, error) {
	p, err := t.plant.with(ctx, fmt.Sprintf("copy-%d", t.plant.batches.Add(1)), 0)
	return &standing{of: t.of, plant: p}, err
}

// snapshot measures submissions while the daemon writes a snapshot of all there is: one job a call from four clients, with pauses.
func (s *settings) snapshot(ctx context.Context, big *standing) []line {
	slow := line{Row: "snapshot", Name: "p99 of a submission through a snapshot", Unit: "ms", Value: 50, Target: "50 ms"}
	worst := line{Row: "snapshot", Name: "worst submission through a snapshot", Unit: "ms", Value: 200, Target: "200 ms"}
	fail := func(why string) []line {
		slow.Cells, worst.Cells = []cell{gaveUp(big.of, "%s", why)}, []cell{gaveUp(big.of, "%s", why)}
		return []line{slow, worst}
	}
	if big.d == nil {
		return fail(big.reason)
	}
	// After a restart the next snapshot is due after so many records, of which most are there already.
	big.kill()
	journal, err := local.Verify(filepath.Join(daemon.Data(big.plant.dir), "journal"))
	if err != nil {
		return fail("gave up: " + firstLine(err))
	}
	if !big.boot(s, "--snapshot-records", fmt.Sprint(journal.Records+uint64(s.burst/2))) {
		return fail(big.reason)
	}
	big.settle(s)
	before := written(big.d)
	begin := time.Now()
	through, stop := context.WithTimeout(ctx, s.limit)
	defer stop()
	var took []float64
	for len(written(big.d)) == len(before) && through.Err() == nil {
		part, _, err := burst(through, big.d, 4, 4*time.Millisecond, big.plant.files(400, 1))
		if err != nil {
			return fail(big.lost(err))
		}
		took = append(took, part...)
	}
	all := written(big.d)
	if len(all) == len(before) {
		return fail(fmt.Sprintf("gave up: no snapshot was written in %s", round(time.Since(begin))))
	}
	took = sample.Ordered(took)
	slow.Cells, worst.Cells = []cell{measured(big.of, sample.Quantile(took, 99))}, []cell{measured(big.of, took[len(took)-1])}
	slow.Note = fmt.Sprintf("%d submissions in %s, of which the snapshot: %s", len(took), round(time.Since(begin)), all[len(all)-1])
	return []line{slow, worst}
}

// written are the daemon's own words on each snapshot that it wrote.
func written(d *daemon.Daemon) (list []string) {
	for l := range strings.Lines(d.Said()) {
		if _, what, ok := strings.Cut(l, "wrote a snapshot"); ok {
			_, figures, _ := strings.Cut(what, "\" ")
			list = append(list, strings.TrimSpace(figures))
		}
	}
	return list
}

// firstLine of an error, cut to what a table can hold.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if len(text) > 160 {
		text = text[:160] + "..."
	}
	return text
}
