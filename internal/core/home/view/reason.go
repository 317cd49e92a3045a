package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/output"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// why is the reason of a job's present state in one sentence.
func (v *View) why(now quantity.Instant, j *home.Job) string {
	switch {
	case j.Ending().Final():
		return j.Ending().Verdict().Reason
	case j.Ending().OverBy() != quantity.Never:
		left := max(time.Second, j.Ending().OverBy().Sub(now).Round(time.Second))
		return fmt.Sprintf("ending (%s): %s; it is over in %v at the latest", j.Ending().Planned().Reason, awaited(j), left)
	case j.Ending().Planned().State == job.Failed && len(j.Claims()) == 0 && len(j.Output().List()) > 0:
		return fmt.Sprintf("ending (%s): what it completed is being put in its place on %s",
			j.Ending().Planned().Reason, placed(now, j, v.home.Settle().Closes(j)))
	case j.Ending().Stopping():
		return fmt.Sprintf("ending (%s): %d subjobs are being stopped", j.Ending().Planned().Reason, len(j.Claims()))
	case j.Complete() && len(j.Output().List()) > 0:
		return fmt.Sprintf("all of it is done; its last output is being put in its place on %s", placed(now, j, v.home.Settle().Closes(j)))
	case j.Ending().Leaving() != "" && len(j.Claims()) > 0:
		return fmt.Sprintf("%s; first %d subjobs run to their end", j.Ending().Leaving(), len(j.Claims()))
	case j.Ending().Leaving() != "" && len(j.Output().List()) > 0:
		return fmt.Sprintf("%s; first its output is put in its place on %s", j.Ending().Leaving(),
			placed(now, j, v.home.Settle().Closes(j)))
	case j.Ending().Leaving() != "":
		return j.Ending().Leaving()
	case j.Paused && len(j.Claims()) > 0:
		return fmt.Sprintf("paused by its owner: %d subjobs run to their end", len(j.Claims()))
	case ahead(now, j) != nil:
		c := ahead(now, j)
		return fmt.Sprintf("(Resources) it has its place on %s and begins there in %v", places(c), c.Start.Sub(now).Round(time.Second))
	case len(j.Claims()) > 0:
		doing, at := "starting on ", make([]string, 0, len(j.Claims()))
		for i := range j.Claims() {
			c := &j.Claims()[i]
			if place := places(c); !slices.Contains(at, place) {
				at = append(at, place)
			}
			if j.ClaimSet().State(c.Token).Running() != 0 {
				doing = "running on "
			}
		}
		text := doing + strings.Join(at, ", ")
		if j.Learned().Measures(j.Spec) {
			text = fmt.Sprintf("measuring how long a %s takes, %s", j.Spec.UnitName(), text)
		}
		return text
	case j.Paused:
		return "paused by its owner"
	case j.Progress().Asking() > 0:
		return "a window was won, its node is being asked"
	case j.Backoff().Rests() > now && j.Backoff().NodeFailures().Until >= j.Backoff().Rests():
		whose := "its node"
		if j.Width() > 1 && j.Spec.Topology != job.SameNode {
			whose = "one of its nodes"
		}
		return fmt.Sprintf("(Node) %s could not run it, %d times in a row (%s); it is tried again in %v", whose,
			j.Backoff().NodeFailures().Times, j.Backoff().NodeFailures().Text, j.Backoff().Rests().Sub(now).Round(time.Millisecond))
	case j.Backoff().Rests() > now && j.Backoff().Refusals().Until >= j.Backoff().Rests():
		return fmt.Sprintf("(Backoff) %d places in a row that it had won were refused (%s); it asks again in %v",
			j.Backoff().Refusals().Times, j.Backoff().Refusals().Text, j.Backoff().Rests().Sub(now).Round(time.Millisecond))
	case j.Backoff().Rests() > now && j.Backoff().Outlived() > 0:
		return fmt.Sprintf("(Backoff) processes of it outlived the lease, %d times in a row; it is tried again in %v",
			j.Backoff().Outlived(),
			j.Backoff().Rests().Sub(now).Round(time.Millisecond))
	case j.Backoff().Rests() > now:
		if on := j.Backoff().Awaits(); on != "" {
			return fmt.Sprintf("(Resources) a program that stays on %s ends for it", on)
		}
		return fmt.Sprintf("pausing for %v after a subjob without progress: %s", j.Backoff().Rests().Sub(now).Round(time.Millisecond),
			j.Learned().LastDetail)
	case !slices.ContainsFunc(v.floor.Classes(), func(c *window.Class) bool { return c.Usable() > 0 }):
		return "no slice is usable" + v.unusable()
	}
	if v.loans != nil {
		if text, borrows := v.loans.Waits(now, j); borrows {
			return text
		}
	}
	if on, from, ok := v.planner.ReservedFor(j.ID); ok {
		return fmt.Sprintf("(Resources) reserved on %s in %v", on, from.Sub(now).Round(time.Second))
	}
	if v.searches(j) {
		return v.tickets.Waits(now, j)
	}
	so := v.floor.Counts(j)
	c := so.Latest()
	if j.Spec.External && !v.floor.Attended(j) {
		c = explain.Cause{Reason: explain.Unattended}
	}
	if c.Reason == explain.Eligible {
		return "(Resources) every slice is taken; it is asked when a window opens"
	}
	return "(" + slurmReason(c.Reason) + ") " + v.Sentence(j, &c)
}

// awaited says what a cancelled job still waits for.
func awaited(j *home.Job) string {
	if len(j.Claims()) == 0 && len(j.Output().List()) > 0 {
		return "all of it is done, and its last output is being put in its place on " + output.Nodes(j.Output().List())
	}
	stored := 0
	for i := range j.Claims() {
		if j.ClaimSet().State(j.Claims()[i].Token).Stores() {
			stored++
		}
	}
	switch stopped := len(j.Claims()) - stored; {
	case stored == 0:
		return fmt.Sprintf("%d subjobs are being stopped", stopped)
	case stopped == 0:
		return fmt.Sprintf("what %d subjobs have left is being stored", stored)
	default:
		return fmt.Sprintf("%d subjobs are being stopped, and what %d have left is being stored", stopped, stored)
	}
}

// placed describes on which nodes output is being put in its place, which output, and what becomes of the job at closes if they do not
// confirm it.
func placed(now quantity.Instant, j *home.Job, closes quantity.Instant) string {
	text := fmt.Sprintf("%s: %s", output.Nodes(j.Output().List()), output.Units(j.Output().List(), j.Spec))
	if closes != quantity.Never {
		ends := job.Failed
		if j.Ending().Stopping() {
			ends = j.Ending().Planned().State
		}
		text += fmt.Sprintf("; it is %v in %v if that is not confirmed", ends, max(time.Second, closes.Sub(now).Round(time.Second)))
	}
	return text
}

// places says which slices a claim has.
func places(c *protocol.Claim) string {
	if len(c.Members) > 0 {
		return cast(c)
	}
	return strings.Join(names(slicesOf(c)), ", ")
}

func names(list []job.SliceID) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = string(id)
	}
	return out
}

// cast says which member of a gang has which slices.
func cast(c *protocol.Claim) string {
	text := fmt.Sprintf("%d nodes", len(c.Members))
	for i := range c.Members {
		first, also := protocol.Part(c.Slice, c.Also, c.Members, i)
		text += fmt.Sprintf("; member %d: %s", i, first)
		for _, s := range also {
			text += ", " + string(s)
		}
	}
	return text
}

// searches reports whether tickets look for places for a job: for gangs their home does.
func (v *View) searches(j *home.Job) bool { return v.tickets != nil && !index.Wide(j.Spec) }

// slurmReason is the short word that users of Slurm know.
func slurmReason(r explain.Reason) string {
	switch r {
	case explain.Paused:
		return "JobHeldUser"
	case explain.Resting, explain.TurnedDown, explain.Declined, explain.Aside:
		return "Backoff"
	case explain.QueueCap:
		return "QueueCap"
	case explain.Unattended, explain.Unanswered:
		return "Agent"
	case explain.LostToPolicy, explain.InLine:
		return "Priority"
	default:
		return "Resources"
	}
}

// Sentence says what a counted reason means, with what would be needed.
func (v *View) Sentence(j *home.Job, c *explain.Cause) string {
	f := &c.Refusal
	switch c.Reason {
	case explain.Paused:
		return "it was paused"
	case explain.Resting:
		if on := j.Backoff().Awaits(); on != "" {
			return fmt.Sprintf("a program that stays on %s ends for it", on)
		}
		if a := j.Backoff().NodeFailures(); a.Times > 0 && j.History().Fruitless() == 0 {
			return "it paused after its node could not run it (" + a.Text + ")"
		}
		return "it paused after a subjob without progress"
	case explain.Ending:
		return "it is ending"
	case explain.QueueCap:
		if j.Queue().Cap == protocol.NoShare {
			return fmt.Sprintf("the cap of queue %s is smaller than the number of zones, and none of it is this zone's: raise the cap",
				j.Queue().Name)
		}
		return fmt.Sprintf("queue %s may hold %d slices at once and does", j.Queue().Name, j.Queue().Cap)
	case explain.Unattended:
		return "it is external and no agent of it is connected: start one with its key (sluice agent key)"
	case explain.Unanswered:
		return "its agent did not answer before the round closed"
	case explain.Denied:
		return "a variant that it proposed broke a rule; its agent was told which"
	case explain.TurnedDown:
		return "a place that it had won was refused (" + cmp.Or(j.Backoff().Refusals().Text, "its node has taken it since") +
			"); it asks there again after a pause"
	case explain.Declined:
		return v.declined(j)
	case explain.Aside:
		return "it rests after it declined a window that it was picked for"
	case explain.LostToPolicy:
		if v.cfg.Trust != nil {
			return "others in its time were worth more, or wait longer"
		}
		return fmt.Sprintf("policy %s asked another job first", v.cfg.Policy)
	case explain.NoFreeWork:
		return "all its work is claimed or committed"
	case explain.AtParallelism:
		if j.Learned().Measures(j.Spec) {
			return fmt.Sprintf("how long a %s takes is measured first, by one subjob alone", j.Spec.UnitName())
		}
		return fmt.Sprintf("it already runs the %d subjobs its parallelism allows", j.Spec.Parallelism)
	case explain.Unsafe:
		return fmt.Sprintf("its next piece needs %d MiB, more than the slices that are free have", f.Least>>20)
	case explain.TooShort:
		if n := j.Width(); n > 1 {
			return fmt.Sprintf("it needs %d slices at once: its place is planned when no rigid job waits before it", n)
		}
		if j.Learned().Measures(j.Spec) {
			return fmt.Sprintf("the free windows are too short to measure how long a %s takes: that is given %v", j.Spec.UnitName(),
				f.Need.Round(time.Millisecond))
		}
		return fmt.Sprintf("the free windows are too short: the least useful piece takes %v", f.Need.Round(time.Millisecond))
	case explain.NotForever:
		return "it has no walltime and needs a slice on which nothing is reserved"
	case explain.Barred:
		return "its speeds say that it can not run on the kind of slices that are free"
	case explain.Reserved:
		return "its place is reserved where it ends earlier than in any window that is free"
	case explain.InLine:
		return "rigid jobs start in order: it is served when those before it have started"
	default:
		return "it is asked when a window opens"
	}
}

// declined says for what a job has declined a window that it was picked for.
func (v *View) declined(j *home.Job) string {
	refusal, text := v.floor.Declining(j)
	if text == "" {
		text = "what it may use is not what it was: " +
			v.Sentence(j, &explain.Cause{Reason: explain.ReasonOf(refusal.Why), Refusal: refusal})
	}
	return "it was picked for a window and declined (" + text + "); the next in order was asked, and it is asked again after a pause"
}

// unusable is why no slice is usable, by the first slice with a reason; empty if none has one.
func (v *View) unusable() string {
	for _, sl := range v.floor.Slices() {
		if why := v.slices.Seen(sl).Why; why != "" {
			return ": " + why
		}
	}
	return ""
}
