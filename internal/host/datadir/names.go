package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/wire"
)

// The names of nodes and slices begin with the machine's name, so facts, the archive and run directories have it. The data directory keeps
// the name, whatever the host is called later, and every earlier one: a rename writes this one file and nothing else, and old names are
// replaced by the present one wherever they are read (docs/adr/0058-names.md).

// namesName has one name a line, the oldest first; the last one is the present one.
const namesName = "names"

// KeptNames are all names that the machine has had in a data directory, the oldest first; none in a new one. A directory of an earlier
// format has no list: the first fact of a node in its journal tells the only name. nodes is how many nodes the daemon is to have:
// of several the name there ends with the node's number. Whether the directory is another machine's is found at Open.
func KeptNames(dir string, nodes int, open func(dir string) (journal.Journal, error)) ([]job.NodeID, error) {
	known, err := checkFormat(dir)
	if err != nil || !known {
		return nil, err
	}
	kept, err := readNames(dir)
	if err != nil || len(kept) > 0 {
		return kept, err
	}
	at := filepath.Join(dir, JournalDir)
	if _, missing := os.Stat(at); errors.Is(missing, fs.ErrNotExist) {
		return nil, nil
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	id, err := firstNode(at, open)
	if err = errors.Join(err, lock.Close()); err != nil || id == "" {
		return nil, err
	}
	if name, number, ok := cutLast(id); nodes > 1 && ok {
		if n, bad := strconv.Atoi(number); bad == nil && n > 0 {
			id = name
		}
	}
	return []job.NodeID{job.NodeID(id)}, nil
}

func cutLast(id string) (before, after string, ok bool) {
	i := strings.LastIndexByte(id, '-')
	if i <= 0 {
		return id, "", false
	}
	return id[:i], id[i+1:], true
}

// errFound ends a replay early.
var errFound = errors.New("found")

// firstNode is the node whose fact is the first in a journal; empty: it has none.
func firstNode(dir string, open func(dir string) (journal.Journal, error)) (string, error) {
	j, err := open(dir)
	if err != nil {
		return "", fmt.Errorf("open the journal: %w", err)
	}
	var id string
	var decoder wire.Decoder
	look := func(encoded []byte) error {
		var f protocol.Fact
		bad := decoder.Fact(encoded, &f)
		if bad == nil && f.Actor.Role == protocol.Node {
			id = f.Actor.ID
			return errFound
		}
		return bad
	}
	_, err = j.Replay(func(state io.Reader) error {
		for facts := wire.NewFactReader(state); ; {
			encoded, bad := facts.Next()
			if errors.Is(bad, io.EOF) {
				return nil
			}
			if bad == nil {
				bad = look(encoded)
			}
			if bad != nil {
				return bad
			}
		}
	}, func(_ journal.Position, data []byte) error { return wire.EachFact(data, look) })
	if errors.Is(err, errFound) {
		err = nil
	}
	if err = errors.Join(err, j.Close()); err != nil {
		return "", fmt.Errorf("look in the journal for the machine's name: %w", err)
	}
	return id, nil
}

// readNames reads the file; none, if it is not there.
func readNames(dir string) (names []job.NodeID, err error) {
	path := filepath.Join(dir, namesName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the machine's name: %w", err)
	}
	text, ended := strings.CutSuffix(string(data), "\n")
	for name := range strings.SplitSeq(text, "\n") {
		names = append(names, job.NodeID(name))
		ended = ended && name != "" && !strings.ContainsRune(name, '/') && !strings.ContainsFunc(name, unicode.IsControl)
	}
	if !ended {
		return nil, errkind.Errorf(errkind.Corrupt, "%s does not hold names of this machine, one a line: restore it from a backup, "+
			"or remove it if the machine never had another name; nothing was changed", path)
	}
	return names, nil
}

// Renames maps each earlier name of a node to its present one: a node's name is the machine's and the node's number.
func Renames(names []job.NodeID, nodes []job.NodeID) protocol.Renames {
	if len(names) < 2 {
		return nil
	}
	r, now := protocol.Renames{}, names[len(names)-1]
	for _, id := range nodes {
		number := strings.TrimPrefix(string(id), string(now))
		for _, before := range names[:len(names)-1] {
			r[before+job.NodeID(number)] = id
		}
	}
	return r
}
