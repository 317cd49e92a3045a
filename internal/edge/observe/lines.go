package observe

import (
	"context"
	"log/slog"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// lines writes what happens as log lines: what a person acts on or wants to find again at Info, every piece at Debug.
type lines struct{ log *slog.Logger }

func (l lines) fact(f *protocol.Fact) {
	switch f.Kind {
	case protocol.JobAccepted:
		l.log.Info("job accepted", "job", f.Job, "request", f.Request)
	case protocol.JobRequeued:
		l.log.Info("job requeued", "job", f.Job, "generation", f.Generation, "request", f.Request)
	case protocol.JobForgotten:
		l.log.Info("job forgotten", "job", f.Job, "generation", f.Generation)
	case protocol.JobDropping:
		l.log.Info("job is being cancelled", "job", f.Job, "reason", f.Text)
	case protocol.JobHeld:
		l.log.Info("job held", "job", f.Job, "held", f.Flag)
	case protocol.Ended:
		l.log.Info("job over", "job", f.Job, "state", f.Verdict.State.String(), "reason", f.Verdict.Reason)
	case protocol.QueueSet:
		if f.Queue != nil {
			l.log.Info("queue set", "queue", f.Queue.Name, "weight", f.Queue.Weight, "cap", f.Queue.Cap)
		}
	case protocol.Claimed:
		l.log.Debug("claimed", "job", f.Job, "subjob", f.Token.String(), "slice", f.Slice, "range", f.Range.String())
	case protocol.SubjobStarted:
		l.log.Debug("subjob started", "subjob", f.Token.String())
	case protocol.SubjobEnded:
		l.ended(f)
	case protocol.Committed:
		l.log.Debug("committed", "job", f.Job, "subjob", f.Token.String(), "range", f.Range.String(), "skipped", f.Skipped)
	case protocol.Released:
		l.log.Debug("released", "job", f.Job, "subjob", f.Token.String(), "reason", f.Text)
	case protocol.Truncated:
		l.log.Info("lease cut short", "subjob", f.Token.String(), "end", f.End.Time(), "reason", f.Text)
	case protocol.ReservationMade:
		if r := f.Reservation; r != nil {
			l.log.Info("reserved", "id", r.ID, "kind", r.Kind.String(), "slice", r.Slice, "start", r.Start.Time(), "end", r.End.Time(),
				"source", r.Source)
		}
	case protocol.Quarantined:
		l.log.Warn("slice quarantined", "slice", f.Slice, "reason", f.Text)
	case protocol.QuarantineLifted:
		l.log.Info("quarantine lifted", "slice", f.Slice)
	case protocol.SliceFailed:
		l.log.Warn("slice quarantined: its GPU failed", "slice", f.Slice, "reason", f.Fault.Text)
	case protocol.SliceMended:
		l.log.Info("quarantine of a failed GPU lifted", "slice", f.Slice, "reason", f.Text)
	case protocol.Booted:
		l.log.Info("node booted", "epoch", f.Epoch)
	}
}

// ended is quiet about subjobs that ended as planned.
func (l lines) ended(f *protocol.Fact) {
	if f.Result == nil {
		return
	}
	level := slog.LevelInfo
	if o := f.Result.Outcome; o == job.Done || o == job.Yielded || o == job.Stopped {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "subjob ended", "subjob", f.Token.String(), "outcome", f.Result.Outcome.String(), "exit",
		f.Result.ExitCode,
		"progress", f.Result.Progress, "detail", f.Result.Detail)
}

func (l lines) inventory(stock *protocol.Stock) {
	alive := 0
	for _, f := range stock.Found {
		if f.Alive {
			alive++
		}
	}
	l.log.Info("inventory", "slices", len(stock.Slices), "found", len(stock.Found), "alive", alive)
}

func (l lines) vitals(v *protocol.Vitals) {
	for _, x := range v.Errors {
		l.log.Info("a GPU's driver has told of an error", "error", health.Describe(x.Code), "slices", v.Slices, "on", x.On)
	}
}
