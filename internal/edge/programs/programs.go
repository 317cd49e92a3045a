// Package programs has job files and wrappers to start from, for programs that stop and go on in ways of their own: what `sluice init
// --like NAME` writes, one folder for each program. docs/programs has a page on each, and test/programs runs them with the real one.
//
// It knows nothing of how a job runs. No concurrency.
package programs

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

//go:embed all:blender all:gromacs all:lammps all:optuna all:pytorch all:snakemake
var folders embed.FS

// File is one file of a program.
type File struct {
	// Path is where it belongs, with slashes, below the folder that the job starts from.
	Path string
	Text []byte
	// Program: it is to be executable.
	Program bool
}

// Names are the programs that there is something for, in order.
func Names() []string {
	entries, err := folders.ReadDir(".")
	if err != nil {
		panic(err) // it is compiled in
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// Files are a program's, in order of their paths. An unknown name is refused with those that are known.
func Files(name string) ([]File, error) {
	if !slices.Contains(Names(), name) {
		return nil, errkind.Errorf(errkind.Invalid, "--like: %q is no program that there are files for: take one of %s", name,
			strings.Join(Names(), ", "))
	}
	var files []File
	err := fs.WalkDir(folders, name, func(at string, e fs.DirEntry, err error) error { //sluice:trusted it is compiled in
		if err != nil || e.IsDir() {
			return err
		}
		text, err := folders.ReadFile(at)
		f := File{Path: strings.TrimPrefix(at, name+"/"), Text: text}
		f.Program = path.Ext(f.Path) == ".sh" || strings.HasPrefix(string(text), "#!")
		files = append(files, f)
		return err
	})
	return files, err
}
