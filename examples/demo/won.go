package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
)

// auctioned is the job whose agent is a program of its own.
const auctioned = "frames"

// winners says which of the jobs won what, and what is believed of it. said is the last that the agent said.
func winners(ctx context.Context, d sluicev1alpha1connect.SluiceServiceClient, out io.Writer, said string, jobs []string) error {
	var won []winner
	for _, name := range jobs {
		j, err := d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name}))
		if err != nil {
			return err
		}
		won = append(won, winnerOf(j.Msg.Job))
	}
	queues, err := d.ListQueues(ctx, connect.NewRequest(&pb.ListQueuesRequest{}))
	if err != nil {
		return err
	}
	return award(out, won, queues.Msg.Queues, said)
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
			wrong = append(wrong, fmt.Errorf("job %s won %d windows with a bid and ran in %d: want each won, and at least one", w.job,
				w.bids, w.pieces))
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
