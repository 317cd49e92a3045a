package forecast

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// run is one simulation with all that it takes: a mechanism under a backlog on some devices of the log over a stretch of it. It needs
// nothing of the rest of the log, so it can be played in another process; its exported fields are what goes there.
type run struct {
	// From and To bound the stretch, whole days.
	From, To quantity.Instant
	Devices  []played
	// Doc, Lines and Saves are of the backlog.
	Doc, Lines string
	Saves      time.Duration
	Mechanism  string
	// Notice, Foretold and Starts are those of the setting.
	Notice   time.Duration
	Foretold bool
	Starts   int
}

// played is a device of a run.
type played struct {
	Partition string
	Weight    int64
	// Memory is what the run takes the device to have: where the log does not say, as much as any job of a backlog needs.
	Memory quantity.Amount
	// Busy is what holds it in the stretch and around it, four numbers a span: From, To, Asked and Why.
	Busy []int64
}

// book is what came of a run, and the free time that it had. Its fields are what comes back from another process.
type book struct {
	// ByHour of the stretch and ByDevice of the run is useful time, GapByHour and GapByDevice what was free.
	ByHour, GapByHour     []time.Duration
	ByDevice, GapByDevice []time.Duration
	Useful                time.Duration
	// Lost and Overhead are over all.
	Lost, Overhead time.Duration
	// Waited is how long the host's starts waited for their devices, Longest the longest of them, Met how many did, of Starts.
	Waited, Longest time.Duration
	Met, Starts     int64
}

// Play plays a run that a forecast has given to Options.Elsewhere, and returns what is to be answered there.
func Play(ctx context.Context, table play.Table, text []byte) ([]byte, error) {
	r := new(run)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	b, err := r.play(ctx, table)
	if err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

// play plays a task, here or elsewhere.
func (p *plan) play(ctx context.Context, worker int, t *task) (*book, error) {
	r := p.prepared(t)
	if p.Elsewhere == nil {
		return r.play(ctx, p.Table)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if text, err = p.Elsewhere(ctx, worker, text); err != nil {
		return nil, err
	}
	b := new(book)
	return b, json.Unmarshal(text, b)
}

// prepared is a task with its part of the log.
func (p *plan) prepared(t *task) *run {
	backlog, from := &p.Backlogs[t.backlog], p.log.begins(&t.stretch)
	r := &run{From: from, To: from.Add(time.Duration(t.stretch.days) * Day), Doc: backlog.Doc, Lines: backlog.Lines, Saves: backlog.Saves,
		Mechanism: t.mechanism, Notice: t.setting.notice, Foretold: t.setting.foretold, Starts: t.setting.starts}
	for _, n := range t.stretch.devices {
		d := &p.log.Devices[n]
		x := played{Partition: d.Partition, Weight: cmp.Or(d.Weight, wholeGPU), Memory: cmp.Or(d.Memory, p.ample)}
		for _, s := range d.during(r.From-lead, r.To+tail) {
			x.Busy = append(x.Busy, int64(s.From), int64(s.To), int64(s.Asked), int64(s.Why))
		}
		r.Devices = append(r.Devices, x)
	}
	return r
}

// log is that of the devices of a run, and devices are all that it has.
func (r *run) log() (l *Log, devices []int) {
	l = &Log{From: r.From, To: r.To}
	for i, x := range r.Devices {
		d := Device{Partition: x.Partition, Weight: x.Weight, Memory: x.Memory}
		for s := x.Busy; len(s) >= 4; s = s[4:] {
			d.Busy = append(d.Busy, Span{quantity.Instant(s[0]), quantity.Instant(s[1]), quantity.Instant(s[2]), Why(s[3])})
		}
		l.Devices, devices = append(l.Devices, d), append(devices, i)
	}
	return l, devices
}

// play plays it.
func (r *run) play(ctx context.Context, table play.Table) (*book, error) {
	until := lead + quantity.Instant(r.To.Sub(r.From))
	log, devices := r.log()
	host := log.host(devices, r.From-lead, until+tail, r.Notice, r.Foretold)
	weights := make([]int64, 0, len(r.Devices))
	for _, d := range r.Devices {
		weights = append(weights, d.Weight)
	}
	l := newLedger(host, weights, r.Notice, lead, until)
	l.free()
	if r.Mechanism == "nothing" {
		return &l.book, nil
	}
	s, err := r.scenario(until)
	if err != nil {
		return nil, err
	}
	s.Host.Log = host
	backlog := Backlog{Lines: r.Lines, Saves: r.Saves}
	protos, err := backlog.protos()
	if err != nil {
		return nil, err
	}
	for i := range protos {
		j, times := &protos[i].Job, time.Duration(r.Starts)
		j.Startup, j.Restore, j.Checkpoint = j.Startup*times, j.Restore*times, j.Checkpoint*times
	}
	if s.Workload.Jobs, err = fill(protos, host, until+tail); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "%s: %w", r.Doc, err)
	}
	m, err := table.Find(s, []string{r.Mechanism})
	if err != nil {
		return nil, err
	}
	results, err := play.Run(ctx, play.Options{Scenario: s, Mechanisms: m, Workers: 1,
		Observe: func(string, uint64) measure.Observer { return l }})
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, x := range results {
		if len(x.Broken) > 0 {
			return nil, fmt.Errorf("the simulation of %s broke its rules, please report it: %s", r.Mechanism, x.Broken[0])
		}
	}
	return &l.book, nil
}

// scenario is the world of a run without its log and its jobs.
func (r *run) scenario(until quantity.Instant) (*scenario.Scenario, error) {
	var nodes []string
	for list := r.Devices; len(list) > 0; {
		memory, n := list[0].Memory, 1
		for n < min(8, len(list)) && list[n].Memory == memory {
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
`, strings.Join(nodes, ", "), r.Notice, time.Duration(lead), time.Duration(until), time.Duration(until+tail+tail))
	return scenario.Parse("forecast", []byte(text))
}
