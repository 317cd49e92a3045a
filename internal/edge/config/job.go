package config

import (
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/quantity"
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
// checked, its defaults filled and its profile compiled; Launch.Workdir is left empty. workdir is the directory to
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
	if v := o.Get("resident"); v.Boolean(false) {
		s.Resident = true
		switch {
		case s.Kind == job.Rigid:
			v.Wrong("a rigid job has one subjob; leave it out")
		case s.Continue:
			v.Wrong("a program that stays is given the next window anyway; leave continue out")
		case o.Get("options").Given():
			v.Wrong("a program that stays can't change its options; leave one of both out")
		case o.Get("adapter").Given():
			v.Wrong("an adapter starts its command for each subjob; leave one of both out")
		}
	}
	if v := o.Get("onItemFailure"); v.Given() {
		s.OnBadItem = job.OnBadItem(v.AsChoice())
		if s.Kind != job.Items && s.Kind != 0 {
			v.Wrong("only a job of items has bad items; leave it out")
		}
	}
}

// speeds reads how fast the job runs on slices of each profile, such as {1g.10gb: 0.21}, in order of profile.
func speeds(v strict.Value) (out []job.SpeedOn) {
	o := v.AsTable()
	switch n := len(o.Keys()); {
	case v.Given() && n == 0:
		v.Wrong("names no profile; write for example {1g.10gb: 0.21} or leave it out")
	case n > int(v.Most()):
		v.Wrong("names %d profiles; want at most %d", n, v.Most())
		return nil
	}
	for _, profile := range o.Keys() {
		at := o.Get(profile)
		if profile == "" || len(profile) > 64 || strings.ContainsFunc(profile, func(r rune) bool { return r <= ' ' || r > '~' }) {
			at.Wrong("%q is no name of a profile; want 1 to 64 plain letters, digits and signs, such as 1g.10gb", profile)
			continue
		}
		name, _ := mig.Canonical(profile) // slices are named as drivers print them
		if slices.ContainsFunc(out, func(s job.SpeedOn) bool { return s.Profile == name }) {
			at.Wrong("%q is a profile that is named before, in another spelling: %s", profile, name)
			continue
		}
		out = append(out, job.SpeedOn{Profile: name, Permille: at.AsShare()})
	}
	slices.SortFunc(out, func(a, b job.SpeedOn) int { return strings.Compare(a.Profile, b.Profile) })
	return out
}

// Subjobs are bounds of every subjob of a daemon; 0 stands for the daemon's own.
type Subjobs struct {
	// Processes with their threads. Files are those it makes in its work directory and TMPDIR, Scratch the bytes of disk they take.
	Processes, Files int64
	Scratch          quantity.Amount
	// SharedTmp: /tmp and /dev/shm are the machine's.
	SharedTmp bool
}

// subjobsOf reads the bounds of subjobs: {processes, scratch, files, tmp: own|shared}.
func subjobsOf(v strict.Value) Subjobs {
	o := v.Object("processes", "scratch", "files", "tmp")
	return Subjobs{
		Processes: o.Get("processes").Integer(8, 4_000_000, 0),
		Scratch:   o.Get("scratch").Bytes(1<<20, 0),
		Files:     o.Get("files").Integer(100, 1_000_000_000, 0),
		SharedTmp: o.Get("tmp").Choice("own", "shared") == 1,
	}
}

// worth reads what the job values in a variant, such as {progress: 0.6, laxity: 0.2, overhead: 0.2}. What is left out where
// others are given is 0.
func worth(v strict.Value) job.Worth {
	if !v.Given() {
		return job.DefaultWorth
	}
	o, found := v.AsObject(), v.Count()
	share := func(key string) int64 { return o.Get(key).AsShare() }
	w := job.Worth{Progress: share("progress"), Laxity: share("laxity"), Overhead: share("overhead")}
	if sum := w.Progress + w.Laxity + w.Overhead; sum != 1000 && v.Count() == found && !o.Misspelt() {
		v.Wrong("progress, laxity and overhead add up to %s; want 1", strict.FormatFraction(sum, 1000))
	}
	return w
}

// options reads the other ways to run the job that its owner agrees to, such as [{name: bf16, speed: 1.4, memory: 0.6}].
func options(v strict.Value, kind job.Kind) (out []job.Option) {
	list := v.AsList()
	if v.Given() && kind == job.Rigid {
		v.Wrong("a rigid job runs in one way; leave it out")
	}
	lines := map[string]int{}
	for _, e := range list {
		o := e.AsObject()
		name := o.Must("name")
		x := job.Option{
			Name: name.Label(""), Speed: o.Get("speed").AsShare(),
			Memory: o.Get("memory").AsShare(), Env: variablesOf(o.Get("env")),
		}
		if line, again := lines[x.Name]; again && x.Name != "" {
			name.Wrong("%q is the name of the option in line %d too; names are unique", x.Name, line)
		}
		lines[x.Name] = e.Line()
		out = append(out, x)
	}
	return out
}
