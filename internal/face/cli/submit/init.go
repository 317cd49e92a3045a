package submit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/programs"
	"sluice.dev/sluice/internal/face/cli/session"
)

// starting is a call of init.
type starting struct {
	file, like string
	force      bool
}

// InitCmd is the command init.
func InitCmd(a *session.Session) *cobra.Command {
	var m starting
	kinds, known := strings.Join(config.StarterKinds(), ", "), strings.Join(programs.Names(), ", ")
	c := &cobra.Command{
		Use: "init [KIND]", Short: "Write a commented job file to start from",
		Long: fmt.Sprintf(`Write a commented job file to start from, job.yaml, for a kind of work: %s.
It runs as it is. With --like NAME, into the current directory, the job file and the
wrapper for a program that stops and goes on in its own way: %s
(docs/programs says what each needs). A file that is there is not overwritten without
--force.`, kinds, known),
		Example: "  sluice init && sluice submit job.yaml --wait\n  sluice init steps --file train.yaml\n  sluice init rigid --file -\n" +
			"  sluice init --like gromacs",
		Args: cobra.MaximumNArgs(1), ValidArgs: config.StarterKinds(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("like") {
				if len(args) > 0 || cmd.Flags().Changed("file") {
					return command.Usage("--like says which files are written: leave the kind and --file out")
				}
				return m.writeLike(a)
			}
			return m.write(a, args)
		},
	}
	f := c.Flags()
	f.StringVarP(&m.file, "file", "f", "job.yaml", "where to write it; - is stdout")
	f.StringVar(&m.like, "like", "", "write what a program needs instead: "+known)
	f.BoolVar(&m.force, "force", false, "overwrite a file that is there")
	return a.Output(c)
}

// write writes the job file for a kind of work.
func (m *starting) write(a *session.Session, args []string) error {
	kind := config.StarterKinds()[0]
	if len(args) > 0 {
		kind = args[0]
	}
	text, err := config.Starter(kind)
	if err != nil {
		return err
	}
	if m.file == "-" {
		_, err = a.Out.Write(text)
		return err
	}
	if err := m.create(m.file, text, 0o666); errors.Is(err, os.ErrExist) {
		return errkind.Errorf(errkind.Exists, "%s is there already: give --force to overwrite it, or another --file", m.file)
	} else if err != nil {
		return err
	}
	return a.Done(m.file, "written", command.Record{{Key: "file", Value: m.file}, {Key: "kind", Value: kind}},
		fmt.Sprintf("%s written: edit it, then `sluice submit %s --wait`", m.file, m.file))
}

// writeLike writes a program's files into the current directory: all, or none if one of them is there.
func (m *starting) writeLike(a *session.Session) error {
	files, err := programs.Files(m.like)
	if err != nil {
		return err
	}
	var there, written []string
	for _, f := range files {
		written = append(written, f.Path)
		if _, err := os.Lstat(filepath.FromSlash(f.Path)); err == nil {
			there = append(there, f.Path)
		}
	}
	if len(there) > 0 && !m.force {
		return errkind.Errorf(errkind.Exists, "%s: there already, and nothing was written: give --force to overwrite, or take another "+
			"directory", strings.Join(there, ", "))
	}
	for _, f := range files {
		mode := os.FileMode(0o666)
		if f.Program {
			mode = 0o777
		}
		at := filepath.FromSlash(f.Path)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := m.create(at, f.Text, mode); err != nil {
			return err
		}
	}
	return a.Done(m.like, "written", command.Record{{Key: "like", Value: m.like}, {Key: "files", Value: strings.Join(written, " ")}},
		fmt.Sprintf("%s written: docs/programs/%s.md says what to edit and what bites", strings.Join(written, ", "), m.like))
}

// create writes a new file, or with --force one that may be there.
func (m *starting) create(path string, text []byte, mode os.FileMode) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if m.force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
