// Package all is the table of the kinds of journal, and how one is chosen. Only the command line and the programs import it.
package all

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/journal/local"
)

// Options of whoever opens a journal.
type Options struct {
	// Spec says where it is, such as etcd://10.0.0.1:2379/sluice/lab; empty: in the data directory.
	Spec string
	// Depose opens a journal in etcd although another daemon has it open, which can then write nothing more.
	Depose bool
	// Notice is told what is worth a line in the log.
	Notice func(text string)
}

// elsewhere is the file in a data directory's journal folder that says where its journal is.
const elsewhere = "elsewhere"

// Open opens the journal of a data directory whose folder for it is dir. Which kind a directory has is settled by its first opening: no
// other is taken for it, since it would look like a directory without jobs.
func Open(ctx context.Context, dir string, o Options) (journal.Journal, error) {
	was, err := Elsewhere(dir)
	if err != nil {
		return nil, err
	}
	switch spec, _, _ := strings.Cut(o.Spec, "?"); { // behind it stand files' names
	case was != "" && o.Spec == "":
		return nil, errkind.Errorf(errkind.Conflict, "the journal of %s is elsewhere (%s): name it in the daemon's file, as in journal: "+
			"etcd://10.0.0.1:2379/sluice/lab, or use another data directory", filepath.Dir(dir), was)
	case o.Spec == "":
		return local.Open(dir, local.Options{Notice: o.Notice})
	case own(dir):
		return nil, errkind.Errorf(errkind.Conflict, "%s has a journal of its own, and the daemon's file names another (journal: %s): leave "+
			"that out, or use a new data directory", filepath.Dir(dir), spec)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	j, is, err := openEtcd(ctx, o.Spec, host+":"+dir, o.Depose, o.Notice)
	if err != nil {
		return nil, err
	}
	switch was {
	case is:
	case "":
		err = note(dir, is)
	default:
		err = errkind.Errorf(errkind.Conflict, "the journal of %s is another one (%s) than the daemon's file names (%s), to which nothing was written: "+
			"name that one, or use another data directory", filepath.Dir(dir), was, is)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Elsewhere is what a folder says of where its journal is, empty if that is in it or not said yet.
func Elsewhere(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, elsewhere))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(b)), err
}

// own says that a folder has a journal.
func own(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(names, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), elsewhere) })
}

// note says in a folder where its journal is.
func note(dir, is string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	const temporary = elsewhere + ".new"
	if err := os.Remove(filepath.Join(dir, temporary)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return disk.Put(disk.OS(dir), elsewhere, temporary, []byte(is+"\n"))
}
