package measure_test

import (
	"math"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// TestGroups: two jobs of group b and one of group a, on two slices for 100 s; one of b never runs. A job of no group counts
// with all alone, and groups come by name.
func TestGroups(t *testing.T) {
	c := collector(t, []measure.Class{{Name: "gpu", Count: 2, Weight: 1000, Memory: 10 * gb}}, measure.Window{})
	in := func(j *workload.Job, group string) *workload.Job { j.Group = group; return j }
	c.Arrived(0, 0, in(plain(0, "q", 20), "b"))
	c.Arrived(0, 1, in(plain(1, "q", 40), "a"))
	c.Arrived(sec(10), 2, in(plain(2, "q", 50), "b"))
	c.Arrived(sec(10), 3, in(plain(3, "q", 30), ""))
	c.Began(sec(10), 0, 0, 1)
	c.Began(sec(20), 1, 0, 1)
	c.Ended(sec(30), piece(0, 10, 30))
	c.Done(sec(30), 0, job.Finished)
	c.Ended(sec(60), piece(1, 20, 60))
	c.Done(sec(60), 1, job.Finished)
	c.Began(sec(60), 3, 0, 1)
	c.Ended(sec(90), piece(3, 60, 90))
	c.Done(sec(90), 3, job.Finished)
	got := c.Finish(sec(100))
	for name, want := range map[string]float64{
		"jobs@a": 1, "jobs@b": 2, "unfinished@a": 0, "unfinished@b": 1, "waitMean@a": 20, "waitMean@b": 50,
		"completionMean@a": 60, "completionMean@b": 60, "completionPerWork@a": 1.5, "completionPerWork@b": (30./20 + 90./50) / 2,
		"usefulWork@a": 40, "usefulWork@b": 20, "utilization@a": .2, "utilization@b": .1, "jobs": 4, "usefulWork": 90,
	} {
		if v := got.Get(name); math.Abs(v-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if n := len(measure.Table()) - 3; len(got) != n+2*len(measure.GroupTable()) || got[n].Name != "jobs@a" ||
		got[n+len(measure.GroupTable())].Name != "jobs@b" {
		t.Errorf("metrics are %v", got)
	}
	if i := measure.About("waitMean@a"); i.Title != "Wait, mean (a)" || i.Unit != measure.Seconds || i.Better != measure.Lower ||
		i.Name != "waitMean@a" {
		t.Errorf("a metric of a group is %+v", i)
	}
	if m, g := measure.Group("waitMean@a"); m != measure.WaitMean || g != "a" {
		t.Errorf("taken apart: %q %q", m, g)
	}
}

// TestMissedDeadlines: of five jobs with a deadline one is over in time, one in the very instant, one later, one is ended by it, and one
// may still keep it, which is not counted; nor is one that could never run, nor one without a deadline. Without any the metric is not
// given.
func TestMissedDeadlines(t *testing.T) {
	c := collector(t, []measure.Class{{Name: "gpu", Count: 9, Weight: 1000, Memory: 10 * gb}}, measure.Window{})
	due := func(number int64, at quantity.Instant) *workload.Job {
		j := plain(number, "q", 20)
		j.Deadline = at
		return j
	}
	for i, at := range []quantity.Instant{sec(31), sec(30), sec(29), sec(40), sec(200), sec(9), 0, quantity.Never} {
		c.Arrived(0, measure.Slot(i), due(int64(i), at))
	}
	c.Done(0, 5, job.Impossible)
	for _, i := range []measure.Slot{0, 1, 2} {
		c.Began(sec(10), i, 0, 1)
	}
	for _, i := range []measure.Slot{0, 1, 2} {
		c.Ended(sec(30), piece(i, 10, 30))
		c.Done(sec(30), i, job.Finished)
	}
	c.Done(sec(40), 3, job.Expired)
	if got := c.Finish(sec(100)).Get(measure.MissedDeadlines); got != .5 {
		t.Errorf("%v of the deadlines are missed, want a half", got)
	}
	for _, v := range collector(t, []measure.Class{{Name: "gpu", Count: 1, Weight: 1}}, measure.Window{}).Finish(sec(1)) {
		if v.Name == measure.MissedDeadlines {
			t.Error("it is given where no job has a deadline")
		}
	}
}

func TestNegotiation(t *testing.T) {
	n := measure.Negotiation{Rounds: 5, Calls: 10, Missed: 2, Variants: 40, Denied: 10, Awards: 8, Withdrawn: 2, Weight: 4e6,
		AgentMessages: 16, Value: 80, Bound: 100, Regret: 4}
	var got measure.Metrics
	n.Set(&got, 80)
	for name, want := range map[string]float64{
		"rounds": 5, "awards": 8, "messagesPerAward": 10, "agentMessagesPerAward": 2, "variantsPerAward": 5, "deniedPerAward": 1.25,
		"missedShare": .2, "withdrawnShare": .25, "clearingMean": .5,
		"jointGain": .05, "clearedShare": .8,
	} {
		if v := got.Get(name); v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if len(got) != len(measure.NegotiationTable()) {
		t.Errorf("%d metrics, the table has %d", len(got), len(measure.NegotiationTable()))
	}
	for i, info := range measure.NegotiationTable() {
		if got[i].Name != info.Name || info.Title == "" || measure.About(info.Name) != info {
			t.Errorf("%s is given as %s, known as %+v", info.Name, got[i].Name, measure.About(info.Name))
		}
	}
	none := measure.Negotiation{}
	got = nil
	if none.Set(&got, 0); !math.IsNaN(got.Get(measure.VariantsPerAward)) || got.Get(measure.Awards) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
