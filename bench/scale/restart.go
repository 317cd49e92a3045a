package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/internal/core/prng"
)

// call is something that a person asks a daemon.
type call struct {
	name string
	do   func(ctx context.Context, t *standing) error
}

// calls are what is asked after a restart, and what is timed.
func calls() []call {
	return []call{
		{"jobs --limit 100", func(ctx context.Context, t *standing) error {
			_, err := t.d.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{Limit: 100}))
			return err
		}},
		{"explain", func(ctx context.Context, t *standing) error {
			_, err := t.d.Explain(ctx, connect.NewRequest(&pb.ExplainRequest{Name: t.anybody()}))
			return err
		}},
		{"/metrics", func(ctx context.Context, t *standing) error { return t.scrape(ctx) }},
		{"job", func(ctx context.Context, t *standing) error {
			_, err := t.d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: t.anybody()}))
			return err
		}},
		{"submit", func(ctx context.Context, t *standing) error { return t.d.Send(ctx, t.plant.files(1, 1)[0]) }},
	}
}

// anybody is one of the waiting jobs.
func (t *standing) anybody() string {
	n := t.plant.batches.Add(1)
	draw := prng.New(seed, 6, uint64(n))
	return jobName(t.plant.seeds.set, draw.IntN(t.plant.seeds.waiting))
}

func (t *standing) scrape(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.d.Base+"/metrics", nil)
	if err != nil {
		return err
	}
	resp, err := t.d.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/metrics: %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// back is what a restart has shown.
type back struct {
	// answer is when all of the calls had their first answer, from the start of the process; slowest names the last of them.
	answer  time.Duration
	slowest string
	// used is the daemon's processor time until then.
	used time.Duration
	// peak and final size in memory, in MiB, and what of it is live on the heap.
	peak, final, heap float64
}

// restart kills the daemons of both standings and starts them again.
func (s *settings) restart(ctx context.Context, small, big *standing) ([]line, error) {
	answer := line{Row: "restart", Name: "restart to the first answer to every call", Unit: "s", Value: 10, Target: "10 s"}
	peak := line{Row: "restart", Name: "memory of a restart at most", Unit: "GiB", Value: 4, Target: "4 GiB"}
	final := line{Row: "restart", Name: "memory after a restart", Unit: "GiB"}
	resident := line{Row: "memory", Name: "memory per waiting job, all in", Unit: "B", Value: 2048, Target: "2 KB",
		Note: "the difference in resident memory to the first case of the restart, by the difference in waiting jobs; jobs that are " +
			"over are in it"}
	heap := line{Row: "memory", Name: "the same, live on the heap", Unit: "B"}
	var backs []back
	for _, t := range []*standing{small, big} {
		b, err := s.comesBack(ctx, t)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			c := gaveUp(t.of, "%s", firstLine(err))
			for _, l := range []*line{&answer, &peak, &final, &resident, &heap} {
				l.Cells = append(l.Cells, c)
			}
			continue
		}
		backs = append(backs, b)
		answer.Cells = append(answer.Cells, measured(t.of, b.answer.Seconds()))
		answer.Note = fmt.Sprintf("the last to be answered in the last case: %s; the daemon had used %s of processor time", b.slowest,
			round(b.used))
		peak.Cells = append(peak.Cells, measured(t.of, b.peak/1024))
		final.Cells = append(final.Cells, measured(t.of, b.final/1024))
	}
	if len(backs) == 2 {
		jobs := float64(big.plant.seeds.waiting - small.plant.seeds.waiting)
		resident.Cells = []cell{measured(big.of, (backs[1].final-backs[0].final)*(1<<20)/jobs)}
		heap.Cells = []cell{measured(big.of, (backs[1].heap-backs[0].heap)*(1<<20)/jobs)}
	}
	return []line{answer, peak, final, resident, heap}, nil
}

// comesBack kills a standing's daemon, starts it again, and asks everything of it at once until it is answered.
func (s *settings) comesBack(ctx context.Context, t *standing) (b back, err error) {
	t.kill()
	if !t.boot(s) {
		return b, fmt.Errorf("%s", t.reason)
	}
	waiting, stop := context.WithDeadline(ctx, t.d.Started.Add(s.limit))
	defer stop()
	var mu sync.Mutex
	var all sync.WaitGroup
	errs := map[string]error{}
	for _, c := range calls() {
		all.Go(func() {
			for {
				failed := c.do(waiting, t)
				mu.Lock()
				if errs[c.name] = failed; failed == nil {
					if took := time.Since(t.d.Started); took > b.answer {
						b.answer, b.slowest, b.used = took, c.name, busy(t.d)
					}
				}
				mu.Unlock()
				if failed == nil || waiting.Err() != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	all.Wait()
	for name, failed := range errs {
		if failed != nil {
			return b, fmt.Errorf("%s was not answered: %s", name, t.lost(failed))
		}
	}
	t.settle(s)
	if b.final, b.peak, err = t.d.Resident(); err != nil {
		return b, fmt.Errorf("%s", t.lost(err))
	}
	next, err := t.d.Metrics(ctx, "go_memstats_next_gc_bytes")
	if err != nil {
		return b, err
	}
	percent, err := t.d.Metrics(ctx, "go_gc_gogc_percent")
	b.heap = next[""] / (1 + percent[""]/100) / (1 << 20) // the next collection is at so much more than what the last one left
	s.say("%s: back after %s, %s was last; %.0f MiB, at most %.0f", t.of, round(b.answer), b.slowest, b.final, b.peak)
	return b, err
}

// probe is one answer to somebody else.
type probe struct{ begin, end time.Time }

// prober asks for a job every two milliseconds until it is stopped.
func (t *standing) prober(ctx context.Context) (stop func() []probe) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan []probe)
	go func() {
		var list []probe
		for ctx.Err() == nil {
			p := probe{begin: time.Now()}
			_, err := t.d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: t.anybody()}))
			if p.end = time.Now(); err == nil {
				list = append(list, p)
			}
			time.Sleep(2 * time.Millisecond)
		}
		done <- list
	}()
	return func() []probe { cancel(); return <-done }
}

// longestWait, in milliseconds, of the probes that were under way at some time from begin to end.
func longestWait(list []probe, begin, end time.Time) (worst float64) {
	for _, p := range list {
		if p.end.After(begin) && p.begin.Before(end) {
			worst = max(worst, sample.Milliseconds(p.end.Sub(p.begin)))
		}
	}
	return worst
}

// queries measures what people ask most, and what others wait for it: somebody asks for a job all the time, and the longest of
// that somebody's waits during a query counts. Between two queries is a rest of the same length, which shows what waits there are
// anyway.
func (s *settings) queries(ctx context.Context, standings ...*standing) (lines []line) {
	for _, c := range calls()[:3] {
		time := line{Row: "query", Name: c.name, Unit: "ms", Value: 20, Target: "20 ms"}
		others := line{Row: "query", Name: "others wait for " + c.name, Unit: "ms", Value: 5, Target: "5 ms"}
		for _, t := range standings {
			if t.d == nil {
				time.Cells, others.Cells = append(time.Cells, gaveUp(t.of, "%s", t.reason)),
					append(others.Cells, gaveUp(t.of, "%s", t.reason))
				continue
			}
			took, wait, rest, err := s.query(ctx, t, c)
			if err != nil {
				why := t.lost(err)
				time.Cells, others.Cells = append(time.Cells, gaveUp(t.of, "%s", why)), append(others.Cells, gaveUp(t.of, "%s", why))
				continue
			}
			time.Cells = append(time.Cells, measured(t.of, took...))
			v := sample.Ordered(wait)
			quiet := sample.Ordered(rest)
			others.Cells = append(others.Cells, cell{Case: t.of, Median: sample.Quantile(v, 95), Low: v[0], High: v[len(v)-1],
				Rounds: len(v)})
			others.Note = fmt.Sprintf("the longest wait during a query, second longest of 20 queries; in rests as long, without one, %s",
				number(sample.Quantile(quiet, 95)))
		}
		lines = append(lines, time, others)
	}
	return lines
}

func (s *settings) query(ctx context.Context, t *standing, c call) (took, wait, rest []float64, err error) {
	ctx, stop := context.WithTimeout(ctx, s.limit)
	defer stop()
	type span struct{ begin, end time.Time }
	var busy, quiet []span
	probing := t.prober(ctx)
	for range 20 {
		time.Sleep(10 * time.Millisecond)
		begin := time.Now()
		if err = c.do(ctx, t); err != nil {
			break
		}
		end := time.Now()
		took = append(took, sample.Milliseconds(end.Sub(begin)))
		time.Sleep(10 * time.Millisecond)
		from := time.Now()
		time.Sleep(end.Sub(begin))
		busy, quiet = append(busy, span{begin, end}), append(quiet, span{from, time.Now()})
	}
	list := probing()
	for i := range busy {
		wait = append(wait, longestWait(list, busy[i].begin, busy[i].end))
		rest = append(rest, longestWait(list, quiet[i].begin, quiet[i].end))
	}
	return took, wait, rest, err
}
