// Package data has the commands for what lies on this machine without a daemon: journals, archives and stores.
package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/archive/bolt"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	journals "sluice.dev/sluice/internal/edge/journal/all"
	"sluice.dev/sluice/internal/edge/journal/local"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/host/datadir"
)

// verifyJournal reads a data directory's journal and describes it in one line.
func verifyJournal(_ context.Context, dataDir string) (string, error) {
	if at, err := journals.Elsewhere(filepath.Join(dataDir, "journal")); err != nil || at != "" {
		return "", errors.Join(err, errkind.Errorf(errkind.Unsupported, "the journal of %s is elsewhere (%s): etcd keeps it whole, and the daemon "+
			"reads all of it at its start", dataDir, at))
	}
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

// ArchiveCmd is the command archive.
func ArchiveCmd(a *session.Session, t Tools) *cobra.Command {
	c := &cobra.Command{
		Use: "archive", Short: "Mend a daemon's archive of jobs that are over",
		Example: "  sluice archive repair --data /var/lib/sluice",
	}
	c.AddCommand(repairCmd(a, t))
	return c
}

func repairCmd(a *session.Session, t Tools) *cobra.Command {
	var dir string
	var without int64
	var change uint64
	c := &cobra.Command{
		Use: "repair", Short: "Write an archive anew with all that is whole",
		Long: `Write the archive of jobs that are over anew, while the daemon is stopped, with
everything in it that is whole. What is damaged is named and left out, space that is free
is given back, and the file of before stays beside the new one.

A daemon whose archive has fewer jobs, or fewer changes, than its journal knows of refuses
to start, and says how many. A newer copy from a backup has them; where there is none,
--without and --change go on without: nothing is known of the missing jobs any more, their
names are free, and their output is removed at the next start.`,
		Example: "  sluice archive repair --data /var/lib/sluice\n  sluice archive repair --data /var/lib/sluice --without 3 --change 4711",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if without < 0 {
				return command.Usage("--without %d: want a number above 0", without)
			}
			if t.Repair == nil {
				return command.Usage("this build can't write archives")
			}
			text, err := t.Repair(dir, without, change)
			if err != nil {
				return err
			}
			return a.Done(dir, "repaired", command.Record{{Key: "dataDir", Value: dir}, {Key: "without", Value: without},
				{Key: "text", Value: text}}, text)
		},
	}
	c.Flags().StringVar(&dir, "data", DefaultData(a.Getenv), "the daemon's data directory")
	c.Flags().Int64Var(&without, "without", 0, "go on without so many jobs that the journal knows of")
	c.Flags().Uint64Var(&change, "change", 0, "go on as after that change, which the journal knows of")
	return a.Output(c)
}

// JournalCmd is the command journal.
func JournalCmd(a *session.Session, t Tools) *cobra.Command {
	c := &cobra.Command{Use: "journal", Short: "Look at a daemon's journal on this machine",
		Example: "  sluice journal verify --data /var/lib/sluice"}
	var dir string
	verify := &cobra.Command{
		Use: "verify", Short: "Check that a journal is whole",
		Long: `Read a daemon's journal from its data directory and check every record. Nothing is
changed. Exit 1 if a record that was promised is missing or damaged; the message names
it. The daemon makes the same check when it starts, and refuses to go on without it.`,
		Example: "  sluice journal verify --data /var/lib/sluice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.Verify == nil {
				return command.Usage("this build can't read journals")
			}
			text, err := t.Verify(cmd.Context(), dir)
			if text != "" {
				whole := command.Record{{Key: "dataDir", Value: dir}, {Key: "whole", Value: err == nil}, {Key: "text", Value: text}}
				err = errors.Join(err, a.Done(dir, "verified", whole, text))
			}
			return err
		},
	}
	verify.Flags().StringVar(&dir, "data", DefaultData(a.Getenv), "the daemon's data directory")
	c.AddCommand(a.Output(verify), truncateCmd(a, t))
	return c
}

func truncateCmd(a *session.Session, t Tools) *cobra.Command {
	var dir string
	var last uint64
	c := &cobra.Command{
		Use: "truncate", Aliases: []string{"accept-end"}, Short: "Go on with a journal that has lost its HEAD",
		Long: `Write the HEAD of a journal anew where it is missing or can't be read. Only HEAD says
where the journal ended: if records were cut off too, what they held is lost and nobody
will be told. So name the last record as journal verify shows it, and only do this where
nothing but HEAD can have gone. With any other damage nothing is changed.`,
		Example: "  sluice journal verify --data /var/lib/sluice\n  sluice journal truncate --data /var/lib/sluice --record 41234",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.Renamed(cmd, "accept-end")
			if !cmd.Flags().Changed("record") {
				return command.Usage("--record is missing: name the last record, as sluice journal verify shows it")
			}
			if t.AcceptEnd == nil {
				return command.Usage("this build can't write journals")
			}
			if err := t.AcceptEnd(dir, last); err != nil {
				return err
			}
			return a.Done(dir, "ended", command.Record{{Key: "dataDir", Value: dir}, {Key: "record", Value: last}},
				fmt.Sprintf("the journal ends with record %d", last))
		},
	}
	c.Flags().StringVar(&dir, "data", DefaultData(a.Getenv), "the daemon's data directory")
	c.Flags().Uint64Var(&last, "record", 0, "the last record, as journal verify shows it")
	return a.Output(c)
}
