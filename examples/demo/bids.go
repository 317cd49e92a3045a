package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// auctioned is the job whose agent is a program of its own.
const auctioned = "frames"

// longest is how long one subjob may hold a slice here: the jobs meet often, and neither takes a slice for all of its work.
const longest = 3 * time.Second

// market is what the jobs of bids.yaml bid for.
func market() machine {
	return machine{gpus: "sim:custom,mem=64Mi+64Mi", slices: 2, flags: []string{"--mechanism", "jasda"}}
}

// bidding is what is checked.
func bidding() []example {
	return []example{{"agents/frames", auctioned, "240"}, {"items", "count-words", "400"}, {"growing", "growing", "80"}}
}

// auction lets three jobs bid for two slices, one of them through its owner's agent, and says who won what and what is
// believed of them.
func auction(ctx context.Context, view *view, told io.Writer, dir string) (right int, err error) {
	jobs, err := files.ReadFile("bids.yaml")
	if err != nil {
		return 0, err
	}
	if err = os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	most := slow.of(patience)
	ctx, done := context.WithTimeoutCause(ctx, most, fmt.Errorf("not over after %s", most))
	defer done()
	d, err := start(ctx, dir, market())
	if err != nil {
		return 0, err
	}
	defer d.stop()
	set := &pb.QueueSettings{Name: "default", Weight: 1, MaxWindow: durationpb.New(slow.of(longest))}
	if _, err = d.SetQueue(ctx, connect.NewRequest(&pb.SetQueueRequest{Queue: set})); err != nil {
		return 0, fmt.Errorf("set the queue: %w", err)
	}
	if err = d.sluice(ctx, "examples/demo", slow.stretch(string(jobs)), "submit", "-"); err != nil {
		return 0, err
	}
	agent, err := d.agent(ctx)
	if err != nil {
		return 0, err
	}
	defer agent.stop()
	if err = d.watch(ctx, view); err != nil {
		return 0, errors.Join(err, agent.trouble())
	}
	at := map[string]string{}
	for _, e := range bidding() {
		at[e.folder] = filepath.Join(dir, "data", "output", e.job)
	}
	right, err = check(ctx, bidding(), at, nil)
	return right, errors.Join(err, d.winners(ctx, told, agent))
}

// watch shows the jobs until all are over.
func (d *daemon) watch(ctx context.Context, view *view) error {
	began := time.Now()
	for {
		list, err := d.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{}))
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if err := failed(list.Msg.Jobs); err != nil {
			return err
		}
		over := !slices.ContainsFunc(list.Msg.Jobs, func(j *pb.Job) bool { return !j.Final })
		view.show(time.Since(began), list.Msg.Jobs, over)
		if over {
			return nil
		}
		if err := pause(ctx, 250*time.Millisecond); err != nil {
			return context.Cause(ctx)
		}
	}
}

// agent is the program that bids for a job. It ends with its job, or is ended.
type agent struct {
	cmd  *exec.Cmd
	over chan struct{} // closed when it is over
	// How it ended and all that it said; to be looked at once it is over.
	err  error
	said bytes.Buffer
}

// agent starts the one of the example.
func (d *daemon) agent(ctx context.Context) (*agent, error) {
	key, err := d.AgentKey(ctx, connect.NewRequest(&pb.AgentKeyRequest{Job: auctioned}))
	if err != nil {
		return nil, err
	}
	a := &agent{cmd: exec.Command("python3", "examples/agents/frames/agent.py", auctioned), over: make(chan struct{})}
	a.cmd.Env = append(os.Environ(), "SLUICE_SERVER="+d.addr, "SLUICE_AGENT_KEY="+key.Msg.Key, "PYTHONPATH=sdk/python", "PYTHONDONTWRITEBYTECODE=1")
	a.cmd.Stdout, a.cmd.Stderr = &a.said, &a.said
	a.cmd.SysProcAttr = ownGroup()
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	go func() {
		a.err = a.cmd.Wait()
		close(a.over)
	}()
	return a, nil
}

// stop ends the agent and waits for it.
func (a *agent) stop() {
	_ = a.cmd.Process.Kill() // it may be over by itself
	<-a.over
}

// trouble is why the agent ended, if it did.
func (a *agent) trouble() error {
	select {
	case <-a.over:
		return fmt.Errorf("the agent has ended: %w\n%s", a.err, a.said.String())
	default:
		return nil
	}
}

// winners says who won what, and what is believed of it.
func (d *daemon) winners(ctx context.Context, out io.Writer, a *agent) error {
	// The agent hears that its job is over, and leaves.
	select {
	case <-a.over:
		if a.err != nil {
			return fmt.Errorf("the agent failed: %w\n%s", a.err, a.said.String())
		}
	case <-time.After(slow.of(15 * time.Second)):
		return errors.New("the agent did not end with its job")
	}
	var won []winner
	for _, e := range bidding() {
		j, err := d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: e.job}))
		if err != nil {
			return err
		}
		won = append(won, winnerOf(j.Msg.Job))
	}
	queues, err := d.ListQueues(ctx, connect.NewRequest(&pb.ListQueuesRequest{}))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(a.said.String()), "\n")
	return award(out, won, queues.Msg.Queues, lines[len(lines)-1])
}

// winner is what a job has won.
type winner struct {
	job   string
	units string
	// pieces that ran, bids that won one, and those that committed nothing.
	pieces, bids, lost int
	held               time.Duration
	trust              *pb.Trust
}

func winnerOf(j *pb.Job) winner {
	w := winner{job: j.Name, units: fmt.Sprintf("%d %ss", j.Progress, j.Unit), lost: int(j.Lost), trust: j.Trust}
	for _, s := range j.History {
		w.pieces++
		if s.Start != nil && s.End != nil {
			w.held += s.End.AsTime().Sub(s.Start.AsTime())
		}
		if s.Bid != nil {
			w.bids++
		}
	}
	return w
}

// award draws the table, and returns what is not as it has to be.
func award(out io.Writer, won []winner, queues []*pb.Queue, said string) error {
	slices.SortStableFunc(won, func(a, b winner) int { return cmp.Compare(b.held, a.held) })
	var sum time.Duration
	for _, w := range won {
		sum += w.held
	}
	fmt.Fprintf(out, "\n  %-12s %-11s %7s  %-14s %s\n", "who won", "work", "windows", "slice time", "what it declares is believed to")
	var wrong []error
	for _, w := range won {
		by := ""
		if w.job == auctioned {
			by = "  <- its agent is a Python program"
		}
		fmt.Fprintf(out, "  %-12s %-11s %7d  %-6s %4.0f%%   %3.0f%% (error %.2f over %d subjobs)%s\n", w.job, w.units, w.bids,
			seconds(w.held), 100*float64(w.held)/float64(max(sum, 1)), 100*w.trust.GetBelieved(), w.trust.GetError(), w.trust.GetSeen(), by)
		if w.bids == 0 || w.bids < w.pieces {
			wrong = append(wrong, fmt.Errorf("job %s won %d windows with a bid and ran in %d: want each won, and at least one", w.job, w.bids, w.pieces))
		}
		if w.trust.GetSeen() == 0 {
			wrong = append(wrong, fmt.Errorf("nothing that job %s declared was held against what it did", w.job))
		}
	}
	for _, q := range queues {
		if t := q.Trust; t.GetSeen() > 0 {
			fmt.Fprintf(out, "  A new job of queue %s would be believed to %.0f%%.\n", q.Settings.GetName(), 100*t.Believed)
		}
	}
	fmt.Fprintf(out, "  The file of %s declares 5 ms a unit; its agent has learned better, the last it said: %s\n", auctioned, said)
	return errors.Join(wrong...)
}
