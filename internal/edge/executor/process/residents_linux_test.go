package process_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// writes has a subjob leave something.
const writes = `echo $n >$out/n; answer`

// killed ends a process by SIGKILL, as anybody may.
func (b *bench) killed(p tree.Process) {
	b.Helper()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		b.Fatal(err)
	}
}

// TestAProgramDiesWhileItWaits, or its supervisor does: its node is told, without asking.
func TestAProgramDiesWhileItWaits(t *testing.T) {
	for name, whom := range map[string]func(shim.Note) tree.Process{
		"the program":    func(n shim.Note) tree.Process { return tree.Below(n.Init)[0].Process },
		"its init":       func(n shim.Note) tree.Process { return tree.Process{PID: n.Init, Started: n.InitStarted} },
		"its supervisor": func(n shim.Note) tree.Process { return tree.Process{PID: n.PID, Started: n.Started} },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, change func(*process.Options)) {
				b := newBench(t, change)
				m := resident(1, `(setsid sleep 1000 &); `+writes, "")
				b.works(m)
				b.killed(whom(b.noteOf(m)))
				b.dismissed(m)
				b.do(m)
				if c := b.concluded(m, job.Done); c.Resident != nil {
					t.Errorf("asked again, a program waits: %+v", c.Resident)
				}
				// The next is started anew.
				next := resident(2, writes, "")
				if c := b.works(next); c.Result.Stayed || b.wroteTo(next, "n") != "1" {
					t.Errorf("the next one has gone on: %+v", c.Result)
				}
			})
		})
	}
}

// TestAProgramDiesWithItsSubjob: it is judged by its exit and, if that is in order, by what it has reported; or lost with its supervisor.
func TestAProgramDiesWithItsSubjob(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		each := writes + `; [ $n = 2 ] && exit 7`
		b.works(resident(1, each, ""))
		m := resident(2, each, "")
		b.do(m)
		b.next(protocol.Started)
		b.concluded(m, job.Done) // it has answered before
		b.await("nothing to live", func() bool { return len(living(b.o.DataDir)) == 0 && len(b.homes()) == 0 })
	})
	t.Run("no answer", func(t *testing.T) {
		b := newBench(t, nil)
		if r := b.ends(resident(1, `exit 0`, ""), job.ExitFailed); r.Progress != 0 || !strings.Contains(r.Detail, "without an answer") {
			t.Errorf("it ended as %+v, want nothing done", r)
		}
		if r := b.ends(resident(3, `echo '{"progress": 25}' >$progress; exit 0`, ""), job.Yielded); r.Progress != 25 {
			t.Errorf("it ended as %+v, want what it has reported", r)
		}
		r := b.ends(resident(2, `echo broken >&2; exit 3`, ""), job.ExitFailed)
		if r.ExitCode != 3 || !strings.Contains(r.Detail, "broken") {
			t.Errorf("it ended as %+v, want exit status 3 with its last words", r)
		}
	})
	t.Run("after its last answer", func(t *testing.T) { // it leaves its loop, and takes a while to end: the next subjob it never reads
		b := newBench(t, nil)
		leaves := filepath.Join(b.o.DataDir, "leaves")
		each := `answer; while [ ! -e ` + leaves + ` ]; do sleep 0.1; done; exit 0`
		b.works(resident(1, each, ""))
		m := resident(2, each, "")
		b.do(m)
		b.next(protocol.Started)
		if err := os.WriteFile(leaves, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := b.concluded(m, job.NodeFailed).Result; r.Progress != 10 || !r.Stayed {
			t.Errorf("it ended as %+v, want nothing done", r)
		}
	})
	t.Run("supervisor", func(t *testing.T) {
		both(t, func(t *testing.T, change func(*process.Options)) {
			b := newBench(t, change)
			each := `[ $n = 2 ] && { (setsid sleep 1000 &); sleep 1000; }; answer`
			b.works(resident(1, each, ""))
			m := resident(2, each, "")
			b.do(m)
			b.next(protocol.Started)
			note := b.noteOf(m)
			b.await("the program to work at it", func() bool { return len(tree.Below(note.Init)) > 1 })
			b.killed(tree.Process{PID: note.PID, Started: note.Started})
			b.concluded(m, job.Lost)
			if left := living(b.o.DataDir); len(left) != 0 {
				t.Errorf("processes remain:%s", described(left))
			}
			b.await("its home to be removed", func() bool { return len(b.homes()) == 0 })
		})
	})
}

// TestTheDaemonGoes: a program that waits ends with its daemon, one that has a subjob with that. No boot finds a program that waits.
func TestTheDaemonGoes(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		m := resident(1, writes, "")
		b.works(m)
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
		found := b.open() // at once: it may be about to end
		if left := living(b.o.DataDir); len(left) != 0 {
			t.Errorf("after a boot processes remain:%s", described(left))
		}
		if len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.Done {
			t.Errorf("found %+v, want one that is done", found)
		}
		b.dismiss(m)
		b.next(protocol.Dismissed)
		if left := b.homes(); len(left) != 0 {
			t.Errorf("homes %v remain", left)
		}
	})
	t.Run("settled before", func(t *testing.T) {
		b := newBench(t, nil)
		m := resident(1, writes, `trap "" TERM; sleep 1000`)
		b.works(m)
		b.commit(m)
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
		if found := b.open(); len(found) != 0 {
			t.Errorf("found %+v, want nothing", found)
		}
		if left := living(b.o.DataDir); len(left) != 0 {
			t.Errorf("after a boot processes remain:%s", described(left))
		}
	})
	t.Run("with a subjob", func(t *testing.T) {
		both(t, func(t *testing.T, change func(*process.Options)) {
			b := newBench(t, change)
			each := `until [ $n = 1 ] || [ -e $out/../go ]; do sleep 0.02; done; ` + writes
			done := resident(1, each, "")
			b.works(done)
			m := resident(2, each, "")
			b.do(m)
			b.next(protocol.Started)
			if err := b.ex.Close(); err != nil {
				t.Fatal(err)
			}
			found := b.open()
			if len(found) != 2 || found[0].Result == nil || found[1].Result != nil || !found[1].Alive {
				t.Fatalf("found %+v, want one that is done and one that runs", found)
			}
			must(os.WriteFile(filepath.Join(string(b.at(m.Token)), "go"), nil, 0o644))
			c := b.concluded(m, job.Done)
			if left := living(b.o.DataDir); c.Resident != nil || len(left) != 0 || b.wroteTo(m, "n") != "2" {
				t.Errorf("%+v waits, and there are the processes%s", c.Resident, described(left))
			}
			b.await("its home to be removed", func() bool { return len(b.homes()) == 0 })
		})
	})
}

// TestAProgramThatDoesNotHear: what ignores the end of its standard input, or all signals, is ended.
func TestAProgramThatDoesNotHear(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		m := resident(1, writes, `trap "" TERM HUP INT; (setsid sleep 1000 &); sleep 1000`)
		b.works(m)
		b.dismiss(m)
		b.dismissed(m)
	})
	t.Run("a stopped supervisor", func(t *testing.T) {
		b := newBench(t, nil)
		m := resident(1, writes, "")
		b.works(m)
		p := b.noteOf(m)
		if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		b.dismiss(m)
		b.dismissed(m)
	})
}

// TestWhatAProgramSays: what is no answer is a log line; a wrong answer is a failure of its subjob.
func TestWhatAProgramSays(t *testing.T) {
	b := newBench(t, nil)
	m := resident(1, `
		printf '\0\377\376 binary\n{"subjob":1}\n{"exit":0}\n[1]\n{}\n{broken\n\n{"ready":false}\n{"subjob":"x","ex'
		head -c 200000 /dev/zero | tr '\0' x
		printf '{"subjob":"%%s","exit":0}\n' "$sub"
		printf 'last\n'; answer; echo late; echo later >&2`, "")
	m.Body.(*protocol.Work).Spec.Launch.Command[2] = strings.ReplaceAll(m.Body.(*protocol.Work).Spec.Launch.Command[2], "%%", "%")
	b.works(m)
	out, _ := os.ReadFile(b.at(m.Token).Stdout())
	for _, want := range []string{"\x00\xff\xfe binary\n{\"subjob\":1}\n{\"exit\":0}\n[1]\n{}\n{broken\n\n",
		"\n\n{\"ready\":false}\n{\"subjob\":\"x\",\"exxxx",
		"xxx{\"subjob\":\"" + m.Token.String() + "\",\"exit\":0}\nlast\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("its log lacks %q", want)
		}
	}
	if strings.Contains(string(out), "late") {
		t.Error("what it said after its answer is in its log")
	}
	for i, c := range []struct{ each, detail string }{
		{`printf '{"subjob":"1-77","exit":0}\n'; sleep 1000`, `it answered for subjob "1-77"`},
		{`printf '{"subjob":"%s","exit":"no"}\n' "$sub"; sleep 1000`, `it answered with exit "no"`},
		{`printf '{"subjob":"%s","exit":3,"error":"no model"}\n' "$sub"; sleep 1000`, "no model"},
		{`answer 1`, "exit status 1"},
	} {
		failing := resident(10+i, c.each, "")
		b.do(failing)
		if i == 0 {
			b.dismissedOnly(m) // another program is on its slice
		}
		b.next(protocol.Started)
		got := b.concluded(failing, job.ExitFailed)
		if got.Resident != nil || !strings.Contains(got.Result.Detail, c.detail) {
			t.Errorf("after %q: %+v, want no program and the detail %q", c.each, got.Result, c.detail)
		}
		if left := living(b.o.DataDir); len(left) != 0 {
			t.Errorf("after %q processes remain:%s", c.each, described(left))
		}
	}
	// What it says while it waits is in the next log.
	first := resident(21, `answer; echo "after $n"; echo "warned $n" >&2`, "")
	b.works(first)
	second := resident(22, `answer; echo "after $n"; echo "warned $n" >&2`, "")
	b.works(second)
	if said := shim.Tail(b.at(second.Token).Stdout(), 9, 1000); said != "after 1" {
		t.Errorf("the second log has %q, want what was said before it", said)
	}
}

// TestASubjobOfAProgramThatStaysEnds as any other: at its deadline, when it is stopped, and where what it leaves can't count.
func TestASubjobOfAProgramThatStaysEnds(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		each := `[ $n = 1 ] || sleep 1000; ` + writes
		b.works(resident(1, each, ""))
		m := resident(2, each, "")
		w := m.Body.(*protocol.Work)
		w.End = w.Start.Add(2 * time.Second)
		if r := b.ends(m, job.DeadlineKilled); !r.Stayed || r.Progress != 10 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		b := newBench(t, nil)
		each := `trap 'answer 85' TERM; [ $n = 1 ] || { sleep 1000 & wait; continue; }; ` + writes
		b.works(resident(1, each, ""))
		m := polite(resident(2, each, ""))
		b.do(m)
		b.next(protocol.Started)
		note := b.noteOf(m)
		b.await("its sleep", func() bool { return len(tree.Below(note.Init)) > 1 })
		b.do(protocol.Message{Kind: protocol.Stop, Token: m.Token, Job: m.Job, Body: &protocol.Halt{Text: "the owner is back"}})
		c := b.concluded(m, job.Yielded)
		if left := living(b.o.DataDir); c.Resident != nil || len(left) != 0 {
			t.Errorf("%+v waits, and there are the processes%s", c.Resident, described(left))
		}
	})
	t.Run("too much", func(t *testing.T) {
		b := newBench(t, func(o *process.Options) { o.OutputLimit = 1000 })
		if r := b.ends(resident(1, `truncate -s 2000 $out/x; answer; sleep 1000`, ""), job.LimitKilled); r.Progress != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("yields", func(t *testing.T) {
		b := newBench(t, nil)
		m := resident(1, `printf '{"progress":%d}' 4 >$progress; answer 85`, "")
		b.do(m)
		b.next(protocol.Started)
		if c := b.concluded(m, job.Yielded); c.Resident == nil || c.Result.Progress != 4 {
			t.Errorf("%+v, and %+v waits", c.Result, c.Resident)
		}
	})
}

// TestWhoGoesOnInAProgram: a subjob of another job of its template does; what was cut for a program that is not there does not begin, and
// another program's start ends it first.
func TestWhoGoesOnInAProgram(t *testing.T) {
	b := newBench(t, nil)
	of := func(n int, name job.ID, template string) protocol.Message {
		m := resident(n, `echo '{"ready": true}'; `+writes, "")
		m.Job = name
		w := m.Body.(*protocol.Work)
		w.Spec.Template = template
		return m
	}
	lonely := of(1, "a", "T")
	lonely.Body.(*protocol.Work).Plan.Resident = true
	b.do(lonely)
	if r := b.concluded(lonely, job.NodeFailed).Result; r.Start != 0 || r.Detail != "the program that stayed is gone" {
		t.Errorf("without a program it ended as %+v", r)
	}
	if c := b.works(of(2, "a", "T")); c.Result.Stayed || c.Result.Startup <= 0 {
		t.Errorf("the first of a program: %+v", c.Result)
	}
	on := of(3, "b", "T")
	on.Body.(*protocol.Work).Plan.Resident = true
	if c := b.works(on); !c.Result.Stayed || c.Result.Startup != 0 {
		t.Errorf("one of another job of its template: %+v", c.Result)
	}
	other := of(4, "c", "U")
	b.do(other)
	b.dismissedOnly(on)
	b.next(protocol.Started)
	if c := b.concluded(other, job.Done); c.Result.Stayed {
		t.Errorf("one of another template: %+v", c.Result)
	}
	plain := nth(5, "true")
	b.do(plain)
	b.dismissedOnly(other)
	b.next(protocol.Started)
	b.exited(job.Done)
	elsewhere := of(6, "c", "U")
	elsewhere.Body.(*protocol.Work).Slice = "n/sim/1"
	b.works(elsewhere)
	b.run(nth(7, "true"), job.Done) // which leaves it alone
	b.dismiss(elsewhere)
	b.dismissed(elsewhere)
}

// dismissedOnly waits for the word that a program is gone, where another is about to start.
func (b *bench) dismissedOnly(m protocol.Message) {
	b.Helper()
	if said := b.next(protocol.Dismissed); said.Token != m.Token {
		b.Errorf("%v is said to be gone, want %v", said.Token, m.Token)
	}
}

// TestAProgramIsKilledAtAnyMoment, or its supervisor: whatever is said of it, once its node has no word of a program that waits nothing
// lives.
func TestAProgramIsKilledAtAnyMoment(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		const lives = 40
		each := `(setsid sleep 1000 &); ` + writes
		for i := range lives {
			first, second := resident(2*i+1, each, ""), resident(2*i+2, each, "")
			b.works(first)
			note := b.noteOf(first)
			victim := tree.Process{PID: note.PID, Started: note.Started}
			if i%2 == 1 {
				victim = tree.Process{PID: note.Init, Started: note.InitStarted}
			}
			second.Body.(*protocol.Work).Plan.Resident = i%4 < 2
			at := time.Now().Add(time.Duration(i) * 250 * time.Microsecond)
			b.do(second)
			for time.Now().Before(at) {
				time.Sleep(50 * time.Microsecond)
			}
			_ = victim.Signal(syscall.SIGKILL)
			waits, ended := false, false
			for until := quantity.At(time.Now()).Add(patience); !ended || waits; {
				select {
				case said := <-b.said:
					switch c, ok := said.Body.(*protocol.Conclusion); {
					case ok:
						ended, waits = true, c.Resident != nil
						if c.Result.Outcome == job.Done && b.wroteTo(second, "n") == "" {
							t.Errorf("life %d is done without its work", i)
						}
					case said.Kind == protocol.Dismissed && said.Token == second.Token:
						waits = false
					}
				case <-time.After(time.Second):
					if waits && ended { // it was hit after it had started anew
						b.dismiss(second)
					}
					if quantity.At(time.Now()) > until {
						t.Fatalf("life %d: no end", i)
					}
				}
			}
			if left := living(b.o.DataDir); len(left) != 0 {
				t.Errorf("in life %d these live:%s", i, described(left))
			}
			b.await("homes to be removed", func() bool { return len(b.homes()) == 0 })
			b.commit(first)
			b.settled(second)
		}
	})
}

// settled has what is left of a subjob put away, whatever became of it.
func (b *bench) settled(m protocol.Message) {
	b.Helper()
	b.do(protocol.Message{Kind: protocol.Settle, Token: m.Token, Job: m.Job, Body: &protocol.Settlement{}})
	b.next(protocol.Settled)
}

// TestTheManualsProgram does as docs/resident.md says.
func TestTheManualsProgram(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/resident.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "    - |\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok || !strings.Contains(text, "sleep 5") {
		t.Fatalf("docs/resident.md has the program %q", text)
	}
	b := newBench(t, nil)
	for i := range 3 {
		m := resident(i+1, "", "")
		w := m.Body.(*protocol.Work)
		w.Spec.Launch.Command[2] = strings.ReplaceAll(text, "sleep 5", "sleep 0.1")
		w.Range = job.Range{From: int64(3 * i), To: int64(3*i + 3)}
		c := b.works(m)
		if c.Result.Stayed != (i > 0) || c.Result.Progress != w.Range.To || (i == 0) != (c.Result.Startup >= 100*time.Millisecond) {
			t.Errorf("piece %d: %+v", i+1, c.Result)
		}
		all, _ := os.ReadDir(b.at(m.Token).Output())
		if len(all) != 3 || b.wroteTo(m, strconv.Itoa(3*i+2)) != "unit "+strconv.Itoa(3*i+2) {
			t.Errorf("piece %d has written %v", i+1, all)
		}
	}
}

// TestAStartThatIsTooLateEndsWhatWaits: its node takes the program for the subjob's, and would never end it.
func TestAStartThatIsTooLateEndsWhatWaits(t *testing.T) {
	b := newBench(t, nil)
	m := resident(1, writes, "")
	b.works(m)
	late := resident(2, writes, "")
	late.Body.(*protocol.Work).End = late.Body.(*protocol.Work).Start - 1
	b.do(late)
	b.dismissed(m)
	if c := b.concluded(late, job.NodeFailed); c.Resident != nil || c.Result.Start != 0 {
		t.Errorf("it ended as %+v, with %+v", c.Result, c.Resident)
	}
}

// TestAQueueOfAnotherUserStartsAnew: the queue's subjobs run as somebody else by now, who must not go on in the process of who was before.
func TestAQueueOfAnotherUserStartsAnew(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run subjobs as somebody else")
	}
	var user *shim.User
	b := newBench(t, func(o *process.Options) {
		o.User = func(string) (*shim.User, error) { return user, nil }
	})
	m := resident(1, writes, "")
	b.works(m)
	user = &shim.User{Name: "root"}
	next := resident(2, writes, "")
	b.do(next)
	if said := b.next(protocol.Dismissed); said.Token != m.Token {
		t.Errorf("%v is said to be gone, want %v", said.Token, m.Token)
	}
	b.next(protocol.Started)
	if c := b.concluded(next, job.Done); c.Result.Stayed {
		t.Errorf("it has gone on: %+v", c.Result)
	}
}
