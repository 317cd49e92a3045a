package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
	"sluice.dev/sluice/internal/edge/archive/memory"
	"sluice.dev/sluice/internal/host/trouble"
)

// As package archivist has them.
const (
	maxFilings    = 4096
	gatherTime    = 100 * time.Millisecond
	maxOutdated   = 256
	outdatedAgain = 10 * time.Second
)

// cabinet is an archive that asks before it changes anything.
type cabinet struct {
	archive.Archive
	mu     sync.Mutex
	before func() error
	recall error // of every Recall
}

func (c *cabinet) ask() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before == nil {
		return nil
	}
	return c.before()
}

func (c *cabinet) set(before func() error, recall error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.recall = before, recall
}

func (c *cabinet) File(parts []archive.Part) error {
	if err := c.ask(); err != nil {
		return err
	}
	return c.Archive.File(parts)
}

func (c *cabinet) Discard(list []archive.Discarded) error {
	if err := c.ask(); err != nil {
		return err
	}
	return c.Archive.Discard(list)
}

func (c *cabinet) Recall(role protocol.Role, name job.ID) (archive.Part, bool, error) {
	c.mu.Lock()
	err := c.recall
	c.mu.Unlock()
	if err != nil {
		return archive.Part{}, false, err
	}
	return c.Archive.Recall(role, name)
}

// librarian is a gate that says what a test wants it to say to the archive, and keeps what it hears.
type librarian struct {
	toyGate
	mu             sync.Mutex
	heard          []protocol.Message
	say            func(in *protocol.Message) []protocol.Message
	count, changes int64
}

func (g *librarian) Step(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = append(g.heard, in)
	if in.Kind == protocol.SetQueue {
		g.fact(out, protocol.Fact{Kind: protocol.QueueSet, Body: in.Body.(*protocol.QueueSetting).Queue})
	}
	if in.From.Role == protocol.Person {
		out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Reply, To: in.From,
			Body: &protocol.Receipt{Request: in.Body.(protocol.Requested).RequestID()}, Job: in.Job})
	}
	if g.say != nil {
		out.Effects = append(out.Effects, g.say(&in)...)
	}
}

func (g *librarian) Recalls(m *protocol.Message) (job.ID, bool) { return m.Job, m.Job != "" }
func (g *librarian) Life(job.ID) job.Generation                 { return 0 }
func (g *librarian) Archived() (int64, int64)                   { return g.count, g.changes }

// hears lists what it has heard of a kind.
func (g *librarian) hears(k protocol.Kind) (list []protocol.Message) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.heard {
		if m.Kind == k {
			list = append(list, m)
		}
	}
	return list
}

// over are the facts of a job that is over.
func over(name job.ID, g job.Generation, at quantity.Instant) []protocol.Fact {
	return []protocol.Fact{
		{Kind: protocol.JobAccepted, Job: name, Generation: g, At: at, Body: &protocol.Acceptance{Spec: spec(name)}},
		{Kind: protocol.JobClosed, Job: name, At: at, Body: &protocol.Final{Verdict: job.Verdict{State: job.Finished}}},
	}
}

func filing(name job.ID, g job.Generation) protocol.Message {
	return protocol.Message{Kind: protocol.File, To: protocol.Address{Role: protocol.Archive}, Job: name, Generation: g,
		Filed: over(name, g, 1)}
}

func gatePart(t *testing.T, name job.ID, g job.Generation, at quantity.Instant) archive.Part {
	t.Helper()
	p, err := archive.NewPart(protocol.Gate, name, g, over(name, g, at))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func purging(name job.ID, before job.Generation) protocol.Message {
	return protocol.Message{Kind: protocol.Purge, To: protocol.Address{Role: protocol.Archive}, Job: name, Generation: before}
}

func archiveRig(t *testing.T) (*rig, *librarian, *cabinet) {
	r, g, c := newRig(t), &librarian{}, &cabinet{Archive: memory.New()}
	r.actors = func() actor.Set { return actor.Alone("z", "n", g, &toyZone{}, &toyNode{}) }
	r.options = func(o *Options) {
		o.Archive = func(string, bool) (archive.Archive, error) { return c, nil }
		o.NoTape = true
	}
	return r, g, c
}

// What an actor files is answered once it is durable, and not before: the actor forgets it then.
func TestAFilingIsAnsweredWhenItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g, c := archiveRig(t)
		release := make(chan struct{})
		c.set(func() error { <-release; return nil }, nil)
		g.say = func(in *protocol.Message) []protocol.Message {
			if in.Kind == protocol.Cancel {
				return []protocol.Message{filing("a", 2), filing("b", 1)}
			}
			return nil
		}
		h, stop := r.start(t)
		if err := h.Cancel(context.Background(), "", "a"); err != nil { // the loop goes on
			t.Fatal(err)
		}
		time.Sleep(2 * gatherTime)
		synctest.Wait()
		if n := len(g.hears(protocol.Archived)); n != 0 {
			t.Fatalf("%d filings were answered before they were durable", n)
		}
		close(release)
		synctest.Wait()
		got := g.hears(protocol.Archived)
		if len(got) != 2 || got[0].Job != "a" || got[0].Generation != 2 || got[1].Job != "b" || got[0].From.Role != protocol.Archive {
			t.Fatalf("answers: %+v", got)
		}
		size, err := c.Size()
		if err != nil || got[0].Body.(*protocol.Archival).Count != size.Changes || size.Changes == 0 {
			t.Errorf("it says change %d of %+v, %v", got[0].Body.(*protocol.Archival).Count, size, err)
		}
		for _, m := range got {
			if p, ok, _ := c.Archive.Recall(protocol.Gate, m.Job); !ok || p.Generation != m.Generation {
				t.Errorf("%s was answered and is not there", m.Job)
			}
			if len(m.Filed) == 0 { // the answer is about an archived job too
				t.Errorf("%s: nothing was recalled", m.Job)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What can't be filed is not answered, wherever it stands among others that are: its actor would forget the only record of it.
func TestWhatCanNotBeFiledIsNotAnswered(t *testing.T) {
	for at := range 3 {
		synctest.Test(t, func(t *testing.T) {
			r, g, c := archiveRig(t)
			list := []protocol.Message{filing("a", 1), filing("b", 1), filing("c", 1)}
			bad := list[at].Job
			list[at].Filed[0].Job = "another"
			g.say = func(in *protocol.Message) []protocol.Message {
				if in.Kind == protocol.Cancel {
					return list
				}
				return nil
			}
			h, stop := r.start(t)
			if err := h.Cancel(context.Background(), "", "a"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * gatherTime)
			synctest.Wait()
			answered := map[job.ID]bool{}
			for _, m := range g.hears(protocol.Archived) {
				answered[m.Job] = true
			}
			for _, m := range list {
				_, there, err := c.Archive.Recall(protocol.Gate, m.Job)
				if want := m.Job != bad; err != nil || there != want || answered[m.Job] != want {
					t.Errorf("job %s, with %s bad: it is archived is %v, said is %v; %v", m.Job, bad, there, answered[m.Job], err)
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A purge behind a filing removes what was filed, though both waited together.
func TestWhatIsPurgedIsNotFiledBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g, c := archiveRig(t)
		g.say = func(in *protocol.Message) []protocol.Message {
			if in.Kind == protocol.Cancel {
				return []protocol.Message{filing("a", 2), filing("b", 5), purging("a", 3), purging("b", 5), filing("c", 1), purging("c", 0)}
			}
			return nil
		}
		h, stop := r.start(t)
		if err := h.Cancel(context.Background(), "", "x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * gatherTime)
		synctest.Wait()
		for name, want := range map[job.ID]bool{"a": false, "b": true, "c": false} {
			if _, ok, _ := c.Archive.Recall(protocol.Gate, name); ok != want {
				t.Errorf("%s is there: %v", name, ok)
			}
		}
		var got []string
		for _, m := range g.hears(protocol.Purged) {
			got = append(got, fmt.Sprintf("%s %d", m.Job, m.Generation))
		}
		if !slices.Equal(got, []string{"a 3", "b 5", "c 0"}) {
			t.Errorf("purged: %v", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// While the disk is full jobs stay in memory, people are told, everything else goes on, and what waits is filed when there is room.
func TestAFullArchiveTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g, c := archiveRig(t)
		c.set(errFull, nil)
		g.say = func(in *protocol.Message) []protocol.Message {
			if in.Kind == protocol.Cancel {
				return []protocol.Message{filing(in.Job, 1)}
			}
			return nil
		}
		h, stop := r.start(t)
		for i := range maxFilings + 50 { // more than there is room for
			if err := h.Cancel(context.Background(), "", job.ID(fmt.Sprintf("j%d", i))); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				time.Sleep(2 * gatherTime)
				synctest.Wait() // it is tried alone, and the others wait behind it
			}
		}
		synctest.Wait()
		if about, err := h.About(context.Background()); err != nil || !strings.Contains(about.Trouble, "stay in memory") {
			t.Errorf("%v, %q", err, about.Trouble)
		}
		c.set(nil, nil)
		time.Sleep(2 * trouble.RetryLast)
		synctest.Wait()
		if about, err := h.About(context.Background()); err != nil || about.Trouble != "" {
			t.Errorf("%v, %q", err, about.Trouble)
		}
		if n := len(g.hears(protocol.Archived)); n != maxFilings+1 {
			t.Errorf("%d filings were answered", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// An archive that takes nothing more ends the daemon: jobs would stay in memory for ever.
func TestABrokenArchiveEndsTheDaemon(t *testing.T) {
	r, g, c := archiveRig(t)
	c.set(func() error { return errkind.Errorf(errkind.Corrupt, "archive x is damaged") }, nil)
	g.say = func(in *protocol.Message) []protocol.Message {
		if in.Kind == protocol.Cancel {
			return []protocol.Message{filing(in.Job, 1)}
		}
		return nil
	}
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Run(context.Background()) }()
	_ = h.Cancel(context.Background(), "", "a") // it is answered, or the daemon was quicker
	if err := <-ended; errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "archive x is damaged") {
		t.Errorf("%v", err)
	}
}

// Who is kept long enough is told to the gate, the oldest end first, no more at once than it can answer, and again until it is gone.
func TestWhoIsKeptLongEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g, c := archiveRig(t)
		options := r.options
		r.options = func(o *Options) {
			options(o)
			o.Retain, o.MostArchived = time.Hour, 10
		}
		now := quantity.At(time.Now())
		var parts []archive.Part
		for i := range 300 { // long over
			at := now.Add(-2*time.Hour + time.Duration(i)*time.Second)
			parts = append(parts, gatePart(t, job.ID(fmt.Sprintf("old-%03d", i)), 3, at))
		}
		for i := range 20 { // too many of those
			at := now.Add(time.Duration(i-60) * time.Second)
			parts = append(parts, gatePart(t, job.ID(fmt.Sprintf("young-%02d", i)), 3, at))
		}
		var answer bool
		g.say = func(in *protocol.Message) []protocol.Message {
			if in.Kind == protocol.Outdated && answer {
				return []protocol.Message{purging(in.Job, in.Generation+1)}
			}
			return nil
		}
		_, stop := r.start(t)
		if err := c.Archive.File(parts); err != nil {
			t.Fatal(err)
		}
		time.Sleep(outdatedAgain / 2)
		synctest.Wait()
		got := g.hears(protocol.Outdated)
		if len(got) != maxOutdated || got[0].Job != "old-000" || got[0].Generation != 3 || got[maxOutdated-1].Job != "old-255" ||
			got[0].To.Role != protocol.Gate {
			t.Fatalf("told of %d", len(got))
		}
		g.mu.Lock()
		answer = true
		g.mu.Unlock()
		time.Sleep(2 * outdatedAgain)
		synctest.Wait()
		size, err := c.Size()
		if err != nil || size.Jobs != 10 || len(g.hears(protocol.Purged)) != 310 {
			t.Errorf("%+v, %v; %d purged", size, err, len(g.hears(protocol.Purged)))
		}
		if _, ok, _ := c.Archive.Recall(protocol.Gate, "young-10"); !ok {
			t.Error("the youngest are to stay")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A message about an archived job brings what was filed of it; one whose record can't be read is not stepped, and a person is told.
func TestARecordThatCanNotBeReadIsNotMissing(t *testing.T) {
	r, g, c := archiveRig(t)
	h, _ := r.start(t)
	if err := c.Archive.File([]archive.Part{gatePart(t, "a", 1, 1)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []job.ID{"a", "none"} {
		if err := h.Delete(context.Background(), "", name); err != nil {
			t.Fatal(err)
		}
	}
	got := g.hears(protocol.Delete)
	if len(got) != 2 || len(got[0].Filed) != 2 || got[0].Filed[1].Body.(*protocol.Final).Verdict.State != job.Finished ||
		got[1].Filed != nil {
		t.Fatalf("%+v", got)
	}
	c.set(nil, errkind.Errorf(errkind.Corrupt, "archive x: job a is damaged"))
	if err := h.Delete(context.Background(), "", "a"); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "archive x") {
		t.Errorf("%v", err)
	}
	if n := len(g.hears(protocol.Delete)); n != 2 {
		t.Errorf("the gate took %d messages for ones about a job that is not there", n-2)
	}
	if _, err := h.Job(context.Background(), "a"); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("shown: %v", err)
	}
}

// The gate is the archive's second witness.
func TestAnArchiveWithTooFewJobsIsRefused(t *testing.T) {
	r, g, c := archiveRig(t)
	if err := c.Archive.File(archivetest.Job("a", 1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "no journal, but an archive of 1 jobs") {
		t.Errorf("without its journal: %v", err)
	}
	c.Archive = memory.New()
	h, stop := r.start(t) // with one fact in the journal
	if err := h.SetQueue(context.Background(), "", protocol.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	g.count = 3
	var known bool
	options := r.options
	r.options = func(o *Options) {
		options(o)
		o.Archive = func(_ string, k bool) (archive.Archive, error) { known = k; return c, nil }
	}
	if _, err := r.open(); errkind.Of(err) != errkind.Corrupt ||
		!strings.Contains(err.Error(), "has 0 jobs that are over after 0 changes, and the journal knows of 3 jobs") ||
		!strings.Contains(err.Error(), "--without 3 --change 0") || !known {
		t.Errorf("with fewer jobs: %v", err)
	}
	if err := c.Archive.File(slices.Concat(archivetest.Job("a", 1, 1, 1), archivetest.Job("b", 1, 1, 1), archivetest.Job("c", 1, 1, 1),
		archivetest.Job("d", 1, 1, 1))); err != nil {
		t.Fatal(err)
	}
	g.changes = 2 // it has counted one
	if _, err := r.open(); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "--without 0 --change 2") {
		t.Errorf("an older copy: %v", err)
	}
	g.changes = 1
	h, err := r.open()
	if err != nil {
		t.Fatalf("with more: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// shelved is a zone that shows the record it was last given.
type shelved struct {
	toyZone
	record *protocol.Record
}

func (z *shelved) Apply(f protocol.Fact) {
	if kept, ok := f.Body.(*protocol.Keeping); ok {
		z.record = kept.Record
	}
}

func (z *shelved) Job(_ quantity.Instant, name job.ID) (j status.Job, ok bool) {
	if z.record == nil {
		return j, false
	}
	return status.Job{Name: name, Generation: z.record.Generation, State: z.record.Verdict.State, Submitted: z.record.Submitted}, true
}

func (z *shelved) Brief(now quantity.Instant, name job.ID) (status.Job, bool) {
	return z.Job(now, name)
}

// requeued is a gate that has another life of job a.
type requeued struct{ librarian }

// Forgotten is that of job c, which was deleted a moment ago.
func (g *requeued) Forgotten(id job.ID) job.Generation {
	if id == "c" {
		return 1
	}
	return 0
}

func (g *requeued) Life(id job.ID) job.Generation {
	if id == "a" {
		return 2
	}
	return 0
}

// A list says how many archived jobs are older than those that it shows.
func TestAListSaysHowManyAreOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, g, c := archiveRig(t)
		r.actors = func() actor.Set { return actor.Alone("z", "n", g, &shelved{}, &toyNode{}) }
		h, stop := r.start(t)
		for i, name := range []job.ID{"a", "b", "c", "d", "e"} {
			zone, err := archive.NewPart(protocol.Zone, name, 1,
				[]protocol.Fact{{Kind: protocol.HomeKept, Job: name,
					Body: &protocol.Keeping{Record: &protocol.Record{Job: name, Generation: 1, Spec: spec(name),
						Submitted: quantity.Instant(1 + i), Verdict: job.Verdict{State: job.Finished}}}}})
			if err == nil {
				err = c.Archive.File([]archive.Part{gatePart(t, name, 1, quantity.Instant(1+i)), zone})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		page, err := h.Jobs(context.Background(), status.JobQuery{Limit: 2})
		if err != nil || len(page.Jobs) != 2 || page.Jobs[0].Name != "d" || page.Older != 3 {
			t.Errorf("%+v, %v; want d and e, and three that are older", page, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// After the requeue of an archived job nobody is told how its last life ended: what its home has filed is of that one.
func TestAnEarlierLifeIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, c := archiveRig(t)
		r.actors = func() actor.Set { return actor.Alone("z", "n", &requeued{}, &shelved{}, &toyNode{}) }
		h, stop := r.start(t)
		for name, g := range map[job.ID]job.Generation{"a": 1, "b": 1, "c": 1} {
			zone, err := archive.NewPart(protocol.Zone, name, g,
				[]protocol.Fact{{Kind: protocol.HomeKept, Job: name,
					Body: &protocol.Keeping{Record: &protocol.Record{Job: name, Generation: g, Spec: spec(name),
						Verdict: job.Verdict{State: job.Failed}}}}})
			if err == nil {
				err = c.Archive.File([]archive.Part{gatePart(t, name, g, 1), zone})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if j, err := h.Job(context.Background(), "b"); err != nil || j.State != job.Failed || j.Generation != 1 {
			t.Errorf("an archived job: %+v, %v", j, err)
		}
		if j, err := h.Job(context.Background(), "a"); errkind.Of(err) != errkind.Unavailable {
			t.Errorf("a job that was requeued: %+v, %v", j, err)
		}
		if j, err := h.Job(context.Background(), "c"); errkind.Of(err) != errkind.NotFound {
			t.Errorf("a job that was deleted: %+v, %v", j, err)
		}
		if err := c.Archive.File([]archive.Part{gatePart(t, "e", 1, 1)}); err != nil {
			t.Fatal(err)
		}
		if j, err := h.Job(context.Background(), "e"); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "restore") {
			t.Errorf("a job that the archive has lost a part of: %+v, %v", j, err)
		}
		if err := c.Archive.Discard([]archive.Discarded{{Job: "e", UpTo: 1}}); err != nil {
			t.Fatal(err)
		}
		// Of job d the gate has filed the next life, and its home has not yet.
		if err := c.Archive.File([]archive.Part{gatePart(t, "d", 1, 1), gatePart(t, "d", 2, 1)}); err != nil {
			t.Fatal(err)
		}
		zone, err := archive.NewPart(protocol.Zone, "d", 1,
			[]protocol.Fact{{Kind: protocol.HomeKept, Job: "d",
				Body: &protocol.Keeping{Record: &protocol.Record{Job: "d", Generation: 1, Spec: spec("d"),
					Verdict: job.Verdict{State: job.Failed}}}}})
		if err == nil {
			err = c.Archive.File([]archive.Part{zone})
		}
		if err != nil {
			t.Fatal(err)
		}
		page, err := h.Jobs(context.Background(), status.JobQuery{Limit: 5})
		if err != nil || len(page.Jobs) != 1 || page.Jobs[0].Name != "b" {
			t.Errorf("list: %+v, %v", page.Jobs, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
