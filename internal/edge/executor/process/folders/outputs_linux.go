package folders

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// Output is the folder of one committed subjob that wrote something.
type Output struct {
	Token job.Token
	Range job.Range
	// Member is the member of a gang over several nodes that wrote it; 0 for the first, and for a subjob of no gang.
	Member int
	// Path is absolute; Files are relative to it, in order, at most maxFiles of them; Bytes adds up all.
	Path  string
	Files []string
	Bytes int64
}

const (
	// maxFiles bounds the names listed of one folder, mostSeen how many are held to find the first of them.
	maxFiles = 10_000
	mostSeen = 20 * maxFiles
)

// tokens is the folder beside the outputs of a job that names the subjob of each.
const tokens = ".subjobs"

// TokenFile is the file beside an output that names its subjob.
func TokenFile(output string) string {
	return filepath.Join(filepath.Dir(output), tokens, filepath.Base(output))
}

// List lists the folders of a job's committed subjobs in order of progress, and those of a gang in order of its members.
func (l Layout) List(j job.ID) ([]Output, error) {
	folder := l.Outputs(j)
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := outputsIn(folder, entries, 0)
	for _, entry := range entries {
		var member int
		if n, bad := fmt.Sscanf(entry.Name(), memberFolder, &member); n != 1 || bad != nil || member < 1 || err != nil {
			continue
		}
		var theirs []fs.DirEntry
		if theirs, err = os.ReadDir(filepath.Join(folder, entry.Name())); err != nil {
			break
		}
		var more []Output
		more, err = outputsIn(filepath.Join(folder, entry.Name()), theirs, member)
		all = append(all, more...)
	}
	slices.SortFunc(all, func(a, b Output) int {
		return cmp.Or(cmp.Compare(a.Range.From, b.Range.From), cmp.Compare(a.Member, b.Member))
	})
	return all, err
}

// outputsIn returns the outputs of one member, or of subjobs of no gang, among the entries of a folder.
func outputsIn(folder string, entries []fs.DirEntry, member int) (all []Output, err error) {
	for _, entry := range entries {
		var r job.Range
		if n, err := fmt.Sscanf(entry.Name(), "%d-%d", &r.From, &r.To); n != 2 || err != nil {
			continue
		}
		o := Output{Range: r, Member: member, Path: filepath.Join(folder, entry.Name())}
		if text, err := os.ReadFile(TokenFile(o.Path)); err == nil {
			o.Token, _ = job.ParseToken(strings.TrimSpace(string(text)))
		}
		err := foreign.Walk(o.Path, func(f *foreign.Entry) error {
			if !f.Plain || !f.Own {
				return nil
			}
			o.Bytes += f.Size
			if len(o.Files) < mostSeen {
				o.Files = append(o.Files, f.Path)
			}
			return nil
		})
		slices.Sort(o.Files)
		o.Files = o.Files[:min(len(o.Files), maxFiles)]
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}
