// Package memory is the journal kind for tests: the local kind on a directory in memory that can be full, lose its power
// at any write, and rot. What it loses is what a real disk may lose: any part of what was not synced, in any order,
// including names. Nothing of it survives the process.
package memory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
	"sluice.dev/sluice/internal/edge/journal/local"
)

// Disk is a directory in memory. The zero value is not usable; see New. It is safe for concurrent use.
type Disk struct {
	mu sync.Mutex
	// names is the directory as processes see it, synced as the disk has it; since are the changes not yet synced.
	names, synced map[string]*inode
	since         []change
	locked        bool
	// room is how many bytes files may still grow by, negative for no limit.
	room int64
	// left is how many more operations that change something succeed, negative for no limit.
	left int64
	ops  int64
	// syncErr is what the next badSyncs syncs of files return, and sync nothing.
	syncErr  error
	badSyncs int
}

// change is one change of the directory: to gets the inode (or nothing), from loses it.
type change struct {
	from, to string
	node     *inode
}

// inode is a file's content as processes see it, as the disk has it, and the writes in between.
type inode struct {
	now, disk []byte
	since     []write
}

// write is data at off, or a change of size to off if data is nil.
type write struct {
	off  int64
	data []byte
}

// ErrPowerCut is what every operation returns after the power was cut (CutAfter), until Restart.
var ErrPowerCut = errors.New("the power was cut")

var _ disk.FS = (*Disk)(nil)

// New is an empty directory without limits.
func New() *Disk {
	return &Disk{names: map[string]*inode{}, synced: map[string]*inode{}, room: -1, left: -1}
}

// Open opens the journal on d, as local.Open does.
func Open(d *Disk, o local.Options) (journal.Journal, error) { return local.OpenOn(d, o) }

// SetRoom lets files grow by n more bytes and then says that the disk is full; negative takes the limit away.
func (d *Disk) SetRoom(n int64) { d.mu.Lock(); defer d.mu.Unlock(); d.room = n }

// CutAfter lets n more operations that change something succeed (writes, truncations, syncs, and changes of names); the
// next one has an unknown part of its effect, and all later ones fail with ErrPowerCut.
func (d *Disk) CutAfter(n int64) { d.mu.Lock(); defer d.mu.Unlock(); d.left = n }

// FailSyncs lets the next n syncs of files fail with err and sync nothing.
func (d *Disk) FailSyncs(n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.badSyncs, d.syncErr = n, err
}

// Ops is how many operations have changed something since New.
func (d *Disk) Ops() int64 { d.mu.Lock(); defer d.mu.Unlock(); return d.ops }

// Restart is the machine after its power was cut: a new directory with everything that was synced and a part of the rest,
// drawn by seed sector by sector; with seed 0 nothing of the rest. Open files of d have nothing to do with it.
func (d *Disk) Restart(seed uint64) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	draw := splitmix(seed)
	if seed == 0 {
		draw = func() uint64 { return 1 }
	}
	n := New()
	nodes := map[*inode]*inode{}
	survive := func(i *inode) *inode {
		if nodes[i] == nil {
			content := i.survive(draw)
			nodes[i] = &inode{now: content, disk: slices.Clone(content)}
		}
		return nodes[i]
	}
	after := maps.Clone(d.synced)
	for _, c := range d.since {
		if draw()%2 == 0 {
			c.apply(after)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		n.names[name] = survive(after[name])
	}
	n.synced = maps.Clone(n.names)
	return n
}

// Kill is the machine after the process was killed: everything written is there, nothing more is durable than before, and
// the lock is gone.
func (d *Disk) Kill() { d.mu.Lock(); defer d.mu.Unlock(); d.locked, d.left = false, -1 }

const sector = 512

// survive is what a power cut leaves of a file: each unsynced write, or each sector of it, or nothing.
func (i *inode) survive(draw func() uint64) []byte {
	b := slices.Clone(i.disk)
	for _, w := range i.since {
		if w.data == nil {
			if draw()%2 == 0 {
				b = w.apply(b)
			}
			continue
		}
		whole := draw()%4 == 0
		for at := int64(0); at < int64(len(w.data)); {
			end := min((w.off+at)/sector*sector+sector-w.off, int64(len(w.data)))
			if whole || draw()%2 == 0 {
				b = write{w.off + at, w.data[at:end]}.apply(b)
			}
			at = end
		}
	}
	return b
}

// apply makes the write in b, which it may grow in place.
func (w write) apply(b []byte) []byte {
	end := w.off + int64(len(w.data))
	if grow := end - int64(len(b)); grow > 0 {
		b = append(b, make([]byte, grow)...)
	}
	if w.data == nil {
		return b[:w.off]
	}
	copy(b[w.off:], w.data)
	return b
}

// do makes a write that the disk does not have yet.
func (i *inode) do(w write) {
	i.now = w.apply(i.now)
	i.since = append(i.since, w)
}

func (c change) apply(names map[string]*inode) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.node
	}
}

// splitmix is a small stream of numbers that depends on nothing but its seed.
func splitmix(seed uint64) func() uint64 {
	return func() uint64 {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
}

// step counts an operation that changes something. cut: the power is cut in the middle of it.
func (d *Disk) step() (cut bool, err error) {
	switch {
	case d.left == 0:
		d.left = -2
		return true, nil
	case d.left < -1:
		return false, ErrPowerCut
	case d.left > 0:
		d.left--
	}
	d.ops++
	return false, nil
}

func (d *Disk) powered() error {
	if d.left < -1 {
		return ErrPowerCut
	}
	return nil
}

func (d *Disk) alter(c change) error {
	cut, err := d.step()
	if err != nil {
		return err
	}
	c.apply(d.names)
	d.since = append(d.since, c)
	if cut {
		return ErrPowerCut
	}
	return nil
}

func (d *Disk) get(op, name string) (*inode, error) {
	if err := d.powered(); err != nil {
		return nil, err
	}
	i, ok := d.names[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return i, nil
}

// String implements disk.FS.
func (d *Disk) String() string { return "memory" }

// List implements disk.FS.
func (d *Disk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), d.powered()
}

// Open implements disk.FS.
func (d *Disk) Open(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := d.get("open", name)
	if err != nil {
		return nil, err
	}
	return &file{d: d, i: i}, nil
}

// View implements disk.FS.
func (d *Disk) View(name string) (disk.File, error) { return d.Open(name) }

// Create implements disk.FS.
func (d *Disk) Create(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if d.room == 0 {
		return nil, &fs.PathError{Op: "create", Path: name, Err: unix.ENOSPC}
	}
	i := &inode{}
	if err := d.alter(change{to: name, node: i}); err != nil {
		return nil, err
	}
	return &file{d: d, i: i}, nil
}

// Rename implements disk.FS.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := d.get("rename", from)
	if err != nil {
		return err
	}
	return d.alter(change{from: from, to: to, node: i})
}

// Remove implements disk.FS.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := d.get("remove", name)
	if err != nil {
		return err
	}
	if d.room >= 0 {
		d.room += int64(len(i.now))
	}
	return d.alter(change{from: name})
}

// Sync implements disk.FS.
func (d *Disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	cut, err := d.step()
	if err != nil || cut {
		return errors.Join(err, d.powered())
	}
	d.synced, d.since = maps.Clone(d.names), nil
	return nil
}

// Lock implements disk.FS.
func (d *Disk) Lock() (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, disk.Held(d, unix.Getpid())
	}
	d.locked = true
	return unlock{d}, nil
}

type unlock struct{ d *Disk }

func (u unlock) Close() error { u.d.mu.Lock(); defer u.d.mu.Unlock(); u.d.locked = false; return nil }

// Holder implements disk.FS.
func (d *Disk) Holder() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return unix.Getpid()
	}
	return 0
}

// Get is the content of a file.
func (d *Disk) Get(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := d.get("read", name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(i.now), nil
}

// Rot replaces the content of a file as it lies on the disk, behind everybody's back; nil removes the file.
func (d *Disk) Rot(name string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if content == nil {
		delete(d.names, name)
		delete(d.synced, name)
		return
	}
	i := &inode{now: slices.Clone(content), disk: slices.Clone(content)}
	d.names[name], d.synced[name] = i, i
}

// file is an open file.
type file struct {
	d      *Disk
	i      *inode
	closed bool
}

func (f *file) use() error {
	if f.closed {
		return fs.ErrClosed
	}
	return f.d.powered()
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.use(); err != nil {
		return 0, err
	}
	if off >= int64(len(f.i.now)) {
		return 0, io.EOF
	}
	n := copy(b, f.i.now[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.use(); err != nil {
		return 0, err
	}
	cut, err := f.d.step()
	if err != nil {
		return 0, err
	}
	var full error
	if grow := off + int64(len(b)) - int64(len(f.i.now)); f.d.room >= 0 && grow > 0 {
		if grow > f.d.room {
			b = b[:max(0, int64(len(b))-(grow-f.d.room))]
			grow, full = f.d.room, fmt.Errorf("write: %w", unix.ENOSPC)
			if len(b) == 0 {
				grow = 0
			}
		}
		f.d.room -= grow
	}
	if len(b) > 0 {
		f.i.do(write{off, slices.Clone(b)})
	}
	if cut {
		return 0, ErrPowerCut
	}
	return len(b), full
}

func (f *file) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.use(); err != nil {
		return err
	}
	cut, err := f.d.step()
	if err != nil {
		return err
	}
	if f.d.room >= 0 {
		f.d.room += int64(len(f.i.now)) - size
	}
	f.i.do(write{off: size})
	if cut {
		return ErrPowerCut
	}
	return nil
}

func (f *file) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.use(); err != nil {
		return err
	}
	cut, err := f.d.step()
	if err != nil {
		return err
	}
	if cut {
		return ErrPowerCut
	}
	if f.d.badSyncs > 0 {
		f.d.badSyncs--
		return f.d.syncErr
	}
	for _, w := range f.i.since {
		f.i.disk = w.apply(f.i.disk)
	}
	f.i.since = nil
	return nil
}

func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.i.now)), f.use()
}

func (f *file) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	return nil
}
