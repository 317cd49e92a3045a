package submit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/lines"
	"sluice.dev/sluice/internal/face/cli/jobs"
)

// inputFile is where a map's work directory has an input that is not of the directory, and with indexFile begin the names of indices.
const (
	inputFile = ".sluice/input"
	indexFile = ".sluice/index"
)

// skippedEnd ends the name of the list of skipped lines.
const skippedEnd = ".skipped"

// mostCarried is the largest input that goes along with a job, in bytes.
const mostCarried = maxPacked

// mapping is a call of map.
type mapping struct {
	// input and output as given, format empty: by the input's name.
	input, output, format string
	// header: the command writes one too.
	header         bool
	onFail         string
	noWorkdir, git bool
	replace        bool
	values         map[string]*string
	env, sets      []string
	detach         bool
	w              jobs.Waiting
}

// mapInput is the input of a map, ready to be submitted.
type mapInput struct {
	// path is where its lines are on this machine; empty: they are paths that a pattern has found.
	path   string
	index  *lines.Index
	lines  job.Lines
	beside along
	// goes is what goes along, for people; stays: the input does not.
	goes  string
	stays bool
}

// read finds the lines of the input, and what of it goes along.
func (m *mapping) read() (*mapInput, error) {
	in := &mapInput{goes: here}
	if m.noWorkdir {
		in.goes = "the input"
	}
	dir, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	for _, out := range m.files() {
		whole, err := filepath.Abs(out)
		if err != nil {
			return nil, err
		}
		in.beside.without = append(in.beside.without, whole)
	}
	in.beside.without = append(in.beside.without, redirected(os.Stdout, os.Stderr)...)
	in.lines.AnswersHeader = m.header
	if info, err := os.Lstat(m.input); err != nil && strings.ContainsAny(m.input, "*?[") {
		return in, m.found(in, dir)
	} else if err != nil {
		return nil, command.Usage("--input: %w; give the file of lines, or a quoted pattern of paths", err)
	} else if err = m.file(in, dir, info); err != nil {
		return nil, err
	}
	return in, nil
}

// files are what it writes.
func (m *mapping) files() []string {
	if m.printed() {
		return nil
	}
	return []string{m.output, m.output + skippedEnd}
}

// file reads an input that is a file.
func (m *mapping) file(in *mapInput, dir string, info os.FileInfo) (err error) {
	ext := strings.ToLower(filepath.Ext(m.input))
	if m.format == job.CSV.String() || m.format == "" && (ext == ".csv" || ext == ".tsv") {
		in.lines.Format, in.lines.Header = job.CSV, true
	}
	if in.path, err = filepath.Abs(m.input); err != nil {
		return err
	}
	if slices.Contains(in.beside.without, in.path) {
		return errkind.Errorf(errkind.Invalid, "--output %s is the input, or the input has the name of its list of skipped lines; name "+
			"another file", m.output)
	}
	if is, failed := os.Stat(in.path); failed != nil || !is.Mode().IsRegular() { // a pipe would wait for whoever writes
		return &command.Failure{Code: command.ExitUsage, Err: errors.Join(failed, fmt.Errorf("--input %s is no file; put its lines into "+
			"one", m.input))}
	}
	if in.index, err = lines.Build(in.path, in.lines.Format, in.lines.Header); err != nil {
		return command.Usage("--input: %w", err)
	}
	if !in.index.Numbered { // each record is a line: it is read as text is, whose lines everybody counts alike
		in.lines.Format = job.Text
	}
	name, err := filepath.Rel(dir, in.path)
	if err != nil {
		return err
	}
	switch inside := filepath.IsLocal(name) && info.Mode().IsRegular() && !m.noWorkdir; {
	case in.index.Size > mostCarried:
		in.lines.Input, in.stays = in.path, true
		in.beside.without = append(in.beside.without, in.path)
	case inside:
		in.lines.Input = filepath.ToSlash(name)
	default:
		data, err := os.ReadFile(in.path)
		if err != nil {
			return fmt.Errorf("--input: %w", err)
		}
		in.put(data)
	}
	return in.indexed()
}

// found makes an input of the paths that a pattern finds: as they are seen from the directory that goes along, else whole.
func (m *mapping) found(in *mapInput, dir string) error {
	paths, err := filepath.Glob(m.input)
	if err != nil {
		return command.Usage("--input: the pattern %s: %w", m.input, err)
	}
	if len(paths) == 0 {
		return command.Usage("--input: no file is there, and the pattern %s finds none", m.input)
	}
	if m.format == job.CSV.String() {
		return errkind.Errorf(errkind.Invalid, "--format csv: a pattern's lines are paths; leave it out")
	}
	var b bytes.Buffer
	for _, p := range paths {
		whole := p
		if !filepath.IsAbs(p) {
			whole = filepath.Join(dir, p)
		}
		if strings.Contains(p, "\n") {
			return errkind.Errorf(errkind.Invalid, "--input: the path %q has a line end, and can't be a line; rename it", p)
		}
		if slices.Contains(in.beside.without, whole) {
			continue
		}
		if name, failed := filepath.Rel(dir, whole); failed == nil && filepath.IsLocal(name) && !m.noWorkdir {
			whole = name
		}
		fmt.Fprintln(&b, whole)
	}
	if in.index, err = lines.Of(bytes.NewReader(b.Bytes()), job.Text, false); err != nil {
		return err
	}
	in.put(b.Bytes())
	return in.indexed()
}

// put has the input go along, in a file whose name has no content, so that the same lines are the same job.
func (in *mapInput) put(data []byte) {
	in.lines.Input = inputFile
	in.beside.extra = append(in.beside.extra, extraFile{inputFile, data})
}

// indexed has the index go along. Its name says which input it is of: another one is another job.
func (in *mapInput) indexed() error {
	data, err := in.index.Bytes()
	if err != nil {
		return err
	}
	in.lines.Index = indexFile + "-" + in.index.Digest[:16]
	in.beside.extra = append(in.beside.extra, extraFile{in.lines.Index, data})
	return nil
}

// unit is what people call a line of the input.
func (in *mapInput) unit() string {
	if in.lines.Format == job.CSV {
		return "record"
	}
	return "line"
}
