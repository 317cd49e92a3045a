package job

import "sluice.dev/sluice/internal/core/digest"

// Adapter stands between the contract of subjobs and a command that does not know it: it is the subjob's program, and runs the command
// below itself. At most one kind is given; the zero value is none, and the command keeps the contract itself.
type Adapter struct {
	Lines     Lines
	Directory Directory
	Array     Array
	Trials    Trials
	// Keep: a task that fails is written down, and the next begins. It follows from Spec.OnBadItem.
	Keep bool
}

// Given reports whether there is one.
func (a *Adapter) Given() bool { return *a != Adapter{} }

// Lines gives the command the lines of a file on stdin, a unit each; the k-th line that it writes to stdout answers the k-th that it read.
type Lines struct {
	// Input is the file, absolute or below the work directory; empty: this is not the adapter.
	Input string
	// Index is the file of the input's offsets, found as Input is; empty: the input is read from its beginning.
	Index string
	// Format says what a line is.
	Format LineFormat
	// Header: the first line is no unit and goes to every piece, in front of its lines.
	Header bool
	// AnswersHeader: the command writes a header too, in front of its answers.
	AnswersHeader bool
}

// Directory has the command go on from a directory of its own, and end on SIGTERM: what the subjob before has left is put there first, and
// what is there behind its end is the subjob's checkpoint.
type Directory struct {
	// Path is the directory, below the one that the command starts in; empty: this is not the adapter.
	Path string
	// Progress is a regular expression that finds in the command's output how far it is; empty: the name of its newest checkpoint does.
	Progress string
}

// LineFormat is what ends a line.
type LineFormat uint8

const (
	// Text: every line end does. The default.
	Text LineFormat = iota
	// CSV: those outside of double quotes do, and an empty line is none.
	CSV
)

// String is the format's name in job files and for people.
func (f LineFormat) String() string {
	if names := LineFormats(); int(f) < len(names) {
		return names[f]
	}
	return "unknown"
}

// LineFormats are the names of the formats, the default first.
func LineFormats() []string { return []string{"text", "csv"} }

// mix mixes the adapter into a digest; without one the digest is that of before there were any.
func (a *Adapter) mix(h digest.Hash) digest.Hash {
	if l := &a.Lines; l.Input != "" {
		h = h.Text("lines").Text(l.Input).Text(l.Index).Int(int64(l.Format)).Bool(l.Header, l.AnswersHeader)
	}
	if d := &a.Directory; d.Path != "" {
		h = h.Text("directory").Text(d.Path).Text(d.Progress)
	}
	return a.mixTasks(h)
}
