package wire

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
)

func tokenFields(c *coder, t *job.Token) {
	unsigned(c, 1, &t.Epoch)
	unsigned(c, 2, &t.Seq)
}

func rangeFields(c *coder, r *job.Range) {
	signed(c, 1, &r.From)
	signed(c, 2, &r.To)
}

func verdictFields(c *coder, v *job.Verdict) {
	enum(c, 1, &v.State, job.Impossible)
	text(c, 2, &v.Reason)
}

func resultFields(c *coder, r *job.Result) {
	enum(c, 1, &r.Outcome, job.NodeFailed)
	signed(c, 2, &r.ExitCode)
	signed(c, 3, &r.Signal)
	signed(c, 4, &r.Progress)
	boolean(c, 5, &r.Checkpoint)
	instant(c, 6, &r.Start)
	instant(c, 7, &r.End)
	instant(c, 8, &r.FirstProgress)
	vector(c, 9, &r.Peak)
	text(c, 10, &r.Detail)
	signed(c, 11, &r.Prepare)
	signed(c, 12, &r.Unpack)
	signed(c, 13, &r.Waited)
}

func specFields(c *coder, s *job.Spec) {
	text(c, 1, &s.Name)
	text(c, 2, &s.Queue)
	signed(c, 3, &s.Priority)
	enum(c, 4, &s.Kind, job.Rigid)
	signed(c, 5, &s.Total)
	text(c, 6, &s.Unit)
	signed(c, 7, &s.PerUnit)
	signed(c, 8, &s.Grid)
	signed(c, 9, &s.Parallelism)
	signed(c, 10, &s.Restore)
	signed(c, 11, &s.Checkpoint)
	signed(c, 12, &s.Walltime)
	signed(c, 13, &s.Slices)
	enum(c, 14, &s.OnOverrun, job.OverrunExtends)
	enum(c, 15, &s.OnBadItem, job.BadItemSkips)
	signed(c, 16, &s.MaxFailures)
	value(c, 17, &s.Profile, profileFields)
	value(c, 18, &s.Safe, tableFields)
	signed(c, 19, &s.TauMin)
	signed(c, 20, &s.OverheadMax)
	instant(c, 21, &s.Deadline)
	boolean(c, 22, &s.Continue)
	value(c, 23, &s.Launch, launchFields)
	signed(c, 24, &s.Theta)
	signed(c, 25, &s.Startup)
	list(c, 26, &s.Speeds, func(c *coder, s *job.SpeedOn) {
		text(c, 1, &s.Profile)
		signed(c, 2, &s.Permille)
	})
	boolean(c, 27, &s.External)
	value(c, 28, &s.Worth, func(c *coder, w *job.Worth) {
		signed(c, 1, &w.Progress)
		signed(c, 2, &w.Laxity)
		signed(c, 3, &w.Overhead)
	})
	list(c, 29, &s.Options, func(c *coder, o *job.Option) {
		text(c, 1, &o.Name)
		signed(c, 2, &o.Speed)
		signed(c, 3, &o.Memory)
		texts(c, 4, &o.Env)
	})
	text(c, 30, &s.Template)
	enum(c, 31, &s.Topology, job.SameCluster)
	signed(c, 32, &s.Patience)
}

func launchFields(c *coder, l *job.Launch) {
	texts(c, 1, &l.Command)
	texts(c, 2, &l.Env)
	text(c, 3, &l.Snapshot)
	text(c, 4, &l.Subdir)
	signed(c, 5, &l.WarnSignal)
	signed(c, 6, &l.WarnBefore)
	signed(c, 7, &l.Grace)
	signed(c, 8, &l.LogLimit)
	signed(c, 9, &l.OutputLimit)
	signed(c, 10, &l.Files)
	signed(c, 11, &l.Bytes)
	text(c, 12, &l.Image)
	value(c, 13, &l.Umask, func(c *coder, u *job.Umask) {
		boolean(c, 1, &u.Named)
		unsigned(c, 2, &u.Bits)
	})
}

func profileFields(c *coder, p *trp.Profile) {
	enum(c, 1, &p.Form, trp.Envelope)
	enum(c, 2, &p.Combine, trp.Maximum)
	list(c, 3, &p.Phases, func(c *coder, p *trp.Phase) {
		signed(c, 1, &p.UpTo)
		signed(c, 2, &p.Mean)
		signed(c, 3, &p.SD)
	})
	grid(c, 4, &p.Runs)
	numbers(c, 5, &p.Bounds)
	list(c, 6, &p.Curve, func(c *coder, p *trp.Point) {
		signed(c, 1, &p.UpTo)
		signed(c, 2, &p.Amount)
	})
}

func tableFields(c *coder, t *trp.Table) {
	numbers(c, 1, &t.Bounds)
	grid(c, 2, &t.Least)
}
