package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/lab/history/slurm"
	"sluice.dev/sluice/test/slurm/cluster"
)

const (
	// stepTime is what one step of the fillers' work takes, saveEvery how many of them are between two checkpoints.
	stepTime  = time.Second
	saveEvery = 10
	// gapCost is what of each gap counts as lost before it begins, as in docs/kubernetes.md: nobody is there sooner.
	gapCost = time.Second
	// killWait is how long Slurm leaves a job between TERM and KILL, also where there is no grace (KillWait).
	killWait = 30 * time.Second
	// longWait is from when on a delay of a host's job is told by itself.
	longWait = 10 * time.Second
	// replayLengths are those of pilots of a replay.
	replayLengths = "[1m, 2h]"
	// training's: how many steps there are, more than are done; what a process takes before its first, its memory, and its grace.
	trainingSteps  = 1_000_000
	trainingStart  = 200 * time.Millisecond
	trainingMemory = "16Mi"
	trainingGrace  = 2 * time.Second
)

// way is one way to play the stretch.
type way struct {
	name string
	// fills: pilots fill what is left. grace is how long they have when a host's job wants their place.
	fills bool
	grace time.Duration

	slurm *cluster.Cluster
	head  *world
	dir   string
	// begin is when the stretch began.
	begin time.Time
	// starts are what pilots' starts took, by name, of those that were seen.
	starts map[string]time.Duration
}

// replay plays a stretch of a trace at Slurms of their own at once: without fillers, with pilots that have a grace, with pilots that have
// none.
func replay(ctx context.Context, s *settings) (rows []row, err error) {
	jobs, err := hostJobs(s.data, s.stretch)
	if err != nil {
		return nil, err
	}
	ways := []*way{{name: "nobody"}, {name: "30 s", fills: true, grace: 30 * time.Second}, {name: "none", fills: true}}
	for _, w := range ways {
		w.starts = map[string]time.Duration{}
	}
	defer func() {
		for _, w := range ways {
			err = errors.Join(err, w.end(context.WithoutCancel(ctx)))
		}
	}()
	for i, w := range ways {
		if err = w.start(ctx, s, i); err != nil {
			return nil, err
		}
	}
	errs := make([]error, len(ways))
	var all sync.WaitGroup
	for i, w := range ways {
		all.Go(func() { errs[i] = w.play(ctx, s, jobs) })
	}
	all.Wait()
	if err = errors.Join(errs...); err != nil {
		return nil, err
	}
	alone, err := ways[0].runs(jobs)
	if err != nil {
		return nil, err
	}
	length := time.Duration(float64(s.stretch.length) / s.stretch.speed)
	gaps := leftover(alone, s.stretch.nodes, length)
	usable := time.Duration(0)
	for _, g := range gaps {
		usable += max(0, g.to-g.from-gapCost)
	}
	rows = append(rows, row{fmt.Sprintf("replay of %v of hpc2n.swf on %d nodes, %g times as fast: hosts' jobs, gaps, "+
		"share that these leave", s.stretch.length, s.stretch.nodes, s.stretch.speed), "", fmt.Sprintf("%d, %d, %.2f", len(jobs), len(gaps),
		usable.Seconds()/(length.Seconds()*float64(s.stretch.nodes)))})
	for _, w := range ways[1:] {
		more, err := w.measured(ctx, jobs, alone, usable)
		if err != nil {
			return nil, err
		}
		simulated, err := twin(ctx, s, w, gaps, usable, length)
		if err != nil {
			return nil, err
		}
		rows = append(append(rows, more...), row{
			w.title() + "`leftoverUseful` of the same gaps in the simulator, where a pilot starts in as long as they did", "within .05",
			fmt.Sprintf("%.3f, with a start of %v", simulated.Mean, w.meanStart())})
	}
	return rows, nil
}

// start starts a Slurm, and a head whose pool may have all of its nodes.
func (w *way) start(ctx context.Context, s *settings, number int) (err error) {
	w.dir = filepath.Join(s.temp, fmt.Sprintf("way-%d", number))
	for _, d := range []string{w.dir, w.dir + "/runs", w.dir + "/steps"} {
		if err = os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	partitions := []string{"PartitionName=normal Nodes=ALL Default=YES MaxTime=UNLIMITED PriorityTier=10 PreemptMode=OFF State=UP",
		fmt.Sprintf("PartitionName=all Nodes=ALL MaxTime=UNLIMITED PriorityTier=1 PreemptMode=CANCEL GraceTime=%d State=UP",
			int(w.grace/time.Second))}
	w.slurm, err = cluster.Start(ctx, cluster.Config{Dir: w.dir + "/slurm", Nodes: s.stretch.nodes, CPUs: 1, Preempt: true,
		Partitions: partitions})
	if err != nil || !w.fills {
		return err
	}
	w.head, err = newWorld(s, w.slurm, lending{most: s.stretch.nodes, slices: 1, cpus: 1, lengths: replayLengths})
	if err != nil {
		return err
	}
	for i := range 2 * s.stretch.nodes { // more than can run at once
		if err = w.head.Send(ctx, training(i, w.dir+"/steps")); err != nil {
			return err
		}
	}
	return nil
}

// training is a job of steps that saves each saveEvery of them, and at any when it is told to end. Each step that it has done it also
// writes to a file that nobody else knows.
func training(number int, steps string) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: train-%d}
spec:
  steps: {total: %d, perStep: %v, every: 1}
  startup: %v
  memory: %s
  grace: %v
  command:
  - sh
  - -c
  - |
    trap 'told=1' TERM
    i=$SLUICE_FROM
    save() {
      echo $i >"$SLUICE_CHECKPOINT_DIR/state"
      echo "{\"progress\": $i, \"checkpoint\": true}" >"$SLUICE_PROGRESS_FILE.new"
      mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
    }
    while [ $i -lt $SLUICE_TO ]; do
      sleep %g
      if [ -n "$told" ]; then
        save
        exit 85
      fi
      i=$((i + 1))
      echo $i >>%s/train-%d
      if [ $((i %% %d)) = 0 ] || [ $i = $SLUICE_TO ]; then save; fi
    done
`, number, trainingSteps, stepTime, trainingStart, trainingMemory, trainingGrace, stepTime.Seconds(), steps, number, saveEvery)
}

// play submits the hosts' jobs when their users did, and waits until the stretch is over.
func (w *way) play(ctx context.Context, s *settings, jobs []hostJob) error {
	w.begin = time.Now()
	end := w.begin.Add(time.Duration(float64(s.stretch.length) / s.stretch.speed))
	for i, j := range jobs {
		if err := until(ctx, w.begin.Add(j.at)); err != nil {
			return err
		}
		script := filepath.Join(w.dir, "runs", strconv.Itoa(i))
		text := fmt.Sprintf("#!/bin/sh\necho \"$(date +%%s.%%N) $SLURM_JOB_NODELIST\" >%s.on\nsleep %g\ndate +%%s.%%N >%s.off\n", script,
			j.run.Seconds(), script)
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			return err
		}
		_, err := w.slurm.Run(ctx, "sbatch", "-p", "normal", "-N", strconv.Itoa(j.nodes), "--ntasks-per-node=1", "--mem=100",
			"-t", strconv.Itoa(max(1, int(math.Ceil(j.limit.Minutes())))), "-o", "/dev/null", "--no-requeue", script)
		if err != nil {
			return err
		}
		if err = w.look(ctx); err != nil {
			return err
		}
	}
	if err := until(ctx, end); err != nil || !w.fills {
		return err
	}
	if _, err := w.head.providers.PauseProvider(ctx, connect.NewRequest(&pb.PauseProviderRequest{Name: pool})); err != nil {
		return err
	}
	if _, err := w.slurm.Run(ctx, "scancel", "-p", "all"); err != nil {
		return err
	}
	return w.head.gone(ctx) // what ran is committed by then
}

// look notes what the starts of the pilots took that are there.
func (w *way) look(ctx context.Context) error {
	if !w.fills {
		return nil
	}
	r, err := w.head.providers.ListProviders(ctx, connect.NewRequest(&pb.ListProvidersRequest{}))
	if err != nil {
		return err
	}
	for _, p := range r.Msg.Providers {
		for _, x := range p.Pilots {
			if x.Started != nil && x.Joined != nil {
				w.starts[x.Name] = max(0, x.Joined.AsTime().Sub(x.Started.AsTime()))
			}
		}
	}
	return nil
}

// meanStart is what a pilot's start took.
func (w *way) meanStart() time.Duration {
	sum := time.Duration(0)
	for _, d := range w.starts {
		sum += d
	}
	return (sum / time.Duration(max(1, len(w.starts)))).Round(100 * time.Millisecond)
}

func until(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}

// hostRun is when a host's job ran, since the start of the stretch, and where; off 0: it runs yet, on below 0: it has not begun.
type hostRun struct {
	on, off time.Duration
	nodes   []string
}

// runs are those of the hosts' jobs.
func (w *way) runs(jobs []hostJob) (all []hostRun, err error) {
	for i := range jobs {
		path := filepath.Join(w.dir, "runs", strconv.Itoa(i))
		r := hostRun{on: -1}
		text, failed := os.ReadFile(path + ".on")
		if failed == nil {
			at, where, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
			if r.on, err = w.since(at); err != nil {
				return nil, err
			}
			var ok bool
			if r.nodes, ok = slurm.Hosts([]byte(where)); !ok {
				return nil, fmt.Errorf("%s.on: %q is no list of nodes", path, where)
			}
		}
		if text, failed = os.ReadFile(path + ".off"); failed == nil {
			if r.off, err = w.since(strings.TrimSpace(string(text))); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

func (w *way) since(at string) (time.Duration, error) {
	s, err := strconv.ParseFloat(at, 64)
	return time.Duration((s - float64(w.begin.UnixNano())/1e9) * 1e9), err
}

// span is time of a node that no host's job has, [from, to) since the stretch began.
type span struct{ from, to time.Duration }

// leftover are the gaps between the hosts' jobs on all nodes.
func leftover(runs []hostRun, nodes int, length time.Duration) (gaps []span) {
	for i := range nodes {
		var held []hostRun
		for _, r := range runs {
			if r.on >= 0 && slices.Contains(r.nodes, cluster.Node(i)) {
				held = append(held, r)
			}
		}
		slices.SortFunc(held, func(a, b hostRun) int { return int(a.on - b.on) })
		at := time.Duration(0)
		for _, r := range append(held, hostRun{on: length, off: length}) {
			if to := min(r.on, length); to > at {
				gaps = append(gaps, span{at, to})
			}
			if r.off == 0 {
				r.off = length
			}
			at = max(at, r.off)
		}
	}
	return gaps
}

// measured are the lines of a way with fillers.
func (w *way) measured(ctx context.Context, jobs []hostJob, alone []hostRun, usable time.Duration) (rows []row, err error) {
	runs, err := w.runs(jobs)
	if err != nil {
		return nil, err
	}
	kept, err := w.head.committed(ctx)
	if err != nil {
		return nil, err
	}
	var done int64
	files, err := filepath.Glob(w.dir + "/steps/*")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		n, err := lines(f)
		if err != nil {
			return nil, err
		}
		done += n
	}
	var later []float64
	missing := 0
	for i := range runs {
		switch {
		case alone[i].on < 0:
		case runs[i].on < 0:
			missing++
		default:
			wait := runs[i].on - alone[i].on
			if later = append(later, wait.Seconds()); wait > longWait {
				fmt.Fprintf(os.Stderr, "%sa job of %d nodes that came at %v began %v later, behind %v without fillers\n",
					w.title(), jobs[i].nodes, jobs[i].at.Round(time.Second), wait.Round(time.Second),
					(alone[i].on - jobs[i].at).Round(time.Second))
			}
		}
	}
	slices.Sort(later)
	at := func(q float64) float64 { return later[min(len(later)-1, int(q*float64(len(later))))] }
	lost := max(0, done-kept)
	bound := "1%"
	if w.grace == 0 {
		bound = fmt.Sprintf("%d each time", saveEvery)
	}
	return []row{
		{w.title() + "share of the leftover that is committed work (`leftoverUseful`)", ".85", fmt.Sprintf("%.3f",
			time.Duration(kept*int64(stepTime)).Seconds()/usable.Seconds())},
		{w.title() + "hosts' jobs start later than without fillers, seconds, p50 and p99", "0, the grace",
			fmt.Sprintf("%.1f, %.1f; %d not at all", at(.5), at(.99), missing)},
		{w.title() + "steps that were done and are not kept", bound,
			fmt.Sprintf("%d of %d, %.2f%%", lost, done, 100*float64(lost)/float64(max(1, done)))},
	}, nil
}

// title is how lines of a way begin.
func (w *way) title() string { return "the same, grace " + w.name + ": " }

func lines(path string) (int64, error) {
	text, err := os.ReadFile(path)
	return int64(bytes.Count(text, []byte("\n"))), err
}

// end ends a way, as far as it was started.
func (w *way) end(ctx context.Context) (err error) {
	if w.slurm != nil {
		_, err = w.slurm.Run(ctx, "scancel", "-p", "normal")
	}
	if w.head != nil {
		err = errors.Join(err, w.head.end(ctx, w.slurm))
	}
	if w.slurm != nil {
		err = errors.Join(err, w.slurm.Stop())
	}
	return err
}
