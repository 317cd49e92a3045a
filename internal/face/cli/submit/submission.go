package submit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/cli/results"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/show"
)

// submission is one job being submitted: each job of a file separately, because each has its own work directory.
type submission struct {
	file string
	name string
	text []byte
	// verb is the command whose flags the job was made of; empty: it is from a file.
	verb string
	// dir to take along, empty for none.
	dir string
	// goes is what goes along though nobody named it, for people, who are told; empty: nothing does. script: the job was made of a batch
	// script.
	goes   string
	script bool
	// beside is what goes along beside dir.
	beside along
	job    config.Job
}

// here is what goes along with the commands that take it unless they are told not to.
const here = "the current directory"

// textFrom is the job's file as it is sent by somebody with this umask, which counts where the file names none.
func (s *submission) textFrom(umask job.Umask) (string, error) {
	if s.job.Spec.Launch.Umask.Named || !umask.Named {
		return string(s.text), nil
	}
	spec := s.job.Spec
	spec.Launch.Umask = umask
	text, err := config.RenderJob(spec, s.job.Workdir)
	return string(text), err
}

// submissionOf is a job on its way; its directory lies relative to base.
func submissionOf(file, base string, j config.Job) (submission, error) {
	text, err := config.RenderJob(j.Spec, j.Workdir)
	s := submission{file: file, name: string(j.Spec.Name), text: text, job: j}
	if j.Stored() != "" {
		return s, err // it is there already
	}
	if s.dir = j.Workdir; s.dir != "" && !filepath.IsAbs(s.dir) {
		s.dir = filepath.Join(base, s.dir)
	}
	return s, err
}

// pack packs what goes along, unless it is among the directories that are packed already, and says so if nobody has named it.
func (s *submission) pack(a *session.Session, git bool, packed map[string]parcel) ([]byte, error) {
	if s.dir == "" && len(s.beside.extra) == 0 {
		return nil, nil
	}
	alone := len(s.beside.extra)+len(s.beside.without) == 0
	p, known := packed[s.dir]
	if known && alone {
		return p.data, nil
	}
	p, err := pack(s.dir, s.beside, git, maxPacked)
	switch {
	case err != nil && s.goes == here:
		return nil, fmt.Errorf("%s: %w; --no-workdir leaves it behind", s.file, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.file, err)
	}
	for _, w := range p.warnings {
		fmt.Fprintf(a.Err, "sluice: %s: %s\n", s.dir, w)
	}
	if s.goes != "" {
		how := ""
		if s.goes == here {
			how = "; --no-workdir leaves it behind"
		}
		fmt.Fprintf(a.Err, "sluice: %s goes along: %s, %s (%s packed)%s\n", s.goes, show.Plural(p.files, "file", "files"),
			quantity.FormatBytes(quantity.Amount(p.size)), command.Size(int64(len(p.data))), how)
	}
	if alone {
		packed[s.dir] = p
	}
	return p.data, nil
}

// judge says which tasks of jobs that have completed have not.
func judge(ctx context.Context, a *session.Session, c session.Client, list []submission) error {
	var wrong []error
	for _, s := range list {
		if s.job.Spec.Launch.Adapter.Tasks() {
			wrong = append(wrong, results.Judge(ctx, a, c, s.name))
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return &command.Failure{Code: command.ExitFailed, Err: err}
	}
	return nil
}
