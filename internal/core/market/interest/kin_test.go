package interest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// kindred is a job of a template whose program stays, which takes a minute to start and a second a unit.
func kindred(name job.ID, template string, more func(*job.Spec)) *job.Spec {
	p := trp.Profile{Form: trp.Phases, Combine: trp.Maximum, Phases: []trp.Phase{{UpTo: 1000, Mean: 1 << 20}}}
	s := &job.Spec{Name: name, Queue: "q", Kind: job.Items, Total: 1000, Grid: 1, PerUnit: time.Second, Parallelism: 4, Theta: 10_000,
		Startup: time.Minute, Template: template, Resident: true, Profile: p, Launch: job.Launch{Command: []string{"true"}}}
	s.Safe, _ = trp.Compile(s.Profile, s.Total, s.Theta)
	if more != nil {
		more(s)
	}
	return s
}

// TestWhoGoesOnInTheProgramThatIsThereGoesFirst: a job of the template that stays on the slice is given it before one that came earlier,
// without the time of a start, but for a job of more priority, of another queue, or one that waits since the program is old.
func TestWhoGoesOnInTheProgramThatIsThereGoesFirst(t *testing.T) {
	const now = quantity.Instant(time.Hour)
	resident := &protocol.Resident{Number: kindred("x", "warm", nil).Residence("x"), Since: now.Add(-time.Minute)}
	for name, c := range map[string]struct {
		first  *job.Spec
		change func(kin *job.Spec)
		stays  *protocol.Resident
		want   string
	}{
		"it goes first":            {kindred("a", "cold", nil), nil, resident, "kin"},
		"before one that is plain": {kindred("a", "", func(s *job.Spec) { s.Resident = false }), nil, resident, "kin"},
		"nothing stays there":      {kindred("a", "cold", nil), nil, nil, "a"},
		"another program stays there": {kindred("a", "cold", nil), nil, &protocol.Resident{Number: 1, Since: resident.Since},
			"a"},
		"the first can go on in it too": {kindred("a", "warm", nil), nil, resident, "a"},
		"the first has more priority":   {kindred("a", "cold", func(s *job.Spec) { s.Priority = 1 }), nil, resident, "a"},
		"it is of another queue": {kindred("a", "cold", nil), func(s *job.Spec) { s.Queue = "other" },
			&protocol.Resident{Number: kindred("x", "warm", func(s *job.Spec) { s.Queue = "other" }).Residence("x"),
				Since: resident.Since}, "a"},
		"the program is old": {kindred("a", "cold", nil), nil, &protocol.Resident{Number: resident.Number, Since: now.Add(-tenure)}, "a"},
		"it needs more memory than there is": {kindred("a", "cold", nil), func(s *job.Spec) {
			s.Profile.Phases[0].Mean = 1 << 40
			s.Safe, _ = trp.Compile(s.Profile, s.Total, s.Theta)
		}, resident, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(fifo.Policy{}, starvation.Limit{}, false)
			w.submit(markettest.Job{Of: c.first, Came: now.Add(-time.Minute)})
			kin := kindred("kin", "warm", c.change)
			w.submit(markettest.Job{Of: kin, Came: now.Add(-time.Second)})
			w.offer("s", 1, 1000, protocol.Gap{Start: now, End: now.Add(5 * time.Minute)})
			w.slices[0].Supply.(*markettest.Slice).Stays = c.stays
			w.run(now)
			if len(w.seller.Sold) == 0 || !strings.Contains(w.seller.Sold[0], ": "+c.want+" ") || len(w.seller.Wrong) > 0 {
				t.Fatalf("sold %q, wrong %q", w.seller.Sold, w.seller.Wrong)
			}
		})
	}
}

// TestAPieceIsCutByWhatItsStartTakes: without a start where its program is there, by what the machine has shown where it is not, and by
// what the job declares where nobody has.
func TestAPieceIsCutByWhatItsStartTakes(t *testing.T) {
	const now = quantity.Instant(time.Hour)
	spec := kindred("a", "warm", nil)
	for name, c := range map[string]struct {
		stays  *protocol.Resident
		taught *job.Result
		want   string // 125 units of 1.25 s behind the start
	}{
		"declared":           {nil, nil, "[3600000,3816250)"},
		"seen to be shorter": {nil, &job.Result{Start: 1, Startup: 10 * time.Second}, "[3600000,3766250)"},
		"its program":        {&protocol.Resident{Number: spec.Residence("a"), Since: now}, nil, "[3600000,3756350)"},
		"its program, seen": {&protocol.Resident{Number: spec.Residence("a"), Since: now},
			&job.Result{Start: 1, Stayed: true, Prepare: 20 * time.Second}, "[3600000,3776250)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(fifo.Policy{}, starvation.Limit{}, false)
			w.submit(markettest.Job{Of: spec, Came: now})
			if c.taught != nil {
				w.est.Started(w.jobs[0], "n", c.taught)
			}
			w.offer("s", 1, 1000, protocol.Gap{Start: now, End: now.Add(5 * time.Minute)})
			w.slices[0].Supply.(*markettest.Slice).Stays = c.stays
			w.run(now)
			if len(w.seller.Sold) == 0 || !strings.Contains(w.seller.Sold[0], c.want) || len(w.seller.Wrong) > 0 {
				t.Fatalf("sold %q, wrong %q; want %s", w.seller.Sold, w.seller.Wrong, c.want)
			}
		})
	}
}

// TestASlowStartKeepsNoJobOut: where what was learned of starts leaves no window that is long enough, what the job declares counts.
func TestASlowStartKeepsNoJobOut(t *testing.T) {
	const now = quantity.Instant(time.Hour)
	w := newWorld(fifo.Policy{}, starvation.Limit{}, false)
	j := markettest.Job{Of: kindred("a", "warm", func(s *job.Spec) { s.Startup = 0 }), Came: now}
	j.Learned.Failures = 1
	w.submit(j)
	w.est.Started(w.jobs[0], "n", &job.Result{Start: 1, Startup: 4 * time.Minute})
	w.offer("short", 1, 1000, protocol.Gap{Start: now, End: now.Add(4 * time.Minute)})
	w.run(now)
	if len(w.seller.Sold) != 1 || len(w.seller.Wrong) > 0 {
		t.Errorf("sold %q, wrong %q", w.seller.Sold, w.seller.Wrong)
	}
}

// TestAnotherQueuesManyJobsHideNobody: each queue's first jobs are looked at, where the policy orders by queues.
func TestAnotherQueuesManyJobsHideNobody(t *testing.T) {
	const now = quantity.Instant(time.Hour)
	w := newWorld(fair.Policy{}, starvation.Limit{}, false)
	for i := range mostKin + 10 {
		name := job.ID(fmt.Sprint("many-", i))
		of := kindred(name, "cold", func(s *job.Spec) { s.Queue = "aa-many" })
		w.submit(markettest.Job{Of: of, Came: now.Add(-time.Hour), Had: 1 << 40})
	}
	w.submit(markettest.Job{Of: kindred("first", "cold", nil), Came: now.Add(-time.Minute)})
	w.submit(markettest.Job{Of: kindred("kin", "warm", nil), Came: now.Add(-time.Second)})
	w.offer("s", 1, 1000, protocol.Gap{Start: now, End: now.Add(5 * time.Minute)})
	w.slices[0].Supply.(*markettest.Slice).Stays = &protocol.Resident{Number: kindred("x", "warm", nil).Residence("x"), Since: now}
	w.run(now)
	if len(w.seller.Sold) == 0 || !strings.Contains(w.seller.Sold[0], ": kin ") || len(w.seller.Wrong) > 0 {
		t.Fatalf("sold %q, wrong %q", w.seller.Sold, w.seller.Wrong)
	}
}
