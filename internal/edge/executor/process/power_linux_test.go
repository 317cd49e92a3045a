package process_test

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

// node is a file or directory as it was at some moment. ID names it for good: a number of a removed file is used again, with
// another time of birth.
type node struct {
	ID      string
	Content []byte          `json:",omitempty"`
	Entries map[string]node `json:",omitempty"`
	Dir     bool            `json:",omitempty"`
}

// moment is one line of what the recorder writes: what lay in the data directory, and what was about to be made durable then,
// or what was said to the node.
type moment struct {
	Sync, Path string `json:",omitempty"` // the node's ID, and where it was
	Said       string `json:",omitempty"`
	Tree       node
}

// recorder notes every sync below a data directory, of this process and of the supervisor, which is one of its own. Their lines are
// in one order: who looks at the tree holds the file.
type recorder struct{ root string }

// log is beside the data directory: it is no part of what a power cut takes. Where it is, there is a recording.
func (r recorder) log() string { return r.root + ".power" }

// record is what durable.OnSync is set to.
func record(f *os.File) {
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	must(err)
	for dir := at; len(dir) > 1; dir = filepath.Dir(dir) {
		r := recorder{dir}
		if _, err := os.Stat(r.log()); err == nil {
			r.write(f, at, "")
			return
		}
	}
}

// said notes that something was told.
func (r recorder) said(what string) { r.write(nil, "", what) }

func (r recorder) write(f *os.File, at, said string) {
	log, err := os.OpenFile(r.log(), os.O_WRONLY|os.O_APPEND, 0)
	must(err)
	defer func() { _ = log.Close() }()
	must(unix.Flock(int(log.Fd()), unix.LOCK_EX))
	m := moment{Said: said, Tree: look(r.root)}
	if f != nil {
		var st unix.Statx_t
		must(unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_ALL, &st))
		m.Sync = identity(&st)
		m.Path, err = filepath.Rel(r.root, at)
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

// look reads a tree as it was at one moment, though others change it: until it is twice the same.
func look(root string) node {
	for before := glance(unix.AT_FDCWD, root); ; {
		n := glance(unix.AT_FDCWD, root)
		if reflect.DeepEqual(n, before) {
			return n
		}
		before = n
	}
}

// glance reads a tree once. What vanishes meanwhile is not there; what is there is one file: it is opened, and then only what is open is looked at. A path may
// name another file, or none, by the time it is read.
func glance(dir int, name string) (n node) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return n
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Statx_t
	must(unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_ALL, &st))
	n.ID = identity(&st)
	open := fmt.Sprintf("/proc/self/fd/%d", fd)
	switch fs.FileMode(st.Mode) & unix.S_IFMT {
	case unix.S_IFDIR:
		n.Dir, n.Entries = true, map[string]node{}
		list, err := os.ReadDir(open)
		if errors.Is(err, fs.ErrNotExist) { // it is open, and removed
			return node{}
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

// history is a recording.
type history []moment

// history reads what was recorded.
func (r recorder) history() (all history, err error) {
	data, err := os.ReadFile(r.log())
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var m moment
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// platter is what is surely on the disk: of every file that was ever synced the content, of every such directory the names, as
// they then were.
type platter map[string]node

// synced takes over what a moment makes durable.
func (p platter) synced(m *moment) {
	var find func(n node) bool
	find = func(n node) bool {
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

// image is what a power cut leaves, by path: the content of files, nil for directories.
type image map[string][]byte

// cut draws what is left of a tree when the power is cut: of every name and every content either what was synced last or what is
// now there or, of a file, a part of that. A rename is done or not done, but for one whose old place alone was synced: that one
// is lost, as a file system may that keeps no order between directories. Without a draw nothing remains that was not synced.
func (p platter) cut(now node, draw func(n int) int) image {
	left, moved := image{}, map[string]bool{}
	took := func(id string) bool { // that what was done to this node since is on the disk
		if _, drawn := moved[id]; !drawn {
			moved[id] = draw != nil && draw(2) == 0
		}
		return moved[id]
	}
	current := map[string]node{}
	var index func(n node)
	index = func(n node) {
		current[n.ID] = n
		for _, child := range n.Entries {
			index(child)
		}
	}
	index(now)
	var build func(at string, n node)
	build = func(at string, n node) {
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
		names := map[string]node{}
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
func survive(disk, now node, known bool, draw func(n int) int) []byte {
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
