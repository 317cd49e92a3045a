package process_test

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/journal"
)

// TestAResidentHasItsWorkDirectory for as long as it stays, and nobody else's is touched. What a subjob begins from is read-only.
func TestAResidentHasItsWorkDirectory(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		id := b.put(tar.Header{Name: "f", Typeflag: tar.TypeReg}, tar.Header{Name: "tool.sh", Typeflag: tar.TypeReg})
		before := ""
		each := `resume=$(of resumeDir); echo $n >>f; cp f $out/f; tr -d '\n' <f >&2
			case $resume in '{'*) ;; *) echo " from $(cat $resume/state)" >&2; echo x 2>/dev/null >$resume/new && echo written >&2;; esac
			echo $n >$(of checkpointDir)/state; printf '{"progress":%d,"checkpoint":true}' $((10*n)) >$progress; answer`
		var last protocol.Message
		for i := range 3 {
			m := resident(i+1, each, "")
			w := m.Body.(*protocol.Work)
			w.Spec.Kind, w.Spec.Launch.Workdir = job.Steps, id
			w.Range = job.Range{From: int64(10 * i), To: int64(10*i + 10)}
			if i > 0 {
				w.Plan.Resume = last.Token
			}
			if c := b.works(m); c.Result.Progress != w.Range.To || !c.Result.Checkpoint {
				t.Errorf("subjob %d: %+v", i+1, c.Result)
			}
			said, _ := os.ReadFile(b.at(m.Token).Stderr())
			if b.o.Isolation != nil { // who is root writes where no mount namespace keeps him from it
				said = []byte(strings.ReplaceAll(string(said), "written\n", ""))
			}
			want := "f123"[:i+2]
			if i > 0 {
				want += fmt.Sprintf(" from %d\n", i)
			}
			if string(said) != want {
				t.Errorf("subjob %d says %q, want %q", i+1, said, want)
			}
			if before == "" {
				before = shape(t, b.original())
			}
			b.commit(m)
			last = m
		}
		if after := shape(t, b.original()); after != before {
			t.Errorf("the original is\n%s\nand was\n%s", after, before)
		}
		if err := b.ex.PruneUnpacked(func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		b.original() // a program that waits needs it
		b.dismiss(last)
		b.dismissed(last)
		b.await("the original to be free", func() bool {
			_ = b.ex.PruneUnpacked(func(string) bool { return false })
			all, _ := filepath.Glob(filepath.Join(b.o.DataDir, "unpacked", "*", "*"))
			return len(all) == 0
		})
	})
}

// TestWhatAResidentLeavesIsStored beside it: its slice is not free meanwhile, and nobody is told that it is.
func TestWhatAResidentLeavesIsStored(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.Report = 50 * time.Millisecond })
	slow := filepath.Join(t.TempDir(), "durable")
	m := resident(1, fmt.Sprintf(`printf %%s %q >$out/%s; answer`, slow, lingers), "")
	b.do(m)
	b.next(protocol.Started)
	note := b.noteOf(m)
	b.await("the program to leave it", func() bool {
		text, err := os.ReadFile(filepath.Join(b.at(m.Token).Output(), lingers))
		return err == nil && string(text) == slow
	})
	time.Sleep(1500 * time.Millisecond) // it would be told after half a second
	if now := b.noteOf(m); now.Gone != 0 || b.storing.Load() && b.vacant.Load() || len(tree.Below(note.Init)) == 0 {
		t.Errorf("its slice is said to be free: %+v", now)
	}
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := b.concluded(m, job.Done); c.Resident == nil {
		t.Error("no program waits")
	}
}

// TestAProgramDamagesItsHome, as one may that runs as the daemon's own user: it is ended all the same.
func TestAProgramDamagesItsHome(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		for _, damage := range []string{`mkdir $at/shim.json`, `echo x >$at/shim.json`, `true`, `rm -rf $at/*`} {
			for _, killed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %v", damage, killed), func(t *testing.T) {
					b := newBench(t, change)
					m := resident(1, `(setsid sleep 1000 &); at=${TMPDIR%/*}; rm -rf $at/shim.json; `+damage+`; answer`, "")
					b.works(m)
					if note := b.noteOf(m); killed {
						b.killed(tree.Process{PID: note.PID, Started: note.Started})
					} else {
						b.dismiss(m)
					}
					b.dismissed(m)
				})
			}
		}
	})
}

// TestResidentsUnprivileged: a daemon that is not root has other means.
func TestResidentsUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root: the other tests say it")
	}
	t.Parallel()
	asNobody(t, "TestAProgramTakesTheNext")
	asNobody(t, "TestTheDaemonGoes")
	asNobody(t, "TestAResidentHasItsWorkDirectory")
}

// TestTheDaemonIsKilled while its program waits: nothing of it outlives that for long, and the next daemon's boot finds none.
func TestTheDaemonIsKilled(t *testing.T) {
	b := newBench(t, nil)
	if err := b.ex.Close(); err != nil {
		t.Fatal(err)
	}
	m := patient()
	daemon := exec.Command(b.o.ShimPath, "resident", b.o.DataDir)
	said, err := daemon.StdoutPipe()
	if err == nil {
		err = daemon.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "stays\n" {
		t.Fatalf("the daemon says %q, %v", line, err)
	}
	note := b.noteOf(m)
	if len(tree.Below(note.Init)) == 0 {
		t.Fatal("no program waits")
	}
	if err := daemon.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	found := b.open()
	if left := living(b.o.DataDir); len(left) != 0 || len(b.homes()) != 0 {
		t.Errorf("a boot leaves %v and%s", b.homes(), described(left))
	}
	if len(found) != 1 || found[0].Result == nil || found[0].Result.Outcome != job.Done {
		t.Errorf("found %+v, want one that is done", found)
	}
}

// patient is a program that waits, and ignores what it can of its end.
func patient() protocol.Message { return resident(1, writes, `trap "" TERM HUP; sleep 1000`) }

// daemonOfResident is a daemon, in a process of its own, with a program that stays. It says when that waits.
func daemonOfResident(data string) {
	path, err := os.Executable()
	must(err)
	ex, err := process.New(process.Options{DataDir: data, ShimPath: path, Deliver: func(m protocol.Message) {
		if c, ok := m.Body.(*protocol.Conclusion); ok && c.Resident != nil {
			fmt.Println("stays")
		}
	}})
	must(err)
	_, err = ex.Find(context.Background())
	must(err)
	ex.Do(patient(), journal.Position{Seq: 9})
	select {}
}

// TestAProgramWithOneSubjob, as in a Pod, gets one line, and then its standard input ends. Nobody waits for it once it has answered.
func TestAProgramWithOneSubjob(t *testing.T) {
	t.Parallel()
	dir := shim.Dir(filepath.Join(t.TempDir(), token.String()))
	for _, d := range []string{string(dir), dir.Work(), dir.Tmp(), dir.Output(), dir.Checkpoint(), dir.ProgressDir()} {
		must(os.Mkdir(d, 0o700))
	}
	m := resident(1, `read -r more && exit 1; `+writes+`; (setsid sleep 1000 &)`, `sleep 1000`)
	w := m.Body.(*protocol.Work)
	l := shim.Lease{Part: executor.Part{Token: m.Token, Job: m.Job, Kind: job.Items, Range: w.Range, Total: 1000, Grid: 1}, Start: w.Start,
		End: w.End, Anchor: shim.AnchorAt(w.Start), BootID: shim.BootID(), Stay: &shim.Stay{First: m.Token}, LogLimit: 1 << 20,
		OutputLimit: 1 << 20,
		Program: executor.Program{Command: w.Spec.Launch.Command, WorkDir: dir.Work(),
			Env: shim.ResidentEnv([]string{"PATH=" + os.Getenv("PATH"), "SLUICE_FROM=0", "TMPDIR=" + dir.Tmp()}, "")}}
	must(dir.Begin(&l))
	path, err := os.Executable()
	must(err)
	if out, err := exec.Command(path, supervisor.Supervise, string(dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r, err := dir.ReadResult()
	if err != nil || r.Outcome != job.Done || r.Progress != w.Range.To {
		t.Errorf("%+v, %v", r, err)
	}
	if left := living(string(dir)); len(left) != 0 {
		t.Errorf("processes remain:%s", described(left))
	}
	if slices.ContainsFunc(l.Env, func(e string) bool { return strings.HasPrefix(e, "SLUICE_FROM=") }) {
		t.Errorf("its environment is %v, and has what is of one subjob", l.Env)
	}
}

// TestWhatAResidentHoldsOfItsDevice is what the device says while it waits; where it says nothing, what the most was.
func TestWhatAResidentHoldsOfItsDevice(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(o *process.Options) {
				onGPU(o)
				dir := o.DataDir
				o.Use = func(job.SliceID) (map[int]int64, error) {
					if !told {
						return nil, errors.New("no driver")
					}
					note, err := shim.Dir(filepath.Join(dir, "runs", token.String())).ReadNote()
					use := map[int]int64{1: 1 << 40} // somebody else's
					for _, m := range tree.Below(note.Init) {
						use[m.PID] = 100
					}
					return use, err
				}
			})
			m := resident(1, writes, "")
			c := b.works(m)
			if got := c.Resident.Memory; (got == 100) != told {
				t.Errorf("it holds %d bytes", got)
			}
			b.dismiss(m)
			b.dismissed(m)
		})
	}
}
