package forecast

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/scenario"
)

// Backlog is work of one kind that waits for idle time.
type Backlog struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Lines are jobs as a scenario writes them (docs/scenarios.md): a list in YAML's flow form or in lines.
	Lines string `json:"-"`
	// Saves is how much work lies between two checkpoints that its programs leave by themselves; 0: none.
	Saves time.Duration `json:"-"`
}

// Stated are the backlogs of who has given none.
func Stated() []Backlog {
	return []Backlog{
		{Name: "units", Doc: "independent units of 10 s, 4 h of them a job, that load for 20 s (inference, scans, parameter sweeps)",
			Lines: "[{at: 0s, name: units, items: {total: 1440, perItem: 10s, grid: 1}, startup: 20s, memory: 8Gi}]"},
		{Name: "training", Doc: "training of 4 h in steps of 10 s: start 20 s, restore 20 s, checkpoint 15 s, one by itself every 10 min",
			Lines: "[{at: 0s, name: training, steps: {total: 1440, perStep: 10s, every: 1, restore: 20s, checkpoint: 15s}, " +
				"startup: 20s, memory: 8Gi}]", Saves: 10 * time.Minute},
		{Name: "large", Doc: "training of 8 h in steps of 30 s whose state takes longer than a notice: start 1 min, restore 2 min, " +
			"checkpoint 1 min, one by itself every 30 min",
			Lines: "[{at: 0s, name: large, steps: {total: 960, perStep: 30s, every: 1, restore: 2m, checkpoint: 1m}, startup: 1m, " +
				"memory: 8Gi}]", Saves: 30 * time.Minute},
		{Name: "whole", Doc: "programs of 30 min that save nothing and can't be cut, start 20 s",
			Lines: "[{at: 0s, name: whole, items: {total: 1, perItem: 30m, grid: 1}, startup: 20s, memory: 8Gi}]"},
		{Name: "mixed", Doc: "units and large training as above, in turn: what there is to choose from when a gap is short",
			Lines: "[{at: 0s, name: units, items: {total: 1440, perItem: 10s, grid: 1}, startup: 20s, memory: 8Gi}, " +
				"{at: 0s, name: large, steps: {total: 960, perStep: 30s, every: 1, restore: 2m, checkpoint: 1m}, " +
				"startup: 1m, memory: 8Gi}]",
			Saves: 30 * time.Minute},
	}
}

// yours is the name of an owner's own backlog.
const yours = "yours"

// Own is the backlog of an owner: the text of a list of jobs, as it stands in a file of this name. Its jobs are offered in turn, again
// and again, for as long as there is idle time.
func Own(file, text string) (Backlog, error) {
	b := Backlog{Name: yours, Doc: "the jobs of " + file, Lines: text}
	_, err := b.protos()
	if err != nil {
		return b, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

// indented is a text as the value of a key.
func (b *Backlog) indented() string {
	if strings.HasPrefix(strings.TrimSpace(b.Lines), "[") {
		return " " + strings.TrimSpace(b.Lines)
	}
	return "\n    " + strings.ReplaceAll(strings.TrimRight(b.Lines, "\n"), "\n", "\n    ")
}

// protos are its jobs, each once.
func (b *Backlog) protos() ([]scenario.Job, error) {
	s, err := scenario.Parse("jobs", []byte("scenario: backlog\ncluster: {nodes: [{gpus: \"sim:custom=1,mem=80Gi\"}]}\nworkload:\n  jobs:"+
		b.indented()+"\n"))
	if err != nil {
		return nil, err
	}
	for i := range s.Workload.Jobs {
		j := &s.Workload.Jobs[i]
		if j.Job.Kind == job.Rigid {
			return nil, fmt.Errorf("job %s: a rigid job can't be cut and fills no gaps; write items: {total: 1, perItem: %s} for a "+
				"program that runs as a whole", j.Name, j.Job.Declared)
		}
		if b.Saves > 0 && j.Job.Kind == job.Steps {
			j.Job.Saves = max(1, j.Job.Units*int64(b.Saves)/int64(j.Job.Work))
		}
		j.Job.Parallelism = 1
	}
	return s.Workload.Jobs, nil
}

// deep is how much more work there is at any time than idle time was left until then, in percent.
const deep = 125

// fill makes of the jobs a queue that never runs dry: two jobs for each slice, and then as many as the host's gaps could take, and a
// quarter more.
func fill(protos []scenario.Job, host hostwork.Log, until quantity.Instant) (out []scenario.Job) {
	add := func(at quantity.Instant) time.Duration {
		j := protos[len(out)%len(protos)]
		j.Name = fmt.Sprintf("%s-%06d", j.Name, len(out))
		j.Job.Number, j.Job.Submit = int64(len(out)), at
		j.Job.Memory.Seed = uint64(len(out))
		out = append(out, j)
		return j.Job.Work
	}
	for range 2 * len(host) {
		add(0)
	}
	const step = quantity.Instant(10 * time.Minute)
	free := make([]time.Duration, until/step+1)
	for _, g := range host.Gaps(0, until) {
		for at := g.From; at < g.To; {
			next := min(g.To, (at/step+1)*step)
			free[at/step] += next.Sub(at)
			at = next
		}
	}
	var supply, work time.Duration
	for i, x := range free {
		for supply += x; work < supply/100*deep && len(out) < scenario.MaxJobs; {
			work += add(quantity.Instant(i) * step)
		}
	}
	return out
}
