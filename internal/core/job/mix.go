package job

import "sluice.dev/sluice/internal/core/digest"

// Mix mixes a token into a digest.
func (t Token) Mix(h digest.Hash) digest.Hash { return h.Int(int64(t.Epoch), int64(t.Seq)) }

// Mix mixes a range into a digest.
func (r Range) Mix(h digest.Hash) digest.Hash { return h.Int(r.From, r.To) }

// Mix mixes a set of ranges into a digest.
func (s Ranges) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(len(s)))
	for _, r := range s {
		h = r.Mix(h)
	}
	return h
}

// MixIDs mixes names of slices into a digest.
func MixIDs(h digest.Hash, ids []SliceID) digest.Hash {
	h = h.Int(int64(len(ids)))
	for _, id := range ids {
		h = h.Text(string(id))
	}
	return h
}

// Mix mixes a verdict into a digest.
func (v Verdict) Mix(h digest.Hash) digest.Hash { return h.Int(int64(v.State)).Text(v.Reason) }

// Mix mixes a result into a digest.
func (r *Result) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(r.Outcome), int64(r.ExitCode), int64(r.Signal), r.Progress, int64(r.Start), int64(r.End), int64(r.FirstProgress))
	h = r.Peak.Mix(h.Bool(r.Checkpoint)).Text(r.Detail).Int(int64(r.Prepare), int64(r.Unpack))
	if r.Waited != 0 { // the digest of before this field existed
		h = h.Int(int64(r.Waited))
	}
	if r.LeftNothing { // the same
		h = h.Text("nothing")
	}
	if r.Idle != 0 { // the same
		h = h.Text("idle").Int(int64(r.Idle))
	}
	if r.Startup != 0 || r.Stayed { // the same
		h = h.Text("startup").Int(int64(r.Startup)).Bool(r.Stayed)
	}
	if r.Ended { // the same
		h = h.Text("ended")
	}
	if t := r.Tried; t != nil { // the same
		h = h.Text("tried").Int(t.Hopeless)
		for _, s := range t.Scores {
			h = h.Int(int64(s.Rung), s.Worth)
		}
	}
	return h
}

// Mix mixes a spec into a digest. It is long: callers hash a kept spec once.
func (s *Spec) Mix(h digest.Hash) digest.Hash { return s.mix(h.Text(string(s.Name))) }

// unnamed is the digest of the spec as if it had no name.
func (s *Spec) unnamed() uint64 { return s.mix(digest.New().Text("")).Sum() }

// mix mixes all but the name.
func (s *Spec) mix(h digest.Hash) digest.Hash {
	h = h.Text(s.Queue).Int(int64(s.Priority), int64(s.Kind), s.Total).Text(s.Unit)
	h = h.Int(int64(s.PerUnit), s.Grid, int64(s.Parallelism), int64(s.Restore), int64(s.Checkpoint), int64(s.Startup), int64(s.Walltime))
	h = h.Int(int64(len(s.Speeds)))
	for i := range s.Speeds {
		h = h.Text(s.Speeds[i].Profile).Int(s.Speeds[i].Permille)
	}
	h = h.Int(int64(s.Slices), int64(s.OnOverrun), int64(s.OnBadItem), int64(s.MaxFailures), s.Theta)
	h = s.Safe.Mix(s.Profile.Mix(h)).Int(int64(s.TauMin), int64(s.OverheadMax), int64(s.Deadline))
	h = h.Bool(s.External, s.Continue).Int(s.Worth.Progress, s.Worth.Laxity, s.Worth.Overhead, int64(len(s.Options)))
	for i := range s.Options {
		o := &s.Options[i]
		h = h.Text(o.Name).Int(o.Speed, o.Memory).Texts(o.Env)
	}
	if s.Topology != SameNode { // as it was before there were levels
		h = h.Int(int64(s.Topology))
	}
	if s.Patience != 0 { // jobs from before there was one keep their digests
		h = h.Int(int64(s.Patience))
	}
	if s.Owner != "" { // the same
		h = h.Text("owner").Text(s.Owner)
	}
	if s.Saves { // as it was before any rigid job did
		h = h.Text("saves")
	}
	if s.Resident { // as it was before programs stayed
		h = h.Text("resident")
	}
	return s.Launch.Mix(h.Text(s.Template))
}

// Mix mixes how a process is started into a digest.
func (l *Launch) Mix(h digest.Hash) digest.Hash {
	if l.Image != "" { // jobs from before there was one keep their digests
		h = h.Text(l.Image)
	}
	if l.Umask.Named { // the same
		h = h.Int(int64(l.Umask.Bits))
	}
	return l.Adapter.mix(h).Texts(l.Command).Texts(l.Env).Text(l.Workdir).Text(l.Subdir).
		Int(int64(l.WarnSignal), int64(l.WarnBefore), int64(l.Grace), l.LogLimit, l.OutputLimit, l.Files, l.Bytes)
}
