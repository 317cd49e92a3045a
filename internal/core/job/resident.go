package job

import (
	"slices"

	"sluice.dev/sluice/internal/core/digest"
)

// Residence is the number of the program that a subjob of the job can go on in, if it is there: that of the same job or, with a template,
// of any of the same owner, queue and template that starts the same. 0: its program does not stay. Two programs may have one
// number; SameProgram tells them apart.
func (s *Spec) Residence(id ID) uint64 {
	if !s.Resident {
		return 0
	}
	l := &s.Launch
	text := s.Owner + "\x00" + s.Queue + "\x00" + s.family(id) + "\x00" + l.Workdir + "\x00" + l.Subdir + "\x00" + l.Image
	for _, c := range l.Command {
		text += "\x00" + c
	}
	text += "\x00"
	for _, e := range l.Env {
		text += "\x00" + e
	}
	return max(1, digest.Key(text, int64(l.Umask.Mask())))
}

// SameProgram reports whether a subjob of one job may go on in the program that one of the other has started.
func SameProgram(id ID, s *Spec, other ID, o *Spec) bool {
	a, b := &s.Launch, &o.Launch
	return s.Resident && o.Resident && s.Owner == o.Owner && s.Queue == o.Queue && s.family(id) == o.family(other) &&
		a.Workdir == b.Workdir && a.Subdir == b.Subdir && a.Image == b.Image && a.Umask.Mask() == b.Umask.Mask() &&
		slices.Equal(a.Command, b.Command) && slices.Equal(a.Env, b.Env)
}

// Family is what jobs share that learn from each other what a start costs: their template, else each is its own.
func (s *Spec) Family(id ID) string { return s.Queue + "\x00" + s.family(id) }

func (s *Spec) family(id ID) string {
	if s.Template != "" {
		return "template\x00" + s.Template
	}
	return "job\x00" + string(id)
}
