package job

import (
	"slices"

	"sluice.dev/sluice/internal/core/digest"
)

// Pool makes similar jobs share one spec: of specs that differ only in the name it returns one, without a name. A spec never changes, so
// sharing is safe; a job's own name is kept beside its spec everywhere. Specs that it makes itself share the profile of the first that has
// the same.
//
// It holds at most mostPooled specs, and then begins anew: a forgotten spec lives as long as jobs that have it, and later jobs share
// another. The zero value is empty. It is not safe for concurrent use.
type Pool struct {
	// sums are the digests of the specs that it has returned, of has them by these, profiles by that of their profile.
	sums         map[*Spec]uint64
	of, profiles map[uint64]*Spec
}

// mostPooled specs are held at once, about 4 MiB of them.
const mostPooled = 4096

// Share returns the spec that jobs like this one share, with its digest.
func (p *Pool) Share(s *Spec) (shared *Spec, sum uint64) {
	if known, ok := p.sums[s]; ok {
		return s, known
	}
	sum = s.unnamed()
	known := p.of[sum]
	if known != nil && known.Equal(s) {
		return known, sum
	}
	own := s
	if s.Name != "" {
		unnamed := *s
		unnamed.Name = ""
		own = &unnamed
	}
	switch {
	case p.of == nil:
		p.sums, p.of = map[*Spec]uint64{}, map[uint64]*Spec{}
	case len(p.of) >= mostPooled: // room that was made stays: where no two specs are alike it is needed again at once
		clear(p.sums)
		clear(p.of)
	}
	if own != s {
		p.Profile(own)
	}
	p.of[sum], p.sums[own] = own, sum
	return own, sum
}

// Profile makes a spec that nobody else has yet share its profile with the first equal one.
func (p *Pool) Profile(s *Spec) {
	key := s.Safe.Mix(s.Profile.Mix(digest.New())).Sum()
	switch like := p.profiles[key]; {
	case like == nil:
		if p.profiles == nil || len(p.profiles) >= mostPooled {
			p.profiles = map[uint64]*Spec{}
		}
		p.profiles[key] = s
	case like.Profile.Equal(&s.Profile) && like.Safe.Equal(&s.Safe):
		s.Profile, s.Safe = like.Profile, like.Safe
	}
}

// Equal says whether two specs differ in nothing but the name.
func (s *Spec) Equal(o *Spec) bool {
	return s.Queue == o.Queue && s.Priority == o.Priority && s.Kind == o.Kind && s.Total == o.Total && s.Unit == o.Unit &&
		s.PerUnit == o.PerUnit &&
		s.Grid == o.Grid && s.Parallelism == o.Parallelism && s.Restore == o.Restore && s.Checkpoint == o.Checkpoint &&
		s.Startup == o.Startup &&
		s.Walltime == o.Walltime && slices.Equal(s.Speeds, o.Speeds) && s.Slices == o.Slices && s.Topology == o.Topology &&
		s.Patience == o.Patience && s.Saves == o.Saves && s.OnOverrun == o.OnOverrun && s.OnBadItem == o.OnBadItem &&
		s.MaxFailures == o.MaxFailures && s.Theta == o.Theta && s.Profile.Equal(&o.Profile) && s.Safe.Equal(&o.Safe) &&
		s.TauMin == o.TauMin &&
		s.OverheadMax == o.OverheadMax && s.Deadline == o.Deadline && s.External == o.External && s.Worth == o.Worth &&
		slices.EqualFunc(s.Options, o.Options, equalOptions) && s.Template == o.Template && s.Owner == o.Owner &&
		s.Continue == o.Continue && s.Resident == o.Resident && s.Launch.equal(&o.Launch)
}

func equalOptions(a, b Option) bool {
	return a.Name == b.Name && a.Speed == b.Speed && a.Memory == b.Memory && slices.Equal(a.Env, b.Env)
}

func (l *Launch) equal(o *Launch) bool {
	return slices.Equal(l.Command, o.Command) && slices.Equal(l.Env, o.Env) && l.Image == o.Image && l.Workdir == o.Workdir &&
		l.Files == o.Files && l.Bytes == o.Bytes &&
		l.Subdir == o.Subdir && l.WarnSignal == o.WarnSignal && l.WarnBefore == o.WarnBefore && l.Grace == o.Grace &&
		l.LogLimit == o.LogLimit &&
		l.OutputLimit == o.OutputLimit && l.Umask == o.Umask && l.Adapter == o.Adapter
}
