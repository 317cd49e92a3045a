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
		l.log.Info("job accepted", "job", f.Job, "request", f.Body.(*protocol.Acceptance).Request)
	case protocol.JobRequeued:
		l.log.Info("job requeued", "job", f.Job, "generation", f.Generation, "request", f.Body.(*protocol.Sequel).Request)
	case protocol.JobForgotten:
		l.log.Info("job forgotten", "job", f.Job, "generation", f.Generation)
	case protocol.JobCancelling:
		l.log.Info("job is being cancelled", "job", f.Job, "reason", f.Body.(*protocol.JobCancel).Text)
	case protocol.JobPaused:
		l.log.Info("job held", "job", f.Job, "held", f.Body.(*protocol.JobPause).Paused)
	case protocol.Ended:
		v := f.Body.(*protocol.Final).Verdict
		l.log.Info("job over", "job", f.Job, "state", v.State.String(), "reason", v.Reason)
	case protocol.QueueSet:
		q := f.Body.(*protocol.Queue)
		l.log.Info("queue set", "queue", q.Name, "weight", q.Weight, "cap", q.Cap)
	case protocol.Claimed:
		s := f.Body.(*protocol.Sale)
		l.log.Debug("claimed", "job", f.Job, "subjob", f.Token.String(), "slice", s.Slice, "range", s.Range.String())
	case protocol.SubjobStarted:
		l.log.Debug("subjob started", "subjob", f.Token.String())
	case protocol.SubjobEnded:
		l.ended(f)
	case protocol.Committed:
		end := f.Body.(*protocol.ClaimEnd)
		l.log.Debug("committed", "job", f.Job, "subjob", f.Token.String(), "range", end.Range.String(), "skipped", end.Skipped)
	case protocol.Released:
		l.log.Debug("released", "job", f.Job, "subjob", f.Token.String(), "reason", f.Body.(*protocol.ClaimEnd).Text)
	case protocol.Truncated:
		c := f.Body.(*protocol.Truncation)
		l.log.Info("lease cut short", "subjob", f.Token.String(), "end", c.End.Time(), "reason", c.Text)
	case protocol.ReservationMade:
		r := f.Body.(*protocol.Reservation)
		l.log.Info("reserved", "id", r.ID, "kind", r.Kind.String(), "slice", r.Slice, "start", r.Start.Time(), "end", r.End.Time(),
			"source", r.Source)
	case protocol.Quarantined:
		l.log.Warn("slice quarantined", "slice", f.Slice, "reason", f.Body.(*protocol.Reason).Text)
	case protocol.QuarantineLifted:
		l.log.Info("quarantine lifted", "slice", f.Slice)
	case protocol.SliceFailed:
		l.log.Warn("slice quarantined: its GPU failed", "slice", f.Slice, "reason", f.Body.(*health.Fault).Text)
	case protocol.SliceMended:
		l.log.Info("quarantine of a failed GPU lifted", "slice", f.Slice, "reason", f.Body.(*protocol.Reason).Text)
	case protocol.Booted:
		l.log.Info("node booted", "epoch", f.Epoch)
	}
}

// ended is quiet about subjobs that ended as planned.
func (l lines) ended(f *protocol.Fact) {
	r := f.Body.(*protocol.SubjobEnd).Result
	if r == nil {
		return
	}
	level := slog.LevelInfo
	if o := r.Outcome; o == job.Done || o == job.Yielded || o == job.Stopped {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "subjob ended", "subjob", f.Token.String(), "outcome", r.Outcome.String(), "exit", r.ExitCode,
		"progress", r.Progress, "detail", r.Detail)
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
