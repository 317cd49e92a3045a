// Package folders lays out a job's files below the data directory of the process executor: their paths, the life of the job that its
// folders belong to, and what is in them.
package folders

import (
	"fmt"
	"path/filepath"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	files "sluice.dev/sluice/internal/edge/store"
)

// Layout gives the paths below a data directory.
type Layout string

// In is a path below the data directory.
func (l Layout) In(parts ...string) string {
	return filepath.Join(append([]string{string(l)}, parts...)...)
}

// Run is the directory of a subjob that is not settled.
func (l Layout) Run(t job.Token) shim.Dir { return shim.Dir(l.In("runs", t.String())) }

// OldWorkdir is where older versions put a stored work directory; now it is in the store.
func (l Layout) OldWorkdir(id string) string { return l.In("snapshots", id+".tar.gz") }

// Output is the folder of a committed range; zeroes in front so that names sort as ranges do.
func (l Layout) Output(j job.ID, r job.Range) string {
	return filepath.Join(l.Outputs(j), fmt.Sprintf("%012d-%012d", r.From, r.To))
}

// memberFolder names the folder, among a job's outputs, of each member of a gang but the first.
const memberFolder = "member-%d"

// Member is where the output of a gang's further member goes, beside that of the first.
func (l Layout) Member(j job.ID, r job.Range, member int) string {
	return filepath.Join(l.Outputs(j), fmt.Sprintf(memberFolder, member), filepath.Base(l.Output(j, r)))
}

// Outputs is the folder of a job's outputs.
func (l Layout) Outputs(j job.ID) string { return l.In("output", files.Folder(j)) }

// Checkpoints is the folder of its checkpoints.
func (l Layout) Checkpoints(j job.ID) string { return l.In("checkpoints", files.Folder(j)) }

// Logs is the folder of its logs.
func (l Layout) Logs(j job.ID) string { return l.In("logs", files.Folder(j)) }

// Life is the file that names the first life of a job whose files lie here.
func (l Layout) Life(j job.ID) string { return l.In("lives", files.Folder(j)) }

// Checkpoint is the checkpoint that one subjob of a job has left.
func (l Layout) Checkpoint(j job.ID, t job.Token) string {
	return filepath.Join(l.Checkpoints(j), t.String())
}

// Kept is where uncommitted work is kept for people to look at.
func (l Layout) Kept(j job.ID, t job.Token) string {
	return l.In("kept", files.Folder(j)+"."+t.String())
}

// Events is the file that supervisors tell starts and ends to, one JSON object (shim.Event) per line.
func Events(dataDir string) string { return Layout(dataDir).In("executor-events.jsonl") }

// OldEvents is the events file before that one, if it has been full.
func OldEvents(dataDir string) string { return Events(dataDir) + ".1" }

// LogPath returns the files that hold what a subjob wrote to stdout and stderr. They are the run directory's while it is
// not settled, else the kept ones; they need not exist.
func LogPath(dataDir string, j job.ID, t job.Token, running bool) (stdout, stderr string) {
	l := Layout(dataDir)
	if running {
		return l.Run(t).Stdout(), l.Run(t).Stderr()
	}
	base := filepath.Join(l.Logs(j), t.String())
	return base + ".out", base + ".err"
}
