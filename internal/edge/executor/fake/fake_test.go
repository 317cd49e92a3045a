package fake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/journal"
)

func suiteModel(m protocol.Message) fake.Behaviour {
	switch executortest.Program(m.Body.(*protocol.Work).Spec.Launch.Command[0]) {
	case executortest.Quick:
		return fake.Behaviour{PerUnit: 10 * time.Millisecond}
	case executortest.Failing:
		return fake.Behaviour{PerUnit: time.Hour, FailAfter: 50 * time.Millisecond, Fails: job.ExitFailed, Code: 3, Detail: "it broke"}
	case executortest.Stubborn:
		return halfway(fake.Behaviour{Stubborn: true})
	default:
		return halfway(fake.Behaviour{})
	}
}

// halfway makes five of ten units complete as good as at once: the sixth takes an hour.
func halfway(b fake.Behaviour) fake.Behaviour {
	b.PerUnit = time.Hour
	b.Restore = -5 * time.Hour
	b.Report = 100 * time.Millisecond
	return b
}

func TestConformance(t *testing.T) {
	executortest.Run(t, true, func(*testing.T) executortest.Harness {
		var ex *fake.Executor
		return executortest.Harness{
			Open: func(deliver func(protocol.Message)) executor.Executor {
				if ex == nil {
					ex = fake.New(deliver, suiteModel)
				} else {
					ex = ex.Reopen(deliver)
				}
				return ex
			},
			Launch: func(p executortest.Program) job.Launch { return job.Launch{Command: []string{string(p)}} },
			Notice: func(tok job.Token) (executor.Notice, bool) { return ex.Notice(tok) },
			Kill:   func(tok job.Token) { ex.Kill(tok) },
		}
	})
}

// start makes a lease of ten units, 100 s each, with ten seconds of grace.
func start(kind job.Kind, grid int64, length time.Duration) protocol.Message {
	now := quantity.At(time.Now())
	spec := &job.Spec{Name: "j", Kind: kind, Total: 10, Grid: grid, Launch: job.Launch{Grace: 10 * time.Second},
		Checkpoint: 5 * time.Second, Restore: 7 * time.Second}
	return protocol.Message{
		Kind: protocol.Start, Token: job.Token{Epoch: 1, Seq: 1}, Job: "j",
		Body: &protocol.Work{Placement: protocol.Placement{Range: job.Range{From: 0, To: 10}, Start: now, End: now.Add(length),
			Plan: protocol.Plan{Run: 1000 * time.Second, Resume: job.Token{Epoch: 1}}}, Spec: spec},
	}
}

func TestEndings(t *testing.T) {
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	for _, c := range []struct {
		name   string
		kind   job.Kind
		grid   int64
		length time.Duration
		change func(*fake.Behaviour)
		do     func(*fake.Executor, protocol.Message)
		want   job.Result
		ran    time.Duration
	}{
		{name: "by plan", kind: job.Steps, length: at(2000), want: job.Result{Outcome: job.Done, Progress: 10, Checkpoint: true},
			ran: at(7 + 1000 + 5)},
		{name: "yields on the grid", kind: job.Steps, grid: 2, length: at(567), want: job.Result{Outcome: job.Yielded, ExitCode: 85,
			Progress: 4, Checkpoint: true}, ran: at(562)},
		{name: "nothing done yet", kind: job.Steps, length: at(50), want: job.Result{Outcome: job.Yielded, ExitCode: 85}, ran: at(45)},
		{
			name: "no time for a checkpoint", kind: job.Steps, length: at(567), change: func(b *fake.Behaviour) { b.Checkpoint = at(11) },
			want: job.Result{Outcome: job.DeadlineKilled, ExitCode: -1, Signal: 9}, ran: at(567),
		},
		{
			name: "checkpoints on the way", kind: job.Steps, length: at(567), change: func(b *fake.Behaviour) {
				b.Stubborn, b.Every = true,
					3
			},
			want: job.Result{Outcome: job.DeadlineKilled, ExitCode: -1, Signal: 9, Progress: 3, Checkpoint: true}, ran: at(567),
		},
		{name: "rigid", kind: job.Rigid, length: at(567), want: job.Result{Outcome: job.DeadlineKilled, ExitCode: -1, Signal: 9},
			ran: at(567)},
		{
			name: "slower than planned", kind: job.Items, length: at(2000), change: func(b *fake.Behaviour) { b.PerUnit *= 3 },
			want: job.Result{Outcome: job.Yielded, ExitCode: 85, Progress: 6}, ran: at(1995),
		},
		{
			name: "memory", kind: job.Items, length: at(2000), change: func(b *fake.Behaviour) {
				b.FailAfter, b.Fails, b.Code = at(220),
					job.MemoryKilled, -1
			},
			want: job.Result{Outcome: job.MemoryKilled, ExitCode: -1, Progress: 2}, ran: at(220),
		},
		{
			name: "extended work takes longer", kind: job.Items, length: at(2000),
			do: func(e *fake.Executor, m protocol.Message) {
				e.Do(protocol.Message{Kind: protocol.Deadline, Token: m.Token, Body: &protocol.Shift{End: m.Body.(*protocol.Work).End,
					Range: job.Range{From: 0, To: 12}}}, journal.Position{})
			},
			want: job.Result{Outcome: job.Done, Progress: 12}, ran: at(7 + 1200 + 5),
		},
		{
			name: "no known end", kind: job.Items, length: -1,
			want: job.Result{Outcome: job.Done, Progress: 10}, ran: at(7 + 1000 + 5),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := make(chan protocol.Message, 8)
				ex := fake.New(func(m protocol.Message) { said <- m }, func(m protocol.Message) fake.Behaviour {
					b := fake.Planned(m)
					if c.change != nil {
						c.change(&b)
					}
					return b
				})
				m := start(c.kind, max(1, c.grid), c.length)
				if c.length < 0 {
					m.Body.(*protocol.Work).End = quantity.Never
				}
				ex.Do(m, journal.Position{})
				if c.do != nil {
					c.do(ex, m)
				}
				if k := (<-said).Kind; k != protocol.Started {
					t.Fatalf("first message kind %d", k)
				}
				got := *(<-said).Body.(*protocol.Conclusion).Result
				if got.Ran() != c.ran {
					t.Errorf("ran %v, want %v", got.Ran(), c.ran)
				}
				got.Start, got.End, got.FirstProgress = 0, 0, 0
				if got != c.want {
					t.Errorf("got %+v\nwant %+v", got, c.want)
				}
			})
		})
	}
}

func TestStuckAndPowerCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan protocol.Message, 8)
		deliver := func(m protocol.Message) { said <- m }
		ex := fake.New(deliver, fake.Planned)
		m, n := start(job.Items, 1, time.Hour), start(job.Items, 1, time.Hour)
		n.Token.Seq = 2
		ex.Do(m, journal.Position{Seq: 3})
		ex.Do(n, journal.Position{Seq: 4})
		<-said
		<-said
		time.Sleep(310 * time.Second)
		if !ex.Stick(m.Token) || ex.Stick(m.Token) || ex.Kill(m.Token) {
			t.Error("want the subjob stuck once, and not to be killed afterwards")
		}
		if got := <-said; got.Kind != protocol.Stuck || got.Token != m.Token {
			t.Errorf("got %+v, want Stuck", got)
		}
		ex.PowerCut()
		synctest.Wait()
		if len(said) != 0 {
			t.Error("something was said after the power cut")
		}
		ex = ex.Reopen(deliver)
		found, err := ex.Find(t.Context())
		if err != nil || len(found) != 2 {
			t.Fatalf("found %v, %v", found, err)
		}
		if f := found[0]; f.Alive || f.Stuck || f.Result == nil || f.Witness.Seq != 3 {
			t.Errorf("first: %+v", f)
		}
		if f := found[1]; f.Result == nil || f.Result.Outcome != job.NodeFailed || f.Result.Progress != 3 {
			t.Errorf("second: %+v, result %+v, want that its node failed at 3", f, f.Result)
		}
	})
}

func TestReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var progress []int64
		ex := fake.New(func(m protocol.Message) {
			if m.Kind == protocol.Report {
				progress = append(progress, m.Body.(*protocol.Observation).Progress)
			}
		}, func(m protocol.Message) fake.Behaviour {
			return fake.Behaviour{PerUnit: 100 * time.Second, Report: 250 * time.Second}
		})
		ex.Do(start(job.Items, 1, time.Hour), journal.Position{})
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(progress) != 3 && len(progress) != 4 {
			t.Fatalf("reports %v, want 2, 5, 7", progress)
		}
		for i, want := range []int64{2, 5, 7} {
			if progress[i] != want {
				t.Errorf("report %d says %d, want %d", i, progress[i], want)
			}
		}
	})
}
