package forecast

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
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
	// Elsewhere plays a run in another process, as Play does there, and returns what came of it. It is called by each of Workers, which are
	// counted from 0, for one run after the other; nil: runs are played here. It has no influence on the answer.
	Elsewhere func(ctx context.Context, worker int, run []byte) ([]byte, error)
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
	p := &plan{log: l, Options: o, drawn: map[uint64][]stretch{}}
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
	// drawn are the stretches by the seed of the lots.
	drawn map[uint64][]stretch
	// tasks that an outcome is made of, with their books.
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
			for _, x := range p.stretches(s.seed) {
				out = append(out, task{s, x, b, m})
			}
		}
	}
	return out
}

// stretches are those of a lot. To draw them all devices are looked at, so it is done once.
func (p *plan) stretches(seed uint64) []stretch {
	if p.drawn[seed] == nil {
		p.drawn[seed] = p.log.sample(seed, p.size)
	}
	return p.drawn[seed]
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
	for worker := range max(1, p.Workers) {
		crew.Go(func() {
			for i := range next {
				if p.books[i], errs[i] = p.play(ctx, worker, &tasks[i]); errs[i] != nil {
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
