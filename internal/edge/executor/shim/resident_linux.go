package shim

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// A program whose job lets it stay goes on after a subjob, and works at the next in the same process (docs/resident.md). What belongs to
// the program rather than to one of its subjobs lies in a home: a run directory of its own, in which no subjob ever has a result.

// Stay is what the lease of a subjob says of a program that stays.
type Stay struct {
	// Home of the program. Empty: it has this one subjob, in whose run directory it lives.
	Home string `json:",omitempty"`
	// First is the subjob that it was started for.
	First job.Token
	// Checkpoints is the folder of all checkpoints that it may be told to begin from; empty: of none.
	Checkpoints string `json:",omitempty"`
	// Memory is what its slice has, in bytes.
	Memory quantity.Amount
}

// HomeIn is the home, among the run directories, of the program that is started for a subjob.
func HomeIn(runs string, first job.Token) Dir {
	return Dir(filepath.Join(runs, homePrefix+first.String()))
}

// HomeOf returns for which subjob the program was started whose home has a name; false: it is no home's.
func HomeOf(name string) (first job.Token, ok bool) {
	text, ok := strings.CutPrefix(name, homePrefix)
	if !ok {
		return first, false
	}
	first, err := job.ParseToken(text)
	return first, err == nil
}

// Place is where the program of a subjob has its work directory and its TMPDIR: in its home, or in the run directory d.
func (l *Lease) Place(d Dir) Dir {
	if home := l.Home(); home != "" {
		return home
	}
	return d
}

// Home of the subjob's program; empty if it does not stay.
func (l *Lease) Home() Dir {
	if l.Stay == nil {
		return ""
	}
	return Dir(l.Stay.Home)
}

// piece is the line by which a program that stays is given a subjob.
type piece struct {
	Job           job.ID          `json:"job"`
	Subjob        string          `json:"subjob"`
	From          int64           `json:"from"`
	To            int64           `json:"to"`
	Deadline      string          `json:"deadline"`
	MemoryBytes   quantity.Amount `json:"memoryBytes"`
	OutputDir     string          `json:"outputDir"`
	CheckpointDir string          `json:"checkpointDir"`
	ResumeDir     string          `json:"resumeDir,omitempty"`
	ProgressFile  string          `json:"progressFile"`
	LeaseFile     string          `json:"leaseFile"`
	NoticeFile    string          `json:"noticeFile"`
}

// Piece is the line, with its end, that gives the subjob of a run directory to its program: units up to to, until end.
func (d Dir) Piece(l *Lease, to int64, end quantity.Instant) ([]byte, error) {
	line, err := json.Marshal(piece{
		Job: l.Job, Subjob: l.Token.String(), From: l.Range.From, To: to, Deadline: Deadline(end), MemoryBytes: l.Stay.Memory,
		OutputDir: d.Output(), CheckpointDir: d.Checkpoint(), ResumeDir: l.Resume, ProgressFile: d.Progress(), LeaseFile: d.Terms(),
		NoticeFile: d.Notice(),
	})
	return append(line, '\n'), err
}

// ofOne are the variables that say of one subjob what the line says of each.
var ofOne = []string{ //nolint:gochecknoglobals // a table, written to by nobody
	"SLUICE_JOB", "SLUICE_SUBJOB", "SLUICE_FROM", "SLUICE_TO", "SLUICE_DEADLINE", "SLUICE_CHECKPOINT_DIR", "SLUICE_OUTPUT_DIR",
	"SLUICE_RESUME_DIR", "SLUICE_PROGRESS_FILE", "SLUICE_LEASE_FILE", "SLUICE_NOTICE_FILE",
}

// ResidentEnv is the environment of a program that takes its subjobs from its standard input. The mark of its home is in it, if it has one.
func ResidentEnv(env []string, home Dir) []string {
	env = slices.DeleteFunc(env, func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains(ofOne, name)
	})
	env = append(env, "SLUICE_RESIDENT=1")
	if home != "" {
		env = append(env, home.Mark())
	}
	return env
}
