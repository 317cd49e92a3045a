// Package storetest is the conformance suite that every kind of store must pass: an object is there whole or not at all, whatever happened
// to its upload; nothing is read that does not have its digest; what is named stays, also beside collections. It must not know how a kind
// stores anything.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Run runs the whole suite.
func Run(t *testing.T, k Kind) {
	tests := map[string]func(*desk){
		"EmptyIsEmpty":                      emptyIsEmpty,
		"WhatIsPutComesBack":                comesBack,
		"AWrongDigestStoresNothing":         wrongDigest,
		"ADamagedObjectIsNeverRead":         damaged,
		"ABrokenUploadGoesOn":               broken,
		"ATornUploadIsBegunAnew":            torn,
		"AnUploadThatIsKilledIsNotSeen":     killed,
		"TheSameTwiceIsSentOnce":            twice,
		"ManyWritersAtOnce":                 manyWriters,
		"FaultsSayWhatTheyAre":              faults,
		"NamesComeBack":                     names,
		"BadNamesAndDigestsAreRefused":      badNames,
		"GarbageGoesAndWhatIsNamedStays":    garbage,
		"ARenewalOutlivesARemoval":          renewBesideRemove,
		"UploadsThatWereGivenUpAreSwept":    swept,
		"ACollectionBesideUploadsTakesNone": collectBesideUploads,
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			p := k(t)
			tests[name](&desk{T: t, Place: p, s: opened(t, p)})
		})
	}
}

// breaking is a source that fails at a byte.
type breaking struct {
	*bytes.Reader
	at  int64
	err error
}

func (b breaking) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.at {
		if off >= b.at {
			return 0, b.err
		}
		n, _ := b.Reader.ReadAt(p[:b.at-off], off)
		return n, b.err
	}
	return b.Reader.ReadAt(p, off)
}

func emptyIsEmpty(d *desk) {
	d.unseen(digestOf([]byte("nothing")))
	if list := d.all(); len(list) > 0 {
		d.Errorf("an empty store lists %v", list)
	}
	c, err := store.Collect(d.Context(), d.s, store.LeastAge, false)
	if err != nil || c != (store.Collected{}) {
		d.Errorf("collecting in an empty store: %+v, %v", c, err)
	}
	_, err = store.Collect(d.Context(), d.s, time.Minute, false)
	d.kind(err, errkind.Invalid, "collecting what is young")
}

func comesBack(d *desk) {
	for i, size := range []int{0, 1, 511, 1 << 20, 1<<20 + 1, 5<<20 + 3, 11 << 20} {
		data := content(uint64(i), size)
		g := d.put(data)
		d.holds(data)
		o, err := d.s.Stat(d.Context(), g)
		if err != nil || o.Size != int64(size) || o.Digest != g || o.Changed.IsZero() {
			d.Errorf("Stat says %+v, %v", o, err)
		}
		other := opened(d.T, d.Place)
		if again, err := other.Put(d.Context(), g, bytes.NewReader(data)); err != nil || again.Size != o.Size {
			d.Errorf("put again by another: %+v, %v", again, err)
		}
	}
	if n := len(d.all()); n != 7 {
		d.Errorf("%d objects are listed, want 7", n)
	}
}

func wrongDigest(d *desk) {
	data, said := content(1, 6<<20), digestOf(content(2, 100))
	_, err := d.s.Put(d.Context(), said, bytes.NewReader(data))
	d.kind(err, errkind.Invalid, "a wrong digest")
	d.unseen(said)
	d.unseen(digestOf(data))
	// What that has left does not stand in the way of the right bytes.
	right := content(2, 100)
	_, err = d.s.Put(d.Context(), said, bytes.NewReader(right))
	d.ok(err)
	d.holds(right)
}

func damaged(d *desk) {
	data := content(1, 3<<20)
	g := d.put(data)
	d.Damage(g)
	r, err := d.s.Open(d.Context(), g)
	d.ok(err)
	_, err = io.Copy(io.Discard, r)
	d.kind(err, errkind.Corrupt, "reading a damaged object")
	d.ok(r.Close())
}

// broken: an upload that was interrupted goes on, and sends little twice.
func broken(d *desk) {
	data := content(1, 20<<20+77)
	g := digestOf(data)
	trouble := errors.New("the disk that it is read from")
	before := d.Sent()
	_, err := d.s.Put(d.Context(), g, breaking{bytes.NewReader(data), 17 << 20, trouble})
	if !errors.Is(err, trouble) {
		d.Fatalf("an upload that can't be read ends with %v", err)
	}
	d.unseen(g)
	sent := d.Sent() - before
	d.s = opened(d.T, d.Place)
	_, err = d.s.Put(d.Context(), g, bytes.NewReader(data))
	d.ok(err)
	d.holds(data)
	if all := d.Sent() - before; all > int64(len(data))+d.Part || sent < 17<<20-d.Part {
		d.Errorf("%d bytes were sent for %d, %d of them before it broke off", all, len(data), sent)
	}
}

func torn(d *desk) {
	if d.Tear == nil {
		d.Skip("skipped: parts of uploads lie at this kind's server, which checks them")
	}
	data := content(1, 9<<20)
	_, err := d.s.Put(d.Context(), digestOf(data), breaking{bytes.NewReader(data), 8 << 20, io.ErrUnexpectedEOF})
	if err == nil {
		d.Fatal("an upload that can't be read is stored")
	}
	d.Tear(digestOf(data))
	d.unseen(digestOf(data))
	_, err = d.s.Put(d.Context(), digestOf(data), bytes.NewReader(data))
	d.ok(err)
	d.holds(data)
}

func twice(d *desk) {
	data := content(1, 6<<20)
	g := d.put(data)
	d.Age(g, 10*time.Hour)
	old, err := d.s.Stat(d.Context(), g)
	d.ok(err)
	sent := d.Sent()
	_, err = d.s.Put(d.Context(), g, bytes.NewReader(data))
	d.ok(err)
	if d.Sent() != sent {
		d.Error("what is there is sent again")
	}
	if now, err := d.s.Stat(d.Context(), g); err != nil || now.Changed.Sub(old.Changed) < 9*time.Hour {
		d.Errorf("it is as old as before: %v, then %v (%v)", old.Changed, now.Changed, err)
	}
}

func manyWriters(d *desk) {
	var group sync.WaitGroup
	shared := content(99, 7<<20)
	for w := range 6 {
		s := d.s
		if w%2 == 1 {
			s = opened(d.T, d.Place)
		}
		group.Go(func() {
			own := content(uint64(w), 1<<20)
			for _, data := range [][]byte{own, shared} {
				if _, err := s.Put(d.Context(), digestOf(data), bytes.NewReader(data)); err != nil {
					d.Error(err)
				}
			}
			if err := store.Name(d.Context(), s, "together/one", store.Refs{"own": digestOf(own)}); err != nil {
				d.Error(err)
			}
		})
	}
	group.Wait()
	d.holds(shared)
	for w := range 6 {
		d.holds(content(uint64(w), 1<<20))
	}
	if n := len(d.all()); n != 7 {
		d.Errorf("%d objects, want 7", n)
	}
	n, err := d.s.ReadName(d.Context(), "together/one")
	if err != nil || len(n.Refs) != 1 {
		d.Errorf("a name that several have set says %v, %v", n, err)
	}
}

func faults(d *desk) {
	data := content(1, 6<<20)
	for fault, want := range map[Fault]errkind.Kind{Full: errkind.Exhausted, Forbidden: errkind.Denied, Unreachable: errkind.Unavailable} {
		d.Fail(fault)
		_, err := d.s.Put(d.Context(), digestOf(data), bytes.NewReader(data))
		if fault == Full && !errors.Is(err, unix.ENOSPC) {
			d.Errorf("a full store says %v, which is not ENOSPC to errors.Is", err)
		}
		named := d.s.SetName(d.Context(), "a/b", store.Refs{"x": digestOf(data)})
		d.Fail(Works)
		d.kind(err, want, "a put")
		d.kind(named, want, "a name")
		d.unseen(digestOf(data))
		_, err = d.s.ReadName(d.Context(), "a/b")
		d.kind(err, errkind.NotFound, "a name that was not set")
	}
	ctx, cancel := context.WithCancel(d.Context())
	cancel()
	_, err := d.s.Put(ctx, digestOf(data), bytes.NewReader(data))
	if !errors.Is(err, context.Canceled) {
		d.Errorf("a caller that has given up gets %v", err)
	}
	d.unseen(digestOf(data))
	_, err = d.s.Put(d.Context(), digestOf(data), bytes.NewReader(data))
	d.ok(err)
	d.holds(data)
}

func names(d *desk) {
	a, b := d.put([]byte("a")), d.put([]byte("b"))
	nobody := digestOf([]byte("nobody"))
	d.kind(store.Name(d.Context(), d.s, "x/y", store.Refs{"a": a, "n": nobody}), errkind.NotFound, "naming what is not there")
	_, err := d.s.ReadName(d.Context(), "x/y")
	d.kind(err, errkind.NotFound, "a name that was refused")
	d.ok(store.Name(d.Context(), d.s, "x/y", store.Refs{"a": a}))
	d.ok(store.Name(d.Context(), d.s, "x/y", store.Refs{"a": b, "b": a}))
	d.ok(store.Name(d.Context(), d.s, "x/y/z", store.Refs{"a": a}))
	d.ok(store.Name(d.Context(), d.s, "xy", store.Refs{"a": a}))
	n, err := opened(d.T, d.Place).ReadName(d.Context(), "x/y")
	if err != nil || !maps.Equal(n.Refs, store.Refs{"a": b, "b": a}) || n.Name != "x/y" || n.Changed.IsZero() {
		d.Errorf("%+v, %v", n, err)
	}
	list := func(folder string) (all []string) {
		d.ok(d.s.Names(d.Context(), folder, func(n store.Named) error {
			all = append(all, n.Name)
			return nil
		}))
		slices.Sort(all)
		return all
	}
	if all := list(""); !slices.Equal(all, []string{"x/y", "x/y/z", "xy"}) {
		d.Errorf("all names: %v", all)
	}
	if all := list("x"); !slices.Equal(all, []string{"x/y", "x/y/z"}) {
		d.Errorf("those in x: %v", all)
	}
	if all := list("x/y"); !slices.Equal(all, []string{"x/y/z"}) {
		d.Errorf("those in x/y: %v", all)
	}
	if all := list("none"); len(all) > 0 {
		d.Errorf("those nowhere: %v", all)
	}
	d.ok(d.s.Unname(d.Context(), "x/y"))
	d.ok(d.s.Unname(d.Context(), "x/y"))
	if all := list(""); !slices.Equal(all, []string{"x/y/z", "xy"}) {
		d.Errorf("what is left: %v", all)
	}
}

func badNames(d *desk) {
	g := d.put([]byte("a"))
	for _, name := range []string{"", "/", "a/", "/a", "a//b", "..", "a/../b", ".a", "a b", "a\x00", "ü", string(make([]byte, 600))} {
		d.kind(store.Name(d.Context(), d.s, name, store.Refs{"a": g}), errkind.Invalid, "the name "+name)
		_, err := d.s.ReadName(d.Context(), name)
		d.kind(err, errkind.Invalid, "reading the name "+name)
		d.kind(d.s.Unname(d.Context(), name), errkind.Invalid, "removing the name "+name)
	}
	d.kind(d.s.SetName(d.Context(), "a", nil), errkind.Invalid, "a name of nothing")
	for _, bad := range []store.Digest{"", "..", "../../etc/passwd", g[:63], g + "0", store.Digest(bytes.ToUpper([]byte(g)))} {
		_, err := d.s.Stat(d.Context(), bad)
		d.kind(err, errkind.Invalid, "Stat of a bad digest")
		_, err = d.s.Open(d.Context(), bad)
		d.kind(err, errkind.Invalid, "Open of a bad digest")
		_, err = d.s.Remove(d.Context(), bad, time.Now())
		d.kind(err, errkind.Invalid, "Remove of a bad digest")
		d.kind(d.s.Renew(d.Context(), bad), errkind.Invalid, "Renew of a bad digest")
		if bad != "" {
			_, err = d.s.Put(d.Context(), bad, bytes.NewReader(nil))
			d.kind(err, errkind.Invalid, "Put of a bad digest")
		}
	}
}

func (d *desk) collect(before time.Time, dry bool) store.Collected {
	d.Helper()
	c, err := store.CollectBefore(d.Context(), d.s, before, dry)
	d.ok(err)
	return c
}

func (d *desk) now() time.Time {
	d.Helper()
	now, err := d.s.Now(d.Context())
	d.ok(err)
	return now
}

func garbage(d *desk) {
	named, old, young := d.put([]byte("named")), d.put(content(1, 1000)), d.put([]byte("young"))
	d.ok(store.Name(d.Context(), d.s, "keep/it", store.Refs{"x": named}))
	d.Age(named, 3*time.Hour)
	d.Age(old, 3*time.Hour)
	before := d.now().Add(-time.Hour)
	want := store.Collected{Objects: 3, Names: 1, Removed: 1, Bytes: 1000}
	if c := d.collect(before, true); c != want {
		d.Errorf("a dry collection: %+v, want %+v", c, want)
	}
	if c := d.collect(before, false); c != want {
		d.Errorf("a collection: %+v, want %+v", c, want)
	}
	d.unseen(old)
	d.holds([]byte("named"))
	d.holds([]byte("young"))
	d.ok(d.s.Unname(d.Context(), "keep/it"))
	d.Age(named, 3*time.Hour)
	d.collect(before, false)
	if all := d.all(); !slices.Equal(all, []store.Digest{young}) {
		d.Errorf("left: %v", all)
	}
	if removed, err := d.s.Remove(d.Context(), old, d.now()); removed || err != nil {
		d.Errorf("removing what is gone: %v, %v", removed, err)
	}
}

// renewBesideRemove: an object whose Renew has returned is there, also if others remove it at the same moment.
func renewBesideRemove(d *desk) {
	other := opened(d.T, d.Place)
	data := []byte("wanted by one and by nobody else")
	for range 25 {
		g := d.put(data)
		d.Age(g, 3*time.Hour)
		before := d.now().Add(-time.Hour)
		var group sync.WaitGroup
		var renewed error
		group.Go(func() { renewed = d.s.Renew(d.Context(), g) })
		for range 2 {
			group.Go(func() {
				if _, err := other.Remove(d.Context(), g, before); err != nil {
					d.Error(err)
				}
			})
		}
		group.Wait()
		if renewed == nil {
			d.holds(data)
		} else {
			d.kind(renewed, errkind.NotFound, "renewing beside a removal")
			d.unseen(g)
		}
	}
}

func swept(d *desk) {
	data := content(1, 18<<20)
	if _, err := d.s.Put(d.Context(), digestOf(data), breaking{bytes.NewReader(data), 17 << 20, io.ErrUnexpectedEOF}); err == nil {
		d.Fatal("an upload that can't be read is stored")
	}
	if n, err := d.s.Sweep(d.Context(), d.now().Add(-time.Hour)); n != 0 || err != nil {
		d.Errorf("a sweep takes %d young uploads, %v", n, err)
	}
	if n, err := d.s.Sweep(d.Context(), d.now().Add(time.Hour)); n != 1 || err != nil {
		d.Errorf("a sweep takes %d old uploads, %v; want 1", n, err)
	}
	if n, err := d.s.Sweep(d.Context(), d.now().Add(time.Hour)); n != 0 || err != nil {
		d.Errorf("the next one takes %d, %v", n, err)
	}
	_, err := d.s.Put(d.Context(), digestOf(data), bytes.NewReader(data))
	d.ok(err)
	d.holds(data)
}

// collectBesideUploads: while everything that nobody names is collected again and again, whatever its age, what is put and then named is
// there, and is never seen in half.
func collectBesideUploads(d *desk) {
	stop := make(chan struct{})
	var group, collector sync.WaitGroup
	other := opened(d.T, d.Place)
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			now, err := other.Now(d.Context())
			if err == nil {
				_, err = store.CollectBefore(d.Context(), other, now.Add(-time.Hour), false)
			}
			if err != nil {
				d.Error(err)
				return
			}
		}
	})
	for w := range 3 {
		group.Go(func() {
			for i := range 8 {
				data := content(uint64(w*100+i), 100<<10)
				if _, err := d.s.Put(d.Context(), "", bytes.NewReader(data)); err != nil {
					d.Error(err)
					return
				}
				d.Age(digestOf(data), 3*time.Hour) // as if its uploader had slept since: then naming it may fail, and it is put again
				name := "w" + string(rune('a'+w)) + "/" + string(rune('a'+i))
				for {
					err := store.Name(d.Context(), d.s, name, store.Refs{"x": digestOf(data)})
					if err == nil {
						break
					}
					if errkind.Of(err) == errkind.NotFound {
						_, err = d.s.Put(d.Context(), digestOf(data), bytes.NewReader(data))
					}
					if err != nil {
						d.Error(err)
						return
					}
				}
			}
		})
	}
	group.Wait()
	close(stop)
	collector.Wait()
	for w := range 3 {
		for i := range 8 {
			d.holds(content(uint64(w*100+i), 100<<10))
		}
	}
}
