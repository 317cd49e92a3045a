package submit

import (
	"path/filepath"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/config"
)

// submission is one job being submitted: each job of a file separately, because each has its own work directory.
type submission struct {
	file string
	name string
	text []byte
	// dir to take along, empty for none.
	dir string
	job config.Job
}

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
