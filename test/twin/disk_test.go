package twin_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/journal/disk"
)

// memoryDisk is a directory in memory for the local kind of journal: it can be full, lose its power at any write, and rot. What it loses is
// what a real disk may lose: any part of what was not synced, in any order, including names. The zero value is not usable; see newDisk. It
// is safe for concurrent use.
type memoryDisk struct {
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

// errPowerCut is what every operation returns after the power was cut (CutAfter), until Restart.
var errPowerCut = errors.New("the power was cut")

var _ disk.FS = (*memoryDisk)(nil)

// newDisk is an empty directory without limits.
func newDisk() *memoryDisk {
	return &memoryDisk{names: map[string]*inode{}, synced: map[string]*inode{}, room: -1, left: -1}
}

// SetRoom lets files grow by n more bytes and then says that the disk is full; negative takes the limit away.
func (d *memoryDisk) SetRoom(n int64) { d.mu.Lock(); defer d.mu.Unlock(); d.room = n }

// CutAfter lets n more operations that change something succeed (writes, truncations, syncs, and changes of names); the
// next one has an unknown part of its effect, and all later ones fail with errPowerCut.
func (d *memoryDisk) CutAfter(n int64) { d.mu.Lock(); defer d.mu.Unlock(); d.left = n }

// FailSyncs lets the next n syncs of files fail with err and sync nothing.
func (d *memoryDisk) FailSyncs(n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.badSyncs, d.syncErr = n, err
}

// Ops is how many operations have changed something since New.
func (d *memoryDisk) Ops() int64 { d.mu.Lock(); defer d.mu.Unlock(); return d.ops }

// Restart is the machine after its power was cut: a new directory with everything that was synced and a part of the rest,
// drawn by seed sector by sector; with seed 0 nothing of the rest. Open files of d have nothing to do with it.
func (d *memoryDisk) Restart(seed uint64) *memoryDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	draw := splitmix(seed)
	if seed == 0 {
		draw = func() uint64 { return 1 }
	}
	n := newDisk()
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
func (d *memoryDisk) Kill() { d.mu.Lock(); defer d.mu.Unlock(); d.locked, d.left = false, -1 }

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
func (d *memoryDisk) step() (cut bool, err error) {
	switch {
	case d.left == 0:
		d.left = -2
		return true, nil
	case d.left < -1:
		return false, errPowerCut
	case d.left > 0:
		d.left--
	}
	d.ops++
	return false, nil
}

func (d *memoryDisk) powered() error {
	if d.left < -1 {
		return errPowerCut
	}
	return nil
}

func (d *memoryDisk) alter(c change) error {
	cut, err := d.step()
	if err != nil {
		return err
	}
	c.apply(d.names)
	d.since = append(d.since, c)
	if cut {
		return errPowerCut
	}
	return nil
}

func (d *memoryDisk) get(op, name string) (*inode, error) {
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
func (d *memoryDisk) String() string { return "memory" }

// List implements disk.FS.
func (d *memoryDisk) List() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names)), d.powered()
}

// Open implements disk.FS.
func (d *memoryDisk) Open(name string) (disk.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := d.get("open", name)
	if err != nil {
		return nil, err
	}
	return &diskFile{d: d, i: i}, nil
}

// View implements disk.FS.
func (d *memoryDisk) View(name string) (disk.File, error) { return d.Open(name) }

// Create implements disk.FS.
func (d *memoryDisk) Create(name string) (disk.File, error) {
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
	return &diskFile{d: d, i: i}, nil
}

// Rename implements disk.FS.
func (d *memoryDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := d.get("rename", from)
	if err != nil {
		return err
	}
	return d.alter(change{from: from, to: to, node: i})
}

// Remove implements disk.FS.
func (d *memoryDisk) Remove(name string) error {
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
func (d *memoryDisk) Sync() error {
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
func (d *memoryDisk) Lock() (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return nil, disk.Held(d, unix.Getpid())
	}
	d.locked = true
	return unlock{d}, nil
}

type unlock struct{ d *memoryDisk }

func (u unlock) Close() error { u.d.mu.Lock(); defer u.d.mu.Unlock(); u.d.locked = false; return nil }

// Holder implements disk.FS.
func (d *memoryDisk) Holder() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked {
		return unix.Getpid()
	}
	return 0
}

// Get is the content of a file.
func (d *memoryDisk) Get(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, err := d.get("read", name)
	if err != nil {
		return nil, err
	}
	return slices.Clone(i.now), nil
}

// Rot replaces the content of a file as it lies on the disk, behind everybody's back; nil removes the file.
func (d *memoryDisk) Rot(name string, content []byte) {
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
type diskFile struct {
	d      *memoryDisk
	i      *inode
	closed bool
}

func (f *diskFile) use() error {
	if f.closed {
		return fs.ErrClosed
	}
	return f.d.powered()
}

func (f *diskFile) ReadAt(b []byte, off int64) (int, error) {
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

func (f *diskFile) WriteAt(b []byte, off int64) (int, error) {
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
		return 0, errPowerCut
	}
	return len(b), full
}

func (f *diskFile) Truncate(size int64) error {
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
		return errPowerCut
	}
	return nil
}

func (f *diskFile) Sync() error {
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
		return errPowerCut
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

func (f *diskFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.i.now)), f.use()
}

func (f *diskFile) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	return nil
}
