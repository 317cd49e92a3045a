package directory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/contract"
)

// place is where a program's directory and the subjob's own are.
type place struct {
	// dir is the program's directory, progressing the subjob's progress file.
	dir                                     string
	resume, checkpoint, output, progressing string
}

// kept is the folder of a subjob's checkpoint with what the program's directory had in it, mileage the file that says how far that is,
// which may be further than what counts, and in which folder: a copy on the way has a number behind its name.
const kept, mileage = "directory", "reached"

// restore puts what the subjob before has left into the program's directory, in the place of what came along with the work directory, and
// returns how far that is. path is the directory's for people.
func (p *place) restore(path string) (before int64, err error) {
	if p.resume == "" {
		return 0, os.MkdirAll(p.dir, 0o777)
	}
	text, err := os.ReadFile(filepath.Join(p.resume, mileage))
	folder := ""
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %s", &before, &folder)
	}
	if err == nil && !strings.HasPrefix(folder, kept) {
		err = fmt.Errorf("%s names no folder of ours: %q", mileage, folder)
	}
	if err != nil {
		return 0, fmt.Errorf("the checkpoint of the subjob before: %w", err)
	}
	if err := os.RemoveAll(p.dir); err != nil { //sluice:trusted it runs as the subjob itself
		return 0, fmt.Errorf("the program's checkpoint directory: %w", err)
	}
	if err := copyTree(context.Background(), filepath.Join(p.resume, folder), p.dir); err != nil {
		return 0, fmt.Errorf("putting the checkpoint into %s: %w", path, err)
	}
	return before, nil
}

// keep makes the directory the subjob's checkpoint. Nothing counts before report.
func (p *place) keep(reached int64) error {
	to := filepath.Join(p.checkpoint, kept)
	if os.Rename(p.dir, to) != nil { // it is on another file system
		if err := copyTree(context.Background(), p.dir, to); err != nil {
			return err
		}
	}
	return p.point(kept, reached)
}

// point makes a folder of the checkpoint the one to go on from.
func (p *place) point(folder string, reached int64) error {
	to := filepath.Join(p.checkpoint, mileage)
	if err := os.WriteFile(to+".new", fmt.Appendf(nil, "%d %s\n", reached, folder), 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// report says how far the program is, and whether the checkpoint is as far.
func (p *place) report(upTo int64, checkpoint bool) error {
	return contract.Report(p.progressing, shim.Progress{Progress: upTo, Checkpoint: checkpoint})
}

// end says that the program is done, and how far it was then.
func (p *place) end(length int64) error {
	return contract.Report(p.progressing, shim.Progress{Progress: length, Checkpoint: true, Ended: true})
}
