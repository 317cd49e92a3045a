package measure

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// sums are what jobs of one group got.
type sums struct {
	name                               string
	jobs, waits, completed, unfinished int64
	wait, completion                   area
	stretch                            float64
	work, held                         area
}

// groups are the jobs that figures are also given of, by workload.Job.Group. The zero value is none.
type groups struct {
	list []sums
	at   map[string]int32
}

// number of a group, from 1; 0 of the empty name.
func (g *groups) number(name string) int32 {
	if name == "" {
		return 0
	}
	n, known := g.at[name]
	if !known {
		if g.at == nil {
			g.at = map[string]int32{}
		}
		g.list = append(g.list, sums{name: name})
		n = int32(len(g.list))
		g.at[name] = n
	}
	return n
}

// of is the group of a job, nil if it has none.
func (g *groups) of(j *live) *sums {
	if j.group == 0 {
		return nil
	}
	return &g.list[j.group-1]
}

// finish gives the metrics of every group, sorted by its name.
func (g *groups) finish(values *Metrics, capacity float64) {
	slices.SortFunc(g.list, func(a, b sums) int { return cmp.Compare(a.name, b.name) })
	for i := range g.list {
		s := &g.list[i]
		seconds := float64(time.Second)
		for k, v := range []float64{
			float64(s.jobs), float64(s.unfinished),
			ratio(s.wait.float()/seconds, float64(s.waits)), ratio(s.completion.float()/seconds, float64(s.completed)),
			ratio(s.stretch, float64(s.completed)), s.work.float() / seconds, ratio(s.held.float(), capacity),
		} {
			values.Set(InGroup(GroupTable()[k], s.name), v)
		}
	}
}

// live is what is remembered of a job while it lives.
type live struct {
	known, counted, began bool
	queue, running, runs  int32
	group                 int32 // 0 for none
	submit, since         quantity.Instant
	deadline              quantity.Instant // 0 for none
	held, work            time.Duration
	theta                 int64
}
