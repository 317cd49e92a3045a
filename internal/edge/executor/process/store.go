package process

import (
	"fmt"
	"path/filepath"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	files "sluice.dev/sluice/internal/edge/store"
)

// store is where everything lies below the data directory.
type store string

func (s store) in(parts ...string) string {
	return filepath.Join(append([]string{string(s)}, parts...)...)
}

// run is the directory of a subjob that is not settled.
func (s store) run(t job.Token) shim.Dir { return shim.Dir(s.in("runs", t.String())) }

// snapshot is where a daemon of before has put a work directory; now they are in the store.
func (s store) snapshot(id string) string { return s.in("snapshots", id+".tar.gz") }

// output of a committed range; zeroes in front so that names sort as ranges do.
func (s store) output(j job.ID, r job.Range) string {
	return filepath.Join(s.outputs(j), fmt.Sprintf("%012d-%012d", r.From, r.To))
}

// memberFolder is the folder of a gang's further member among a job's outputs.
const memberFolder = "member-%d"

// member is where the output of a gang's further member goes, beside that of the first.
func (s store) member(j job.ID, r job.Range, member int) string {
	return filepath.Join(s.outputs(j), fmt.Sprintf(memberFolder, member), filepath.Base(s.output(j, r)))
}

func (s store) outputs(j job.ID) string     { return s.in("output", files.Folder(j)) }
func (s store) checkpoints(j job.ID) string { return s.in("checkpoints", files.Folder(j)) }
func (s store) logs(j job.ID) string        { return s.in("logs", files.Folder(j)) }

// life is the file that says which life of a job is the first whose files lie here.
func (s store) life(j job.ID) string { return s.in("lives", files.Folder(j)) }

func (s store) checkpoint(j job.ID, t job.Token) string {
	return filepath.Join(s.checkpoints(j), t.String())
}

func (s store) kept(j job.ID, t job.Token) string {
	return s.in("kept", files.Folder(j)+"."+t.String())
}

// Events is the file that supervisors tell starts and ends to, one JSON object (shim.Event) per line.
func Events(dataDir string) string { return store(dataDir).in("executor-events.jsonl") }

// OldEvents is the events file before that one, if it has been full.
func OldEvents(dataDir string) string { return Events(dataDir) + ".1" }

// LogPath returns the files that hold what a subjob wrote to stdout and stderr. They are the run directory's while it is
// not settled, else the kept ones; they need not exist.
func LogPath(dataDir string, j job.ID, t job.Token, running bool) (stdout, stderr string) {
	s := store(dataDir)
	if running {
		return s.run(t).Stdout(), s.run(t).Stderr()
	}
	base := filepath.Join(s.logs(j), t.String())
	return base + ".out", base + ".err"
}
