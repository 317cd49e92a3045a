package desk

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/gate/jobs"
	"sluice.dev/sluice/internal/core/gate/names"
	"sluice.dev/sluice/internal/core/gate/queues"
	"sluice.dev/sluice/internal/core/gate/stock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Homes say whether several zones, or tickets, make possible what one could not, or impossible what it could.
type Homes interface {
	// Searches says whether tickets search for places.
	Searches() bool
	// Nowhere is why no zone could run a job although all their slices together could, Scattered why no zones together could run a gang
	// that may span several, both with what would fit; Across reports whether they could.
	Nowhere(spec *job.Spec, queue *protocol.Queue, longest time.Duration) (why, nearest string)
	Scattered(spec *job.Spec) (why, nearest string, judges bool)
	Across(spec *job.Spec) bool
}

// Config of a desk: the address of its gate (Self), all Gates, the index of this gate among them (Place), and how many Zones there are.
type Config struct {
	Self     protocol.Address
	Gates    protocol.Gates
	Place    int
	Zones    int
	Horizon  time.Duration
	MaxJobs  int
	External bool
}

// Parts are the parts of its gate that a desk reads.
type Parts struct {
	Jobs    *jobs.Register
	Queues  *queues.Queues
	Names   *names.Names
	Stock   *stock.Stock
	Homes   Homes
	Drained func(job.ZoneID) bool
}

// judge decides whether a job may come in.
type judge struct {
	cfg Config
	Parts
}

// Check says everything that keeps a job from being accepted, judged against what slices have been reported.
func (d *judge) Check(now quantity.Instant, spec *job.Spec) error {
	var errs []error
	note := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if err := spec.CheckNames(spec.Name); err != nil {
		errs = append(errs, err)
	}
	if passed(now, spec) {
		note("spec.deadline: %s has passed, it is %s now; give a later one or leave it out", clock(spec.Deadline), clock(now))
	}
	q := d.Queues.Find(spec.Queue)
	if q == nil {
		var names []string
		for _, q := range d.Queues.All() {
			names = append(names, q.Name)
		}
		note("spec.queue: there is no queue %q; choose one of: %s", spec.Queue, strings.Join(names, ", "))
	} else if most := queues.Share(q.Cap, 0, d.cfg.Zones); q.Cap > 0 && spec.Slices > most {
		split := ""
		if n := d.cfg.Zones; n > 1 {
			split = fmt.Sprintf(", %d of them in one of the %d zones", most, n)
		}
		note("spec.slices: it needs %d slices at once, queue %s may hold %d%s; ask for fewer, choose another queue, or raise its cap",
			spec.Slices, spec.Queue, q.Cap, split)
	}
	if spec.External && !d.cfg.External {
		note("spec.external: an external job is cut by its own agent, and nobody asks agents here; describe the work as items or steps")
	}
	switch {
	case spec.Patience < 0:
		note("spec.rigid.patience: %v is negative; say how long it may look for a place, or leave it out", spec.Patience)
	case spec.Patience > 0 && !d.Homes.Searches():
		note("spec.rigid.patience: only where jobs look for places with tickets do they give up; start the daemon with --mechanism " +
			"laminar, or leave it out")
	case spec.Patience > 0 && (spec.Kind != job.Rigid || spec.Slices > 1):
		note("spec.rigid.patience: a job that gives up is one piece on one slice; describe the work as rigid, or leave patience out")
	}
	if why, nearest := d.impossible(spec, q); why != "" {
		note("it could never run here: %s; what would fit: %s", why, nearest)
	}
	kind := errkind.Invalid
	if q != nil && len(errs) == 0 {
		all, of := d.Jobs.Unfinished(q.Name)
		if q.MaxJobs > 0 && of >= max(0, d.part(q.MaxJobs)) {
			kind = errkind.Exhausted
			note("spec.queue: queue %s has its %d unfinished jobs already; wait for one to finish or cancel one", q.Name, q.MaxJobs)
		}
		if all >= d.cfg.MaxJobs {
			kind = errkind.Exhausted
			note("there are %d unfinished jobs already, the most this daemon keeps; wait for some to finish", all)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(kind, "job %q: %w", spec.Name, err)
	}
	return nil
}

// part is this gate's share of a number that all gates share: as of a cap over zones, the shares add up to it.
func (d *judge) part(n int) int {
	if len(d.cfg.Gates) < 2 {
		return n
	}
	return queues.Share(n, d.cfg.Place, len(d.cfg.Gates))
}

// impossible says why nothing could ever run a job, and what would fit; empty if something could, or may. A gang is refused by where slices
// stand, but only once all nodes have reported: an absent one may have what it needs.
func (d *judge) impossible(spec *job.Spec, q *protocol.Queue) (why, nearest string) {
	longest, heard := d.cfg.Horizon, spec.Slices < 2 || d.Stock.HeardAll(d.Drained)
	if q != nil {
		longest = queues.Longest(q, longest)
	}
	if spec.Slices >= 2 && heard {
		why, nearest = d.apart(spec)
	}
	if why == "" && heard {
		why, nearest = atomizer.Impossible(spec, d.Stock.Kinds(), longest)
	}
	if why == "" && q != nil {
		why, nearest = d.Homes.Nowhere(spec, q, longest)
	}
	return why, nearest
}

// apart says why no slices that stand as close together as a gang asks for could ever run it, and what would fit; empty if some could.
func (d *judge) apart(spec *job.Spec) (why, nearest string) {
	why, nearest, judges := d.Homes.Scattered(spec)
	if judges {
		return why, nearest
	}
	most := d.Stock.Widest(spec, spec.Topology, d.Drained)
	if most >= spec.Slices || most == 0 { // 0: not even one member fits, which atomizer.Impossible explains
		return "", ""
	}
	nearest = fmt.Sprintf("slices: %d", most)
	if wider, found := d.looser(spec); found {
		nearest += fmt.Sprintf(", or topology: %v", wider)
	}
	return fmt.Sprintf("it needs %d slices of %d MiB within one %v, and no %v has more than %d that could run it",
		spec.Slices, atomizer.WholeMiB(spec), spec.Topology, spec.Topology, most), nearest
}

// looser is the narrowest level wider than the gang's own that has enough slices for it.
func (d *judge) looser(spec *job.Spec) (job.Level, bool) {
	for level := spec.Topology + 1; level <= job.SameZone; level++ {
		if d.Stock.Widest(spec, level, d.Drained) >= spec.Slices {
			return level, true
		}
	}
	return job.SameCluster, d.Homes.Across(spec)
}

// passed says whether the job's deadline is over. 0 is as good as Never.
func passed(now quantity.Instant, s *job.Spec) bool { return s.Deadline != 0 && s.Deadline <= now }

// clock is an instant for people, in UTC.
func clock(t quantity.Instant) string { return t.Time().UTC().Format("2006-01-02T15:04:05Z07:00") }
