package config

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/store"
)

// Bounds of a job file. They keep every product of the core's arithmetic within 63 bits.
const (
	// MaxTotal is the largest amount of work, in units.
	MaxTotal = 1_000_000_000_000
	// MaxTime is the longest length of time a job file may name, and the longest work of a whole job at speed 1.
	MaxTime = 100 * 365 * 24 * time.Hour
	// MaxParallelism is how many subjobs of one job may run at once, and how many slices a rigid job may hold.
	MaxParallelism = 1024
	// MaxPriority bounds a priority on both sides of 0.
	MaxPriority = 1_000_000
	// DefaultTheta, DefaultOverheadMax and DefaultMaxFailures are those of the core.
	DefaultTheta       = job.DefaultTheta
	DefaultOverheadMax = job.DefaultOverheadMax
	DefaultMaxFailures = job.DefaultMaxFailures
	// MaxSpeeds is how many kinds of slices a job may name speeds for.
	MaxSpeeds = 64
	// MaxSpeed is the largest speed, in parts per thousand.
	MaxSpeed = 10_000
	// MaxOptions is how many other ways to run it a job may offer.
	MaxOptions = 8
	// LeastShare is the least speed or memory of an option, in parts per thousand of the job without options.
	LeastShare = 10
	// MostShare is the largest.
	MostShare = 100_000
	// DefaultQueue is where a job goes that names no queue.
	DefaultQueue = "default"
	// DefaultGrace is the time between SIGTERM and SIGKILL. The lease of every subjob includes it, so a longer one costs
	// the short gaps.
	DefaultGrace = 5 * time.Second
	// DefaultStartup is what a process is given from its start to its first unit.
	DefaultStartup = 300 * time.Millisecond
)

// Job is one job of a file.
type Job struct {
	Spec *job.Spec
	// Workdir is the directory to take along, as written: relative to the job file's place, or store://DIGEST of one that is in the
	// daemon's store. Empty for none.
	Workdir string
}

// Stored is the digest of a work directory that is in the daemon's store already; empty: it has to come along, or there is none.
func (j *Job) Stored() string {
	d, stored := strings.CutPrefix(j.Workdir, store.Scheme)
	if !stored {
		return ""
	}
	return d
}

// ParseJob reads a file of exactly one job: YAML or JSON. name is what the file is called in messages. The spec is
// checked, its defaults filled and its profile compiled; Launch.Snapshot is left empty. workdir is the directory to
// take along, relative to the file's place, empty for none. The error is of kind Invalid and unwraps to *Problems: all
// that is wrong with the file.
func ParseJob(name string, data []byte) (spec *job.Spec, workdir string, err error) {
	jobs, err := ParseJobs(name, data)
	if err != nil {
		return nil, "", err
	}
	if len(jobs) != 1 {
		return nil, "", errkind.Errorf(errkind.Invalid, "%s: holds %d jobs where one is wanted; put each into its own file", name, len(jobs))
	}
	return jobs[0].Spec, jobs[0].Workdir, nil
}

// ParseJobs reads a file of one job or several, each its own YAML document, at most MaxJobs. It is ParseJob in all else;
// a file with one wrong job is refused whole.
func ParseJobs(name string, data []byte) ([]Job, error) {
	return parseJobs(&collector{file: name}, data)
}

// ParseObject is ParseJobs for an object that a cluster has accepted, maybe when sizes without a unit were taken as bytes.
func ParseObject(name string, data []byte) ([]Job, error) {
	return parseJobs(&collector{file: name, bare: true}, data)
}

func parseJobs(c *collector, data []byte) ([]Job, error) {
	docs := c.documents(data, MaxJobs)
	jobs := make([]Job, 0, len(docs))
	seen := map[job.ID]int{}
	schema := jobFile()
	for _, doc := range docs {
		spec, workdir := c.job(value{c: c, node: doc, form: &schema})
		if line, again := seen[spec.Name]; again && spec.Name != "" {
			c.at(doc, "metadata.name", "%q is the name of the job in line %d too; names are unique", spec.Name, line)
		}
		seen[spec.Name] = doc.Line
		jobs = append(jobs, Job{spec, workdir})
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return jobs, nil
}

// job reads one document. What it returns is good only if no problem was added.
func (c *collector) job(doc value) (*job.Spec, string) {
	top := doc.asObject()
	c.headed(top)
	s := &job.Spec{Name: job.ID(top.must("metadata").asObject().must("name").label(""))}

	o := top.must("spec").asObject()
	s.Queue = o.get("queue").label(DefaultQueue)
	s.Priority = int32(o.get("priority").asNumber())
	c.work(o, s, kindsOfWork())
	c.risk(o, s)
	s.Speeds = speeds(o.get("speeds"))
	s.Worth = worth(o.get("worth"))
	s.Options = options(o.get("options"), s.Kind)
	s.Template = o.get("template").label("")
	c.memory(o, s)
	c.launch(o, s)
	return s, o.get("workdir").workdir()
}

// headed checks what every file of ours begins with.
func (c *collector) headed(top object) {
	for _, key := range []string{"apiVersion", "kind"} {
		v := top.must(key)
		if want := v.form.words[0]; v.text(want, want) != want {
			v.wrong("is %s; want %s", v.what(), want)
		}
	}
}

// risk reads how careful and how patient the job is.
func (c *collector) risk(o object, s *job.Spec) {
	s.Theta = o.get("theta").asShare()
	s.OverheadMax = int(o.get("overheadMax").asShare())
	s.TauMin = o.get("tauMin").asLengthOr(job.TauMin(s.Restore, s.Checkpoint, s.OverheadMax))
	s.Deadline = o.get("deadline").instant()
	if v := o.get("startup"); s.Kind != job.Rigid {
		s.Startup = v.asLength()
	} else if v.given() {
		v.wrong("a rigid job's walltime holds its start; leave it out")
	}
	s.MaxFailures = int(o.get("maxFailures").asNumber())
	if v := o.get("continue"); v.boolean() {
		s.Continue = true
		if s.Kind == job.Rigid {
			v.wrong("a rigid job has one window; leave it out")
		}
	}
	if v := o.get("onBadItem"); v.given() {
		s.OnBadItem = job.OnBadItem(v.asChoice())
		if s.Kind != job.Items && s.Kind != 0 {
			v.wrong("only a job of items has bad items; leave it out")
		}
	}
}

// label is a name (job.ValidName); or if the key was left out.
func (v value) label(or string) string {
	if !v.given() {
		return or
	}
	found := v.c.count()
	s := v.text("a name such as count-words", or)
	if v.c.count() == found && !job.ValidName(s) {
		v.wrong("is %s; want %s%s", v.what(), job.NameRule, nearLabel(s))
		return or
	}
	return s
}

// nearLabel proposes the label that s nearly is.
func nearLabel(s string) string {
	near := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, s), "-")
	near = strings.Trim(near[:min(len(near), 63)], "-")
	if near == "" {
		return ""
	}
	return fmt.Sprintf(", such as %s", near)
}

// instant is a moment as RFC 3339 writes it; Never if left out.
func (v value) instant() quantity.Instant {
	if !v.given() {
		return quantity.Never
	}
	const want = "a moment such as 2026-03-01T18:00:00Z"
	s, ok := v.scalar(want)
	if !ok {
		return quantity.Never
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() < 2000 || t.Year() > 2200 {
		v.wrong("is %s; want %s, with its time zone, from the years 2000 to 2200", v.what(), want)
		return quantity.Never
	}
	return quantity.At(t)
}
