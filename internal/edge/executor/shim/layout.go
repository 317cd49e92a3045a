// Package shim is what the process executor and its supervisor agree on: the run directory of a subjob, the files in
// it, who writes which, and the lock that decides whether a supervisor lives. It starts and ends nothing, and must not
// know about nodes, zones or what a lease is worth.
//
// All files are written whole: to a temporary name, and renamed. Only the result is synced, and the directory with it: of the
// rest nothing counts once the machine was started anew (Lease.BootID). Field names are the names in the files.
package shim

import (
	"path/filepath"
	"strings"
)

// Dir is a run directory: DATA/runs/TOKEN.
type Dir string

// Files of a run directory. The executor writes lease and control, the supervisor note, notice, result and stuck, either of
// them (whoever holds the lock) fenced, and the program what is in its own directories.
func (d Dir) file(name string) string { return filepath.Join(string(d), name) }

// OlderLock is what supervisors of older versions lock. Nobody makes it any more.
func (d Dir) OlderLock() string { return d.file("lock") }

// Fenced exists once nothing may be started here any more.
func (d Dir) Fenced() string { return d.file("fenced") }

// Lease is what is to run and how long it may.
func (d Dir) Lease() string { return d.file("lease.json") }

// Control is what changed since: a moved end, a request to stop.
func (d Dir) Control() string { return d.file("control.json") }

// Note is locked by the supervisor from before it reads anything until it is done, and has a line from before it starts anything.
func (d Dir) Note() string { return d.file("shim.json") }

// Result is final once it is there.
func (d Dir) Result() string { return d.file("result.json") }

// Stuck stands while processes remain that SIGKILL did not end.
func (d Dir) Stuck() string { return d.file("stuck") }

// Terms is the program's SLUICE_LEASE_FILE.
func (d Dir) Terms() string { return d.file("terms.json") }

// Notice is the program's SLUICE_NOTICE_FILE: it stands while something was done to the subjob that the program should know.
func (d Dir) Notice() string { return d.file("notice.json") }

// ProgressDir holds Progress; it is the program's own, because the file is replaced by rename.
func (d Dir) ProgressDir() string { return d.file("progress") }

// Progress is the program's SLUICE_PROGRESS_FILE.
func (d Dir) Progress() string { return filepath.Join(d.ProgressDir(), "progress.json") }

// Mark is the entry in its environment that tells a subjob's process from every other one's on the machine; in a home, its program's.
func (d Dir) Mark() string {
	if strings.HasPrefix(filepath.Base(string(d)), homePrefix) {
		return "SLUICE_RESIDENT_DIR=" + string(d)
	}
	return "SLUICE_PROGRESS_FILE=" + d.Progress()
}

// homePrefix begins the names of homes: no token does.
const homePrefix = ".stay-"

// Work is the subjob's private copy of the work directory. Where that is an overlay it is seen in the subjob's mount namespace
// alone, and empty from outside.
func (d Dir) Work() string { return d.file("work") }

// Upper is what the subjob changed of its work directory, where that is an overlay.
func (d Dir) Upper() string { return d.file("upper") }

// Overlay is the directory that the kernel needs beside Upper.
func (d Dir) Overlay() string { return d.file("overlay") }

// Tmp is the program's TMPDIR.
func (d Dir) Tmp() string { return d.file("tmp") }

// Output is the program's SLUICE_OUTPUT_DIR.
func (d Dir) Output() string { return d.file("output") }

// Checkpoint is the program's SLUICE_CHECKPOINT_DIR.
func (d Dir) Checkpoint() string { return d.file("checkpoint") }

// Stdout is what the program wrote there, up to its limit.
func (d Dir) Stdout() string { return d.file("stdout.log") }

// Stderr is what the program wrote there, up to its limit.
func (d Dir) Stderr() string { return d.file("stderr.log") }

// Log is what the supervisor itself has to say.
func (d Dir) Log() string { return d.file("shim.log") }
