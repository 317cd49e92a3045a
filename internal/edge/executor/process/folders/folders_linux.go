package folders

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	files "sluice.dev/sluice/internal/edge/store"
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

// NothingFile is the file that says that a committed subjob of another machine wrote nothing, where its output would be.
func NothingFile(output string) string { return TokenFile(output) + ".none" }

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

// A job's folders are named after the job, in every life. DATA/lives/JOB names the first life whose files lie there: files of an older one
// are never moved there again, and a late Purge removes nothing newer.

// Lives excludes moving files of one life of a job to their place while the folders are cleared for the next life. Safe for concurrent
// use. Make it with NewLives.
type Lives struct {
	l      Layout
	kept   shelf.Shelf
	moving [64]sync.Mutex
	// emptying allows one emptying of the trash at a time.
	emptying sync.Mutex
}

// NewLives remembers the life of at most most jobs' folders; warn is called for files that can't be removed.
func NewLives(l Layout, most int, warn func(path string, err error)) *Lives {
	return &Lives{l: l, kept: shelf.Shelf{Root: l.In("lives"), Depth: 1, Most: most, Bytes: math.MaxInt64, Warn: warn}}
}

// Place locks the folders of a job.
func (v *Lives) Place(j job.ID) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(j)) // a hash takes every write
	return &v.moving[h.Sum32()%uint32(len(v.moving))]
}

// There reports whether a path among a job's files is there. It waits for who is moving or removing it.
func (v *Lives) There(j job.ID, path string) bool {
	lock := v.Place(j)
	lock.Lock()
	defer lock.Unlock()
	_, err := os.Stat(path)
	return err == nil
}

// First returns the first life whose files lie in the job's folders; 0 if that is not recorded: then it is the job's first life, unless
// the record was dropped as too old.
func (v *Lives) First(j job.ID) (job.Generation, error) {
	data, err := os.ReadFile(v.l.Life(j))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil || len(data) == 0 { // truncated by a power cut: see write
		return 0, err
	}
	n, err := strconv.ParseUint(string(data), 10, 32)
	if err != nil {
		return 0, errkind.Errorf(errkind.Corrupt, "%s: %q is no life's number; remove the file if no other of the job's is older than "+
			"its present life", v.l.Life(j), data)
	}
	return job.Generation(n), nil
}

// Claim makes sure before a subjob starts that the job's folders belong to its life. It is an error if they belong to a later one.
func (v *Lives) Claim(j job.ID, of job.Generation) error {
	lock := v.Place(j)
	lock.Lock()
	defer lock.Unlock()
	first, err := v.First(j)
	switch {
	case err != nil:
		return err
	case first > of:
		return errkind.Errorf(errkind.Conflict, "it is of life %d of job %s, which is over: the job's files are those of life %d", of, j,
			first)
	case first != 0, of <= 1: // most jobs have one life, and no file
		return nil
	}
	return v.write(j, of)
}

// write does not sync: a late Purge or Settle, which it guards against, can't come after a power cut.
func (v *Lives) write(j job.ID, of job.Generation) error {
	temp := v.l.In("lives", ".new-"+files.Folder(j))
	if err := os.WriteFile(temp, fmt.Append(nil, of), 0o600); err != nil {
		return err
	}
	if err := os.Rename(temp, v.l.Life(j)); err != nil {
		return err
	}
	v.kept.Add(v.l.Life(j))
	return nil
}

// Clear moves the folders into the trash, if they are of a life before a generation (0: of any), and syncs their parents.
// unname is called first, while they are there: the next start finds the job by them.
func (v *Lives) Clear(j job.ID, before job.Generation, unname func(job.ID) error) error {
	lock := v.Place(j)
	lock.Lock()
	defer lock.Unlock()
	if first, err := v.First(j); err == nil && before != 0 && max(first, 1) >= before {
		return nil // the files here are newer; this purge was carried out before
	}
	if err := unname(j); err != nil {
		return err
	}
	paths := []string{v.l.Outputs(j), v.l.Checkpoints(j), v.l.Logs(j)}
	kept, err := filepath.Glob(v.l.In("kept", files.Folder(j)+".*"))
	if err != nil {
		return err
	}
	for _, path := range kept {
		// A name may go on with a dot: what follows must be a token and nothing else.
		if _, err := job.ParseToken(filepath.Base(path)[len(files.Folder(j))+1:]); err == nil {
			paths = append(paths, path)
		}
	}
	var errs []error
	moved := map[string]bool{}
	for _, path := range paths {
		gone, err := v.Discard(path)
		errs = append(errs, err)
		if gone {
			moved[filepath.Dir(path)] = true
		}
	}
	for dir := range moved {
		errs = append(errs, shim.SyncDir(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if before != 0 { // last: after a crash before this it is done again
		return v.write(j, before)
	}
	if err := os.Remove(v.l.Life(j)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Discard moves a tree, if it is there, into the trash, under a name of its own.
func (v *Lives) Discard(path string) (moved bool, err error) {
	if _, err = os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	// No folder is made for it there: Empty could remove that before the tree is in it.
	err = os.Rename(path, v.l.In("trash", rand.Text()))
	return err == nil, err
}

// Empty removes what was cleared, until it is over.
func (v *Lives) Empty(over func() bool) error {
	v.emptying.Lock()
	defer v.emptying.Unlock()
	entries, err := os.ReadDir(v.l.In("trash"))
	for _, entry := range entries {
		if over() {
			break
		}
		err = errors.Join(err, foreign.Remove(v.l.In("trash", entry.Name())))
	}
	return err
}

// Filled reports whether a directory exists and is not empty. Invalid: it is no directory.
func Filled(path string) (bool, error) {
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return false, errkind.Errorf(errkind.Invalid, "%s is no folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) > 0, err
}

// Move renames a directory that holds something to a place whose parents are made with mode, and makes that durable. It
// says whether the directory is there afterwards: moved now or before. outlived: the machine was started anew since it was written.
// Then it may be in both places, where a file system keeps no order between directories, and what is in its place is whole.
func Move(from, to string, mode os.FileMode, outlived bool) (bool, error) {
	any, err := Filled(from)
	switch {
	case errors.Is(err, fs.ErrNotExist): // moved before, perhaps by a daemon that died before that was durable
		if _, err = os.Stat(to); err != nil {
			return false, nil //nolint:nilerr // there was nothing to move
		}
		err = shim.SyncDir(filepath.Dir(filepath.Dir(to)))
	case err != nil || !any:
		return false, err
	default:
		// The place must be on the disk before anything is recorded there, and the old one may be removed last.
		err = errors.Join(os.MkdirAll(filepath.Dir(to), mode), shim.SyncDir(filepath.Dir(filepath.Dir(to))))
		if err == nil {
			err = Rename(from, to)
		}
		if outlived && (errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTEMPTY)) {
			err = nil
		}
	}
	if err == nil {
		err = errors.Join(shim.SyncDir(filepath.Dir(to)), shim.SyncDir(filepath.Dir(from)))
	}
	if err != nil {
		return false, fmt.Errorf("publishing: %w", err)
	}
	return true, nil
}

// Rename moves a file that a subjob may own, and may have made unmovable.
func Rename(from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrPermission) {
		foreign.Free(from)
		err = os.Rename(from, to)
	}
	return err
}
