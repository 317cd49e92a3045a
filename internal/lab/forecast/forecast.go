package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// Options of a forecast.
type Options struct {
	// Table is what mechanisms there are.
	Table play.Table
	// Backlogs that are offered; none for those that are stated.
	Backlogs []Backlog
	// Notice is how long before its device is wanted back a filler is told: the grace time of the site's preemption.
	Notice time.Duration
	// Seed of the lots and of the interval. The same seed gives the same answer.
	Seed uint64
	// Workers is how many runs go at once; it has no influence on the answer.
	Workers int
	// Days is how many of the log's last whole days count; 0: Recent.
	Days int
	// Devices that are played of each stretch; 0: 16.
	Devices int
	// Quick leaves out what each assumption is worth.
	Quick bool
	// Progress is called with how many runs of how many are done, never twice at once; nil if not wanted.
	Progress func(done, total int)
}

// Notice is the grace time of who has not said: what Kubernetes gives a Pod, and many sites a preempted job.
const Notice = 30 * time.Second

// Recent is how many days count where nobody has said. Weeks were foretold better from the four before than from all before: clusters
// fill up.
const Recent = 28

// ours are the mechanisms of Sluice, free what costs nothing and needs nothing installed.
func ours() []string { return []string{"sja", "jasda"} }

func free() []string {
	return []string{"checkpoint", "checkpoint:10m", "workers:10s", "workers:1m", "workers:10m", "time-min", "requeue", "sjf", "nothing"}
}

// setting is one set of assumptions.
type setting struct {
	notice   time.Duration
	foretold bool
	starts   int // a start, a restore and a checkpoint take so many times as long as stated
	seed     uint64
}

// task is one run: a mechanism on a stretch under a backlog.
type task struct {
	setting   setting
	stretch   stretch
	backlog   int
	mechanism string
}

// book is what came of a run, with the free time that it had.
type book struct {
	ledger
	gapByHour   []time.Duration
	gapByDevice []time.Duration
	starts      int64
}

var errShort = errors.New("the log covers less than a day: give a file of at least a day, better of four weeks")

// Forecast plays the backlogs in the gaps of a log. Errors are of kind Invalid (the log or a backlog can't be played) or the context's.
func Forecast(ctx context.Context, l *Log, o Options) (*Answer, error) {
	if l.Days() < 1 {
		return nil, errkind.Errorf(errkind.Invalid, "%w", errShort)
	}
	if len(l.Devices) == 0 {
		return nil, errkind.Errorf(errkind.Invalid, "the log names no GPU: give sinfo's or scontrol's list of nodes beside it, or --gpus")
	}
	l = l.last(cmp.Or(o.Days, Recent))
	if len(o.Backlogs) == 0 {
		o.Backlogs = Stated(l.statedMemory())
	}
	p := &plan{log: l, Options: o}
	if err := p.fits(); err != nil {
		return nil, err
	}
	base := setting{notice: o.Notice, starts: 1, seed: o.Seed}
	if err := p.run(ctx, p.tasks(base, nil, slices.Concat(ours(), free()))); err != nil {
		return nil, err
	}
	a := p.answer()
	if !o.Quick {
		if err := p.worth(ctx, a, base); err != nil {
			return nil, err
		}
	}
	a.Said, a.Odd, a.Measured = l.Said, slices.Clone(l.Odd), l.measured()
	a.say()
	return a, nil
}

// plan is a forecast under way.
type plan struct {
	log *Log
	Options
	// ample is the memory of a device of which the log does not say it: all jobs fit there.
	ample quantity.Amount
	// size of what is played in one run: less where the jobs are so short that many are needed to fill it.
	size size
	// tasks that were played last, with their books.
	played []task
	books  []*book

	mu           sync.Mutex
	ended, total int
}

// tasks of a setting: mechanisms on every stretch, under these backlogs or all.
func (p *plan) tasks(s setting, backlogs []int, mechanisms []string) (out []task) {
	if backlogs == nil {
		for i := range p.Backlogs {
			backlogs = append(backlogs, i)
		}
	}
	for _, b := range backlogs {
		for _, m := range mechanisms {
			for _, x := range p.log.sample(s.seed, p.size) {
				out = append(out, task{s, x, b, m})
			}
		}
	}
	return out
}

// run plays tasks, several at once, and keeps their books in the order of the tasks.
func (p *plan) run(ctx context.Context, tasks []task) error {
	p.played, p.books = tasks, make([]*book, len(tasks))
	p.total += len(tasks)
	errs := make([]error, len(tasks))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan int)
	var crew sync.WaitGroup
	for range max(1, p.Workers) {
		crew.Go(func() {
			for i := range next {
				if p.books[i], errs[i] = p.play(ctx, &tasks[i]); errs[i] != nil {
					cancel()
				}
				p.tell()
			}
		})
	}
	for i := range tasks {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	crew.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return ctx.Err()
}

func (p *plan) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
	if p.Progress != nil {
		p.Progress(p.ended, p.total)
	}
}

// play is one run.
func (p *plan) play(ctx context.Context, t *task) (*book, error) {
	until := lead + quantity.Instant(time.Duration(t.stretch.days)*Day)
	from := p.log.begins(&t.stretch) - lead
	host := p.log.host(t.stretch.devices, from, until+tail, t.setting.notice, t.setting.foretold)
	b := &book{ledger: *newLedger(host, p.weights(t.stretch.devices), t.setting.notice, lead, until)}
	b.free()
	if t.mechanism == "nothing" {
		return b, nil
	}
	s, err := p.scenario(t, until)
	if err != nil {
		return nil, err
	}
	s.Host.Log = host
	protos, err := p.Backlogs[t.backlog].protos()
	if err != nil {
		return nil, err
	}
	for i := range protos {
		j := &protos[i].Job
		j.Startup, j.Restore, j.Checkpoint = j.Startup*times(t), j.Restore*times(t), j.Checkpoint*times(t)
	}
	if s.Workload.Jobs, err = fill(protos, host, until+tail); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "%s: %w", p.Backlogs[t.backlog].Doc, err)
	}
	m, err := p.Table.Find(s, []string{t.mechanism})
	if err != nil {
		return nil, err
	}
	results, err := play.Run(ctx, play.Options{Scenario: s, Mechanisms: m, Workers: 1,
		Observe: func(string, uint64) measure.Observer { return &b.ledger }})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, r := range results {
		if len(r.Broken) > 0 {
			return nil, fmt.Errorf("the simulation of %s broke its rules, please report it: %s", t.mechanism, r.Broken[0])
		}
	}
	return b, nil
}

// weights of devices.
func (p *plan) weights(devices []int) (out []int64) {
	for _, d := range devices {
		out = append(out, cmp.Or(p.log.Devices[d].Weight, wholeGPU))
	}
	return out
}

// memory of a device; where the log does not say, as much as any job of a backlog needs.
func (p *plan) memory(device int) quantity.Amount {
	return cmp.Or(p.log.Devices[device].Memory, p.ample)
}

func times(t *task) time.Duration { return time.Duration(t.setting.starts) }

// scenario is the world of a run without its log and its jobs.
func (p *plan) scenario(t *task, until quantity.Instant) (*scenario.Scenario, error) {
	var nodes []string
	for list := t.stretch.devices; len(list) > 0; {
		memory, n := p.memory(list[0]), 1
		for n < min(8, len(list)) && p.memory(list[n]) == memory {
			n++
		}
		nodes = append(nodes, fmt.Sprintf(`{name: n%04d, gpus: "sim:custom=%d,mem=%s"}`, len(nodes), n, quantity.ExactBytes(memory)))
		list = list[n:]
	}
	text := fmt.Sprintf(`scenario: forecast
cluster: {nodes: [%s]}
host: {notice: %s, timeMin: 10m}
mechanism: {use: [sja], policy: fair, horizon: 1h, continue: true}
workload: {jobs: [{at: 0s, name: one, items: {total: 1, perItem: 10s}, memory: 8Gi}]}
window: {warmup: %s, until: %s, limit: %s}
`, strings.Join(nodes, ", "), t.setting.notice, time.Duration(lead), time.Duration(until), time.Duration(until+tail+tail))
	return scenario.Parse("forecast", []byte(text))
}

// free books the gaps that a run had.
func (b *book) free() {
	b.gapByHour, b.gapByDevice = make([]time.Duration, len(b.byHour)), make([]time.Duration, len(b.host))
	for _, g := range b.host.Gaps(b.from, b.until) {
		b.gapByDevice[g.Slice] += b.weighed(g.Slice, g.To.Sub(g.From))
		for at := g.From; at < g.To; {
			hour := at.Sub(b.from) / time.Hour
			next := min(g.To, b.from.Add((hour+1)*time.Hour))
			b.gapByHour[hour] += b.weighed(g.Slice, next.Sub(at))
			at = next
		}
	}
	for _, stays := range b.host {
		for _, s := range stays {
			if s.Source != closed && s.From >= b.from && s.From < b.until {
				b.starts++
			}
		}
	}
}
