// Package power is a model of power cuts for tests: it records every sync below a directory, of all processes that go through package
// durable, and draws what a disk may have kept after a cut. It must not know what is in the files.
package power

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Node is a file or directory as it was at some Moment. ID names it for good: a number of a removed file is used again, with
// another time of birth.
type Node struct {
	ID      string
	Content []byte          `json:",omitempty"`
	Entries map[string]Node `json:",omitempty"`
	Dir     bool            `json:",omitempty"`
}

// Moment is one line of the Recorder's: the content of the data directory with what was about to be made durable then, or with what was
// sent to the node.
type Moment struct {
	Sync, Path string `json:",omitempty"` // the node's ID, and where it was
	Said       string `json:",omitempty"`
	Tree       Node
}

// Recorder notes every sync below a data directory, of this process and of the supervisor, which is one of its own. Their lines are
// in one order: who looks at the tree holds the file.
type Recorder struct{ Root string }

// Log is beside the data directory: a power cut does not affect it. If it exists, there is a recording.
func (r Recorder) Log() string { return r.Root + ".power" }

// Record is what durable.OnSync is set to.
func Record(f *os.File) {
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	must(err)
	for dir := at; len(dir) > 1; dir = filepath.Dir(dir) {
		r := Recorder{dir}
		if _, err := os.Stat(r.Log()); err == nil {
			r.write(f, at, "")
			return
		}
	}
}

// Said notes that something was sent.
func (r Recorder) Said(what string) { r.write(nil, "", what) }

func (r Recorder) write(f *os.File, at, said string) {
	log, err := os.OpenFile(r.Log(), os.O_WRONLY|os.O_APPEND, 0)
	must(err)
	defer func() { _ = log.Close() }()
	must(unix.Flock(int(log.Fd()), unix.LOCK_EX))
	m := Moment{Said: said, Tree: look(r.Root)}
	if f != nil {
		var st unix.Statx_t
		must(unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_ALL, &st))
		m.Sync = identity(&st)
		m.Path, err = filepath.Rel(r.Root, at)
		must(err)
	}
	line, err := json.Marshal(m)
	must(err)
	_, err = log.Write(append(line, '\n'))
	must(err)
}

func identity(st *unix.Statx_t) string {
	return fmt.Sprintf("%d born %d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec)
}

// look reads a tree as it was at one Moment, though others change it: until it is twice the same.
func look(root string) Node {
	for before := glance(unix.AT_FDCWD, root); ; {
		n := glance(unix.AT_FDCWD, root)
		if reflect.DeepEqual(n, before) {
			return n
		}
		before = n
	}
}

// glance reads a tree once. What vanishes meanwhile is not there; what is there is one file: it is opened, and then only what is open is
// looked at. A path may name another file, or none, by the time it is read.
func glance(dir int, name string) (n Node) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return n
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Statx_t
	must(unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_ALL, &st))
	n.ID = identity(&st)
	open := fmt.Sprintf("/proc/self/fd/%d", fd)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		n.Dir, n.Entries = true, map[string]Node{}
		var list []fs.DirEntry
		list, err = os.ReadDir(open)
		if errors.Is(err, fs.ErrNotExist) { // it is open, and removed
			return Node{}
		}
		must(err)
		for _, e := range list {
			if child := glance(fd, e.Name()); child.ID != "" {
				n.Entries[e.Name()] = child
			}
		}
	case unix.S_IFREG:
		n.Content, err = os.ReadFile(open)
		must(err)
	}
	return n
}

// History is a recording.
type History []Moment

// History reads what was recorded.
func (r Recorder) History() (all History, err error) {
	data, err := os.ReadFile(r.Log())
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var m Moment
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Platter is what is surely on the disk: of every file that was ever synced the content, of every such directory the names, as
// they then were.
type Platter map[string]Node

// Synced takes over what a Moment makes durable.
func (p Platter) Synced(m *Moment) {
	var find func(n Node) bool
	find = func(n Node) bool {
		if n.ID == m.Sync {
			p[n.ID] = n
			return true
		}
		for _, child := range n.Entries {
			if find(child) {
				return true
			}
		}
		return false
	}
	find(m.Tree)
}

// Image is what a power cut leaves, by path: the content of files, nil for directories.
type Image map[string][]byte

// Cut draws what is left of a tree when the power is cut: of every name and every content either what was synced last or what is
// now there or, of a file, a part of that. A rename is done or not done, but for one whose old place alone was synced: that one
// is lost, as a file system may that keeps no order between directories. Without a draw nothing remains that was not synced.
func (p Platter) Cut(now Node, draw func(n int) int) Image {
	left, moved := Image{}, map[string]bool{}
	took := func(id string) bool { // that what was done to this node since is on the disk
		if _, drawn := moved[id]; !drawn {
			moved[id] = draw != nil && draw(2) == 0
		}
		return moved[id]
	}
	current := map[string]Node{}
	var index func(n Node)
	index = func(n Node) {
		current[n.ID] = n
		for _, child := range n.Entries {
			index(child)
		}
	}
	index(now)
	var build func(at string, n Node)
	build = func(at string, n Node) {
		disk, known := p[n.ID]
		latest, there := current[n.ID]
		if !there {
			latest = disk
		}
		if !n.Dir {
			left[at] = survive(disk, latest, known, draw)
			return
		}
		left[at] = nil
		names := map[string]Node{}
		for _, name := range slices.Sorted(maps.Keys(disk.Entries)) {
			child := disk.Entries[name]
			if after, still := latest.Entries[name]; still && after.ID == child.ID || !took(child.ID) {
				names[name] = child
			}
		}
		for _, name := range slices.Sorted(maps.Keys(latest.Entries)) {
			child := latest.Entries[name]
			before, had := disk.Entries[name]
			if had && before.ID == child.ID {
				continue
			}
			if took(child.ID) {
				names[name] = child
			} else if had {
				names[name] = before // what it would have replaced
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			build(path.Join(at, name), names[name])
		}
	}
	build(".", now)
	return left
}

// survive is what is left of a file's content.
func survive(disk, now Node, known bool, draw func(n int) int) []byte {
	if known && (draw == nil || string(disk.Content) == string(now.Content)) {
		return append([]byte{}, disk.Content...)
	}
	if draw == nil {
		return []byte{}
	}
	switch draw(3) {
	case 0:
		return append([]byte{}, disk.Content...)
	case 1:
		return append([]byte{}, now.Content[:len(now.Content)/2]...)
	}
	return append([]byte{}, now.Content...)
}

// Put writes what a power cut has left to a directory.
func (left Image) Put(root string) {
	for _, name := range slices.Sorted(maps.Keys(left)) {
		path := filepath.Join(root, name)
		if left[name] == nil {
			must(os.MkdirAll(path, 0o700))
		} else {
			must(os.WriteFile(path, left[name], 0o600))
		}
	}
}

// Draw is a source of numbers for Cut, the same for the same seed. For 0 it is nil: nothing is kept that was not synced.
func Draw(seed uint64) func(n int) int {
	if seed == 0 {
		return nil
	}
	return func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int(seed>>33) % n
	}
}

// must panics: an error here is the model's, and no finding of a test.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
