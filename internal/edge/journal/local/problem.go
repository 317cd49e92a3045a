package local

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// Problem is damage to something that was synced, or its absence.
type Problem struct {
	// File in the journal's directory.
	File string
	// Offset in it, in bytes.
	Offset int64
	// Seq is the first record concerned, 0 if that cannot be known.
	Seq uint64
	// What is wrong, and what a person can Do.
	What, Do string
}

// Error is all of it in one line.
func (p Problem) Error() string {
	record := ""
	if p.Seq > 0 {
		record = fmt.Sprintf(", record %d", p.Seq)
	}
	return fmt.Sprintf("%s, byte %d%s: %s; %s", p.File, p.Offset, record, p.What, p.Do)
}

// restore is what can be done about records that are gone: Sluice keeps no second copy.
const restore = "restore the journal's directory from a backup; or move the data directory away to start with no jobs, and submit them " +
	"again"

// acceptEnd is what can be done where only the end of the journal is in doubt.
const acceptEnd = "restore the journal's directory from a backup; or, if nothing can have been cut off, " +
	"`sluice journal truncate` takes the last record that is there as the end"

// corrupt makes one error of all problems.
func corrupt(d disk.FS, problems []Problem) error {
	all := make([]error, len(problems))
	for i, p := range problems {
		all[i] = p
	}
	return errkind.Errorf(errkind.Corrupt, "journal %s is damaged, and nothing was changed: %w", d, errors.Join(all...))
}
