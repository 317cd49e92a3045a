package config

import (
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/strict"
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
	// Renamed says of keys of the file that have another name now which it is.
	Renamed []string
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
		return nil, "", errkind.Errorf(errkind.Invalid, "%s: holds %d jobs where one is wanted; put each into its own file", name,
			len(jobs))
	}
	return jobs[0].Spec, jobs[0].Workdir, nil
}

// ParseJobs reads a file of one job or several, each its own YAML document, at most MaxJobs. It is ParseJob in all else;
// a file with one wrong job is refused whole.
func ParseJobs(name string, data []byte) ([]Job, error) {
	return parseJobs(strict.New(name, false), data)
}

// ParseObject is ParseJobs for an object that a cluster has accepted, maybe when sizes without a unit were taken as bytes.
func ParseObject(name string, data []byte) ([]Job, error) {
	return parseJobs(strict.New(name, true), data)
}

func parseJobs(c *strict.File, data []byte) ([]Job, error) {
	docs := c.Documents(data, MaxJobs)
	jobs := make([]Job, 0, len(docs))
	seen := map[job.ID]int{}
	schema := jobFile()
	for _, doc := range docs {
		before := len(c.Renamed())
		spec, workdir := oneJob(c.Root(doc, &schema))
		if line, again := seen[spec.Name]; again && spec.Name != "" {
			c.At(doc, "metadata.name", "%q is the name of the job in line %d too; names are unique", spec.Name, line)
		}
		seen[spec.Name] = doc.Line
		jobs = append(jobs, Job{spec, workdir, c.Renamed()[before:]})
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return jobs, nil
}

// oneJob reads one document. What it returns is good only if no problem was added.
func oneJob(doc strict.Value) (*job.Spec, string) {
	top := doc.AsObject()
	headed(top)
	s := &job.Spec{Name: job.ID(top.Must("metadata").AsObject().Must("name").Label(""))}

	o := top.Must("spec").AsObject()
	s.Queue = o.Get("queue").Label(DefaultQueue)
	s.Priority = int32(o.Get("priority").AsNumber())
	work(o, s, kindsOfWork())
	risk(o, s)
	s.Speeds = speeds(o.Get("speeds"))
	s.Worth = worth(o.Get("scoreWeights"))
	s.Options = options(o.Get("options"), s.Kind)
	s.Template = o.Get("template").Label("")
	memory(o, s)
	launch(o, s)
	return s, workdirOf(o.Get("workdir"))
}

// headed checks what every file of ours begins with.
func headed(top strict.Object) {
	for _, key := range []string{"apiVersion", "kind"} {
		v := top.Must(key)
		if want := v.Form.Words[0]; v.Text(want, want) != want {
			v.Wrong("is %s; want %s", v.What(), want)
		}
	}
}

// risk reads how careful and how patient the job is.
func risk(o strict.Object, s *job.Spec) {
	s.Theta = o.Get("memoryRisk").AsShare()
	s.OverheadMax = int(o.Get("overheadMax").AsShare())
	s.TauMin = o.Get("minRuntime").AsLengthOr(job.TauMin(s.Restore, s.Checkpoint, s.OverheadMax))
	s.Deadline = o.Get("deadline").Instant()
	if v := o.Get("startup"); s.Kind != job.Rigid {
		s.Startup = v.AsLength()
	} else if v.Given() {
		v.Wrong("a rigid job's walltime holds its start; leave it out")
	}
	s.MaxFailures = int(o.Get("maxFailures").AsNumber())
	if v := o.Get("continue"); v.Boolean(false) {
		s.Continue = true
		if s.Kind == job.Rigid {
			v.Wrong("a rigid job has one window; leave it out")
		}
	}
	if v := o.Get("onItemFailure"); v.Given() {
		s.OnBadItem = job.OnBadItem(v.AsChoice())
		if s.Kind != job.Items && s.Kind != 0 {
			v.Wrong("only a job of items has bad items; leave it out")
		}
	}
}
