package twin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/fake"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/fabric/memory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host"
)

// failing is a journal that breaks at one record: before it is made (the facts are lost, nobody was told), or after it
// (they are durable, nobody was told). Both are what a kill of the daemon leaves. The records of one append are kept one by one, so it
// breaks between the steps of actors that tell each other in one turn too.
type failing struct {
	journal.Journal
	count *int
	at    int
	after bool
}

var errKilled = errors.New("killed by the test")

func (j *failing) Append(records [][]byte) (journal.Position, error) {
	var at journal.Position
	for i := range records {
		*j.count++
		if *j.count != j.at || j.after {
			var err error
			if at, err = j.Journal.Append(records[i : i+1]); err != nil {
				return journal.Position{}, err
			}
		}
		if *j.count == j.at {
			return journal.Position{}, errKilled
		}
	}
	return at, nil
}

// submit asks again under the same request id, with the daemon started again where it has died, until the answer is there.
func (l *live) submit(t *testing.T, a arrival) {
	for range 10 {
		_, err := l.host.Submit(context.Background(), a.request(), a.spec, nil)
		if err == nil {
			return
		}
		if errkind.Of(err) != errkind.Unavailable {
			t.Fatalf("submit %s: %v", a.spec.Name, err)
		}
		l.revive(t)
	}
	t.Fatalf("%s was never accepted", a.spec.Name)
}

// revive starts the daemon again after it has died of the journal.
func (l *live) revive(t *testing.T) {
	t.Helper()
	if err := l.stop(); err != nil && !errors.Is(err, errKilled) {
		t.Fatalf("the daemon ended with %v", err)
	}
	err := l.open()
	if errors.Is(err, errKilled) { // it died while starting
		err = l.open()
	}
	if err != nil {
		t.Fatalf("start again: %v", err)
	}
}

func small(t failer) []arrival {
	return []arrival{
		{0, spec(t, "count", job.Items, 903, 100*time.Millisecond)},
		{time.Second, spec(t, "train", job.Steps, 301, 130*time.Millisecond)},
	}
}

// TestKilledAtEveryAppend stops the daemon at each append in turn, just before and just after it is durable, and starts
// it again from its journal while the subjobs went on: every job finishes, and each unit is committed once.
func TestKilledAtEveryAppend(t *testing.T) {
	killedAtEveryAppend(t, func() (*live, []arrival) {
		l := newLive(t)
		l.options = func(o *host.Options) { o.NoTape = true }
		return l, small(t)
	})
}

// killedAtEveryAppend does so with a daemon and jobs that are made anew for every kill.
func killedAtEveryAppend(t *testing.T, fresh func() (*live, []arrival)) {
	t.Helper()
	appends := killAt(t, 0, false, fresh)
	if appends < 30 {
		t.Fatalf("only %d appends: the scenario shows nothing", appends)
	}
	for _, after := range []bool{false, true} {
		for k := 1; k <= appends; k++ {
			if killAt(t, k, after, fresh); t.Failed() {
				t.Fatalf("killed at append %d of %d, after it was durable: %v", k, appends, after)
			}
		}
	}
}

// killAt plays the jobs with one kill, 0 for none, and returns how many appends there were.
func killAt(t *testing.T, k int, after bool, fresh func() (*live, []arrival)) (appends int) {
	t.Helper()
	l, jobs := fresh()
	l.journal = func(j journal.Journal) journal.Journal { return &failing{j, &appends, k, after} }
	l.playKilled(t, jobs)
	checkOnce(t, l.logged(t), jobs)
	return appends
}

// openWith opens a daemon and submits jobs to it.
func (l *live) openWith(t *testing.T, jobs []arrival) {
	t.Helper()
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	for _, a := range jobs {
		l.submit(t, a)
	}
}

// openKilled opens a daemon that may be killed before it is open, and then once more.
func (l *live) openKilled(t *testing.T) {
	t.Helper()
	err := l.open()
	if errors.Is(err, errKilled) {
		err = l.open()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// playKilled plays arrivals with a daemon that is started again whenever it was killed.
func (l *live) playKilled(t *testing.T, jobs []arrival) {
	synctest.Test(t, func(t *testing.T) {
		l.openKilled(t)
		for _, a := range jobs {
			l.submit(t, a)
			time.Sleep(time.Second)
		}
		if l.drained != "" {
			l.drainZone(t)
		}
		for range 3 {
			if l.finished(len(jobs), time.Hour) {
				break
			}
			l.revive(t)
		}
		if err := l.stop(); err != nil && !errors.Is(err, errKilled) {
			t.Error(err)
		}
	})
}

// logged reads the facts back from the journal: what is durable, whoever was told.
func (l *live) logged(t *testing.T) []protocol.Fact {
	t.Helper()
	l.mu.Lock()
	l.facts = nil
	l.mu.Unlock()
	l.journal = nil
	j, err := l.openJournal()
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Replay(
		func(io.Reader) error { return errors.New("there is a snapshot: the test would miss facts") },
		func(_ journal.Position, data []byte) error { l.took([][]byte{data}); return nil })
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return l.facts
}

// TestManyKills kills the daemon over and over while it works.
func TestManyKills(t *testing.T) {
	jobs := scenario(t)
	l := newLive(t)
	synctest.Test(t, func(t *testing.T) {
		l.openWith(t, jobs)
		for i := 0; !l.finished(len(jobs), time.Duration(7+i%5)*time.Second); i++ {
			if i > 400 {
				t.Fatal("the jobs don't finish")
			}
			l.revive(t)
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	checkOnce(t, l.logged(t), jobs)
}

// TestRoughFabric loses, doubles, delays and reorders every message between the actors. Subjobs start late by as much, so
// the model's go on into their grace.
func TestRoughFabric(t *testing.T) {
	for seed := range uint64(5) {
		jobs := scenario(t)
		l := newLive(t)
		l.model = func(m protocol.Message) fake.Behaviour {
			b := planned(m)
			b.Stubborn = true
			return b
		}
		l.fabric = func() fabric.Fabric {
			return memory.New(memory.Faults{Seed: seed, Loss: 100, Double: 100, MaxDelay: 50 * time.Millisecond})
		}
		synctest.Test(t, func(t *testing.T) { runLive(t, l, jobs, 0) })
		checkOnce(t, l.facts, jobs)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestPowerCut ends the daemon and every subjob at once, several times.
func TestPowerCut(t *testing.T) {
	jobs := scenario(t)
	l := newLive(t)
	synctest.Test(t, func(t *testing.T) {
		l.openWith(t, jobs)
		for range 4 {
			time.Sleep(23 * time.Second)
			l.fake.PowerCut()
			l.revive(t)
		}
		if !l.finished(len(jobs), 2*time.Hour) {
			list, _ := l.jobs(context.Background())
			var text []string
			for _, j := range list {
				text = append(text, fmt.Sprintf("%s %v %d/%d %s", j.Name, j.State, j.Progress, j.Total, j.Reason))
			}
			t.Error(strings.Join(text, "\n"))
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	checkOnce(t, l.logged(t), jobs)
}
