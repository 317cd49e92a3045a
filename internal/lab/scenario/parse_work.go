package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/workload"
)

func (s *Scenario) work(v strict.Value) {
	o := v.Object("jobs", "synthetic", "compose", "agents")
	if v.Given() && !o.Has("jobs") && !o.Has("synthetic") && !o.Has("compose") {
		v.Wrong("offers no work; give jobs (written out), synthetic (generated) or compose (from published traces)")
	}
	s.agents(o.Get("agents"))
	lines := map[string]bool{}
	for _, e := range o.Get("jobs").List("a list of jobs such as [{at: 0s, name: a, rigid: {walltime: 5m}, memory: 4Gi}]", MaxJobs) {
		s.jobLine(e, lines)
	}
	slices.SortStableFunc(s.Workload.Jobs, func(a, b Job) int {
		return cmp.Compare(a.Job.Submit, b.Job.Submit)
	})
	for i := range s.Workload.Jobs {
		s.Workload.Jobs[i].Job.Number = int64(i)
	}
	s.Workload.Streams = s.streams(o)
}

// jobLine reads one line of explicit jobs: one job, or count of them every so often.
func (s *Scenario) jobLine(e strict.Value, names map[string]bool) {
	o := e.Object(append([]string{"at", "name", "count", "every", "due", "agent", "true"}, config.WorkKeys()...)...)
	before := e.Count()
	name := o.Need("name", "a").Label("")
	at := moment(o.Need("at", "0s"), 0)
	count := int(o.Get("count").Integer(1, MaxJobs, 1))
	every := o.Get("every").Duration(0, MaxSpan, 0)
	if !o.Get("memory").Given() {
		o.Need("memory", "4Gi")
	}
	spec := config.Work(o, s.Settings.Theta)
	if spec.Open() {
		o.Get("steps").Wrong(`"total" is missing, and a program that ends when it likes is not simulated; write for example total: 90000`)
	}
	if spec.Kind == job.Rigid && len(spec.Speeds) == 0 {
		spec.Speeds = s.anywhere()
	}
	if spec.OnOverrun != job.OverrunKills {
		o.Get("rigid").Wrong("a simulated rigid job ends at its walltime; leave onOverrun out")
	}
	j := workload.Job{
		Queue: spec.Queue, Priority: spec.Priority, Kind: spec.Kind, Slices: max(1, spec.Slices), Topology: spec.Topology,
		Units: spec.Total, Grid: spec.Grid, Parallelism: max(1, spec.Parallelism),
		Declared: spec.Walltime, Restore: spec.Restore, Checkpoint: spec.Checkpoint, Startup: spec.Startup, Speeds: spec.Speeds,
		Profile: spec.Profile, Theta: spec.Theta, Template: spec.Template, Patience: spec.Patience,
	}
	j.Process.Resident = spec.Resident
	if spec.Kind != job.Rigid {
		j.Declared = time.Duration(quantity.MulDiv(spec.Total, int64(spec.PerUnit), 1))
	}
	if a := o.Get("agent"); a.Given() {
		if j.Group = s.agentName(a); spec.Kind == job.Rigid {
			a.Wrong("nobody bids for a rigid job: it is planned; leave it out")
		}
	}
	truth := o.Get("true").Object("time", "memory", "saves", "startup")
	j.Work = truth.Get("time").Duration(time.Millisecond, MaxSpan, j.Declared)
	if startup := truth.Get("startup"); startup.Given() {
		if j.Process.StartupError = startup.Duration(0, time.Hour, 0) - j.Startup; spec.Kind == job.Rigid {
			startup.Wrong("a rigid job's time is counted from the start of its process; leave it out")
		}
	}
	if saves := truth.Get("saves"); saves.Given() {
		j.Process.Saves = saves.Integer(1, 1<<40, 1)
		if spec.Kind != job.Steps || j.Process.Saves%max(1, j.Grid) != 0 {
			saves.Wrong("is after how many steps a checkpoint is left; want a multiple of every (%d), of steps, or leave it out",
				max(1, j.Grid))
		}
	}
	j.Memory.Phases = phases(spec.Profile)
	if m := truth.Get("memory"); m.Given() {
		at := config.MemoryOf(m, spec.Total)
		if at.Form != trp.Phases && e.Count() == before {
			m.Wrong("the truth is a size such as 12Gi, or phases with mean and sd")
		}
		j.Memory.Phases = at.Phases
	}
	due := o.Get("due").Duration(time.Second, MaxSpan, 0)
	if e.Count() > before {
		return
	}
	if j.Work == 0 {
		what := "rigid job without a walltime"
		if spec.Kind != job.Rigid {
			what = "job without a time of its units"
		}
		e.Wrong("a %s needs its true time; write for example true: {time: 5m}", what)
		return
	}
	if len(s.Queues) > 0 && j.Queue != config.DefaultQueue &&
		!slices.ContainsFunc(s.Queues, func(q protocol.Queue) bool { return q.Name == j.Queue }) {
		o.Get("queue").Wrong("there is no queue %q; %s", j.Queue, strict.Hint(j.Queue, s.queueNames()))
		return
	}
	s.addJobs(e, Job{Name: name, Job: j}, at, every, due, count, names)
}

// addJobs adds count copies of a job: name for one, name-1, name-2 and so on for several.
func (s *Scenario) addJobs(e strict.Value, j Job, at quantity.Instant, every, due time.Duration, count int, names map[string]bool) {
	if len(s.Workload.Jobs)+count > MaxJobs {
		e.Wrong("makes more than %d jobs; use synthetic for large workloads", MaxJobs)
		return
	}
	name := j.Name
	for i := range count {
		if count > 1 {
			j.Name = fmt.Sprintf("%s-%d", name, i+1)
		}
		if names[j.Name] {
			e.Wrong("there is a job %s already; names are unique", j.Name)
			return
		}
		names[j.Name] = true
		j.Job.Submit = at.Add(every * time.Duration(i))
		if due > 0 {
			j.Job.Deadline = j.Job.Submit.Add(due)
		}
		j.Job.Memory.Seed = prng.Name(j.Name)
		s.Workload.Jobs = append(s.Workload.Jobs, j)
	}
}

// phases is what a job does whose declared profile is the truth.
func phases(p trp.Profile) []trp.Phase {
	switch p.Form {
	case trp.Envelope:
		out := make([]trp.Phase, len(p.Curve))
		for i, c := range p.Curve {
			out[i] = trp.Phase{UpTo: c.UpTo, Mean: c.Amount}
		}
		return out
	case trp.Ensemble:
		out := make([]trp.Phase, len(p.Bounds))
		for i, end := range p.Bounds {
			out[i] = trp.Phase{UpTo: end}
			out[i].Mean, out[i].SD = moments(p.Runs, i)
		}
		return out
	default: // phases
		return p.Phases
	}
}

// moments are mean and standard deviation of the peaks of one stretch over recorded runs.
func moments(runs [][]quantity.Amount, stretch int) (mean, sd quantity.Amount) {
	var n, sum, squares float64
	for _, r := range runs {
		if stretch < len(r) {
			x := float64(r[stretch])
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	if n == 0 {
		return 0, 0
	}
	m := sum / n
	return quantity.Amount(math.Round(m)), quantity.Amount(math.Round(math.Sqrt(max(0, squares/n-m*m))))
}

// queueNames lists the queues, for messages.
func (s *Scenario) queueNames() []string {
	out := []string{config.DefaultQueue}
	for _, q := range s.Queues {
		out = append(out, q.Name)
	}
	return out
}

// anywhere are the speeds of a rigid job that takes its time on every slice, as its walltime is meant in a job file.
func (s *Scenario) anywhere() []job.SpeedOn {
	if s.same == nil {
		_, classes := s.Classes()
		for _, c := range classes {
			s.same = append(s.same, job.SpeedOn{Profile: c.Name, Permille: 1000})
		}
	}
	return s.same
}
