package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
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

// StatedMemory is what a job of the stated backlogs needs where every device has room for it, in bytes.
const StatedMemory = 8 << 30

// Stated are the backlogs of who has given none. Their jobs need so much memory each.
func Stated(memory quantity.Amount) []Backlog {
	list := []Backlog{
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
	for i := range list {
		list[i].Lines = strings.ReplaceAll(list[i].Lines, "memory: 8Gi", "memory: "+quantity.ExactBytes(memory))
	}
	return list
}

// statedMemory is what the jobs need that are stated: 8 GiB, or what the smallest device has room for.
func (l *Log) statedMemory() quantity.Amount {
	least := quantity.Amount(StatedMemory)
	for i := range l.Devices {
		if has := l.Devices[i].Memory; has > 0 {
			least = min(least, has*3/4>>20<<20)
		}
	}
	return max(least, 1<<20)
}

// fits finds how much the jobs need and how much of the log they are played on, and the error of those that fit on no device.
func (p *plan) fits() error {
	p.ample, p.size = 80<<30, size{stretchDays, cmp.Or(p.Devices, mostDevices)}
	var most quantity.Amount
	for i := range p.log.Devices {
		has := p.log.Devices[i].Memory
		if has == 0 {
			has = math.MaxInt64
		}
		most = max(most, has)
	}
	var errs []error
	for i := range p.Backlogs {
		protos, err := p.Backlogs[i].protos()
		if err != nil {
			return err
		}
		var work time.Duration
		for _, x := range protos {
			work += x.Job.Work
			table, err := trp.Compile(x.Job.Profile, x.Job.Units, x.Job.Theta)
			if err != nil {
				return err
			}
			var needs quantity.Amount
			for _, row := range table.Least {
				needs = max(needs, row[0])
			}
			if p.ample = max(p.ample, needs); needs > most {
				errs = append(errs, fmt.Errorf("job %s needs %s, and no device has more than %s: it would never run", x.Name,
					quantity.FormatBytes(needs), quantity.FormatBytes(most)))
			}
		}
		if s := fitting(p.size.devices, work/time.Duration(len(protos)), manyJobs); s.days < p.size.days || s.devices < p.size.devices {
			p.size = s
		}
	}
	if len(errs) > 0 {
		return errkind.Errorf(errkind.Invalid, "%w", errors.Join(errs...))
	}
	return nil
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

// A list of jobs stands in a scenario behind these lines, each of its lines behind these spaces.
const (
	between = "\n    "
	around  = "scenario: backlog\ncluster: {nodes: [{gpus: \"sim:custom=1,mem=80Gi\"}]}\nworkload:\n  jobs:" + between
)

// placed is a line and column of that scenario in an error.
var placed = regexp.MustCompile(`\bjobs:\d+:\d+`)

// here is such a place as one of the list itself.
func here(place string) string {
	var line, column int
	if _, err := fmt.Sscanf(place, "jobs:%d:%d", &line, &column); err != nil {
		return place
	}
	return fmt.Sprintf("line %d, column %d", line-strings.Count(around, "\n"), max(1, column-len(between)+1))
}

// protos are its jobs, each once.
func (b *Backlog) protos() ([]scenario.Job, error) {
	s, err := scenario.Parse("jobs", []byte(around+strings.ReplaceAll(strings.TrimRight(b.Lines, "\n"), "\n", between)+"\n"))
	if err != nil {
		return nil, errkind.Errorf(errkind.Of(err), "%s", placed.ReplaceAllStringFunc(err.Error(), here))
	}
	if len(s.Workload.Jobs) == 0 {
		return nil, errors.New("it holds no job; want a list such as [{name: scan, items: {total: 1000, perItem: 10s}, memory: 8Gi}]")
	}
	for i := range s.Workload.Jobs {
		j := &s.Workload.Jobs[i]
		if j.Job.Kind == job.Rigid {
			return nil, fmt.Errorf("job %s: a rigid job can't be cut and fills no gaps; write items: {total: 1, perItem: %s} for a "+
				"program that runs as a whole", j.Name, j.Job.Declared)
		}
		if j.Job.Declared == 0 {
			return nil, fmt.Errorf("job %s: it gives no time of a unit, and all ways to fill gaps plan with that; write perItem or perStep",
				j.Name)
		}
		if b.Saves > 0 && j.Job.Kind == job.Steps {
			j.Job.Process.Saves = max(1, j.Job.Units*int64(b.Saves)/int64(j.Job.Work))
		}
		j.Job.Parallelism = 1
	}
	return s.Workload.Jobs, nil
}

// fill makes of the jobs a queue that never runs dry: two jobs for each slice, and then as many as the host's gaps could take, and a
// quarter more. The error says that the jobs are too short for that.
func fill(protos []scenario.Job, host hostwork.Log, until quantity.Instant) (out []scenario.Job, err error) {
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
		for supply += x; work < supply/100*deep; {
			if len(out) >= mostJobs {
				return nil, fmt.Errorf("its jobs are so short that more than %d of them would be needed to fill the gaps: put many into "+
					"one, such as items: {total: 1000, perItem: ...}", mostJobs)
			}
			work += add(quantity.Instant(i) * step)
		}
	}
	return out, nil
}
