// Package data has the commands for what lies on this machine without a daemon: journals, archives and stores.
package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"io"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/archive/bolt"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/host/datadir"
)

// verifyJournal reads a data directory's journal and says in one line what stands there.
func verifyJournal(_ context.Context, dataDir string) (string, error) {
	r, err := local.Verify(filepath.Join(dataDir, "journal"))
	if err != nil {
		return "", err
	}
	if r.Segments == 0 && r.Snapshot.Seq == 0 && len(r.Problems) == 0 {
		return "", errkind.Errorf(errkind.NotFound, "there is no journal in %s: name the directory that sluice up was given with --data",
			dataDir)
	}
	line := fmt.Sprintf("record %d (%s), %d records in %d segments after the snapshot of record %d, %d bytes", r.Last.Seq, r.Last,
		r.Records, r.Segments, r.Snapshot.Seq, r.Bytes)
	if r.Holder != 0 {
		line += fmt.Sprintf("; process %d has it open", r.Holder)
	}
	for _, n := range r.Notes {
		line += "\nnote: " + n
	}
	var damage []error
	for _, p := range r.Problems {
		damage = append(damage, p)
	}
	if len(damage) > 0 {
		return line, errkind.Errorf(errkind.Corrupt, "%w", errors.Join(damage...))
	}
	return line, nil
}

func acceptJournalEnd(dataDir string, last uint64) error {
	return local.AcceptEnd(filepath.Join(dataDir, "journal"), last)
}

func repairArchive(dataDir string, without int64, change uint64) (string, error) {
	if _, err := os.Stat(dataDir); err != nil {
		return "", errkind.Errorf(errkind.NotFound, "--data: %w", err)
	}
	dir := filepath.Join(dataDir, datadir.ArchiveDir)
	r, err := bolt.Repair(dir, without, change)
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%d jobs are in the archive, %d bytes; what was there before is in %s", r.After.Jobs, r.After.Bytes,
		filepath.Join(dir, bolt.Kept))
	if r.After.GivenUp > 0 {
		line += fmt.Sprintf("\nnote: %d jobs that the journal knows of may be missing", r.After.GivenUp)
	}
	if r.Broken {
		line += "\nnote: the file's structure was damaged; of what lay in it besides some jobs may have been forgotten before"
	}
	for i, name := range r.Damaged {
		if i == mostDamaged {
			return line + fmt.Sprintf("\nnote: damaged and left out: %d more", len(r.Damaged)-i), nil
		}
		line += "\nnote: damaged and left out: " + name
	}
	return line, nil
}

// mostDamaged bounds how much damage is named one by one.
const mostDamaged = 50

// DefaultData is where a daemon keeps its data by default.
func DefaultData(getenv func(string) string) string {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice")
	}
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "sluice")
	}
	return "sluice-data"
}

// Tools read and mend what a stopped daemon left in its data directory; a build has each or not.
type Tools struct {
	// Verify reads a journal and says in one line what stands there; an error names what is damaged.
	Verify func(ctx context.Context, dataDir string) (string, error)
	// AcceptEnd takes record last, which must be the last there is, as the end of a journal that has lost its head.
	AcceptEnd func(dataDir string, last uint64) error
	// Repair writes an archive anew with all that is whole, and says what it found.
	Repair func(dataDir string, without int64, change uint64) (string, error)
}

// ReadDaemon reads the file of queues and of the market.
func ReadDaemon(name string) (config.Daemon, error) {
	file, err := os.Open(name)
	if err != nil {
		return config.Daemon{}, command.Usage("--config: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, strict.MaxFileBytes+1))
	if err != nil {
		return config.Daemon{}, fmt.Errorf("--config %s: %w", name, err)
	}
	return config.ParseDaemon(name, data)
}

// Here are the tools for the data directories of this machine.
func Here() Tools {
	return Tools{Verify: verifyJournal, AcceptEnd: acceptJournalEnd, Repair: repairArchive}
}
