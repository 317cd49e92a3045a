package job

import (
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/digest"
)

// Residence is the number of the program that a subjob of the job can go on in, if it is there: that of the same job or, with a template,
// of any of the same owner, queue and template that starts the same. 0: its program does not stay. Two programs may have one
// number; SameProgram tells them apart.
func (s *Spec) Residence(id ID) uint64 {
	if !s.Resident {
		return 0
	}
	return max(1, digest.Key(s.program(id)))
}

// SameProgram reports whether a subjob of one job may go on in the program that one of the other has started.
func SameProgram(id ID, s *Spec, other ID, o *Spec) bool {
	return s.Resident && o.Resident && s.program(id) == o.program(other)
}

// program is all that tells one program from another: whose it is, and how it is started.
func (s *Spec) program(id ID) string {
	l := &s.Launch
	parts := []string{s.Owner, s.Queue, s.family(id), l.Workdir, l.Subdir, l.Image, strconv.Itoa(int(l.Umask.Mask())),
		strconv.Itoa(len(l.Command))}
	return strings.Join(slices.Concat(parts, l.Command, l.Env), "\x00")
}

// Family is what jobs share that learn from each other what a start costs: their template, else each is its own.
func (s *Spec) Family(id ID) string { return s.Queue + "\x00" + s.family(id) }

func (s *Spec) family(id ID) string {
	if s.Template != "" {
		return "template\x00" + s.Template
	}
	return "job\x00" + string(id)
}
