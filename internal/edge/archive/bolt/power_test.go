package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
)

// pages is a file of the store and the writes to it since. One of its first two pages, the meta pages, says where the tree is: the store
// syncs before and after it writes one of these.
type pages struct {
	before []byte
	writes []written
}

// written is one write at an offset, and how long the file was then. The length is always durable: the store syncs whenever it grows it.
type written struct {
	at   int64
	data []byte
	long int64
}

// watch notes every write of an open archive.
func watch(a *Archive, p *pages) {
	field := reflect.ValueOf(a.db).Elem().FieldByName("ops").FieldByName("writeAt")
	write := (*func(b []byte, off int64) (int, error))(unsafe.Pointer(field.UnsafeAddr())) //nolint:gosec // the store has no other way in
	real := *write
	*write = func(b []byte, off int64) (int, error) {
		info, err := a.file.Stat()
		if err != nil {
			return 0, err
		}
		p.writes = append(p.writes, written{off, append([]byte(nil), b...), info.Size()})
		return real(b, off)
	}
}

// cut is the file after a power cut that follows n writes: each sector that was not synced is kept or lost. If n is more than there are
// writes, all are synced.
func (p *pages) cut(t *rapid.T, n int, pageSize int64) []byte {
	const sector = 512
	file, synced := append([]byte(nil), p.before...), 0
	done := p.writes[:min(n, len(p.writes))]
	for i, w := range done {
		if w.at < 2*pageSize {
			synced = i // all before it
		}
	}
	if n > len(p.writes) {
		synced = n
	}
	for i, w := range done {
		if grow := w.long - int64(len(file)); grow > 0 {
			file = append(file, make([]byte, grow)...)
		}
		for at := 0; at < len(w.data); at += sector {
			if i < synced || rapid.Bool().Draw(t, "kept") {
				copy(file[w.at+int64(at):], w.data[at:min(at+sector, len(w.data))])
			}
		}
	}
	return file
}

// TestAPowerCutTakesNothingThatWasFiled: the power is cut after any write of a call of File. All that was filed before is there, of this
// call all or nothing, and the archive can be written to.
func TestAPowerCutTakesNothingThatWasFiled(t *testing.T) {
	base, draws := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		draws++
		dir := filepath.Join(base, fmt.Sprint(draws))
		a := begun(rt, dir)
		if a.db.NoSync || a.db.NoGrowSync {
			rt.Fatal("it does not sync")
		}
		filed := map[job.ID]bool{}
		file := func(n int) (names []job.ID, err error) {
			var parts []archive.Part
			for range n {
				id := job.ID(fmt.Sprintf("j%d", rapid.IntRange(0, 30).Draw(rt, "job")))
				parts = append(parts, archivetest.Job(id, 1, quantity.Instant(len(id)), 9)...)
				names = append(names, id)
			}
			return names, a.File(parts)
		}
		for range rapid.IntRange(0, 3).Draw(rt, "before") {
			names, err := file(rapid.IntRange(1, 12).Draw(rt, "jobs"))
			if err != nil {
				rt.Fatal(err)
			}
			for _, id := range names {
				filed[id] = true
			}
		}
		var p pages
		var err error
		if p.before, err = os.ReadFile(a.path); err != nil {
			rt.Fatal(err)
		}
		watch(a, &p)
		names, err := file(rapid.IntRange(1, 40).Draw(rt, "jobs"))
		if err != nil {
			rt.Fatal(err)
		}
		size := int64(a.db.Info().PageSize)
		if err := a.Close(); err != nil {
			rt.Fatal(err)
		}
		n := rapid.IntRange(0, len(p.writes)+1).Draw(rt, "cut")
		acknowledged := n > len(p.writes)
		again := dir + ".again"
		if err := os.Mkdir(again, 0o700); err != nil {
			rt.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(again, FileName), p.cut(rt, n, size), 0o600); err != nil {
			rt.Fatal(err)
		}
		if a, err = Open(again, true); err != nil {
			rt.Fatalf("cut behind %d of %d writes: %v", n, len(p.writes), err)
		}
		defer func() { _ = a.Close() }()
		there := 0
		for id := range filed {
			if _, ok, err := a.Recall(protocol.Gate, id); !ok || err != nil {
				rt.Errorf("job %s was filed, and is there %v, %v", id, ok, err)
			}
		}
		news := map[job.ID]bool{}
		for _, id := range names {
			if !filed[id] {
				news[id] = true
			}
		}
		for id := range news {
			for _, role := range roles() {
				_, ok, err := a.Recall(role, id)
				if err != nil {
					rt.Error(err)
				}
				if ok {
					there++
				}
			}
		}
		if all := len(news) * len(roles()); there != all && (there != 0 || acknowledged) {
			rt.Errorf("%d of %d parts of one call are there", there, len(news)*len(roles()))
		}
		if draws%4 != 0 { // seldom, for the sync it costs
			return
		}
		if err := a.File(archivetest.Job("on", 1, 1, 2)); err != nil {
			rt.Errorf("it does not go on: %v", err)
		}
	})
}

func begun(t *rapid.T, dir string) *Archive {
	a, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
