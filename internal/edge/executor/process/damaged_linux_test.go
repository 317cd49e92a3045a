package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// among is a script in which $f is a file of the run directory.
func among(file, script string) string {
	return `f=$(dirname "$SLUICE_OUTPUT_DIR")/` + file + `; ` + script
}

// When the damage is found: while the daemon runs, or when it is restarted, with the supervisor alive or dead.
const (
	livingOn  = "the daemon lives on"
	comesTo   = "the daemon comes back"
	comesLate = "its supervisor is dead too"
)

// damages are what a program that runs as the daemon's own user can do to its run directory. in lists when that is its own failure; else
// the damage does no harm.
var damages = []struct {
	name, script string
	in           []string
}{
	{"result is a folder", among("result.json", `mkdir -p "$f/full"`), []string{livingOn, comesTo, comesLate}},
	{"result is a pipe", among("result.json", `mkfifo "$f"`), []string{livingOn, comesTo, comesLate}},
	{"result is a link", among("result.json", `ln -s /dev/zero "$f"`), []string{livingOn, comesTo, comesLate}},
	{"result is no JSON", among("result.json", `echo { > "$f"`), nil},
	{"lease is a folder", among("lease.json", `rm "$f"; mkdir -p "$f/full"`), []string{livingOn, comesTo, comesLate}},
	{"lease is a pipe", among("lease.json", `rm "$f"; mkfifo "$f"`), []string{livingOn, comesTo, comesLate}},
	{"lease is no JSON", among("lease.json", `echo { > "$f"`), []string{comesTo, comesLate}},
	{"lease is gone", among("lease.json", `rm "$f"`), []string{comesTo, comesLate}},
	{"lease is another's", among("lease.json", `sed -i 's/"Seq":1/"Seq":7/' "$f"`), []string{comesTo, comesLate}},
	{"note is a folder", among("shim.json", `rm "$f"; mkdir -p "$f/full"`), []string{livingOn, comesTo, comesLate}},
	{"note is a pipe", among("shim.json", `rm "$f"; mkfifo "$f"`), []string{livingOn, comesTo, comesLate}},
	{"note is no JSON", among("shim.json", `echo } >> "$f"`), []string{comesTo, comesLate}},
	{"note is gone", among("shim.json", `rm "$f"`), []string{livingOn, comesTo, comesLate}},
	{"control is a folder", among("control.json", `rm -f "$f"; mkdir -p "$f/full"`), []string{comesLate}},
	{"control is a pipe", among("control.json", `rm -f "$f"; mkfifo "$f"`), []string{comesLate}},
	{"all of them are folders", among("", `for n in result lease shim; do rm -f "$f$n.json"; mkdir "$f$n.json"; done`),
		[]string{livingOn, comesTo, comesLate}},
	{"stderr is a pipe", among("stderr.log", `mkfifo "$f"; echo said >&2`), nil},
}

// TestADamagedRunDirectory: it neither keeps the daemon from starting nor holds a slice. Whatever a program does to Sluice's own files, its
// subjob ends soon, none of its processes survives, and it can be settled. Where the damage matters it is the subjob's own failure, and the
// reason names it.
func TestADamagedRunDirectory(t *testing.T) {
	for i, c := range damages {
		for k, when := range []string{livingOn, comesTo, comesLate} {
			t.Run(c.name+"/"+when, func(t *testing.T) {
				b := newBench(t, func(o *process.Options) {
					if (i+k)%2 == 0 { // half of the cases with the weakest isolation
						o.Isolation = treeOnly()
					}
				})
				at := func(name string) string { return filepath.Join(b.o.DataDir, name) }
				script := fmt.Sprintf(`echo '{"progress":5}' > "$SLUICE_PROGRESS_FILE"; until [ -e %[1]s ]; do sleep 0.02; done
						trap '' TERM; %[2]s; echo > %[3]s; sleep 1000`, at("go"), c.script, at("done"))
				b.do(lease(time.Hour, "sh", "-c", script))
				b.next(protocol.Started)
				note, err := b.dir().ReadNote()
				must(errors.Join(err, os.WriteFile(at("go"), nil, 0o600)))
				b.await("the damage", func() bool { // some kinds end the subjob at once
					_, err := os.Stat(at("done"))
					return err == nil || len(living(b.o.DataDir)) == 0
				})
				var r *job.Result
				if when != livingOn {
					must(b.ex.Close())
					if when == comesLate {
						p := tree.Process{PID: note.PID, Started: note.Started}
						must(p.Signal(syscall.SIGKILL))
						b.await("its supervisor to end", func() bool { return !p.Alive() })
					}
					found := b.open()
					if len(found) != 1 || found[0].Token != token || found[0].Stuck {
						t.Fatalf("found %+v, want the subjob", found)
					}
					r = found[0].Result
				}
				if r == nil {
					b.do(protocol.Message{Kind: protocol.Stop, Token: token, Job: "j", Body: &protocol.Halt{Text: "enough", Now: true}})
					r = b.next(protocol.Exited).Body.(*protocol.Conclusion).Result
				}
				b.wrecked(r, slices.Contains(c.in, when))
			})
		}
	}
}

// wrecked checks the result of a damaged subjob, which is its own failure if own, that its processes end, and that it can be settled.
func (b *bench) wrecked(r *job.Result, own bool) {
	b.Helper()
	switch named := strings.Contains(r.Detail, "its run directory is damaged"); {
	case own && (r.Outcome != job.LimitKilled || !named || r.Progress != 0 && !strings.Contains(r.Detail, "shim.json is gone")):
		b.Errorf("%+v, want its own failure that names the damage, and nothing of it to count", r)
	case !own && (r.Outcome != job.Stopped && r.Outcome != job.NodeFailed || named || r.Progress != 5):
		b.Errorf("%+v, want what any subjob gets", r)
	}
	b.await("its last process to end", func() bool { return len(living(b.o.DataDir)) == 0 })
	b.settle(false, job.Range{})
	must(b.ex.Close())
	if found := b.open(); len(found) != 0 {
		b.Errorf("found %+v after settling, want nothing", found)
	}
}

// TestADamagedRunDirectoryUnprivileged: a daemon that is not root has its own rights alone.
func TestADamagedRunDirectoryUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is not root: the test above says it")
	}
	asNobody(t, "TestADamagedRunDirectory")
}

// TestARunDirectoryIsReplaced: a program moves its run directory away and puts something else in its place.
func TestARunDirectoryIsReplaced(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"by a file":       func(dir string) error { return errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o600)) },
		"by an empty one": func(dir string) error { return errors.Join(os.Rename(dir, dir+".away"), os.Mkdir(dir, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, change func(*process.Options)) {
				b := newBench(t, change)
				b.do(lease(time.Hour, "sleep", "1000"))
				b.next(protocol.Started)
				note, err := b.dir().ReadNote()
				must(errors.Join(err, b.ex.Close(), damage(string(b.dir()))))
				defer func() { // the supervisor keeps trying to write its result
					must(tree.Process{PID: note.PID, Started: note.Started}.Signal(syscall.SIGKILL))
				}()
				found := b.open()
				if len(found) != 1 || found[0].Result == nil {
					t.Fatalf("found %+v, want its result", found)
				}
				b.wrecked(found[0].Result, true)
			})
		})
	}
}
