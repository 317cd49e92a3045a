package queue

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a queue as plainly as can be: for each unit the grants it had, and by which it was committed.
type model struct {
	grants    [][]granted
	committed []int
}

// granted is a token, until when it holds, and whether the unit was given back.
type granted struct {
	token    int
	end      time.Time
	returned bool
}

// free reports whether a unit may be granted.
func (m *model) free(u int, now time.Time) bool {
	g := m.grants[u]
	return m.committed[u] == 0 && (len(g) == 0 || g[len(g)-1].returned || !g[len(g)-1].end.After(now))
}

// holds reports whether a token is the latest of its unit, and was not returned.
func (m *model) holds(g Grant) bool {
	if g.Unit < 0 || g.Unit >= len(m.grants) || m.committed[g.Unit] != 0 || len(m.grants[g.Unit]) == 0 {
		return false
	}
	last := m.grants[g.Unit][len(m.grants[g.Unit])-1]
	return last.token == g.Token && !last.returned
}

// TestALedgerIsItsModel: in random worlds a unit is granted only where nobody has it, each that is free is granted in the end, a commit
// counts only by its holder and once, and the records alone give the same answers.
func TestALedgerIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 10 * time.Second
		now := time.Unix(0, 0)
		l, m := &ledger{timeout: timeout}, &model{}
		var log strings.Builder
		var seen []Grant
		some := func() Grant {
			if len(seen) > 0 && rapid.IntRange(0, 9).Draw(t, "known") > 0 {
				return rapid.SampledFrom(seen).Draw(t, "grant")
			}
			return Grant{rapid.IntRange(-1, 5).Draw(t, "unit"), rapid.IntRange(-1, 9).Draw(t, "token")}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				n := rapid.IntRange(0, 3).Draw(t, "n")
				log.WriteString(l.push(n))
				m.grants, m.committed = append(m.grants, make([][]granted, n)...), append(m.committed, make([]int, n)...)
			case 1, 2:
				g, text := l.pull(now)
				log.WriteString(text)
				if free := slices.ContainsFunc(units(len(m.grants)), func(u int) bool { return m.free(u, now) }); free != (text != "") {
					t.Fatalf("granted %q where something is free: %v", text, free)
				}
				if text == "" {
					continue
				}
				if !m.free(g.Unit, now) || slices.ContainsFunc(seen, func(o Grant) bool { return o.Token == g.Token }) {
					t.Fatalf("granted %+v", g)
				}
				m.grants[g.Unit] = append(m.grants[g.Unit], granted{token: g.Token, end: now.Add(timeout)})
				seen = append(seen, g)
			case 3:
				g := some()
				text := l.back(g)
				log.WriteString(text)
				if m.holds(g) != (text != "") {
					t.Fatalf("back of %+v: %q", g, text)
				}
				if text != "" {
					all := m.grants[g.Unit]
					all[len(all)-1].returned = true
				}
			case 4:
				g := some()
				text, accepted := l.commit(g)
				log.WriteString(text)
				repeated := g.Token > 0 && g.Unit >= 0 && g.Unit < len(m.committed) && m.committed[g.Unit] == g.Token
				if m.holds(g) != (text != "") || accepted != (m.holds(g) || repeated) {
					t.Fatalf("commit of %+v: %q, %v", g, text, accepted)
				}
				if text != "" {
					m.committed[g.Unit] = g.Token
				}
			case 5:
				now = now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "later")) * time.Second)
			}
		}
		again := &ledger{timeout: timeout}
		if err := again.replay([]byte(log.String()), now); err != nil {
			t.Fatalf("%v\n%s", err, log.String())
		}
		if !slices.Equal(again.units, l.units) || again.done != l.done || again.tokens != l.tokens || again.fresh != l.fresh {
			t.Fatalf("replayed %+v, was %+v", again, l)
		}
		// Whatever was lost, everything is done in the end: leases that began anew are over by then.
		for now = now.Add(timeout); again.done < len(again.units); {
			g, text := again.pull(now)
			if text == "" {
				t.Fatalf("%d of %d units are done, and there is nothing to pull", again.done, len(again.units))
			}
			again.commit(g)
		}
	})
}

func units(n int) (all []int) {
	for u := range n {
		all = append(all, u)
	}
	return all
}

// FuzzReplay: records are refused, or give a state whose own records can be applied again; nothing is committed twice.
func FuzzReplay(f *testing.F) {
	for _, text := range []string{"", "push 2\npull 0 1\ncommit 0 1\n", "push 1\npull 0 1\nback 0 1\npull 0 2\n",
		"push 1\npull 0 1\npull 0 2\ncommit 0 1\n", "push 9999999999\n", "pull 0 0\n", "push 01\n", "commit 0 0\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Count(data, []byte("push")) > 3 || bytes.Contains(data, []byte("00000")) {
			return // it only fills the memory
		}
		l := &ledger{timeout: time.Second}
		if l.replay(data, time.Unix(0, 0)) != nil {
			return
		}
		done := 0
		for _, u := range l.units {
			if u.done {
				done++
			}
		}
		if done != l.done || l.done != bytes.Count(data, []byte("commit")) || l.tokens != bytes.Count(data, []byte("pull")) {
			t.Fatalf("%d units are done, of %d: %q", done, l.done, data)
		}
	})
}

// TestAQueueOutlastsItsProcess: what was answered is there again, whatever a crash has left of a last line; what can't be is refused.
func TestAQueueOutlastsItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	q := open(t, path)
	must(t, q.Push(3))
	first, _, err := q.Pull()
	must(t, err)
	second, _, err := q.Pull()
	must(t, err)
	if ok, err := q.Commit(first); !ok || err != nil {
		t.Fatal(ok, err)
	}
	must(t, q.Back(second))
	must(t, q.Close())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("commit 1 ")
	must(t, err)
	must(t, f.Close())

	q = open(t, path)
	if c := q.Counts(); c.Committed != 1 || c.Granted != 2 {
		t.Errorf("%+v after a restart", c)
	}
	if ok, err := q.Commit(second); ok || err != nil || q.Counts().Refused != 1 {
		t.Errorf("who gave a unit back may commit it: %v, %v", ok, err)
	}
	if ok, err := q.Commit(first); !ok || err != nil || q.Counts().Committed != 1 {
		t.Errorf("a commit is repeated, as its answer was lost: %v, %v", ok, err)
	}
	must(t, q.Close())
	data, err := os.ReadFile(path)
	must(t, err)
	if want := "push 3\npull 0 1\npull 1 2\ncommit 0 1\nback 1 2\n"; string(data) != want {
		t.Errorf("the file has %q", data)
	}
	must(t, os.WriteFile(path, append(data, "commit 0 1\n"...), 0o600))
	if _, err := Open(path, time.Minute); err == nil || !strings.Contains(err.Error(), "line 6") {
		t.Errorf("a second commit in the file: %v", err)
	}
}

// TestWhoWaitsSharesASync: many at once get all that there is, each once.
func TestWhoWaitsSharesASync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "queue")
	q := open(t, path)
	const n = 40
	must(t, q.Push(n))
	var mu sync.Mutex
	had := map[int]int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				g, ok, err := q.Pull()
				if err == nil && !ok {
					return
				}
				accepted, failed := q.Commit(g)
				if err != nil || failed != nil || !accepted {
					t.Errorf("%+v: %v, %v, %v", g, err, accepted, failed)
					return
				}
				mu.Lock()
				had[g.Unit]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	must(t, q.Close())
	if c := q.Counts(); len(had) != n || c != (Counts{Committed: n, Granted: n}) {
		t.Errorf("%d units, %+v", len(had), c)
	}
	if data, err := os.ReadFile(path); err != nil || bytes.Count(data, []byte("\n")) != 2*n+1 {
		t.Errorf("%v\n%s", err, data)
	}
}

// TestAFailedSyncIsNoAnswer: when the disk fails nobody is told that anything is durable, then or later.
func TestAFailedSyncIsNoAnswer(t *testing.T) {
	q := open(t, filepath.Join(t.TempDir(), "queue"))
	must(t, q.Push(2))
	must(t, q.file.Close())
	for range 2 {
		if g, ok, err := q.Pull(); ok || err == nil {
			t.Errorf("granted %+v", g)
		}
	}
	close(q.stop)
	q.over.Wait()
}

func open(t *testing.T, path string) *Queue {
	t.Helper()
	q, err := Open(path, time.Minute)
	must(t, err)
	return q
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("here: %w", err))
	}
}
