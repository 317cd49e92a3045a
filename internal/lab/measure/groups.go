package measure

import (
	"cmp"
	"slices"
	"strings"
	"time"
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

// groupSign stands between a metric and the group that it is of.
const groupSign = "@"

// InGroup is the name of a metric of one group of jobs, such as waitMean@honest.
func InGroup(metric, group string) string { return metric + groupSign + group }

// Group takes the name of a metric of a group apart; group is empty for a metric of all jobs.
func Group(name string) (metric, group string) {
	metric, group, _ = strings.Cut(name, groupSign)
	return metric, group
}

// GroupTable lists the metrics that are given for every group.
func GroupTable() []string {
	return []string{Jobs, Unfinished, WaitMean, CompletionMean, CompletionPerWork, UsefulWork, Utilization}
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
