package zone

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// why is the reason of a job's present state in one sentence.
func (z *Zone) why(now quantity.Instant, j *home.Job) string {
	switch {
	case j.Verdict().State.Final():
		return j.Verdict().Reason
	case j.Ending().State == job.Failed && len(j.Claims()) == 0 && len(j.Publishing()) > 0:
		return fmt.Sprintf("ending (%s): what it completed is being put in its place on %s", j.Ending().Reason, j.Publishing()[0].Node)
	case j.Ending().State != job.Waiting:
		return fmt.Sprintf("ending (%s): %d subjobs are being stopped", j.Ending().Reason, len(j.Claims()))
	case j.Complete() && len(j.Publishing()) > 0:
		return fmt.Sprintf("all of it is done; its last output is being put in its place on %s", j.Publishing()[0].Node)
	case j.Held && len(j.Claims()) > 0:
		return fmt.Sprintf("paused by its owner: %d subjobs run to their end", len(j.Claims()))
	case len(j.Claims()) == 1:
		return "running on " + string(j.Claims()[0].Slice)
	case len(j.Claims()) > 1:
		var at []string
		for i := range j.Claims() {
			at = append(at, string(j.Claims()[i].Slice))
		}
		return "running on " + strings.Join(at, ", ")
	case j.Held:
		return "paused by its owner"
	case j.Asking() > 0:
		return "a window was won, its node is being asked"
	case j.RestsUntil() > now && j.Ailed().Until >= j.RestsUntil():
		return fmt.Sprintf("(Node) its node could not run it, %d times in a row (%s); it is tried again in %v",
			j.Ailed().Times, j.Ailed().Text, j.RestsUntil().Sub(now).Round(time.Millisecond))
	case j.RestsUntil() > now && j.Refused().Until >= j.RestsUntil():
		return fmt.Sprintf("(Backoff) %d places in a row that it had won were refused (%s); it asks again in %v",
			j.Refused().Times, j.Refused().Text, j.RestsUntil().Sub(now).Round(time.Millisecond))
	case j.RestsUntil() > now:
		return fmt.Sprintf("pausing for %v after a subjob without progress: %s", j.RestsUntil().Sub(now).Round(time.Millisecond), j.Learned().LastDetail)
	case !z.usable():
		return "no slice is usable" + z.unusable()
	}
	if sl, r := z.planner.ReservedFor(j.ID); r != nil {
		return fmt.Sprintf("(Resources) reserved on %s in %v", sl.Name(), r.Start.Sub(now).Round(time.Second))
	}
	so := z.floor.Counts(&entryOf(j).floor)
	c := so.Latest()
	if j.Spec.External && !entryOf(j).floor.Attended() {
		c = market.Cause{Reason: market.Unattended}
	}
	if c.Reason == market.Eligible {
		return "(Resources) every slice is taken; it is asked when a window opens"
	}
	return "(" + slurmReason(c.Reason) + ") " + z.sentence(j, &c)
}

// slurmReason is the short word that users of Slurm know.
func slurmReason(r market.Reason) string {
	switch r {
	case market.Held:
		return "JobHeldUser"
	case market.Resting, market.TurnedDown, market.Declined, market.Aside:
		return "Backoff"
	case market.QueueCap:
		return "QueueCap"
	case market.Unattended, market.Unanswered:
		return "Agent"
	case market.LostToPolicy, market.InLine:
		return "Priority"
	default:
		return "Resources"
	}
}

// sentence says what a counted reason means, with what would be needed.
func (z *Zone) sentence(j *home.Job, c *market.Cause) string {
	f := &c.Refusal
	switch c.Reason {
	case market.Held:
		return "it was paused"
	case market.Resting:
		return "it paused after a subjob without progress"
	case market.Ending:
		return "it is ending"
	case market.QueueCap:
		return fmt.Sprintf("queue %s may hold %d slices at once and does", j.Queue().Name, j.Queue().Cap)
	case market.Unattended:
		return "it is external and no agent of it is connected: start one with its key (sluice agent key)"
	case market.Unanswered:
		return "its agent did not answer before the round closed"
	case market.Denied:
		return "a variant that it proposed broke a rule; its agent was told which"
	case market.TurnedDown:
		return "a place that it had won was refused (" + cmp.Or(j.Refused().Text, "its node has taken it since") + "); it asks there again after a pause"
	case market.Declined:
		return z.declined(j)
	case market.Aside:
		return "it rests after it declined a window that it was picked for"
	case market.LostToPolicy:
		if z.cfg.Market != nil {
			return "others in its time were worth more, or wait longer"
		}
		return fmt.Sprintf("policy %s asked another job first", z.cfg.Policy.Name())
	case market.NoFreeWork:
		return "all its work is claimed or committed"
	case market.AtParallelism:
		return fmt.Sprintf("it already runs the %d subjobs its parallelism allows", j.Spec.Parallelism)
	case market.Unsafe:
		return fmt.Sprintf("its next piece needs %d MiB, more than the slices that are free have", f.Least>>20)
	case market.TooShort:
		if n := j.Width(); n > 1 {
			return fmt.Sprintf("it needs %d slices at once: its place is planned when no rigid job waits before it", n)
		}
		return fmt.Sprintf("the free windows are too short: the least useful piece takes %v", f.Need.Round(time.Millisecond))
	case market.NotForever:
		return "it has no walltime and needs a slice on which nothing is reserved"
	case market.Barred:
		return "its speeds say that it can not run on the kind of slices that are free"
	case market.Reserved:
		return "its place is reserved where it ends earlier than in any window that is free"
	case market.InLine:
		return "rigid jobs start in order: it is served when those before it have started"
	default:
		return "it is asked when a window opens"
	}
}

// declined says for what a job has declined a window that it was picked for.
func (z *Zone) declined(j *home.Job) string {
	refusal, text, _ := entryOf(j).floor.Declining()
	if text == "" {
		text = "what it may use is not what it was: " + z.sentence(j, &market.Cause{Reason: market.ReasonOf(refusal.Why), Refusal: refusal})
	}
	return "it was picked for a window and declined (" + text + "); the next in order was asked, and it is asked again after a pause"
}

// Explain says why a job waits or where it runs: counts of every reason, and how it matches each slice.
func (z *Zone) Explain(now quantity.Instant, id job.ID) (status.Explanation, bool) {
	j := z.home.Job(id)
	if j == nil {
		return status.Explanation{}, false
	}
	return z.explain(now, j), true
}

// ExplainFiled says the same of a job that was left to the archive, from its record, which is not kept.
func (z *Zone) ExplainFiled(now quantity.Instant, r *protocol.Record) status.Explanation {
	return z.explain(now, z.home.Outsider(r))
}

func (z *Zone) explain(now quantity.Instant, s *home.Job) status.Explanation {
	j := z.detail(now, s)
	e := status.Explanation{Job: j, Summary: fmt.Sprintf("%s is %s: %s", s.ID, j.State, j.Reason)}
	for _, c := range z.floor.Counts(&entryOf(s).floor).List {
		if c.Reason != market.Eligible {
			e.Reasons = append(e.Reasons, status.Reason{Text: z.sentence(s, &c), Count: c.N, Last: c.Last})
		}
	}
	slices.SortStableFunc(e.Reasons, func(a, b status.Reason) int { return cmp.Compare(b.Count, a.Count) })
	e.Slices = z.matches(now, s)
	z.compare(now, s, &e)
	return e
}

// DryRun says what would happen to a job that is not submitted: where it would fit and when it would start.
func (z *Zone) DryRun(now quantity.Instant, spec *job.Spec) status.Explanation {
	j, v := z.home.Outsider(&protocol.Record{Job: spec.Name, Spec: spec, Queue: spec.Queue, Submitted: now}), z.viewer(now)
	e := status.Explanation{Job: v.show(j), Slices: z.matches(now, j)}
	early, found := v.nextStart(j)
	switch {
	case !found:
		e.Summary = "it would wait: no free window holds its first piece now"
	case early <= now && z.guess(now, j) == 0, e.Job.StartLate <= now:
		e.Summary = "it would start at once"
	default:
		e.Summary = "it is likely to start " + within(now, e.Job.StartEarly, e.Job.StartLate)
	}
	if n := z.home.Waiting(); n > 0 && found && z.cfg.Market != nil {
		e.Summary += fmt.Sprintf("; %d waiting jobs may bid more", n)
	} else if n > 0 && found {
		e.Summary += fmt.Sprintf("; %d waiting jobs could be asked before it, by policy %s", n, z.cfg.Policy.Name())
	}
	return e
}

// matches says for every slice what the job's next piece would need there.
func (z *Zone) matches(now quantity.Instant, j *home.Job) []status.SliceFit {
	out := make([]status.SliceFit, 0, len(z.floor.Slices()))
	fits := make([]*status.SliceFit, len(z.floor.Classes()))
	for sl := range z.offeredSlices() {
		c := sl.floor.Class()
		if fits[c.At()] == nil {
			fits[c.At()] = z.match(now, j, c)
		}
		f := *fits[c.At()]
		if f.Slice = sl.id; !sl.view.Usable {
			f.Fits, f.Reach, f.Why = false, job.Range{}, sl.view.Why
		}
		out = append(out, f)
	}
	return out
}

// match says what the job's next piece would need on a usable slice of a class.
func (z *Zone) match(now quantity.Instant, j *home.Job, c *market.Class) *status.SliceFit {
	v := j.View()
	v.Running = 0
	f := &status.SliceFit{Capacity: c.Capacity[trp.Memory]}
	if free := job.NextFree(0, j.Spec.Total, j.Committed()); !free.Empty() {
		f.Least = j.Safe().LeastOver(free.From, free.From+1, j.Learned().MemoryScale)
	}
	end := quantity.Never
	if j.Spec.Kind != job.Rigid {
		end = now.Add(z.cfg.Horizon)
	}
	p, r := atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec), Start: now, End: end})
	switch r.Why {
	case atomizer.Interested:
		f.Fits, f.Reach = true, p.Range
		f.Why = fmt.Sprintf("a piece %v would take %v", p.Range, p.Wall.Round(time.Millisecond))
	case atomizer.Unsafe:
		f.Why = fmt.Sprintf("its next piece needs %d MiB, the slice has %d MiB", r.Least>>20, f.Capacity>>20)
	case atomizer.TooShort:
		f.Why = fmt.Sprintf("its least useful piece takes %v, the horizon is %v", r.Need.Round(time.Millisecond), z.cfg.Horizon)
	case atomizer.Barred:
		f.Why = fmt.Sprintf("its speeds say that it can not run on %s", c.Profile)
	default:
		f.Why = "nothing of it is left to run"
	}
	return f
}

// unusable says why no slice is usable, in the words of the first that says; empty if none does.
func (z *Zone) unusable() string {
	for sl := range z.offeredSlices() {
		if sl.view.Why != "" {
			return ": " + sl.view.Why
		}
	}
	return ""
}
