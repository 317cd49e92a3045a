package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// worker is a program that stays. For each subjob it evaluates a piece of shell, in which sub is the subjob, out its output folder, and n
// how many it has had with this one; answer says that it is done, or as the status it is given.
const worker = `
of() { printf %s "$line" | sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"; }
answer() { printf '{"subjob":"%s","exit":%d}\n' "$sub" "${1:-0}"; }
n=0
while read -r line; do
	sub=$(of subjob); out=$(of outputDir); progress=$(of progressFile); n=$((n+1))
	EACH
done
LAST`

// resident is the nth lease of a job whose program stays, which does a piece of shell for each subjob, and another at its end.
func resident(n int, each, last string) protocol.Message {
	m := nth(n, "sh", "-c", strings.NewReplacer("EACH", each, "LAST", last).Replace(worker))
	w := m.Body.(*protocol.Work)
	w.Spec.Resident, w.Spec.Total = true, 1000
	w.Range = job.Range{From: int64(10*n - 10), To: int64(10 * n)}
	w.Plan.Residence = w.Spec.Residence(m.Job)
	return m
}

// concluded waits for the end of a subjob.
func (b *bench) concluded(m protocol.Message, want job.Outcome) *protocol.Conclusion {
	b.Helper()
	said := b.next(protocol.Exited)
	c := said.Body.(*protocol.Conclusion)
	if said.Token != m.Token || c.Result.Outcome != want {
		b.Fatalf("subjob %v ended as %+v, want %v as %v; it said\n%s", said.Token, c.Result, m.Token, want,
			shim.Tail(b.at(said.Token).Log(), 20, 4096))
	}
	return c
}

// works runs a subjob to its end, after which its program waits.
func (b *bench) works(m protocol.Message) *protocol.Conclusion {
	b.Helper()
	b.do(m)
	b.next(protocol.Started)
	c := b.concluded(m, job.Done)
	if c.Resident == nil {
		b.Fatalf("after subjob %v no program waits: %+v", m.Token, c.Result)
	}
	return c
}

// ends runs a subjob to its end, after which no program waits and nothing lives.
func (b *bench) ends(m protocol.Message, want job.Outcome) *job.Result {
	b.Helper()
	b.do(m)
	b.next(protocol.Started)
	c := b.concluded(m, want)
	if c.Resident != nil {
		b.Errorf("after subjob %v a program waits: %+v", m.Token, c.Resident)
	}
	if left := living(b.o.DataDir); len(left) != 0 {
		b.Errorf("processes remain:%s", described(left))
	}
	return c.Result
}

func (b *bench) dismiss(m protocol.Message) {
	b.Helper()
	b.do(protocol.Message{Kind: protocol.Dismiss, From: m.From, To: m.To, Token: m.Token, Job: m.Job,
		Body: &protocol.Holding{Slice: m.Body.(*protocol.Work).Slice}})
}

// dismissed waits for the word that the program is gone which has stayed after a subjob: then nothing of it lives.
func (b *bench) dismissed(m protocol.Message) {
	b.Helper()
	if said := b.next(protocol.Dismissed); said.Token != m.Token || said.To != m.From {
		b.Errorf("%v is said to %v to be gone, want %v to %v", said.Token, said.To, m.Token, m.From)
	}
	if left := living(b.o.DataDir); len(left) != 0 {
		b.Errorf("processes remain:%s", described(left))
	}
	b.await("its home to be removed", func() bool { return len(b.homes()) == 0 })
}

// homes are the homes of programs that stay.
func (b *bench) homes() (all []string) {
	entries, _ := os.ReadDir(filepath.Join(b.o.DataDir, "runs"))
	for _, e := range entries {
		if _, ok := shim.HomeOf(e.Name()); ok {
			all = append(all, e.Name())
		}
	}
	return all
}

// wrote is what a subjob wrote to a file of its output.
func (b *bench) wroteTo(m protocol.Message, name string) string {
	data, _ := os.ReadFile(filepath.Join(b.at(m.Token).Output(), name))
	return strings.TrimSpace(string(data))
}

func (b *bench) noteOf(m protocol.Message) shim.Note {
	b.Helper()
	note, err := b.at(m.Token).ReadNote()
	if err != nil {
		b.Fatal(err)
	}
	return note
}

// TestAProgramTakesTheNext: one process works at many subjobs, one after another. Each has folders and logs of its own, and none leaves
// anything behind: no descriptor, no process, no thread more than the first few needed.
func TestAProgramTakesTheNext(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		var first shim.Note
		files, threads := 0, 0
		var last protocol.Message
		for i := range 40 {
			m := resident(i+1, `echo "log $n"; echo "word $n" >&2; echo $n >$out/n
				echo kept >>kept; cat kept | wc -l >$out/lines; answer`, "")
			c := b.works(m)
			note := b.noteOf(m)
			if i == 0 {
				first = note
			}
			if note.PID != first.PID || note.Init != first.Init || note.InitStarted != first.InitStarted {
				t.Fatalf("subjob %d runs in %+v, the first in %+v", i+1, note, first)
			}
			want := fmt.Sprint(i + 1)
			if got := b.wroteTo(m, "n"); got != want {
				t.Errorf("subjob %d was the program's %s", i+1, got)
			}
			if got := b.wroteTo(m, "lines"); got != want {
				t.Errorf("its work directory has %s lines after %s subjobs", got, want)
			}
			if out, err := shim.Tail(b.at(m.Token).Stdout(), 9, 1000), shim.Tail(b.at(m.Token).Stderr(), 9, 1000); out != "log "+want ||
				err != "word "+want {
				t.Errorf("subjob %d has the logs %q and %q", i+1, out, err)
			}
			if c.Result.Stayed != (i > 0) || c.Result.Progress != m.Body.(*protocol.Work).Range.To || c.Result.Start == 0 {
				t.Errorf("subjob %d: %+v", i+1, c.Result)
			}
			if p := c.Resident; p.Number != m.Body.(*protocol.Work).Spec.Residence(m.Job) || p.Memory <= 0 || p.Since != first.At {
				t.Errorf("after subjob %d waits %+v, since %v", i+1, c.Resident, first.At)
			}
			fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", note.PID))
			tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", note.PID))
			if i == 20 {
				files, threads = len(fds), len(tasks)
			}
			if i > 20 && (len(fds) > files || len(tasks) > threads+2) {
				t.Fatalf("after subjob %d the supervisor has %d files and %d threads, after 20 it had %d and %d", i+1, len(fds), len(tasks),
					files, threads)
			}
			if below := tree.Below(note.Init); len(below) != 1 {
				t.Errorf("after subjob %d it has the processes %v", i+1, below)
			}
			b.commit(m)
			last = m
		}
		b.dismiss(last)
		b.dismiss(last) // and once more, as a node does
		b.dismissed(last)
		b.dismiss(last)
		b.next(protocol.Dismissed) // of what is unknown at once
		if left := supervisors(b.o.DataDir); len(left) > 1 {
			t.Errorf("supervisors %v, want one that waits", left)
		}
	})
}
