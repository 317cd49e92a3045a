package wire

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

func tokenFields(c *coder.Coder, t *job.Token) {
	coder.Unsigned(c, 1, &t.Epoch)
	coder.Unsigned(c, 2, &t.Seq)
}

func rangeFields(c *coder.Coder, r *job.Range) {
	coder.Signed(c, 1, &r.From)
	coder.Signed(c, 2, &r.To)
}

func verdictFields(c *coder.Coder, v *job.Verdict) {
	coder.Enum(c, 1, &v.State, job.Impossible)
	coder.Text(c, 2, &v.Reason)
}

func resultFields(c *coder.Coder, r *job.Result) {
	coder.Enum(c, 1, &r.Outcome, job.NodeFailed)
	coder.Signed(c, 2, &r.ExitCode)
	coder.Signed(c, 3, &r.Signal)
	coder.Signed(c, 4, &r.Progress)
	coder.Boolean(c, 5, &r.Checkpoint)
	coder.Instant(c, 6, &r.Start)
	coder.Instant(c, 7, &r.End)
	coder.Instant(c, 8, &r.FirstProgress)
	coder.Vector(c, 9, &r.Peak)
	coder.Text(c, 10, &r.Detail)
	coder.Signed(c, 11, &r.Prepare)
	coder.Signed(c, 12, &r.Unpack)
	coder.Signed(c, 13, &r.Waited)
	coder.Boolean(c, 14, &r.LeftNothing)
	coder.Signed(c, 15, &r.Idle)
	coder.Signed(c, 16, &r.Startup)
	coder.Boolean(c, 17, &r.Stayed)
	coder.Pointer(c, 18, &r.Tried, func(c *coder.Coder, t *job.Tried) {
		coder.List(c, 1, &t.Scores, func(c *coder.Coder, s *job.Score) {
			coder.Signed(c, 1, &s.Rung)
			coder.Signed(c, 2, &s.Worth)
		})
		coder.Signed(c, 2, &t.Hopeless)
	})
	coder.Boolean(c, 19, &r.Ended)
}

func specFields(c *coder.Coder, s *job.Spec) {
	coder.Text(c, 1, &s.Name)
	coder.Text(c, 2, &s.Queue)
	coder.Signed(c, 3, &s.Priority)
	coder.Enum(c, 4, &s.Kind, job.Rigid)
	coder.Signed(c, 5, &s.Total)
	coder.Text(c, 6, &s.Unit)
	coder.Signed(c, 7, &s.PerUnit)
	coder.Signed(c, 8, &s.Grid)
	coder.Signed(c, 9, &s.Parallelism)
	coder.Signed(c, 10, &s.Restore)
	coder.Signed(c, 11, &s.Checkpoint)
	coder.Signed(c, 12, &s.Walltime)
	coder.Signed(c, 13, &s.Slices)
	coder.Enum(c, 14, &s.OnOverrun, job.OverrunExtends)
	coder.Enum(c, 15, &s.OnBadItem, job.BadItemSkips)
	coder.Signed(c, 16, &s.MaxFailures)
	coder.Value(c, 17, &s.Profile, profileFields)
	coder.Value(c, 18, &s.Safe, tableFields)
	coder.Signed(c, 19, &s.TauMin)
	coder.Signed(c, 20, &s.OverheadMax)
	coder.Instant(c, 21, &s.Deadline)
	coder.Boolean(c, 22, &s.Continue)
	coder.Value(c, 23, &s.Launch, launchFields)
	coder.Signed(c, 24, &s.Theta)
	coder.Signed(c, 25, &s.Startup)
	coder.List(c, 26, &s.Speeds, func(c *coder.Coder, s *job.SpeedOn) {
		coder.Text(c, 1, &s.Profile)
		coder.Signed(c, 2, &s.Permille)
	})
	coder.Boolean(c, 27, &s.External)
	coder.Value(c, 28, &s.Worth, func(c *coder.Coder, w *job.Worth) {
		coder.Signed(c, 1, &w.Progress)
		coder.Signed(c, 2, &w.Laxity)
		coder.Signed(c, 3, &w.Overhead)
	})
	coder.List(c, 29, &s.Options, func(c *coder.Coder, o *job.Option) {
		coder.Text(c, 1, &o.Name)
		coder.Signed(c, 2, &o.Speed)
		coder.Signed(c, 3, &o.Memory)
		coder.Texts(c, 4, &o.Env)
	})
	coder.Text(c, 30, &s.Template)
	coder.Enum(c, 31, &s.Topology, job.SameCluster)
	coder.Signed(c, 32, &s.Patience)
	coder.Text(c, 33, &s.Owner)
	coder.Boolean(c, 34, &s.Saves)
	coder.Boolean(c, 35, &s.Resident)
}

func launchFields(c *coder.Coder, l *job.Launch) {
	coder.Texts(c, 1, &l.Command)
	coder.Texts(c, 2, &l.Env)
	coder.Text(c, 3, &l.Workdir)
	coder.Text(c, 4, &l.Subdir)
	coder.Signed(c, 5, &l.WarnSignal)
	coder.Signed(c, 6, &l.WarnBefore)
	coder.Signed(c, 7, &l.Grace)
	coder.Signed(c, 8, &l.LogLimit)
	coder.Signed(c, 9, &l.OutputLimit)
	coder.Signed(c, 10, &l.Files)
	coder.Signed(c, 11, &l.Bytes)
	coder.Text(c, 12, &l.Image)
	coder.Value(c, 13, &l.Umask, func(c *coder.Coder, u *job.Umask) {
		coder.Boolean(c, 1, &u.Named)
		coder.Unsigned(c, 2, &u.Bits)
	})
	coder.Value(c, 14, &l.Adapter, func(c *coder.Coder, a *job.Adapter) {
		coder.Value(c, 1, &a.Lines, func(c *coder.Coder, l *job.Lines) {
			coder.Text(c, 1, &l.Input)
			coder.Text(c, 2, &l.Index)
			coder.Enum(c, 3, &l.Format, job.CSV)
			coder.Boolean(c, 4, &l.Header)
			coder.Boolean(c, 5, &l.AnswersHeader)
		})
		coder.Value(c, 2, &a.Directory, func(c *coder.Coder, d *job.Directory) {
			coder.Text(c, 1, &d.Path)
			coder.Text(c, 2, &d.Progress)
		})
		coder.Value(c, 3, &a.Array, func(c *coder.Coder, t *job.Array) {
			coder.Text(c, 1, &t.Indices)
			coder.Text(c, 2, &t.Name)
			coder.Text(c, 3, &t.Output)
			coder.Text(c, 4, &t.Error)
			coder.Signed(c, 5, &t.Limit)
		})
		coder.Value(c, 4, &a.Trials, func(c *coder.Coder, t *job.Trials) {
			coder.Text(c, 1, &t.Table)
			coder.Signed(c, 2, &t.Stop.Reduction)
			coder.Signed(c, 3, &t.Stop.From)
			coder.Boolean(c, 4, &t.Stop.Maximize)
		})
		coder.Boolean(c, 5, &a.Keep)
	})
}

func profileFields(c *coder.Coder, p *trp.Profile) {
	coder.Enum(c, 1, &p.Form, trp.Envelope)
	coder.Enum(c, 2, &p.Combine, trp.Maximum)
	coder.List(c, 3, &p.Phases, func(c *coder.Coder, p *trp.Phase) {
		coder.Signed(c, 1, &p.UpTo)
		coder.Signed(c, 2, &p.Mean)
		coder.Signed(c, 3, &p.SD)
	})
	coder.Grid(c, 4, &p.Runs)
	coder.Numbers(c, 5, &p.Bounds)
	coder.List(c, 6, &p.Curve, func(c *coder.Coder, p *trp.Point) {
		coder.Signed(c, 1, &p.UpTo)
		coder.Signed(c, 2, &p.Amount)
	})
}

func tableFields(c *coder.Coder, t *trp.Table) {
	coder.Numbers(c, 1, &t.Bounds)
	coder.Grid(c, 2, &t.Least)
}
