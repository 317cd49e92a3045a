package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// inodes shows a program's folders: the number of each inode with its birth, since numbers are given out again, rights and owner, and
// what is in it.
const inodes = `for d in . $SLUICE_OUTPUT_DIR $SLUICE_CHECKPOINT_DIR $(dirname $SLUICE_PROGRESS_FILE) $TMPDIR; do
	echo $(stat -c '%i/%w' $d | tr -d ' ') $(stat -c '%a %u %g' $d); ls -A $d; done; `

// vacate settles a subjob that ended and waits until its run directory is put away, or another made in its place, and a while longer:
// a room that was just made is none to be used again.
func (b *bench) vacate(m protocol.Message) {
	b.Helper()
	kept := b.ex.Kept()
	b.commit(m)
	b.await("the run directory to be put away", func() bool { return b.ex.Kept() > kept })
	time.Sleep(80 * time.Millisecond)
}

// through runs one subjob after the other, settling each, and returns what they printed.
func (b *bench) through(users []string, commands ...string) (said []string) {
	b.Helper()
	for i, c := range commands {
		m := nth(i+1, "sh", "-c", c)
		if users != nil {
			m.Body.(*protocol.Work).Spec.Queue = users[i]
		}
		b.run(m, job.Done)
		said = append(said, shim.Tail(b.at(m.Token).Stdout(), 100, 10_000))
		b.vacate(m)
	}
	return said
}

// TestARunDirectoryIsUsedAgain by the next subjob, where the one before has left it as it was: it can't tell it from a new one.
func TestARunDirectoryIsUsedAgain(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		said := b.through(nil, inodes, inodes, inodes)
		if said[1] != said[2] {
			t.Errorf("the third has other folders than the second:\n%s\n%s", said[1], said[2])
		}
		if n := strings.Count(said[2], "\n"); n != 4 || strings.Count(said[2], fmt.Sprintf(" 700 %d %d", os.Getuid(), os.Getgid())) != 5 {
			t.Errorf("the third has %q, want five empty folders that are its own", said[2])
		}
		if left, _ := filepath.Glob(filepath.Join(b.o.DataDir, "runs", "[0-9]*")); len(left) != 0 {
			t.Errorf("run directories %v remain", left)
		}
		if err := b.ex.Close(); err != nil {
			t.Fatal(err)
		}
		b.open()
		if left, _ := os.ReadDir(filepath.Join(b.o.DataDir, "runs")); len(left) != 0 {
			t.Errorf("%v remain after a restart", left)
		}
	})
}

// TestAChangedRunDirectoryIsNotUsedAgain, whatever the change was and whether or not it was undone.
func TestAChangedRunDirectoryIsNotUsedAgain(t *testing.T) {
	attribute := strings.Join(self(t, "attribute"), " ")
	for name, change := range map[string]string{
		"a file":                        "echo x >$TMPDIR/f",
		"a file that was removed":       "echo x >$TMPDIR/f; rm $TMPDIR/f",
		"progress":                      `echo '{"progress":10}' >$SLUICE_PROGRESS_FILE`,
		"rights":                        "chmod 755 $SLUICE_OUTPUT_DIR; chmod 700 $SLUICE_OUTPUT_DIR",
		"a folder in the work folder":   "mkdir d; rmdir d",
		"a file beside the folders":     "echo x >../mine",
		"rights of the run directory":   "chmod 700 ..",
		"an attribute":                  attribute + " $SLUICE_CHECKPOINT_DIR; " + attribute + " $SLUICE_CHECKPOINT_DIR remove",
		"an attribute beside":           attribute + " ..",
		"another folder in one's place": "cd ..; rmdir tmp; mkdir -m 700 tmp",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			said := b.through(nil, inodes, inodes+change, inodes)
			before, after := strings.Fields(said[1]), strings.Fields(said[2])
			if len(before) != 20 || len(after) != 20 {
				t.Fatalf("the folders were %q and %q, want five with nothing in them", said[1], said[2])
			}
			for i := 0; i < 20; i += 4 {
				if before[i] == after[i] {
					t.Errorf("the next subjob has the same folder %d:\n%s\n%s", i/4, said[1], said[2])
				}
			}
		})
	}
}

// TestARunDirectoryIsUsedAgainByItsUserAlone.
func TestARunDirectoryIsUsedAgainByItsUserAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a subjob as another user")
	}
	b := newBench(t, func(o *process.Options) {
		o.User = func(queue string) (*shim.User, error) {
			uid := uint32(65534)
			if queue == "b" {
				uid = 65533
			}
			return &shim.User{Name: queue, UID: uid, GID: uid}, nil
		}
	})
	open(t, b.o.DataDir)
	said := b.through([]string{"a", "a", "b", "a", "b"}, inodes, inodes, inodes, inodes, inodes)
	if said[1] != said[3] {
		t.Errorf("user a has other folders the next time:\n%s\n%s", said[1], said[3])
	}
	if !strings.Contains(said[2], " 700 65533 65533") || strings.Contains(said[2], "65534") || strings.Contains(said[4], "65534") {
		t.Errorf("user b has %q and %q, want folders of its own", said[2], said[4])
	}
}

// TestASubjobHasTheGroupsOfItsUser, and none of the daemon's; and no signal is blocked in it. No shell, which would see to that itself.
func TestASubjobHasTheGroupsOfItsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a subjob as another user")
	}
	b := newBench(t, func(o *process.Options) {
		o.User = func(string) (*shim.User, error) {
			return &shim.User{Name: "a", UID: 65534, GID: 65534, Groups: []uint32{65531, 65532}}, nil
		}
	})
	open(t, b.o.DataDir)
	m := nth(1, "grep", "-e", "^Groups:", "-e", "^SigBlk:", "/proc/self/status")
	b.run(m, job.Done)
	if got := strings.Fields(shim.Tail(b.at(m.Token).Stdout(), 2, 1000)); strings.Join(got,
		" ") != "Groups: 65531 65532 SigBlk: 0000000000000000" {
		t.Errorf("it has %q", got)
	}
}

// TestMarkedProcessesAreOfTheSubjob: a directory that is used again gives the processes of a subjob another mark.
func TestMarkedProcessesAreOfTheSubjob(t *testing.T) {
	b := newBench(t, nil)
	b.through(nil, inodes, inodes)
	m := nth(3, "sleep", "1000")
	b.do(m)
	b.next(protocol.Started)
	for n, want := range map[int]int{2: 0, 3: 1} {
		of := b.at(job.Token{Epoch: 1, Seq: uint64(n)})
		if got := tree.Marked("SLUICE_PROGRESS_FILE=" + of.Progress()); len(got) != want {
			t.Errorf("%d processes are of subjob %d, want %d", len(got), n, want)
		}
	}
	b.do(protocol.Message{Kind: protocol.Stop, Token: m.Token, Body: &protocol.Halt{}})
	b.exited(job.Stopped)
}
