package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/bidder"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// outcome of one game.
type outcome struct {
	// cost of each owner in seconds: the mean time from the submission of a task to its end, by the work of the task. NaN of an
	// owner without tasks.
	cost [owners]float64
	// done is the work in seconds that each owner had done when the arrivals ended, and offered what it had submitted.
	done, offered [owners]float64
	rounds        int64
}

// play plays one game: every owner's jobs bid by the owner's move.
func play(ctx context.Context, m auction.Config, seed uint64, moves []move) (*outcome, error) {
	tasks, jobs, of := offer(seed, moves)
	horizon := time.Hour
	g, err1 := gate.New(gate.Config{Zones: gate.Alone("zone"), Horizon: horizon, Retain: time.Second, External: true})
	z, err2 := zone.New(zone.Config{ID: "zone", Policy: fifo.Policy{}, Horizon: horizon, Market: &m})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	watch := &watcher{tasks: tasks, of: of, left: make([]int, len(tasks)), ended: make([]quantity.Instant, len(tasks)),
		at: map[measure.Slot]int{}}
	for _, t := range of {
		watch.left[t]++
	}
	specs := workload.Specs{Agents: true, Grace: 2 * time.Second, TauMin: 20 * time.Second}
	agents := map[string]bidder.Strategy{}
	world, err := sim.New(sim.Options{
		Gates: actor.OneGate(g), Zones: []actor.ZoneAt{{ID: "zone", Zone: z}}, Seed: seed, Observer: watch,
		Nodes: []sim.Node{{ID: "n", Actor: node.New(node.Config{ID: "n", Zone: "zone", Horizon: horizon,
			GrantTTL: 200 * time.Millisecond}), Slices: cluster()}},
		Source: &list{jobs: jobs},
		Spec:   func(j *workload.Job) (*job.Spec, error) { return specs.Spec(j, j.Name()) },
		Agent: func(_ *workload.Job, s *job.Spec) sim.Agent {
			owner, _ := strconv.Atoi(strings.TrimPrefix(s.Queue, "q"))
			plays := &moves[owner]
			if agents[plays.name] == nil {
				agents[plays.name] = plays.strategy()
			}
			return bidder.New(s, agents[plays.name], time.Millisecond)
		},
	})
	if err != nil {
		return nil, err
	}
	for o := range owners {
		q := protocol.Queue{Name: fmt.Sprint("q", o), Weight: 1}
		world.At(0, protocol.Message{
			Kind: protocol.SetQueue, From: protocol.Address{Role: protocol.Person, ID: "study"}, To: protocol.Address{Role: protocol.Gate},
			Body: &protocol.QueueSetting{Request: "queue " + q.Name, Queue: &q},
		})
	}
	if _, err := world.RunOut(ctx, begins.Add(limit)); err != nil {
		return nil, err
	}
	n := world.Negotiation()
	return watch.outcome(n.Rounds), nil
}

// watcher is an Observer that notes when tasks end and what work is done by the end of arrivals.
type watcher struct {
	tasks []task
	of    []int                // task of each job
	at    map[measure.Slot]int // task of the job in each slot
	left  []int                // jobs of each task that have not ended
	ended []quantity.Instant
	done  [owners]float64
}

// Arrived implements measure.Observer.
func (w *watcher) Arrived(_ quantity.Instant, s measure.Slot, j *workload.Job) {
	w.at[s] = w.of[j.Number]
}

// Began implements measure.Observer.
func (w *watcher) Began(quantity.Instant, measure.Slot, uint8, int32) {}

// Ended implements measure.Observer.
func (w *watcher) Ended(at quantity.Instant, p *measure.Piece) {
	if at <= begins.Add(arrivals) {
		w.done[w.tasks[w.at[p.Slot]].owner] += p.Work.Seconds()
	}
}

// Done implements measure.Observer. A task of which a job failed never ends.
func (w *watcher) Done(at quantity.Instant, s measure.Slot, state job.State) {
	t := w.at[s]
	if state != job.Finished {
		return
	}
	if w.left[t]--; w.left[t] == 0 {
		w.ended[t] = at
	}
}

// Sent implements measure.Observer.
func (w *watcher) Sent(int) {}

func (w *watcher) outcome(rounds int64) *outcome {
	out := &outcome{rounds: rounds, done: w.done}
	var sum [owners]float64
	for i, t := range w.tasks {
		end := w.ended[i]
		if end == 0 {
			end = begins.Add(limit)
		}
		work := t.work.Seconds()
		sum[t.owner] += work * end.Sub(t.begin).Seconds()
		out.offered[t.owner] += work
	}
	for o := range sum {
		out.cost[o] = sum[o] / out.offered[o]
	}
	return out
}
