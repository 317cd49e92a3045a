package settle

import (
	"cmp"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/home/claims"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// As the templates have it (learn).
const mostTold, tellAgain = 64, 16

// class is a desk with jobs of one template that wait, and one that has finished.
type class struct {
	*Settler
	book *record.Book
}

func classroom(waiting int) (z class, done *record.Job) {
	book := record.New(record.Config{}, quiet{}, quiet{})
	desk := claims.New(claims.Config{}, book, quiet{}, quiet{})
	z = class{New(Config{}, book, desk, quiet{}, quiet{}), book}
	for i := range waiting + 1 {
		pupil(z, i, 0)
	}
	done = z.book.Job("j00000")
	z.apply(protocol.Fact{Kind: protocol.Claimed, Job: done.ID, Token: job.Token{Epoch: 1, Seq: 1},
		Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s", Range: job.Range{From: 0, To: 32}, Start: 1, End: 2}}})
	z.apply(protocol.Fact{Kind: protocol.Committed, Job: done.ID, Token: job.Token{Epoch: 1, Seq: 1}, At: 2,
		Body: &protocol.ClaimEnd{Range: job.Range{From: 0, To: 32}, Result: &job.Result{Outcome: job.Done, Progress: 32, Start: 1, End: 2,
			Peak: trp.Vector{40}}}})
	return z, done
}

func (z class) apply(f protocol.Fact) { z.book.Apply(&f) }

// pupil has another job of the template come.
func pupil(z class, i int, priority int32) *record.Job {
	spec := &job.Spec{
		Name: job.ID(fmt.Sprintf("j%05d", i)), Queue: "q", Template: "t", Kind: job.Steps, Total: 32, Grid: 1, Parallelism: 1,
		Priority: priority,
		PerUnit:  time.Second, Theta: 50_000, Deadline: quantity.Never,
		Safe: trp.Table{Bounds: []int64{32}, Least: [][]quantity.Amount{{100}}},
	}
	z.apply(protocol.Fact{Kind: protocol.HomeTaken, Job: spec.Name, Epoch: 1, Generation: 1, At: quantity.Instant(1 + i),
		Body: &protocol.Taking{Spec: spec}})
	j := z.book.Job(spec.Name)
	z.Instruct(j, &protocol.Out{})
	return j
}

// TestTheFirstAreTold, and not more at once than a step should carry; the others in turn, when a while has passed.
func TestTheFirstAreTold(t *testing.T) {
	const waiting = mostTold + 40
	z, done := classroom(waiting)
	youngest := z.book.Job(job.ID(fmt.Sprintf("j%05d", waiting)))
	var told [][2]int // lesson, jobs
	for n := 1; n <= forecast.MaxRuns+3*tellAgain; n++ {
		var out protocol.Out
		z.teach(done, &out)
		facts := len(out.Facts) - 1
		if facts > 0 {
			told = append(told, [2]int{n, facts})
		}
		if facts == mostTold && out.Facts[1].Job != "j00001" {
			t.Fatalf("lesson %d was told %s before the oldest", n, out.Facts[1].Job)
		}
	}
	// 19 runs are just enough. The others hear of them at the 48th lesson, and of 144 they know about as much as of 256.
	all, others := mostTold, waiting-mostTold
	want := [][2]int{{1, all}, {2, all}, {4, all}, {8, all}, {16, all}, {19, all}, {48, others}, {64, all}, {128, all}, {144, others},
		{256, all}}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("jobs were told at lessons %v, want %v", told, want)
	}
	if l := *youngest.Learned(); l.Runs != 144 || l.Safe.Peak(trp.Unscaled) != 40 {
		t.Errorf("the youngest was told of %d runs", l.Runs)
	}
}

// TestUrgentJobsAreToldFirst, though others came before them.
func TestUrgentJobsAreToldFirst(t *testing.T) {
	z, done := classroom(mostTold)
	urgent := pupil(z, mostTold+1, 3)
	var out protocol.Out
	z.teach(done, &out)
	if len(out.Facts) != 1+mostTold || out.Facts[1].Job != urgent.ID || out.Facts[2].Job != "j00001" {
		t.Errorf("%d jobs are told, the first of them is %s, then %s", len(out.Facts)-1, out.Facts[1].Job, out.Facts[2].Job)
	}
}

// school is what lessons come to by definition: every job is looked at each time.
type school struct {
	z            class
	runs, untold int
	heard        *record.Job
	done         bool
	lessons      int
	// atOnce is how many runs each job knew if all that are behind were told at every doubling.
	atOnce map[*record.Job]int
}

// behind is what it is to know too little of n runs at a theta of .05.
func behind(told, n int) bool { return 2*told <= n || told < 19 && n >= 19 }

// byAge is the order in which they are told: priority, then submission, then the name.
func byAge(a, b *record.Job) int {
	return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Submitted, b.Submitted), cmp.Compare(a.ID, b.ID))
}

func (m *school) waiting() []*record.Job {
	all := slices.SortedFunc(m.z.book.Jobs(), byAge)
	return slices.DeleteFunc(all, func(j *record.Job) bool {
		return !j.Active() || j.History().Started() != 0 || len(j.Claims()) > 0 || len(j.Progress().Committed()) > 0
	})
}

// lesson is who is told of the next one, in order.
func (m *school) lesson() (told []job.ID) {
	m.lessons++
	m.runs = min(m.lessons, forecast.MaxRuns)
	all, much := m.waiting(), m.runs == m.lessons && (bits.OnesCount(uint(m.runs)) == 1 || m.runs == 19)
	m.untold++
	if much {
		m.heard, m.done = nil, false
		for _, j := range all {
			if behind(m.atOnce[j], m.runs) {
				m.atOnce[j] = m.runs
			}
		}
	} else if m.done || m.untold < tellAgain {
		return nil
	}
	m.untold, m.done = 0, true
	looked := 0
	for _, j := range all {
		if m.heard != nil && byAge(j, m.heard) <= 0 {
			continue
		}
		if looked++; looked > mostTold {
			m.done = false
			break
		}
		m.heard = j
		if behind(int(j.Learned().Runs), m.runs) {
			told = append(told, j.ID)
		}
	}
	return told
}

// TestTellingInTurnsTellsAll: random lessons, while jobs come, begin and end. Who is told is held against a plain look at all jobs; where
// they are few, what they know against telling everybody at once; and in the end nobody is behind.
func TestTellingInTurnsTellsAll(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		draw := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		z, done := classroom(0)
		m := &school{z: z, atOnce: map[*record.Job]int{}}
		teach := func() {
			want := m.lesson()
			var out protocol.Out
			z.teach(done, &out)
			var got []job.ID
			for _, f := range out.Facts[1:] {
				got = append(got, f.Job)
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("lesson %d was told to %v, want %v", m.lessons, got, want)
			}
		}
		most, jobs, crowd := rapid.SampledFrom([]int{5, mostTold, 4 * mostTold}).Draw(rt, "jobs"), 0, 0
		for range rapid.IntRange(1, 400).Draw(rt, "changes") {
			switch all := m.waiting(); {
			case len(all) < most && draw(3) > 0:
				for range 1 + draw(most-len(all)) {
					jobs++
					m.atOnce[pupil(z, jobs, int32(draw(3)))] = m.runs
				}
			case len(all) > 0 && draw(4) == 0:
				j, token := all[draw(len(all))], job.Token{Epoch: 1, Seq: uint64(1 + jobs)}
				jobs++
				if draw(2) == 0 {
					z.apply(protocol.Fact{Kind: protocol.Ended, Job: j.ID, At: 3,
						Body: &protocol.Final{Verdict: job.Verdict{State: job.Cancelled}}})
					break
				}
				z.apply(protocol.Fact{Kind: protocol.Claimed, Job: j.ID, Token: token,
					Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s", Range: job.Range{From: 0, To: 8}, Start: 3, End: 4}}})
				if draw(2) == 0 { // it was not begun after all
					z.apply(protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: token, At: 3, Body: &protocol.ClaimEnd{}})
				}
			default:
				teach()
			}
			crowd = max(crowd, len(m.waiting()))
		}
		if crowd <= mostTold {
			for _, j := range m.waiting() {
				if told := m.atOnce[j]; int(j.Learned().Runs) != told {
					rt.Fatalf("%s knows of %d runs, told at once it would of %d", j.ID, j.Learned().Runs, told)
				}
			}
		}
		for m.lessons < forecast.MaxRuns+tellAgain*(crowd/mostTold+1) {
			teach()
		}
		for _, j := range m.waiting() {
			if behind(int(j.Learned().Runs), m.runs) ||
				!reflect.DeepEqual(*j.Learned().Safe, *j.Queue().Templates().Of("t").Instruct(j.Spec, j.Learned()).Safe) {
				rt.Fatalf("%s knows of %d runs: %v", j.ID, j.Learned().Runs, j.Learned().Safe)
			}
		}
	})
}

// BenchmarkAdoptTaught is what a job of a taught template costs when it comes.
func BenchmarkAdoptTaught(b *testing.B) {
	z, done := classroom(1)
	var out protocol.Out
	for range forecast.MaxRuns {
		z.teach(done, &out)
	}
	one := z.book.Job("j00001")
	for b.Loop() {
		out.Reset()
		z.Instruct(one, &out)
	}
}

// quiet is whoever embeds a desk, and hears of nothing, with no slices.
type quiet struct{}

func (quiet) Make(*job.Spec) *record.Job                                               { return &record.Job{} }
func (quiet) Opened(*record.Job)                                                       {}
func (quiet) Closed(*record.Job)                                                       {}
func (quiet) Reopened(*record.Job)                                                     {}
func (quiet) Changed(*record.Job)                                                      {}
func (quiet) Touched(*record.Job)                                                      {}
func (quiet) Moved(*record.Job)                                                        {}
func (quiet) QueuesChanged()                                                           {}
func (quiet) Sold(*record.Job, *protocol.Claim)                                        {}
func (quiet) Resold(*record.Job, *protocol.Claim)                                      {}
func (quiet) Freed(*record.Job, *protocol.Claim, quantity.Instant)                     {}
func (quiet) Taken(*record.Job, *protocol.Claim)                                       {}
func (quiet) TurnedDown(quantity.Instant, *record.Job, []job.SliceID)                  {}
func (quiet) Came(quantity.Instant, *record.Job)                                       {}
func (quiet) Paused(*record.Job)                                                       {}
func (quiet) Rests(*record.Job)                                                        {}
func (quiet) Began(*record.Job, quantity.Instant)                                      {}
func (quiet) Ends(*record.Job, *protocol.Claim, *job.Result, job.Range, *protocol.Out) {}
func (quiet) Slices() int                                                              { return 0 }
func (quiet) Node(job.SliceID) job.NodeID                                              { return "" }
func (quiet) Address(job.SliceID) string                                               { return "" }
func (quiet) Memory(job.SliceID) quantity.Amount                                       { return 0 }
func (quiet) Largest(*job.Spec) quantity.Amount                                        { return 0 }
func (quiet) Barred(job.SliceID) bool                                                  { return false }
func (quiet) Beyond(*record.Job) string                                                { return "" }
